//! An engine that is let go of without waiting.

use std::{
    ops::{Deref, DerefMut},
    thread,
};

use crate::engine::Engine;

/// Dropping an [`Engine`] waits for its threads, which may have many thousand connections to close, and which may be
/// stuck. The control thread has heartbeats to send, so the waiting is done elsewhere.
#[derive(Debug)]
pub(super) struct Owned(Option<Engine>);

impl Owned {
    /// Takes charge of `engine`.
    pub(super) fn new(engine: Engine) -> Self {
        Self(Some(engine))
    }
}

impl Deref for Owned {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        self.0.as_ref().expect("taken only when dropped")
    }
}

impl DerefMut for Owned {
    fn deref_mut(&mut self) -> &mut Engine {
        self.0.as_mut().expect("taken only when dropped")
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let engine = self.0.take();
        let end = thread::Builder::new().name("engine-end".to_owned()).spawn(move || drop(engine));
        if let Err(error) = end {
            // The closure, and the engine with it, was dropped here: waited for after all.
            tracing::warn!("no thread to end the engine on: {error}");
        }
    }
}
