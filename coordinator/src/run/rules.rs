//! What the plan and the coordinator say about a run's waits.

use std::time::Duration;

use inrush_common::{
    deadlines::ENGINE_ENDS_WITHIN,
    plan::{OnLoss, Plan},
};

/// Beyond the plan's own grace: time for the agent's engine to end, and to send and store the last numbers.
pub const HAND_IN_MARGIN: Duration = ENGINE_ENDS_WITHIN.saturating_add(Duration::from_secs(5));

/// What the plan and the coordinator say about this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// What happens when an agent is lost in mid-run.
    pub on_loss: OnLoss,
    /// How long agents may take to get ready.
    pub ready_within: Duration,
    /// How long requests in flight may go on after a stop.
    pub grace: Duration,
    /// When the last agent is done at the latest, from the start; `None`: the plan only has a count.
    pub ends_within: Option<Duration>,
}

impl Rules {
    /// The rules of a run of `plan`. `lease` is how long an agent may be unheard of, and so how late its last
    /// numbers may be.
    pub fn of(plan: &Plan, ready_within: Duration, lease: Duration) -> Self {
        let grace = plan.workload.grace;
        let late = grace.saturating_add(lease).saturating_add(HAND_IN_MARGIN);
        let ends_within = plan.workload.ends_at().map(|duration| duration.saturating_add(late));
        Self { on_loss: plan.agents.on_loss, ready_within, grace, ends_within }
    }
}
