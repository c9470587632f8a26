//! A run's life: its id, its states, and the pure function that moves it from one to the next.

mod compile;
mod id;
mod machine;
mod state;

pub use compile::compile;
pub use id::new_id;
pub use machine::{Action, Event, NotReadyKind, Rules, Run, StopMode};
pub use state::{Cause, Ending, Phase, RunState};
