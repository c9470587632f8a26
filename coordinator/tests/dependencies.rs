//! Every dependency of the workspace has its line in `docs/dependencies.md`, and every line its
//! dependency.

use std::{collections::BTreeSet, path::Path};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_list_of_dependencies_is_that_of_the_workspace() {
    let manifest = read("Cargo.toml");
    let (_, section) = manifest.split_once("[workspace.dependencies]").expect("its section");
    let declared: BTreeSet<_> = section
        .lines()
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .filter(|name| !name.starts_with("inrush-"))
        .collect();
    assert!(declared.contains("tokio"), "the section was read: {declared:?}");
    let document = read("docs/dependencies.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let mut listed = BTreeSet::new();
    for (name, reasons) in rows {
        let cells: Vec<_> = reasons.trim_end_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 2 && cells.iter().all(|it| !it.is_empty()), "{name}: {cells:?}");
        assert!(listed.insert(name), "{name} is listed twice");
    }
    assert_eq!(listed, declared, "docs/dependencies.md and [workspace.dependencies]");
}
