//! Secrets are where they have to be and nowhere else.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use crate::{
    process::{command, spawn},
    support::{Coordinator, Target, folder, json_report},
    way::{agent, join, token},
};

const SECRETS: [&str; 4] = [
    "s3cret-of-the-authorization",
    "s3cret-of-the-cookie",
    "s3cret-of-the-body",
    "s3cret-of-the-file",
];

/// All files below a folder, with their contents.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}

fn has(content: &[u8], secret: &str) -> bool {
    content.windows(secret.len()).any(|window| window == secret.as_bytes())
}

#[tokio::test]
async fn secrets_of_plans_and_tokens_are_in_no_log_report_store_or_process_list() {
    let (folder, target) = (folder(), Target::start().await);
    let dir = folder.path();
    let made = spawn(&mut command(&["certs", "init", "--data-dir", "data"], dir));
    made.ended().await.with_code(0);
    // As much as can be logged.
    let serve = ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"];
    let process = spawn(command(&serve, dir).env("RUST_LOG", "trace"));
    let line = process.says("listening on").await;
    let address = line.rsplit_once(' ').unwrap().1.to_owned();
    let coordinator = Coordinator { process, address };
    let user = token(dir, &["--role", "user", "--name", "ada"]).await;
    join(dir, &coordinator, &user).await.with_code(0);
    let lab1 = agent(dir, &coordinator, "lab1", &[]).await;

    let url = format!("http://{}/delay/20", target.address);
    let [authorization, cookie, body, file] = SECRETS;
    fs::write(dir.join("body.bin"), file).unwrap();
    let step = |name: &str, body: &str| {
        format!(
            "url = \"{url}\"\nname = \"{name}\"\nmethod = \"POST\"\n{body}\n\
             headers = {{ Authorization = \"Bearer {authorization}\", Cookie = \"{cookie}\" }}\n\
             [load.closed]\nconnections = 2\nrequests = 200\n"
        )
    };
    let mut said = String::new();
    for (name, body) in
        [("one", format!("body = \"{body}\"")), ("two", "body_file = \"body.bin\"".to_owned())]
    {
        fs::write(dir.join("plan.toml"), step(name, &body)).unwrap();
        let submit = ["submit", "plan.toml", "--json", "report.json", "-vv"];
        let at = ["--coordinator", &coordinator.address];
        let submitted = spawn(command(&[&submit, &at[..]].concat(), dir).env("RUST_LOG", "trace"));
        submitted.says(" of 200 (").await;
        let everybody = fs::read_dir("/proc").unwrap().flatten();
        for line in everybody.filter_map(|it| fs::read(it.path().join("cmdline")).ok()) {
            for secret in SECRETS.iter().chain([&user.as_str()]) {
                assert!(!has(&line, secret), "{}", String::from_utf8_lossy(&line));
            }
        }
        let ended = submitted.ended().await.with_code(0);
        said.push_str(&ended.out);
        said.push_str(&ended.err);
        said.push_str(&json_report(dir).to_string());
    }
    said.push_str(&coordinator.process.said());
    said.push_str(&lab1.said());
    let agents_token = fs::read_to_string(dir.join("lab1.token")).unwrap();
    let plan = fs::read(dir.join("plan.toml")).unwrap();
    assert!(has(&plan, authorization) && said.contains("lab1"), "the search finds what is there");
    for secret in SECRETS.iter().copied().chain([user.as_str(), agents_token.trim()]) {
        assert!(!said.contains(secret), "{secret} was said");
        let stored = files(&dir.join("data")).into_iter().chain(files(&dir.join("inrush")));
        for (path, content) in stored {
            assert!(!has(&content, secret), "{secret} is in {path}");
        }
    }
    // The report is derived from what is stored, so it is not only gone.
    let at = ["--coordinator", &coordinator.address];
    spawn(&mut command(&[&["report"], &at[..]].concat(), dir)).ended().await.with_code(0);
}

#[tokio::test]
async fn what_a_coordinator_keeps_is_for_its_owner_only() {
    let folder = folder();
    let _coordinator = crate::way::secured(folder.path()).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for (path, _) in
        files(&folder.path().join("data")).iter().chain(&files(&folder.path().join("inrush")))
    {
        assert_eq!(mode(Path::new(path)) & 0o077, 0, "{path}");
    }
    assert_eq!(mode(&folder.path().join("data")), 0o700);
}
