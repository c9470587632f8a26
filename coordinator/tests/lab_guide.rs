//! The messages that `docs/lab-guide.md` explains are those that the programs print.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All sources that print something, each as one line, with the string continuations closed.
fn sources() -> String {
    let mut all = String::new();
    let mut folders: Vec<_> =
        ["common/src", "agent/src", "coordinator/src"].iter().map(|it| root().join(it)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|is| is == "rs") {
                all.push_str(&std::fs::read_to_string(path).expect("a source"));
            }
        }
    }
    all.split("\\\n").map(str::trim_start).collect()
}

/// The first cells of the table under a header line, which are all code.
fn first_cells<'a>(guide: &'a str, header: &str) -> Vec<&'a str> {
    let (_, table) = guide.split_once(header).expect("the table is there");
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| `"));
    rows.map(|row| row.split_once("` |").expect("a cell of code").0).collect()
}

#[test]
fn every_message_the_guide_explains_is_one_that_is_printed() {
    let guide = std::fs::read_to_string(root().join("docs/lab-guide.md")).expect("the guide");
    let sources = sources();
    let messages = first_cells(&guide, "| message | meaning and remedy |");
    assert!(messages.len() >= 10, "the table was read: {messages:?}");
    for message in messages {
        for part in message.split('…').map(str::trim).filter(|part| !part.is_empty()) {
            assert!(sources.contains(part), "no program prints \"{part}\"");
        }
    }
}

#[test]
fn every_error_class_the_guide_explains_is_one_that_is_counted() {
    let guide = std::fs::read_to_string(root().join("docs/lab-guide.md")).expect("the guide");
    let classes = first_cells(&guide, "| class | usual cause in a lab |");
    assert!(classes.len() >= 5, "the table was read: {classes:?}");
    let known: Vec<_> =
        inrush_common::outcome::ErrorClass::ALL.iter().map(|class| class.name()).collect();
    for class in classes {
        assert!(known.contains(&class), "there is no class \"{class}\"");
    }
}
