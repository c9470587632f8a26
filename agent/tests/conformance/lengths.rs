//! Bodies that are not what was announced.

use inrush_common::outcome::ErrorClass::{BodyDecode, BodyTruncated, HeaderParse};

use crate::row::{Row, behaviours, says, says_and_closes, says_and_holds};

/// Announces this length and sends five bytes, and keeps the connection.
fn length(announced: &str) -> Row {
    says_and_holds(format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\nhello"))
}

/// Sends these bytes as a chunked body, and keeps the connection.
fn chunked(body: &str) -> Row {
    says(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"))
}

/// Sends these bytes as a chunked body and closes.
fn chunked_and_closed(body: &str) -> Row {
    says_and_closes(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{body}"))
}

behaviours! {
    a_length_that_is_long "Content-Length longer than the body, and a close":
        says_and_closes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").fails(BodyTruncated);
    a_length_and_no_body "Content-Length, no body, and a close":
        says_and_closes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n").fails(BodyTruncated);
    two_lengths "two different Content-Lengths":
        says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nhello").fails(HeaderParse);
    two_lengths_in_a_list "two different Content-Lengths in one line": length("2, 5").fails(HeaderParse);
    a_negative_length "negative Content-Length": length("-1").fails(HeaderParse);
    a_signed_length "Content-Length with a sign": length("+5").fails(HeaderParse);
    no_number_as_length "Content-Length that is no number": length("five").fails(HeaderParse);
    an_empty_length "empty Content-Length": length("").fails(HeaderParse);
    minus_one_unsigned "Content-Length of 2^64 - 1": length("18446744073709551615").fails(HeaderParse);
    an_overflowing_length "Content-Length of 30 digits":
        length("999999999999999999999999999999").fails(HeaderParse);

    a_bad_chunk_size "chunk size that is no number": chunked("xyz\r\nhello\r\n0\r\n\r\n").fails(BodyDecode);
    a_negative_chunk_size "negative chunk size": chunked("-5\r\nhello\r\n0\r\n\r\n").fails(BodyDecode);
    an_empty_chunk_size "empty chunk size": chunked("\r\nhello\r\n0\r\n\r\n").fails(BodyDecode);
    an_overflowing_chunk_size "chunk size of 20 digits":
        chunked("ffffffffffffffffffff\r\nhello\r\n0\r\n\r\n").fails(BodyDecode);
    a_chunk_that_is_long "chunk longer than its size": chunked("2\r\nhello\r\n0\r\n\r\n").fails(BodyDecode);
    chunk_lines_with_lf "chunk lines that end with LF alone": chunked("5\nhello\n0\n\n").fails(BodyDecode);
    no_chunks "Transfer-Encoding chunked, and a body without chunks": chunked("hello").fails(BodyDecode);
    a_bad_chunk_after_a_good_one "bad chunk after a good one":
        chunked("5\r\nhello\r\nz\r\n").fails(BodyDecode);
    endless_extensions "chunk extension of 64 KiB":
        chunked(&format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(64 << 10))).fails(BodyDecode).still_writing();
    endless_trailers "trailers of 64 KiB":
        chunked(&format!("0\r\n{}\r\n", "X-T: more\r\n".repeat(6_000))).fails(BodyDecode).still_writing();
    a_cut_chunk "cut within a chunk": chunked_and_closed("5\r\nhel").fails(BodyTruncated);
    a_cut_chunk_size "cut within a chunk size": chunked_and_closed("5\r\nhello\r\n1").fails(BodyTruncated);
    no_last_chunk "cut before the last chunk": chunked_and_closed("5\r\nhello\r\n").fails(BodyTruncated);
    no_end_of_trailers "cut after the last chunk's size line":
        chunked_and_closed("5\r\nhello\r\n0\r\n").fails(BodyTruncated);
}
