//! Test support: HTTP servers that do exactly what a test tells them, and count for themselves.
//!
//! * [`Target`]: a scripted HTTP/1.1 server on raw sockets. It can answer well, badly, slowly, or not
//!   at all, and its counters are independent of whatever it is used to check.
//! * [`Refusing`] and [`Deaf`]: addresses at which a connect fails at once, or never ends.
//!
//! A helper here panics when the machine does not let it do its work (no port, no thread): a test
//! that cannot be set up has no result. Everything binds to loopback and to a port the system picks.

mod target;
mod unreachable;

pub use target::{Counts, LONG, NotSeen, Options, Received, Response, Script, Step, Target};
pub use unreachable::{Deaf, Refusing};
