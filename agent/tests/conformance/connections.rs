//! The plan's own `Connection: close`, against servers that heed it and servers that do not.

use inrush_testkit::Step;

use crate::row::{behaviours, does, says, says_and_holds};

behaviours! {
    a_close_asked_for "the plan asks for close, the server closes":
        says("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .asked_with("connection", "close").answers(200).renewed();
    a_close_not_promised "the plan asks for close, the server closes without saying so":
        does([Step::hello(), Step::Close]).asked_with("connection", "close").answers(200).renewed();
    a_close_ignored "the plan asks for close, the server says keep-alive and stays":
        says_and_holds("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok")
            .asked_with("connection", "close").answers(200).renewed();
    a_close_asked_for_and_a_socket_left_open "the plan asks for close, the server says so and stays":
        says_and_holds("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
            .asked_with("connection", "Close").answers(200).renewed();
}
