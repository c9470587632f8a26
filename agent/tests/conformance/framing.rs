//! Whole responses: every way to say where one ends.

use http::Method;
use inrush_testkit::Step;

use crate::row::{Row, behaviours, does, says, says_and_closes, says_and_holds};

/// `hello` as gzip writes it.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0, 0x86, 0xa6,
    0x10, 0x36, 0x05, 0, 0, 0,
];

const MIB: usize = 1 << 20;

fn gzipped(body: &[u8]) -> Row {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    says([head.as_bytes(), body].concat())
}

fn large(mebibytes: usize) -> Row {
    let length = mebibytes * MIB;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let piece = Step::write(vec![b'x'; MIB]);
    let mut steps = vec![Step::write(head)];
    steps.extend((0..mebibytes).map(|_| piece.clone()));
    does(steps).times(2)
}

fn many_chunks() -> Row {
    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for size in 1..600 {
        answer.extend_from_slice(format!("{size:X}\r\n{}\r\n", "x".repeat(size)).as_bytes());
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    says(answer)
}

behaviours! {
    a_length "body with a Content-Length":
        says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").answers(200).kept();
    an_empty_body "empty body, Content-Length 0":
        says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").answers(200).kept();
    the_same_length_twice "Content-Length twice, the same":
        says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello")
            .answers(200).kept();
    a_large_body "body of 100 MiB": large(100).answers(200).kept();
    chunks "chunked body": many_chunks().answers(200).kept();
    an_empty_chunked_body "chunked body without a chunk":
        says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n").answers(200).kept();
    chunks_with_extensions_and_trailers "chunked body with extensions and trailers":
        says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n\
              5;a=b;c=\"d\"\r\nhello\r\n006 ;e\r\n world\r\n000\r\nX-T: 1\r\nX-U: 2\r\n\r\n")
            .answers(200).kept();
    chunks_and_a_length "both Transfer-Encoding and Content-Length":
        says("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n\
              5\r\nhello\r\n0\r\n\r\n")
            .answers(200).kept();
    a_coding_before_the_chunks "Transfer-Encoding gzip, then chunked":
        says("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n\
              2\r\nok\r\n0\r\n\r\n")
            .answers(200).kept();
    chunked_twice "Transfer-Encoding chunked, twice":
        says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n\
              2\r\nok\r\n0\r\n\r\n")
            .answers(200).kept();
    a_coding_without_chunks "Transfer-Encoding that is not chunked, ended by closing":
        says_and_closes("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello")
            .answers(200).renewed();
    until_the_close "body that ends with the connection":
        says_and_closes("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello")
            .answers(200).renewed();
    empty_until_the_close "no length, no chunks, no body, and a close":
        says_and_closes("HTTP/1.1 200 OK\r\n\r\n").answers(200).renewed();
    http_1_0 "HTTP/1.0 without keep-alive":
        says_and_closes("HTTP/1.0 200 OK\r\n\r\nhello").answers(200).renewed();
    http_1_0_with_a_length_and_an_open_socket "HTTP/1.0 without keep-alive that keeps the socket open":
        says_and_holds("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello").answers(200).renewed();
    http_1_0_with_keep_alive "HTTP/1.0 with keep-alive":
        says("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")
            .answers(200).kept();
    head "HEAD, with the length that a GET would have":
        says("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").to(Method::HEAD).answers(200).kept();
    head_with_chunks "HEAD, with Transfer-Encoding":
        says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            .to(Method::HEAD).answers(200).kept();
    no_content "204": says("HTTP/1.1 204 No Content\r\n\r\n").answers(204).kept();
    not_modified "304 with a Content-Length":
        says("HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n").answers(304).kept();
    a_body_to_a_head "HEAD, and a body all the same":
        says("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            .to(Method::HEAD).answers(200).renewed();
    a_body_with_no_content "204 with a body":
        says("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello").answers(204).renewed();
    gzip "gzip body": gzipped(GZIP).answers(200).kept();
    no_gzip "body that is said to be gzip and is not": gzipped(b"hello").answers(200).kept();
    bytes_after_the_answer "bytes after the response":
        says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\r\n").answers(200).renewed();
    an_answer_to_nothing "a second response that nobody asked for":
        says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\
              HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
            .answers(200).renewed();
    a_length_that_is_short "Content-Length shorter than the body":
        says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello").answers(200).renewed();
}
