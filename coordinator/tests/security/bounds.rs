//! An agent's operator has the last word on where load goes and how fast.

use std::fs;

use tokio::net::TcpListener;

use crate::{
    process::inrush,
    support::{Coordinator, Target, folder, plan},
};

#[tokio::test]
async fn load_for_a_target_that_is_not_allowed_is_refused_before_a_packet_leaves() {
    let (folder, allowed) = (folder(), Target::start().await);
    let forbidden = TcpListener::bind(("127.0.0.2", allowed.address.port())).await.unwrap();
    let coordinator = Coordinator::start(folder.path()).await;
    let confine = ["--allow-target", "127.0.0.1", "--allow-target", "shop.example.test"];
    let _agent = coordinator.agent(folder.path(), "lab1", &confine).await;
    let submit = ["submit", "plan.toml", "--coordinator", &coordinator.address];
    let port = allowed.address.port();
    plan(folder.path(), &format!("http://127.0.0.1:{port}/"), 2, 100, "");
    inrush(&submit, folder.path()).await.with_code(0);
    plan(folder.path(), &format!("http://127.0.0.2:{port}/"), 2, 100, "");
    let refused = inrush(&submit, folder.path()).await.with_code(2);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("may not send load to 127.0.0.2"), "{said}");
    assert!(said.contains("--allow-target"), "{said}");
    // Nothing is in the listener's queue.
    let accepted = std::future::poll_fn(|cx| std::task::Poll::Ready(forbidden.poll_accept(cx)));
    assert!(accepted.await.is_pending());
}

#[tokio::test]
async fn a_name_is_judged_by_where_it_leads() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    // localhost leads to 127.0.0.1 and not to 127.0.0.2.
    let _agent = coordinator.agent(folder.path(), "lab1", &["--allow-target", "127.0.0.2"]).await;
    let submit = ["submit", "plan.toml", "--coordinator", &coordinator.address];
    let port = target.address.port();
    plan(folder.path(), &format!("http://localhost:{port}/"), 2, 100, "");
    let refused = inrush(&submit, folder.path()).await.with_code(2);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("where localhost resolves to"), "{said}");
    assert_eq!(target.requests().await, 0);
}

#[tokio::test]
async fn an_allowed_name_does_not_allow_the_address_it_leads_to_under_another_name() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let allowed = format!("localhost:{}", target.address.port());
    let _agent = coordinator.agent(folder.path(), "lab1", &["--allow-target", &allowed]).await;
    let submit = ["submit", "plan.toml", "--coordinator", &coordinator.address];
    plan(folder.path(), &format!("http://{allowed}/"), 2, 100, "");
    inrush(&submit, folder.path()).await.with_code(0);
    plan(folder.path(), &format!("http://{}/", target.address), 2, 100, "");
    inrush(&submit, folder.path()).await.with_code(2);
    assert_eq!(target.requests().await, 100);
}

#[tokio::test]
async fn a_top_rate_refuses_what_may_exceed_it() {
    let (folder, target) = (folder(), Target::start().await);
    let coordinator = Coordinator::start(folder.path()).await;
    let _agent = coordinator.agent(folder.path(), "lab1", &["--max-rate", "50"]).await;
    let submit = ["submit", "plan.toml", "--coordinator", &coordinator.address];
    plan(folder.path(), &format!("http://{}/", target.address), 2, 100, "");
    let refused = inrush(&submit, folder.path()).await.with_code(2);
    let said = format!("{}{}", refused.out, refused.err);
    assert!(said.contains("open load with a rate"), "{said}");
    assert_eq!(target.requests().await, 0);
    drop(fs::remove_file(folder.path().join("plan.toml")));
}
