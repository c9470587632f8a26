//! The coordinator as agents and clients see it, over real gRPC.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod disk;
mod ends;
mod harness;
mod life;
mod refusals;
mod streams;
