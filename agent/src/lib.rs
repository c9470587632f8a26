//! The agent: takes an assignment from a coordinator, makes the load, measures it, and hands in what it measured.
//!
//! Load and control share nothing but bounded queues. The engine's workers are threads of their own; the session with
//! the coordinator runs on another thread, so that load can never starve a heartbeat.

pub mod bounds;
pub mod capacity;
pub mod cgroup;
pub mod cli;
pub mod clock;
pub mod credentials;
pub mod engine;
mod http;
mod identity;
pub mod join;
pub mod kernel;
pub mod resolve;
pub mod selfcheck;
pub mod session;
mod timeline;

pub use http::request::request_bytes;
