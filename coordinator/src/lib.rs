//! The coordinator and the command line: everything `inrush` does beside making load.

pub mod aggregate;
pub mod certs;
pub mod cli;
pub mod client;
pub mod clock;
pub mod exit;
pub mod live;
pub mod local;
pub mod registry;
pub mod render;
pub mod run;
pub mod server;
pub mod store;
pub mod target;
