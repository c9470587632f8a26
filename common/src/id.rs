//! Names of things: runs, agents, an agent's process, a snapshot.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} must be 1 to 63 letters, digits, '.', '_' or '-', got {got:?}")]
pub struct InvalidName {
    what: &'static str,
    got: String,
}

fn check(what: &'static str, text: &str) -> Result<String, InvalidName> {
    let fits = (1..=63).contains(&text.len());
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if fits && text.chars().all(plain) {
        Ok(text.to_owned())
    } else {
        let got = text.chars().take(80).collect();
        Err(InvalidName { what, got })
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                check($what, text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

name! {
    /// One execution of a plan. Given by the coordinator; sorts by time of submission.
    RunId, "a run id"
}

name! {
    /// An agent's stable name, unique within a fleet.
    AgentName, "an agent name"
}

/// One life of an agent process: a new value at every start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The number of a snapshot: 1, 2, 3, … without gaps within one run, agent and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotSeq(pub u64);

impl SnapshotSeq {
    /// The number of an agent's first snapshot of a run.
    pub const FIRST: Self = Self(1);

    /// The number after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for SnapshotSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_break_a_path_or_a_table_are_refused() {
        for bad in ["", "a/b", "lab 1", "lab\n", "ü", &"x".repeat(64)] {
            assert!(bad.parse::<AgentName>().is_err(), "{bad:?}");
        }
        assert_eq!(
            "lab-1.rack_2".parse::<AgentName>().map(String::from),
            Ok("lab-1.rack_2".to_owned())
        );
    }
}
