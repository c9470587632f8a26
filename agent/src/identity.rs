//! What this machine calls itself.

use inrush_common::id::AgentName;

/// The host's name, as the kernel has it.
pub(crate) fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A valid agent name made of a host's name: what does not fit becomes `-`.
pub(crate) fn name_from(hostname: &str) -> AgentName {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = hostname.chars().take(63).map(|c| if fits(c) { c } else { '-' }).collect();
    let name = if name.is_empty() { "agent".to_owned() } else { name };
    name.parse().expect("63 characters that fit are a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hostname_gives_a_valid_agent_name() {
        assert_eq!(name_from("lab-1.example.test").as_str(), "lab-1.example.test");
        assert_eq!(name_from("bühne 2").as_str(), "b-hne-2");
        assert_eq!(name_from("").as_str(), "agent");
        assert_eq!(name_from(&"x".repeat(64)).as_str().len(), 63);
        assert!(!name_from(&hostname()).as_str().is_empty());
    }
}
