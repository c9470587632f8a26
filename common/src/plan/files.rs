//! The files a plan names. This crate reads none: whoever loads a plan brings them.

use std::collections::BTreeMap;

use bytes::Bytes;
use toml::de::{DeTable, DeValue};

use super::source::Source;

/// The most a `body_file` may hold: 32 MiB.
pub const MAX_BODY_FILE: u64 = 32 * 1024 * 1024;

/// Where the files come from that a plan names.
pub trait Files {
    /// The bytes of a file, by its path as the plan writes it.
    ///
    /// # Errors
    /// With a text that says where it was looked for and why it could not be read. A file larger than
    /// [`MAX_BODY_FILE`] may be given or refused: the plan refuses it in any case.
    fn read(&self, path: &str) -> Result<Bytes, String>;
}

/// Files that came along with the plan.
impl Files for BTreeMap<String, Bytes> {
    fn read(&self, path: &str) -> Result<Bytes, String> {
        self.get(path).cloned().ok_or_else(|| "it was not sent along with the plan".to_owned())
    }
}

/// The paths of the files that a plan names, as it writes them: what to read and send along with it. A plan that
/// cannot be read names none.
pub fn named_files(source: &str) -> Vec<String> {
    let source = Source::new(source);
    let (document, _) = DeTable::parse_recoverable(source.text());
    match document.get_ref().get("body_file").map(|value| value.get_ref()) {
        Some(DeValue::String(path)) if !path.is_empty() => vec![path.clone().into_owned()],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_plan_are_named_even_when_the_plan_is_wrong() {
        assert_eq!(named_files("ulr = 1\nbody_file = 'a b.json'\n"), ["a b.json"]);
        for none in ["", "url = 'x'", "body_file = 3", "body_file = ''", "\u{0}"] {
            assert!(named_files(none).is_empty(), "{none:?}");
        }
    }
}
