//! Deadlines that both sides of the wire must agree on.

use std::time::Duration;

/// Beyond a run's grace: how long an agent's engine may take to end after a stop, before the agent gives it up and
/// hands in what it has. Whoever waits for an agent's last numbers must wait longer.
pub const ENGINE_ENDS_WITHIN: Duration = Duration::from_secs(10);
