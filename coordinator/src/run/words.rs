//! Agents in sentences.

use inrush_common::id::AgentName;

/// What a run that went on did without.
pub(super) fn missing(lost: Vec<AgentName>, left: Vec<AgentName>) -> Option<String> {
    let without = |agents: Vec<AgentName>, how| {
        (!agents.is_empty()).then(|| format!("without {}, {how} in mid-run", list(agents)))
    };
    match (without(lost, "lost"), without(left, "left")) {
        (Some(lost), Some(left)) => Some(format!("{lost}; {left}")),
        (lost, left) => lost.or(left),
    }
}

/// Names for a sentence; many are cut short.
pub(super) fn list(agents: Vec<AgentName>) -> String {
    const SHOWN: usize = 5;
    let more = agents.len().saturating_sub(SHOWN);
    let mut words: Vec<String> = agents.into_iter().take(SHOWN).map(String::from).collect();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join(", ")
}
