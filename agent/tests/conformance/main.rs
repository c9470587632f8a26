//! The engine against every server there is: one that keeps to HTTP in an unusual way, one that breaks it, one that is
//! slow, and one that is none.
//!
//! Each behaviour is a row of a table, a test, and a line of `docs/odd-servers.md`. A row says how the request ends,
//! whether the connection is used again, and that the bytes and the ledger agree with the target's own count. `row.rs`
//! has what is checked of each.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test itself does")]

mod bodies;
mod connections;
mod cut;
mod document;
mod framing;
mod heads;
mod lengths;
mod pieces;
mod row;
mod slow;
mod strangers;
#[allow(dead_code, reason = "each of the engine's test binaries uses a part of it")]
#[path = "../engine_load/support.rs"]
mod support;
mod unreachable;
mod urls;
