//! A run's life: its id, its states, and the pure function that moves it from one to the next.

mod compile;
mod event;
mod id;
mod judge;
mod machine;
mod rules;
mod state;
mod window;
mod words;

pub use compile::compile;
pub use event::{Action, Event, NotReadyKind, StopMode};
pub use id::new_id;
pub use machine::Run;
pub use rules::{HAND_IN_MARGIN, Rules};
pub use state::{Cause, Ending, Phase, RunState};
pub use window::{Broken, Window};
