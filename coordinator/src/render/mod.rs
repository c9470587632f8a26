//! The report for people and for programs. Renderers see only the [`Report`](inrush_common::report::Report), so that
//! all of them say the same.

mod cell;
mod csv;
mod explain;
mod json;
mod junit;
mod load;
mod section;
mod table;
mod text;

pub(crate) use cell::{observed_and_limit, words};
pub use csv::csv;
pub(crate) use explain::explain;
pub use json::json;
pub use junit::junit;
pub use text::text;
