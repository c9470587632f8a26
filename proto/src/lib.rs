//! The wire contract between coordinator, agents and command line: messages, services and the protocol version.
//!
//! The code in [`v1`] is generated from `proto/inrush/v1/*.proto` and committed, so that building needs no `protoc`;
//! the test `codegen` generates it again and compares. There is no logic here: meaning is given to these messages by
//! `inrush-common`'s `wire` module.

/// Version of the protocol spoken by this build. Both sides must speak the same one: it changes with every change of
/// a message that an older peer would misread.
pub const PROTOCOL_VERSION: u32 = 1;

/// Largest message either side accepts, in bytes. A snapshot is some tens of KiB, a plan with its files at most this.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Package `inrush.v1`.
#[allow(
    missing_docs,
    unused_qualifications,
    clippy::all,
    reason = "generated; the .proto files carry the documentation"
)]
pub mod v1 {
    include!("gen/inrush.v1.rs");
}
