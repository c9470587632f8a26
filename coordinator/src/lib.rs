//! The coordinator and the command line: everything `inrush` does beside making load.

pub mod render;
