//! Servers that speak something else.

use inrush_common::outcome::ErrorClass::HeaderParse;

use crate::row::{behaviours, says, says_and_closes, says_and_holds};

/// What a TLS server says to what is no handshake: a fatal alert.
const TLS_ALERT: &[u8] = &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46];

/// What an HTTP/2 server begins with: its settings.
const H2_SETTINGS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];

behaviours! {
    words "words that are not HTTP": says("SSH-2.0-OpenSSH_9.2p1\r\n").fails(HeaderParse);
    words_without_a_line_end "a few bytes that are not HTTP, and then nothing":
        says_and_holds("hello").fails(HeaderParse);
    zeros "bytes that are zero": says([0; 1000]).fails(HeaderParse);
    http_0_9 "a page without a head (HTTP/0.9)":
        says_and_closes("<html>hello</html>\r\n").fails(HeaderParse);
    a_request "a request instead of a response":
        says("GET / HTTP/1.1\r\nHost: example.test\r\n\r\n").fails(HeaderParse);
    tls "TLS on a plain port": says_and_closes(TLS_ALERT).fails(HeaderParse);
    http_2_settings "HTTP/2 on a plain port": says_and_closes(H2_SETTINGS).fails(HeaderParse);
    the_http_2_preface "the preface of HTTP/2":
        says("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").fails(HeaderParse);
}
