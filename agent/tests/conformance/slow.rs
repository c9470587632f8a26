//! Servers that take too long, or never end. The waits are the plan's: they are short here.

use std::time::Duration;

use inrush_common::outcome::ErrorClass::{BodyTimeout, ResponseTimeout};
use inrush_testkit::Step;

use crate::{
    cut::{LARGE, OnHead},
    row::{behaviours, does, says_and_holds, server},
};

/// Between two bytes of a slow server; the time limit is far below what they take together.
const BEAT: Duration = Duration::from_millis(25);

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";

behaviours! {
    no_answer "accepts and never answers":
        does([Step::Hold]).within(300).times(2).fails(ResponseTimeout);
    no_reading "accepts, and reads no large request":
        server(OnHead(vec![Step::Freeze])).posted(LARGE).within(300).times(2).fails(ResponseTimeout).frozen();
    half_a_head_and_nothing "half a head, and nothing more":
        says_and_holds("HTTP/1.1 200 OK\r\nContent-Le").within(300).times(2).fails(ResponseTimeout);
    an_interim_answer_and_nothing "interim response, and nothing more":
        says_and_holds("HTTP/1.1 100 Continue\r\n\r\n").within(300).times(2).fails(ResponseTimeout);
    interim_answers_without_end "interim responses without end":
        does([Step::flood("HTTP/1.1 100 Continue\r\n\r\n".repeat(400))])
            .within(300).times(6).over(3).fails(ResponseTimeout).still_writing();
    a_slow_head "head byte by byte, too slow":
        does([Step::drip(HEAD, BEAT)]).within(400).times(2).fails(ResponseTimeout).still_writing();
    half_a_body_and_nothing "half a body, and nothing more":
        says_and_holds([HEAD, "half"].concat()).within(400).times(2).fails(BodyTimeout);
    no_body "head, and no body": says_and_holds(HEAD).within(400).times(2).fails(BodyTimeout);
    no_end_of_chunks "chunks, and not the last one":
        says_and_holds("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            .within(400).times(2).fails(BodyTimeout);
    no_close "body that should end with the connection, which stays open":
        says_and_holds("HTTP/1.1 200 OK\r\n\r\nhello").within(400).times(2).fails(BodyTimeout);
    a_slow_body "body byte by byte, too slow":
        does([Step::write(HEAD), Step::drip([b'x'; 100], BEAT)])
            .within(500).times(2).fails(BodyTimeout).still_writing();
    a_body_without_end "body without an end":
        does([Step::write("HTTP/1.1 200 OK\r\n\r\n"), Step::flood([b'x'; 10_000])])
            .within(500).times(2).fails(BodyTimeout).still_writing();
    byte_by_byte_in_time "response byte by byte, in time":
        does([Step::drip(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: 1\r\n\r\n",
            Duration::ZERO,
        )])
        .answers(200).kept();
}
