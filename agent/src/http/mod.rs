//! HTTP/1.1 as the engine speaks it: connect, one exchange at a time on a connection, and the class of what goes wrong.
//!
//! Knows nothing of plans' shares, of other connections or of statistics.

pub(crate) mod classify;
pub(crate) mod codec;
pub(crate) mod connect;
pub(crate) mod exchange;
pub(crate) mod io;
pub(crate) mod request;
