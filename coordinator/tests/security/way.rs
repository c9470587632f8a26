//! The whole way, with real processes: from a CA to a report.

use std::{fs, path::Path, process::Stdio};

use tokio::io::AsyncWriteExt as _;

use crate::{
    process::{Ended, Running, command, inrush, spawn},
    support::{Coordinator, Target, assert_balanced, folder, json_report, plan},
};

/// A coordinator with a CA in `data`, and this folder's user joined to it.
pub(crate) async fn secured(folder: &Path) -> Coordinator {
    inrush(&["certs", "init", "--data-dir", "data"], folder).await.with_code(0);
    let coordinator = Coordinator::start(folder).await;
    let user = token(folder, &["--role", "user", "--name", "ada"]).await;
    join(folder, &coordinator, &user).await.with_code(0).saying("joined the coordinator");
    coordinator
}

/// A token from the data directory.
pub(crate) async fn token(folder: &Path, more: &[&str]) -> String {
    let args = [&["certs", "token", "--data-dir", "data"], more].concat();
    let made = inrush(&args, folder).await.with_code(0);
    assert_eq!(made.out.lines().count(), 1, "nothing but the token: {}", made.out);
    assert!(!made.err.contains(made.out.trim()), "{}", made.err);
    made.out.trim().to_owned()
}

/// Joins as a user, with the token on stdin.
pub(crate) async fn join(folder: &Path, coordinator: &Coordinator, token: &str) -> Ended {
    let args = ["certs", "join", "-", "--coordinator", &coordinator.address];
    let mut command = command(&args, folder);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{token}\n").as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended { status: output.status, out: text(output.stdout), err: text(output.stderr) }
}

/// An agent that joins with a token in its environment, once it is listed.
pub(crate) async fn agent(
    folder: &Path,
    coordinator: &Coordinator,
    name: &str,
    more: &[&str],
) -> Running {
    let token = token(folder, &["--name", name]).await;
    let file = format!("{name}.token");
    fs::write(folder.join(&file), token).unwrap();
    coordinator.agent(folder, name, &[&["--join", &file], more].concat()).await
}

#[tokio::test]
async fn from_a_ca_over_tokens_to_a_report_and_to_a_revocation() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = secured(folder.path()).await;
    let at = ["--coordinator", &coordinator.address];
    let lab1 = agent(folder.path(), &coordinator, "lab1", &[]).await;
    plan(folder.path(), &format!("http://{}/", target.address), 4, 1_000, "");
    let submit = [&["submit", "plan.toml", "--json", "report.json"], &at[..]].concat();
    inrush(&submit, folder.path()).await.with_code(0);
    let report = json_report(folder.path());
    assert_balanced(&report);
    assert_eq!(target.requests().await, 1_000);
    for command in [&["runs"][..], &["report"], &["watch"], &["agents"]] {
        inrush(&[command, &at[..]].concat(), folder.path()).await.with_code(0);
    }

    // A user brings another agent in; its token is in the environment.
    let invite = [&["certs", "token", "--name", "lab2"], &at[..]].concat();
    let invited = inrush(&invite, folder.path()).await.with_code(0).out;
    let second = ["agent", "--name", "lab2", "--workers", "1"];
    let mut second = command(&[&second, &at[..]].concat(), folder.path());
    let second = spawn(second.env("INRUSH_JOIN_TOKEN", invited.trim()));
    second.says("connected to the coordinator").await;
    let refused = ["certs", "token", "--role", "user"];
    inrush(&[&refused, &at[..]].concat(), folder.path()).await.with_code(2).saying("agents only");

    let listed = inrush(&["certs", "list", "--data-dir", "data"], folder.path()).await.with_code(0);
    let states: Vec<Vec<_>> = listed
        .out
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().take(3).collect::<Vec<_>>())
        .collect();
    let expected: [Vec<&str>; 3] = [
        vec!["ada", "user", "valid"],
        vec!["lab1", "agent", "valid"],
        vec!["lab2", "agent", "valid"],
    ];
    assert_eq!(states, expected);

    let revoke = ["certs", "revoke", "lab1", "--data-dir", "data"];
    inrush(&revoke, folder.path()).await.with_code(0).saying("within a second");
    lab1.ended().await.with_code(7).saying("the certificate of lab1 was revoked");
    inrush(&["certs", "revoke", "nobody", "--data-dir", "data"], folder.path()).await.with_code(2);
}

#[tokio::test]
async fn an_agent_that_has_joined_starts_again_with_its_used_token_or_with_none() {
    let folder = folder();
    let coordinator = secured(folder.path()).await;
    let first = agent(folder.path(), &coordinator, "lab1", &[]).await;
    first.signal(rustix::process::Signal::TERM);
    first.ended().await.with_code(0);
    for how in [&["--join", "lab1.token"][..], &[]] {
        let again = coordinator.agent(folder.path(), "lab1", how).await;
        again.says("connected to the coordinator").await;
        again.signal(rustix::process::Signal::TERM);
        again.ended().await.with_code(0);
    }
    // Without a name it is the only one that has joined from here, whatever the host is called.
    let args = ["agent", "--coordinator", &coordinator.address, "--workers", "1"];
    let nameless = spawn(&mut command(&args, folder.path()));
    nameless.says("agent lab1 with 1 worker(s)").await;
    nameless.says("connected to the coordinator").await;
}

#[tokio::test]
async fn without_a_certificate_the_way_to_one_is_said() {
    let folder = folder();
    let coordinator = secured(folder.path()).await;
    let elsewhere = crate::support::folder();
    let at = ["--coordinator", &coordinator.address];
    let runs = inrush(&[&["runs"], &at[..]].concat(), elsewhere.path()).await.with_code(2);
    runs.saying("this coordinator speaks TLS: join it with a token");
    let agent = inrush(&[&["agent"], &at[..]].concat(), elsewhere.path()).await.with_code(7);
    agent.saying("this coordinator speaks TLS: join it with a token");
    // The wrong kind of token, a file that is none, and none at all.
    let user = token(folder.path(), &["--role", "user", "--name", "eve"]).await;
    let wrong = [&["agent", "--join", &user], &at[..]].concat();
    inrush(&wrong, elsewhere.path()).await.with_code(2).saying("this token makes a user");
    for (given, words) in [
        ("plan.toml", "cannot read the join token from plan.toml"),
        ("inrush-join-x", "no join token"),
    ] {
        let wrong = [&["agent", "--join", given], &at[..]].concat();
        inrush(&wrong, elsewhere.path()).await.with_code(2).saying(words);
    }
    inrush(&["certs", "token", "--data-dir", "nothing"], elsewhere.path())
        .await
        .with_code(2)
        .saying("inrush certs init --data-dir nothing");
}

#[tokio::test]
async fn a_coordinator_with_a_ca_never_speaks_without_tls() {
    let folder = folder();
    inrush(&["certs", "init", "--data-dir", "data"], folder.path()).await.with_code(0);
    let serve = ["serve", "--data-dir", "data", "--listen", "127.0.0.1:0", "--insecure"];
    inrush(&serve, folder.path()).await.with_code(2).saying("leave --insecure away");
    fs::write(folder.path().join("data/certs/ca.key"), "").unwrap();
    let serve = ["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"];
    inrush(&serve, folder.path()).await.with_code(7).saying("ca.key is damaged");
    fs::remove_file(folder.path().join("data/certs/ca.key")).unwrap();
    inrush(&serve, folder.path()).await.with_code(7).saying("ca.key");
    // And one that has none is not joined, and says so.
    let plain = crate::support::folder();
    let coordinator = Coordinator::start(plain.path()).await;
    let joined = inrush(&["certs", "init", "--data-dir", "other"], plain.path()).await;
    joined.with_code(0);
    let token = inrush(&["certs", "token", "--role", "user", "--data-dir", "other"], plain.path());
    let token = token.await.with_code(0).out;
    let refused = join(plain.path(), &coordinator, token.trim()).await.with_code(7);
    refused.saying("does not speak TLS");
}

#[tokio::test]
async fn listening_beyond_this_machine_is_refused_with_the_way_to_do_it_safely() {
    let serve = ["serve", "--listen", "0.0.0.0:0", "--data-dir", "data"];
    inrush(&serve, folder().path())
        .await
        .with_code(2)
        .saying("make a CA for TLS with `inrush certs init`");
}
