//! HTTP as the engine speaks it.
