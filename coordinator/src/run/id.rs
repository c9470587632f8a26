//! Run ids: `20250131-235959-1a2b`, the time of submission in UTC and four random digits.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::SystemTime,
};

use inrush_common::id::RunId;

/// An id for a run submitted at `at`. Another one at each call, most probably: the caller looks whether it is taken.
pub fn new_id(at: SystemTime) -> RunId {
    let at = humantime::format_rfc3339_seconds(at).to_string();
    let digits: Vec<u8> = at.bytes().filter(u8::is_ascii_digit).collect();
    let digits = String::from_utf8(digits).expect("digits are ASCII");
    let (date, time) = digits.split_at(digits.len() - 6);
    // Every `RandomState` has keys of its own.
    let random = RandomState::new().hash_one(0_u8) & 0xffff;
    format!("{date}-{time}-{random:04x}").parse().expect("a valid name")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    #[test]
    fn an_id_tells_when_the_run_was_submitted_and_differs_from_others_of_that_second() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_738_367_999);
        let ids: BTreeSet<RunId> = (0..10).map(|_| new_id(at)).collect();
        assert!(ids.len() > 1, "{ids:?}");
        for id in ids {
            assert!(id.as_str().starts_with("20250131-235959-"), "{id}");
            assert_eq!(id.as_str().len(), "20250131-235959-1a2b".len());
        }
    }
}
