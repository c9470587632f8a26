//! ARCHITECTURE.md speaks of files and tests that exist.

use std::{collections::BTreeSet, fs, path::Path};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace's root")
}

/// What stands between backticks in a text.
fn quoted(text: &str) -> Vec<&str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

fn document() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md is readable")
}

fn sources(folder: &Path, found: &mut String) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&fs::read_to_string(&path).expect("a readable source"));
        }
    }
}

#[test]
fn every_path_named_in_the_architecture_exists() {
    let document = document();
    let paths: Vec<&str> = quoted(&document)
        .into_iter()
        .filter(|text| text.contains('/') && !text.contains(char::is_whitespace))
        .collect();
    assert!(paths.len() > 20, "the document names its files: {paths:?}");
    let missing: Vec<&&str> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}, which do not exist");
}

#[test]
fn every_test_named_in_the_architecture_exists() {
    let document = document();
    let (_, table) = document.split_once("## Invariants").expect("the chapter on invariants");
    let (table, _) = table.split_once("\n## ").expect("a chapter after it");
    let named: BTreeSet<&str> = quoted(table).into_iter().collect();
    let mut code = String::new();
    for krate in ["proto", "common", "agent", "coordinator", "testkit"] {
        for folder in ["src", "tests"] {
            let folder = root().join(krate).join(folder);
            if folder.exists() {
                sources(&folder, &mut code);
            }
        }
    }
    assert!(named.len() > 10, "the table names its tests: {named:?}");
    let missing: Vec<&&str> =
        named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names tests {missing:?}, which do not exist");
}

#[test]
fn no_document_has_a_gap_left_to_fill_and_every_link_leads_somewhere() {
    let mut documents = vec![root().join("README.md"), root().join("ARCHITECTURE.md")];
    documents.extend([root().join("CONTRIBUTING.md"), root().join("CHANGELOG.md")]);
    let docs = fs::read_dir(root().join("docs")).expect("a readable folder");
    documents.extend(docs.map(|entry| entry.expect("a readable entry").path()));
    for path in documents.iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
        let text = fs::read_to_string(path).expect("a readable document");
        for gap in ["@@", "TODO", "TBD", "FIXME", "lorem"] {
            assert!(!text.contains(gap), "{} still holds {gap:?}", path.display());
        }
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let file = target.split('#').next().unwrap_or_default();
            let folder = path.parent().expect("a document in a folder");
            assert!(folder.join(file).exists(), "{} links to {target}", path.display());
        }
    }
}
