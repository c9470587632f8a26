//! The fixed reports, to the letter. Renderers are tested with the same files.
//!
//! After a change that is meant: `INRUSH_UPDATE_GOLDEN=1 cargo test -p inrush-common --test report`.

use std::{env, fs, path::Path};

use inrush_common::report::Report;

use crate::fixtures;

#[test]
fn the_fixed_runs_give_the_fixed_reports() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/golden");
    let update = env::var_os("INRUSH_UPDATE_GOLDEN").is_some();
    for (name, run) in fixtures::all() {
        let path = folder.join(format!("{name}.json"));
        let json = serde_json::to_string_pretty(&run.report()).unwrap() + "\n";
        if update {
            fs::write(&path, &json).unwrap();
        }
        let golden = fs::read_to_string(&path).unwrap();
        assert!(
            json == golden,
            "{} differs: run with INRUSH_UPDATE_GOLDEN=1 and look",
            path.display()
        );
        let back: Report = serde_json::from_str(&golden).unwrap();
        assert_eq!(back, run.report(), "{name}");
    }
}
