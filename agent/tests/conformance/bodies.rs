//! The plan's body, byte for byte on the wire.

use std::collections::BTreeMap;

use bytes::Bytes;
use inrush_common::plan;
use inrush_testkit::{Received, Target};

use crate::support::{job, run};

/// What is sent by a plan with these lines, which may name this file.
fn sent(lines: &str, file: &[u8]) -> Vec<Received> {
    let text = format!(
        "url = \"http://example.test/\"\n{lines}\n[load.closed]\nconnections = 1\nrequests = 2\n"
    );
    let files = BTreeMap::from([("it".to_owned(), Bytes::copy_from_slice(file))]);
    let plan = plan::load("plan.toml", &text, &files);
    let plan = plan.unwrap_or_else(|problems| panic!("{text}: {problems:?}")).plan;
    let target = Target::hello();
    let outcome = run(job(plan.workload, target.addr(), 1));
    outcome.assert_all_succeeded(2);
    let requests = target.requests();
    assert_eq!(requests.len(), 2);
    requests
}

#[track_caller]
fn assert_sent(lines: &str, file: &[u8], body: &[u8]) {
    for request in sent(lines, file) {
        assert!(request.body == body, "{lines}: {} bytes, not {}", request.body.len(), body.len());
        let length = request.header("content-length").map(str::to_owned);
        let announced = !body.is_empty() || request.method() != "GET";
        assert_eq!(length, announced.then(|| body.len().to_string()), "{lines}");
        assert_eq!(request.header("content-type"), None, "{lines}");
        assert_eq!(request.header("transfer-encoding"), None, "{lines}");
    }
}

#[test]
fn a_file_is_sent_as_it_is() {
    let large: Vec<u8> = (0..5_usize << 20).map(|at| (at * 7 % 253) as u8).collect();
    let all: Vec<u8> = (0..=255).collect();
    for file in
        [b"\n".as_slice(), b"a\r\nb\r\n", b"\0\0", b"  a \t", b"\xef\xbb\xbf{}", b"", &all, &large]
    {
        for method in ["POST", "PUT", "GET"] {
            assert_sent(&format!("method = \"{method}\"\nbody_file = \"it\""), file, file);
        }
    }
}

#[test]
fn a_text_is_sent_as_utf_8_and_nothing_is_added() {
    for (typed, body) in [
        (r#""ü\n""#, "ü\n"),
        (r#""""#, ""),
        (r#""\u0000\t\"""#, "\0\t\""),
        (r#"'{"a": "\n"}'"#, r#"{"a": "\n"}"#),
        ("\"\"\"\nfirst\n last \"\"\"", "first\n last "),
    ] {
        assert_sent(&format!("method = \"POST\"\nbody = {typed}"), b"", body.as_bytes());
    }
}

#[test]
fn a_get_and_a_delete_may_have_a_body() {
    for method in ["GET", "DELETE", "PATCH", "OPTIONS"] {
        let query = br#"{"query": {"match_all": {}}}"#;
        assert_sent(&format!("method = \"{method}\"\nbody_file = \"it\""), query, query);
    }
}

#[test]
fn the_type_is_the_plans_to_say() {
    let lines =
        "method = \"POST\"\nbody = \"{}\"\nheaders = { Content-Type = \"application/json\" }";
    for request in sent(lines, b"") {
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.body, b"{}");
    }
}
