//! What people see of a wrong plan: one golden file for each kind of mistakes.
//!
//! After an intended change: `UPDATE_GOLDEN=1 cargo test -p inrush-common --test plan_problems`, then read the diff.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use bytes::Bytes;
use inrush_common::plan::{self, Files, MAX_BODY_FILE, MAX_PLAN, MOST_PROBLEMS, Problem, code};

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/plan")
}

fn problems(source: &str) -> Vec<Problem> {
    match plan::load("plan.toml", source, &BTreeMap::new()) {
        Ok(loaded) => loaded.warnings,
        Err(problems) => problems,
    }
}

fn show(source: &str) -> String {
    plan::render("plan.toml", source, &problems(source), false)
}

/// As Windows editors save it.
fn windows(source: &str) -> String {
    format!("\u{feff}{}", source.replace('\n', "\r\n"))
}

#[test]
fn every_kind_of_mistake_is_shown_as_agreed() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut seen = 0;
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        seen += 1;
        let source = fs::read_to_string(&path).unwrap();
        let (shown, expected) = (show(&source), path.with_extension("txt"));
        if update {
            fs::write(&expected, &shown).unwrap();
        }
        let expected = fs::read_to_string(expected).unwrap();
        assert!(shown == expected, "{}:\n{shown}\nexpected:\n{expected}", path.display());
        assert_eq!(show(&windows(&source)), expected, "saved on Windows: {}", path.display());
    }
    assert!(seen >= 12, "only {seen} plans in {}", golden().display());
}

#[test]
fn ten_mistakes_are_ten_problems_with_ten_arrows() {
    let source = fs::read_to_string(golden().join("ten-mistakes.toml")).unwrap();
    let found = problems(&source);
    assert_eq!(found.len(), 10, "{found:#?}");
    assert!(found.iter().all(Problem::is_error));
    assert!(found.iter().all(|problem| !problem.span.is_empty()));
    let shown = show(&source);
    assert_eq!(shown.matches("╰── ").count(), 10, "{shown}");
    assert_eq!(shown.matches("help: ").count(), 10, "{shown}");
}

#[test]
fn no_password_and_no_credential_is_shown() {
    let source = fs::read_to_string(golden().join("password.toml")).unwrap();
    let found = problems(&source);
    for color in [false, true] {
        let shown = plan::render("plan.toml", &source, &found, color);
        for secret in ["p@ss", "word@", "ss#", "Bearer"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
    assert!(!format!("{found:?}").contains("ss#word"), "{found:?}");
}

#[test]
fn color_changes_nothing_but_the_color() {
    let source = fs::read_to_string(golden().join("ten-mistakes.toml")).unwrap();
    let colored = plan::render("plan.toml", &source, &problems(&source), true);
    assert!(colored.contains('\u{1b}'));
    let mut plain = String::new();
    let mut escape = false;
    for c in colored.chars() {
        escape |= c == '\u{1b}';
        if !escape {
            plain.push(c);
        }
        escape &= c != 'm';
    }
    let plain: String = plain.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    assert_eq!(plain, show(&source));
}

#[test]
fn every_problem_has_a_listed_code_and_all_its_texts() {
    let mut codes: Vec<&str> = Vec::new();
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            for problem in problems(&fs::read_to_string(&path).unwrap()) {
                assert!(code::ALL.iter().any(|(code, _)| *code == problem.code));
                for text in [&problem.message, &problem.label, &problem.help] {
                    assert!(!text.is_empty() && !text.ends_with('.'), "{problem:?}");
                    assert!(text.len() <= 400, "{problem:?}");
                }
                codes.push(problem.code);
            }
        }
    }
    // Those that no file of a sensible size can have are tested below.
    for (code, _) in code::ALL {
        let other = [code::ENCODING, code::TOO_LARGE, code::MANY_MORE].contains(code);
        assert!(other || codes.contains(code), "{code} is in no golden file");
    }
}

#[test]
fn a_plan_in_another_encoding_is_refused_in_words() {
    let wide: Vec<u8> = "\u{feff}url = 'x'".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let refused = plan::decode(wide).unwrap_err();
    let shown = plan::render("plan.toml", &refused.shown, &[refused.problem], false);
    assert!(shown.contains("UTF-16") && shown.contains("save the file again"), "{shown}");

    let latin = b"# gr\xfcn\nname = \"M\xfcnchen\"\n".to_vec();
    let refused = plan::decode(latin).unwrap_err();
    let shown = plan::render("plan.toml", &refused.shown, &[refused.problem], false);
    assert!(shown.contains("[plan.toml:1:5]") && shown.contains("0xfc"), "{shown}");
}

#[test]
fn a_plan_beyond_its_limit_is_refused_before_it_is_read() {
    let found = problems(&"#".repeat(MAX_PLAN + 1));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, code::TOO_LARGE);
    assert!(problems(&format!("#{}", "x".repeat(MAX_PLAN - 1)))[0].code == code::EMPTY);
}

#[test]
fn a_large_file_of_anything_is_refused_in_few_words() {
    for piece in [
        "a b\n",
        "a = b\n",
        "ä",
        "x = 1\n",
        "[a]\n",
        "[[",
        "a.",
        "\"",
        "url = 1,\n",
        "\\",
        "\u{0}",
        "{a=",
        "token ",
        "http://",
        "token=[",
        "\r\n",
        "://@",
        "'\n",
        "=\n",
        "timeout = 3\n",
    ] {
        let source = piece.repeat(MAX_PLAN / 8 / piece.len());
        let found = problems(&source);
        assert!((1..=MOST_PROBLEMS + 1).contains(&found.len()), "{piece:?}");
        assert!(found.iter().any(Problem::is_error), "{piece:?}");
        assert!(plan::render("plan.toml", &source, &found, false).len() < 300_000, "{piece:?}");
    }
    let keys: String = (0..10_000).map(|n| format!("k{n} = 1\n")).collect();
    assert_eq!(problems(&keys).last().unwrap().code, code::MANY_MORE);
    let headers: String = (0..10_000).map(|n| format!("h{n} = ''\n")).collect();
    assert!(problems(&format!("[headers]\n{headers}")).iter().any(Problem::is_error));
    let statuses = format!("expect.status = [{}]", "'100-999',".repeat(10_000));
    assert_eq!(problems(&statuses).len(), MOST_PROBLEMS + 1);
}

struct Disk(Result<Bytes, String>);

impl Files for Disk {
    fn read(&self, _: &str) -> Result<Bytes, String> {
        self.0.clone()
    }
}

const WITH_FILE: &str = "url = 'http://127.0.0.1/'\nbody_file = 'b.json'\n\
                         load.closed = { connections = 1, requests = 1 }\n";

#[test]
fn an_unreadable_body_file_is_named_with_where_it_was_looked_for() {
    let error = "/plans/b.json: No such file or directory (os error 2)".to_owned();
    let found = plan::load("plan.toml", WITH_FILE, &Disk(Err(error))).unwrap_err();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].code, code::BODY_FILE);
    assert!(found[0].message.contains("/plans/b.json: No such file"), "{}", found[0]);
    assert_eq!(WITH_FILE.get(found[0].span.clone()), Some("'b.json'"));
}

#[test]
fn a_body_file_may_have_32_mebibytes_and_not_a_byte_more() {
    let most = usize::try_from(MAX_BODY_FILE).unwrap();
    let loaded = plan::load("plan.toml", WITH_FILE, &Disk(Ok(vec![7; most].into()))).unwrap();
    assert_eq!(loaded.plan.workload.requests[0].body.len(), most);
    let found = plan::load("plan.toml", WITH_FILE, &Disk(Ok(vec![7; most + 1].into())));
    assert_eq!(found.unwrap_err()[0].code, code::BODY_FILE);
}

#[test]
fn control_characters_of_a_plan_do_not_reach_the_terminal() {
    let shown = show("url = \"\u{1b}[31mred\u{202e}\"\n\"\u{7}\" = 1\n");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
}
