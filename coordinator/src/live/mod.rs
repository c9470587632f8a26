//! The view of a run while it runs: one line a second, as a bar on a terminal and as plain lines elsewhere.

mod line;
mod view;

pub use line::line;
pub use view::{Style, View};
