//! Commands that run nothing.

use std::{fs, net::TcpListener, path::Path, process::Stdio};

use crate::{
    process::{command, inrush, spawn},
    support::folder,
};

const COMMANDS: [&str; 15] = [
    "demo", "run", "serve", "agent", "submit", "agents", "runs", "watch", "cancel", "report",
    "check", "explain", "init", "target", "certs",
];

#[tokio::test]
async fn help_lists_every_command_and_each_has_help_of_its_own() {
    let help = inrush(&["--help"], Path::new("/")).await.with_code(0);
    assert!(help.err.is_empty(), "{}", help.err);
    for command in COMMANDS {
        let listed =
            help.out.lines().any(|line| line.trim_start().starts_with(&format!("{command} ")));
        assert!(listed, "{command} is not in {}", help.out);
        let own = inrush(&[command, "--help"], Path::new("/")).await.with_code(0);
        assert!(own.out.contains(&format!("Usage: inrush {command}")), "{}", own.out);
    }
    let version = inrush(&["--version"], Path::new("/")).await.with_code(0);
    assert_eq!(version.out, format!("inrush {}\n", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn a_wrong_command_line_ends_with_2_and_leaves_stdout_alone() {
    for wrong in [
        &["bogus"][..],
        &[],
        &["run"],
        &["run", "plan.toml", "--local-agents", "0"],
        &["run", "plan.toml", "--color", "blue"],
        &["serve", "--lease", "10"],
        &["cancel", "not/a/run"],
        &["agents", "--coordinator", "https://127.0.0.1:7070"],
        &["report", "--data-dir", "."],
    ] {
        let ended = inrush(wrong, folder().path()).await.with_code(2);
        assert!(ended.out.is_empty() && !ended.err.is_empty(), "{wrong:?}: {}", ended.out);
    }
}

#[tokio::test]
async fn a_plan_with_mistakes_shows_them_all_and_ends_with_2() {
    let folder = folder();
    let text = "ulr = \"http://127.0.0.1/\"\ntimeout = \"3\"\n[load.closed]\nconnections = 0\n";
    fs::write(folder.path().join("plan.toml"), text).unwrap();
    for command in [&["check", "plan.toml"], &["run", "plan.toml"], &["submit", "plan.toml"]] {
        let ended = inrush(command, folder.path()).await.with_code(2);
        assert!(ended.out.is_empty(), "{}", ended.out);
        for place in ["plan.toml:1:", "plan.toml:2:", "plan.toml:3:", "plan.toml:4:"] {
            assert!(ended.err.contains(place), "no {place} in {}", ended.err);
        }
        ended.saying("nothing was sent");
    }
}

#[tokio::test]
async fn the_starter_plan_is_good_and_is_not_written_over_anything() {
    let folder = folder();
    inrush(&["init"], folder.path()).await.with_code(0).saying("inrush run plan.toml");
    let checked = inrush(&["check", "plan.toml"], folder.path()).await.with_code(0);
    assert!(checked.out.starts_with("plan ok: starter\n"), "{}", checked.out);
    fs::write(folder.path().join("plan.toml"), "mine").unwrap();
    inrush(&["init"], folder.path()).await.with_code(2).saying("--force");
    assert_eq!(fs::read_to_string(folder.path().join("plan.toml")).unwrap(), "mine");
    inrush(&["init", "--force"], folder.path()).await.with_code(0);
    inrush(&["check", "plan.toml"], folder.path()).await.with_code(0);
}

#[tokio::test]
async fn a_reader_that_has_gone_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(&["--help"], Path::new("/"));
    let ended = spawn(command.stdout(Stdio::from(writer))).ended().await.with_code(0);
    assert!(ended.err.is_empty(), "{}", ended.err);
}

#[tokio::test]
async fn a_full_disk_is_said() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = command(&["--help"], Path::new("/"));
    let ended = spawn(command.stdout(Stdio::from(full))).ended().await;
    ended.with_code(7).saying("cannot write to stdout");
}

#[tokio::test]
async fn listening_beyond_this_machine_takes_a_word_of_consent() {
    for command in ["serve", "target"] {
        inrush(&[command, "--listen", "0.0.0.0:0"], folder().path())
            .await
            .with_code(2)
            .saying("bind 127.0.0.1, or pass --insecure on a network you trust");
    }
}

#[tokio::test]
async fn a_taken_port_is_said() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for command in ["serve", "target"] {
        inrush(&[command, "--listen", &address], folder().path())
            .await
            .with_code(7)
            .saying(&format!("cannot listen on {address}: it is taken by another process"));
    }
}

#[tokio::test]
async fn without_a_coordinator_there_is_a_remedy() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    for command in ["agents", "runs", "watch", "report"] {
        inrush(&[command, "--coordinator", &address], folder().path())
            .await
            .with_code(7)
            .saying("start one with `inrush serve`");
    }
}
