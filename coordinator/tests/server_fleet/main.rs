//! The coordinator as agents and clients see it, over real gRPC.

mod ends;
mod harness;
mod life;
mod refusals;
mod streams;
