//! What is refused, and that the words tell the remedy.

use inrush_common::stats::SHAPE;
use inrush_proto::v1::{self, agent_message, not_ready};
use tonic::{Code, Status};

use crate::harness::{Agent, Fleet, PLAN, hello, within};

fn assert_says(status: &Status, code: Code, parts: &[&str]) {
    assert_eq!(status.code(), code, "{status:?}");
    for part in parts {
        assert!(status.message().contains(part), "{part:?} in {:?}", status.message());
    }
}

async fn refused(fleet: &Fleet, hello: v1::Hello) -> Status {
    Agent::dial(fleet, hello).await.err().expect("a refusal")
}

#[tokio::test]
async fn a_name_that_is_held_is_refused_until_its_holder_is_gone() {
    let fleet = Fleet::start().await;
    let lab1 = fleet.agent("lab1").await;
    let status = refused(&fleet, hello("lab1", 2)).await;
    let parts = ["lab1", "127.0.0.1:", "host.example.test", "--name"];
    assert_says(&status, Code::AlreadyExists, &parts);
    drop(lab1);
    let gone = "its process ended".to_owned();
    fleet.coordinator.agent_process_ended(&"lab1".parse().unwrap(), gone).await;
    Agent::dial(&fleet, hello("lab1", 2)).await.unwrap();
    fleet.stop().await;
}

#[tokio::test]
async fn another_protocol_or_histogram_shape_is_refused_naming_both_versions() {
    let mut fleet = Fleet::start().await;
    let newer = v1::Hello { protocol: 99, version: "9.9.9".to_owned(), ..hello("lab1", 1) };
    let status = refused(&fleet, newer).await;
    let parts =
        ["Inrush 9.9.9", "protocol 99", "protocol 1", env!("CARGO_PKG_VERSION"), "same version"];
    assert_says(&status, Code::FailedPrecondition, &parts);

    let other = v1::Hello { histogram_shape: "ns 1..60 2".to_owned(), ..hello("lab1", 1) };
    let status = refused(&fleet, other).await;
    assert_says(&status, Code::FailedPrecondition, &["ns 1..60 2", SHAPE, "same version"]);

    let request = v1::SubmitRequest { protocol: 99, ..v1::SubmitRequest::default() };
    let status = fleet.control.submit(request).await.unwrap_err();
    assert_says(&status, Code::FailedPrecondition, &["protocol 99", "protocol 1"]);
    fleet.stop().await;
}

#[tokio::test]
async fn a_stream_that_starts_with_anything_but_a_hello_is_refused() {
    let fleet = Fleet::start().await;
    let mut stranger = Agent::open(&fleet, "lab1", 1).await.unwrap();
    stranger.heartbeat(1).await;
    assert_says(&stranger.refusal().await, Code::InvalidArgument, &["expected hello"]);
    let status = refused(&fleet, v1::Hello { capacity: None, ..hello("lab1", 1) }).await;
    assert_says(&status, Code::InvalidArgument, &["lab1", "capacity"]);
    let status = refused(&fleet, hello("lab 1", 1)).await;
    assert_says(&status, Code::InvalidArgument, &["an agent name must be", "lab 1"]);
    let mut twice = fleet.agent("lab2").await;
    twice.say(agent_message::Kind::Hello(hello("lab2", 1))).await;
    assert_says(&twice.refusal().await, Code::InvalidArgument, &["lab2", "twice"]);
    fleet.stop().await;
}

#[tokio::test]
async fn a_plan_for_more_agents_than_there_are_is_refused_naming_those_there_are() {
    let mut fleet = Fleet::start().await;
    let status = fleet.submit(PLAN).await.unwrap_err();
    let parts = ["wants 1 agent, 0 are connected", "inrush agent --coordinator 127.0.0.1:"];
    assert_says(&status, Code::FailedPrecondition, &parts);
    let (_lab1, _lab2) = (fleet.agent("lab1").await, fleet.agent("lab2").await);
    let four = format!("{PLAN}[agents]\nmin = 4\n");
    let status = fleet.submit(&four).await.unwrap_err();
    let parts = ["wants 4 agents, 2 are connected (lab1, lab2)", "agents.min"];
    assert_says(&status, Code::FailedPrecondition, &parts);
    let many = PLAN.replace("connections = 4", "connections = 5000");
    let many = many.replace("requests = 100", "requests = 5000");
    let status = fleet.submit(&many).await.unwrap_err();
    let parts = ["5000 connections", "2000", "lab1 1000", "--source-ip"];
    assert_says(&status, Code::FailedPrecondition, &parts);
    fleet.stop().await;
}

#[tokio::test]
async fn a_plan_with_problems_is_refused_with_all_of_them_shown() {
    let mut fleet = Fleet::start().await;
    let _lab1 = fleet.agent("lab1").await;
    let status = fleet.submit("ulr = 'http://127.0.0.1/'\n").await.unwrap_err();
    assert_says(&status, Code::InvalidArgument, &["plan.toml", "ulr", "url"]);
    fleet.stop().await;
}

#[tokio::test]
async fn asking_for_a_run_that_is_not_there_names_the_nearest() {
    let mut fleet = Fleet::start().await;
    let newest = v1::GetReportRequest { run: String::new() };
    let status = fleet.control.get_report(newest).await.unwrap_err();
    assert_says(&status, Code::NotFound, &["inrush submit"]);

    let mut lab1 = fleet.agent("lab1").await;
    let run = fleet.submit(PLAN).await.unwrap();
    lab1.assigned().await;
    lab1.not_ready(&run, not_ready::Kind::Capacity, "too few files").await;
    let (last, _) = fleet.end_of(&run).await;
    assert_eq!(last.detail, "lab1 is not ready: too few files");

    for unknown in ["20010101-000000-abcd", "no such run"] {
        let request = v1::GetReportRequest { run: unknown.to_owned() };
        let status = fleet.control.get_report(request).await.unwrap_err();
        assert_says(&status, Code::NotFound, &[unknown, &run, "inrush runs"]);
    }
    let request =
        v1::CancelRequest { run: run.clone(), mode: v1::cancel_request::Mode::Drain.into() };
    let status = within("cancelling", fleet.control.cancel(request)).await.unwrap_err();
    assert_says(&status, Code::FailedPrecondition, &[&run, "is over (failed)"]);
    fleet.stop().await;
}

#[tokio::test]
async fn a_data_directory_has_one_coordinator() {
    let fleet = Fleet::start().await;
    let data_dir = fleet.stop().await;
    let path = data_dir.path().to_owned();
    let fleet = Fleet::on(data_dir, |_| {}).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = inrush_coordinator::server::Config::new(&path);
    let shutdown = tokio_util::sync::CancellationToken::new();
    let second = inrush_coordinator::server::start(listener, config, shutdown).await;
    let words = second.unwrap_err().to_string();
    for part in ["in use by another coordinator", &std::process::id().to_string(), "--data-dir"] {
        assert!(words.contains(part), "{words}");
    }
    fleet.stop().await;
}

#[tokio::test]
async fn more_runs_than_anybody_waits_for_are_refused() {
    let mut fleet = Fleet::start().await;
    let mut lab1 = fleet.agent("lab1").await;
    fleet.submit(PLAN).await.unwrap();
    lab1.assigned().await;
    for _ in 0..100 {
        fleet.submit(PLAN).await.unwrap();
    }
    let status = fleet.submit(PLAN).await.unwrap_err();
    assert_says(&status, Code::ResourceExhausted, &["100 runs are waiting", "inrush cancel"]);
    fleet.stop().await;
}

#[tokio::test]
async fn a_stranger_cannot_make_the_coordinator_hold_a_message_of_any_size() {
    let fleet = Fleet::start().await;
    let mut stranger = Agent::open(&fleet, "lab1", 1).await.unwrap();
    let labels = [("size".to_owned(), "9".repeat(9 << 20))].into();
    stranger.say(agent_message::Kind::Hello(v1::Hello { labels, ..hello("lab1", 1) })).await;
    assert_says(&stranger.refusal().await, Code::InvalidArgument, &["a broken stream"]);
    fleet.stop().await;
}
