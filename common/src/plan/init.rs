//! The plan to start from.

/// A plan with every key of this version and what it means, as `inrush init` writes it.
pub const STARTER: &str = include_str!("starter.toml");
