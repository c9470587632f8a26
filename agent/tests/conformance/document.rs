//! The document says what the tests check.

use std::{fs, path::Path};

use crate::{
    connections, cut, framing, heads, lengths, pieces, row::Row, slow, strangers, unreachable,
};

/// The lines of the tables in the document: behaviour, outcome, connection.
fn documented() -> Vec<[String; 3]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/odd-servers.md");
    let text = fs::read_to_string(path).unwrap();
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if let [behaviour, outcome, connection, ..] = cells.as_slice()
            && *behaviour != "the server"
            && !behaviour.starts_with('-')
        {
            lines.push([behaviour, outcome, connection].map(|cell| (*cell).to_owned()));
        }
    }
    lines
}

fn checked() -> Vec<[String; 3]> {
    let line = |(name, row): (&str, Row)| {
        [name.to_owned(), row.shown_outcome(), row.shown_connection().to_owned()]
    };
    let (name, outcome, connection) = unreachable::RESTARTED;
    let families = [
        framing::rows(),
        heads::rows(),
        lengths::rows(),
        cut::rows(),
        connections::rows(),
        pieces::rows(),
        slow::rows(),
        strangers::rows(),
        unreachable::rows(),
    ];
    let mut lines: Vec<[String; 3]> = families.into_iter().flatten().map(line).collect();
    lines.push([name, outcome, connection].map(str::to_owned));
    lines
}

#[test]
fn the_document_has_a_line_for_every_behaviour_that_is_checked_and_no_other() {
    let (documented, checked) = (documented(), checked());
    assert_eq!(documented, checked, "the same lines in the same order");
}
