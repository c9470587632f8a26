//! One connection of a target: reads requests, runs steps.

use std::{
    future::Future,
    io,
    sync::{Arc, PoisonError},
};

use socket2::SockRef;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    LONG, Listening, Shared,
    request::{self, Framing, Part, Received},
    script::Step,
};

/// While a script waits, at most so many bytes of further requests are read; then the client blocks.
const MAX_READ_AHEAD: usize = 1 << 20;

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    End,
}

pub(super) struct Connection {
    stream: TcpStream,
    index: u64,
    /// What was read and belongs to no request yet.
    buffer: Vec<u8>,
    shared: Arc<Shared>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, index: u64, shared: Arc<Shared>) -> Self {
        shared.counters.opened();
        // Without it a step's bytes may wait for an acknowledgement of the last one's.
        drop(stream.set_nodelay(!shared.nagle));
        Self { stream, index, buffer: Vec::new(), shared }
    }

    /// Serves until the client, the script or a broken socket ends it.
    pub(super) async fn serve(mut self) {
        // A connection that breaks is an ordinary end: tests look at the counters.
        drop(self.serve_all().await);
    }

    async fn serve_all(&mut self) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let first = shared.script.on_connect(self.index);
        if self.run(&first, "").await? == Flow::End {
            return Ok(());
        }
        for index in 0.. {
            let Some(mut request) = self.head(index).await? else { return Ok(()) };
            let Some(framing) = request.framing() else {
                shared.counters.malformed();
                return Ok(());
            };
            let steps = shared.script.on_head(&request);
            if self.run(&steps, request.method()).await? == Flow::End {
                return Ok(());
            }
            if !self.body(framing, &mut request).await? {
                return Ok(());
            }
            let _in_flight = InFlight::new(&shared, &mut request);
            let steps = shared.script.on_request(&request);
            let flow = self.run(&steps, request.method()).await?;
            if flow == Flow::End || request.wants_close() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The next head, or `None` at the end of the stream.
    async fn head(&mut self, index: u64) -> io::Result<Option<Received>> {
        let mut searched = 0;
        loop {
            match request::head(&self.buffer, searched) {
                Part::Whole((), length) => {
                    let head = self.buffer.drain(..length).collect();
                    let connection = self.index;
                    return Ok(Some(Received { connection, index, head, ..Received::default() }));
                }
                Part::Malformed => {
                    self.shared.counters.malformed();
                    return Ok(None);
                }
                Part::More => searched = self.buffer.len(),
            }
            if self.read().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads the body into `request`; false if the stream ended in it.
    async fn body(&mut self, framing: Framing, request: &mut Received) -> io::Result<bool> {
        loop {
            let part = match framing {
                Framing::Length(length) if self.buffer.len() >= length => {
                    Part::Whole(self.buffer[..length].to_vec(), length)
                }
                Framing::Length(_) => Part::More,
                Framing::Chunked => request::chunked(&self.buffer),
            };
            match part {
                Part::Whole(body, length) => {
                    request.body = body;
                    self.buffer.drain(..length);
                    return Ok(true);
                }
                Part::More if self.read().await? > 0 => {}
                Part::More => return Ok(false),
                Part::Malformed => {
                    self.shared.counters.malformed();
                    return Ok(false);
                }
            }
        }
    }

    async fn run(&mut self, steps: &[Step], method: &str) -> io::Result<Flow> {
        for step in steps {
            if self.step(step, method).await? == Flow::End {
                return Ok(Flow::End);
            }
        }
        Ok(Flow::Next)
    }

    async fn step(&mut self, step: &Step, method: &str) -> io::Result<Flow> {
        let shared = Arc::clone(&self.shared);
        match step {
            Step::Respond(response) => {
                self.write(response.bytes_for(method)).await?;
                shared.counters.responded();
                return Ok(if response.closes() { Flow::End } else { Flow::Next });
            }
            Step::Write(bytes) => self.write(bytes).await?,
            Step::Drip(bytes, wait) => {
                for byte in bytes.iter() {
                    if self.wait(tokio::time::sleep(*wait)).await? == Flow::End {
                        return Ok(Flow::End);
                    }
                    self.write(std::slice::from_ref(byte)).await?;
                }
            }
            Step::Flood(bytes) => loop {
                self.write(bytes).await?;
            },
            Step::Last(bytes) => {
                // Held back by the cork, the end of the bytes leaves in one segment with the FIN.
                SockRef::from(&self.stream).set_tcp_cork(true)?;
                self.write(bytes).await?;
                self.stream.shutdown().await?;
                return self.hold().await;
            }
            Step::Pause => {
                // Closed, the gate gives no permit, and everybody passes.
                return self
                    .wait(async { shared.gate.acquire().await.map(|it| it.forget()) })
                    .await;
            }
            Step::Delay(delay) => return self.wait(tokio::time::sleep(*delay)).await,
            Step::Hold => return self.hold().await,
            Step::Freeze => std::future::pending().await,
            Step::HalfClose => {
                self.stream.shutdown().await?;
                return self.hold().await;
            }
            Step::Close => return Ok(Flow::End),
            Step::Reset => {
                self.stream.set_zero_linger()?;
                return Ok(Flow::End);
            }
            Step::StopAccepting => drop(shared.listening.send_replace(Listening::Deaf)),
            Step::Refuse => {
                shared.listening.send_replace(Listening::Closed);
                // Whoever sees what the next step does finds nobody listening.
                shared.counters.wait_async(LONG, |counts| !counts.listening).await.ok();
            }
        }
        Ok(Flow::Next)
    }

    /// Waits for an event, reading on so as to notice when the client goes away.
    async fn wait<T>(&mut self, event: impl Future<Output = T>) -> io::Result<Flow> {
        let mut event = std::pin::pin!(event);
        loop {
            let room = self.buffer.len() < MAX_READ_AHEAD;
            tokio::select! {
                biased;
                _ = &mut event => return Ok(Flow::Next),
                n = self.read(), if room => if n? == 0 {
                    return Ok(Flow::End);
                },
            }
        }
    }

    async fn hold(&mut self) -> io::Result<Flow> {
        while self.read().await? > 0 {
            self.buffer.clear();
        }
        Ok(Flow::End)
    }

    /// Reads what there is; 0 at the end of the stream. Cancel safe.
    async fn read(&mut self) -> io::Result<usize> {
        // Space only once there is something to read: thousands of idle connections cost nothing.
        self.stream.readable().await?;
        self.buffer.reserve(2048);
        let n = self.stream.read_buf(&mut self.buffer).await?;
        self.shared.counters.read_bytes(n);
        Ok(n)
    }

    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let n = self.stream.write(bytes).await?;
            self.shared.counters.wrote_bytes(n);
            bytes = &bytes[n..];
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.counters.closed();
    }
}

/// A request whose steps are not done, counted as long as it lives.
struct InFlight<'a>(&'a Shared);

impl<'a> InFlight<'a> {
    fn new(shared: &'a Shared, request: &mut Received) -> Self {
        let mut kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that what is kept stands in the order of its numbers.
        request.number = shared.counters.received();
        if kept.len() < shared.keep {
            kept.push(request.clone());
        }
        Self(shared)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.counters.done();
    }
}
