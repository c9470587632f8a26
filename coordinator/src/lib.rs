//! The coordinator and the command line: everything `inrush` does beside making load.

pub mod aggregate;
pub mod clock;
pub mod registry;
pub mod render;
pub mod run;
pub mod server;
pub mod store;
