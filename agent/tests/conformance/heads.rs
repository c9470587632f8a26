//! Response heads that are unusual, too large, or none.

use inrush_common::outcome::ErrorClass::{HeaderParse, HeaderTooLarge};
use inrush_testkit::Step;

use crate::row::{Row, behaviours, does, says, says_and_closes, says_and_holds};

/// So many headers before the one that ends the body.
fn headers(number: usize) -> Vec<u8> {
    let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
    for at in 1..number {
        head.push_str(&format!("X-{at}: v\r\n"));
    }
    head.push_str("Content-Length: 2\r\n\r\nok");
    head.into_bytes()
}

/// A header of so many KiB.
fn long_header(kibibytes: usize) -> Vec<u8> {
    let long = "a".repeat(kibibytes * 1024 - "X-Long: \r\n".len());
    format!("HTTP/1.1 200 OK\r\nX-Long: {long}\r\nContent-Length: 2\r\n\r\nok").into_bytes()
}

/// A 200 with this status line.
fn status_line(line: &str) -> Row {
    says(format!("{line}\r\nContent-Length: 2\r\n\r\nok"))
}

/// A response with this header beside its length.
fn header(line: &[u8]) -> Row {
    says([b"HTTP/1.1 200 OK\r\n", line, b"\r\nContent-Length: 2\r\n\r\nok"].concat())
}

behaviours! {
    lower_case_headers "header names in lower case":
        says("HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok")
            .answers(200).kept();
    odd_spelling "header names and values in odd spelling":
        says("HTTP/1.1 200 OK\r\ntRANSFER-eNCODING:\t CHUNKED \t\r\nX-Empty:\r\n\r\n\
              2\r\nok\r\n0\r\n\r\n")
            .answers(200).kept();
    bytes_beyond_ascii "bytes beyond ASCII in reason and values":
        says(b"HTTP/1.1 200 gr\xfc\xdfe\r\nX-Latin: \xe4\xf6\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).kept();
    lone_line_feeds "lines that end with LF alone":
        says("HTTP/1.1 200 OK\nContent-Length: 2\n\nok").answers(200).kept();
    an_empty_line_first "empty line before the status line":
        says("\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").answers(200).kept();
    a_folded_header "folded header line (obs-fold)": header(b"X-Fold: a\r\n\t b\r\n  c").answers(200).kept();
    an_empty_reason "empty reason phrase": status_line("HTTP/1.1 200 ").answers(200).kept();
    no_reason "no reason phrase": status_line("HTTP/1.1 200").answers(200).kept();
    status_599 "status 599": status_line("HTTP/1.1 599 Own").answers(599).kept();
    status_999 "status 999": status_line("HTTP/1.1 999 Request denied").answers(999).kept();
    three_hundred_headers "300 headers": says(headers(300)).answers(200).kept();
    as_many_headers_as_are_taken "320 headers": says(headers(320)).answers(200).kept();
    one_header_too_many "321 headers": says_and_holds(headers(321)).fails(HeaderTooLarge);
    a_header_of_64_kib "header of 64 KiB": says(long_header(64)).answers(200).kept();
    a_header_of_400_kib "header of 400 KiB": says(long_header(400)).answers(200).kept();
    a_header_of_512_kib "header of 512 KiB":
        says_and_holds(long_header(512)).fails(HeaderTooLarge).still_writing();
    ten_thousand_headers "10,000 headers": says_and_holds(headers(10_000)).fails(HeaderTooLarge).still_writing();
    a_head_without_end "head without an end":
        does([Step::write("HTTP/1.1 200 OK\r\n"), Step::flood("X-More: and more\r\n".repeat(100))])
            .fails(HeaderTooLarge).still_writing();

    a_status_of_two_digits "status of two digits": status_line("HTTP/1.1 99 No").fails(HeaderParse);
    a_status_of_four_digits "status of four digits": status_line("HTTP/1.1 2000 OK").fails(HeaderParse);
    a_status_below_100 "status 099": status_line("HTTP/1.1 099 No").fails(HeaderParse);
    a_status_with_a_letter "status with a letter": status_line("HTTP/1.1 2x0 OK").fails(HeaderParse);
    two_spaces "two spaces before the status": status_line("HTTP/1.1  200 OK").fails(HeaderParse);
    http_in_lower_case "http in lower case": status_line("http/1.1 200 OK").fails(HeaderParse);
    another_version "HTTP/2.0 in the status line": status_line("HTTP/2.0 200 OK").fails(HeaderParse);
    another_protocol "ICY instead of HTTP": status_line("ICY 200 OK").fails(HeaderParse);
    a_space_before_the_colon "space before a header's colon": header(b"X-Space : a").fails(HeaderParse);
    a_line_without_a_colon "header line without a colon": header(b"nonsense").fails(HeaderParse);
    a_nul_in_a_value "NUL in a header value": header(b"X-Nul: a\0b").fails(HeaderParse);
    chunks_in_http_1_0 "Transfer-Encoding in HTTP/1.0":
        says("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
            .fails(HeaderParse);
    half_a_head "half a head, and a close":
        says_and_closes("HTTP/1.1 200 OK\r\nContent-Le").fails(HeaderParse);

    a_100_first "100 before the response":
        says("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).kept();
    a_102_first "102 before the response":
        says("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).kept();
    a_103_first "103 with headers before the response":
        says("HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nContent-Length: 9\r\n\r\n\
              HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).kept();
    many_interim_answers "many interim responses, byte by byte, before the response":
        does([
            Step::write("HTTP/1.1 100 Continue\r\n\r\n".repeat(1000)),
            Step::drip("HTTP/1.1 102 P\r\n\r\n", std::time::Duration::ZERO),
            Step::write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
        ])
        .answers(200).kept();
    an_upgrade_unasked "101 that nobody asked for":
        says_and_holds("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
            .answers(101).renewed();
    an_interim_answer_and_a_close "interim response, and a close":
        says_and_closes("HTTP/1.1 103 Early Hints\r\n\r\n").fails(HeaderParse);
}
