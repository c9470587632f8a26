//! The engine against real servers: exact counts, how runs end, how connections are opened, and what goes wrong.
//!
//! Every test checks that the accounts balance, in `support::Outcome`.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test itself does")]

mod codecs;
mod connections;
mod counts;
mod ends;
mod failures;
mod field;
mod lanes;
mod open;
mod opening;
mod phases;
mod policy;
mod support;
