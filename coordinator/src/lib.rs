//! The coordinator and the command line: everything `inrush` does beside making load.

pub mod cli;
pub mod client;
pub mod exit;
pub mod live;
pub mod local;
pub mod target;
mod stubs;
pub use stubs::*;
