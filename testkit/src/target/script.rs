//! What a target does: scripts, steps and responses.

use std::{sync::Arc, time::Duration};

use super::Received;

/// Tells a target what to do. Any `Fn(&Received) -> Vec<Step>` is one.
pub trait Script: Send + Sync + 'static {
    /// Once a request is here, body and all. When the steps are done the next request is read.
    fn on_request(&self, request: &Received) -> Vec<Step>;

    /// When a connection is accepted, before anything is read.
    fn on_connect(&self, _connection: u64) -> Vec<Step> {
        Vec::new()
    }

    /// When a request's head is here, before its body is read. `request.body` is empty.
    fn on_head(&self, _request: &Received) -> Vec<Step> {
        Vec::new()
    }
}

impl<F> Script for F
where
    F: Fn(&Received) -> Vec<Step> + Send + Sync + 'static,
{
    fn on_request(&self, request: &Received) -> Vec<Step> {
        self(request)
    }
}

/// One thing a target does on a connection. Cheap to clone.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Step {
    /// Writes a response, and counts it.
    Respond(Response),
    /// Writes raw bytes.
    Write(Arc<[u8]>),
    /// Writes raw bytes one at a time, each in a segment of its own, with a wait before each.
    Drip(Arc<[u8]>, Duration),
    /// Writes raw bytes again and again, until the client has closed.
    Flood(Arc<[u8]>),
    /// Writes raw bytes and closes the writing half with them, so that the client sees both at once; then reads on
    /// until the client closes.
    Last(Arc<[u8]>),
    /// Waits until [`Target::release`](super::Target::release); the connection ends if the client
    /// goes away meanwhile.
    Pause,
    /// Waits; the connection ends if the client goes away meanwhile.
    Delay(Duration),
    /// Reads and forgets everything until the client closes; never answers.
    Hold,
    /// Neither reads nor answers until the target is dropped: a client that writes enough blocks.
    Freeze,
    /// Closes the writing half, and reads on until the client closes.
    HalfClose,
    /// Closes the connection.
    Close,
    /// Resets the connection (`SO_LINGER` 0): the client's read fails.
    Reset,
    /// The whole target accepts no more; see [`Target::stop_accepting`](super::Target::stop_accepting).
    StopAccepting,
    /// The whole target refuses new connections, from here on; see [`Target::refuse`](super::Target::refuse).
    Refuse,
}

impl Step {
    /// Responds with 200 and the 13 bytes `Hello, world!`.
    pub fn hello() -> Self {
        Self::Respond(Response::hello())
    }

    /// Responds with a status and an empty body.
    pub fn status(code: u16) -> Self {
        Self::Respond(Response::new(code))
    }

    /// Writes raw bytes.
    pub fn write(bytes: impl AsRef<[u8]>) -> Self {
        Self::Write(bytes.as_ref().into())
    }

    /// Writes raw bytes again and again, until the client has closed.
    pub fn flood(bytes: impl AsRef<[u8]>) -> Self {
        Self::Flood(bytes.as_ref().into())
    }

    /// Writes raw bytes and closes the writing half with them.
    pub fn last(bytes: impl AsRef<[u8]>) -> Self {
        Self::Last(bytes.as_ref().into())
    }

    /// Writes raw bytes one at a time, with a wait before each.
    pub fn drip(bytes: impl AsRef<[u8]>, wait: Duration) -> Self {
        Self::Drip(bytes.as_ref().into(), wait)
    }
}

/// How the end of a response's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Length,
    /// In chunks of at most so many bytes.
    Chunked(usize),
    Close,
}

/// A response, rendered once when it is built. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Arc<[u8]>,
    ending: Ending,
    rendered: Arc<[u8]>,
    head_len: usize,
}

impl Response {
    /// A response with an empty body and a `Content-Length`.
    pub fn new(status: u16) -> Self {
        let empty: Arc<[u8]> = Arc::from([].as_slice());
        Self {
            status,
            headers: Vec::new(),
            body: Arc::clone(&empty),
            ending: Ending::Length,
            rendered: empty,
            head_len: 0,
        }
        .render()
    }

    /// 200 and the 13 bytes `Hello, world!`.
    pub fn hello() -> Self {
        Self::new(200).header("Content-Type", "text/plain").body("Hello, world!")
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self.render()
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().into();
        self.render()
    }

    /// Sends the body in chunks of at most `size` bytes instead of with a `Content-Length`.
    #[must_use]
    pub fn chunked(mut self, size: usize) -> Self {
        self.ending = Ending::Chunked(size.max(1));
        self.render()
    }

    /// Ends the body by closing the connection, without `Content-Length` or chunks.
    #[must_use]
    pub fn until_close(mut self) -> Self {
        self.ending = Ending::Close;
        self.render()
    }

    /// The bytes on the wire, as an answer to anything but `HEAD`.
    pub fn bytes(&self) -> &[u8] {
        &self.rendered
    }

    /// The bytes on the wire as an answer to `method`.
    pub(super) fn bytes_for(&self, method: &str) -> &[u8] {
        if method == "HEAD" { &self.rendered[..self.head_len] } else { &self.rendered }
    }

    /// Whether the connection ends with this response: by its framing, or because it says so.
    pub(super) fn closes(&self) -> bool {
        self.ending == Ending::Close
            || self.headers.iter().any(|(name, value)| {
                name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close")
            })
    }

    fn render(mut self) -> Self {
        let bodiless = self.status < 200 || matches!(self.status, 204 | 304);
        let mut bytes =
            format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status)).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        match self.ending {
            Ending::Length if bodiless => {}
            Ending::Length => bytes
                .extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes()),
            Ending::Chunked(_) => bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Ending::Close => bytes.extend_from_slice(b"Connection: close\r\n"),
        }
        bytes.extend_from_slice(b"\r\n");
        self.head_len = bytes.len();
        match self.ending {
            _ if bodiless => {}
            Ending::Length | Ending::Close => bytes.extend_from_slice(&self.body),
            Ending::Chunked(size) => {
                for chunk in self.body.chunks(size) {
                    bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
        }
        self.rendered = bytes.into();
        self
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Unnamed",
    }
}
