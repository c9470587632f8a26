//! The engine: worker threads that make load.
