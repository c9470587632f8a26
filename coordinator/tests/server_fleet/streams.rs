//! What happens on one agent's stream, and from one stream to the next.

use inrush_common::stats::Completion;
use inrush_proto::v1::{self, RunState, agent_message, coordinator_message::Kind};
use tonic::Code;

use crate::harness::{Agent, Fleet, PLAN, hello, two_at_work};

#[tokio::test]
async fn a_broken_stream_is_no_loss_and_the_agent_goes_on_where_it_was() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    let first = lab1.snapshot(&run, 1, &[1; 10]);
    lab1.hand_in(&first).await;
    lab1.acknowledged(1).await;
    drop(lab1);
    let mut lab1 =
        Agent::dial(&fleet, v1::Hello { run: run.clone(), ..hello("lab1", 1) }).await.unwrap();
    assert_eq!(lab1.start().await.run, run);
    lab1.hand_in(&first).await;
    lab1.acknowledged(1).await;
    lab1.complete(&run, 2, &[1; 40], Completion::Finished).await;
    lab2.complete(&run, 1, &[1; 50], Completion::Finished).await;
    let (last, report) = fleet.end_of(&run).await;
    assert_eq!((last.state(), report.ledger.completed), (RunState::Finished, 100));
    fleet.stop().await;
}

#[tokio::test]
async fn a_newer_stream_of_the_same_process_replaces_the_older() {
    let fleet = Fleet::start().await;
    let mut old = fleet.agent("lab1").await;
    let _new = fleet.agent("lab1").await;
    assert_eq!(old.refusal().await.code(), Code::Aborted);
    fleet.stop().await;
}

#[tokio::test]
async fn an_agent_that_comes_back_without_its_share_is_lost() {
    let mut fleet = Fleet::start().await;
    let (run, lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    drop(lab1);
    let _lab1 = fleet.agent("lab1").await;
    lab2.stopped().await;
    lab2.complete(&run, 1, &[1; 5], Completion::Stopped).await;
    let (last, _) = fleet.end_of(&run).await;
    assert_eq!(last.detail, "lab1 was lost: it came back without its share of the run");
    fleet.stop().await;
}

#[tokio::test]
async fn a_run_that_nobody_knows_is_to_be_forgotten() {
    let fleet = Fleet::start().await;
    let stale = v1::Hello { run: "20200101-000000-abcd".to_owned(), ..hello("lab1", 1) };
    let mut lab1 = Agent::dial(&fleet, stale).await.unwrap();
    assert!(lab1.welcome.forget_run);
    let foreign = lab1.snapshot("20200101-000000-abcd", 1, &[1]);
    lab1.hand_in(&foreign).await;
    lab1.released("20200101-000000-abcd").await;
    fleet.stop().await;
}

#[tokio::test]
async fn heartbeats_are_answered_with_the_coordinators_clock_and_seen_in_the_list() {
    let mut fleet = Fleet::start().await;
    let mut lab1 = fleet.agent("lab1").await;
    lab1.heartbeat(42).await;
    let Kind::HeartbeatReply(reply) = lab1.next().await.unwrap() else { panic!() };
    assert_eq!(reply.agent_sent_ns, 42);
    assert!(reply.received_ns > 0 && reply.sent_ns >= reply.received_ns, "{reply:?}");
    let agents = fleet.control.list_agents(v1::ListAgentsRequest {}).await.unwrap().into_inner();
    let [agent] = &agents.agents[..] else { panic!("{agents:?}") };
    assert_eq!((agent.name.as_str(), agent.connected), ("lab1", true));
    assert_eq!((agent.offset_ns, agent.offset_bound_ns), (Some(-5), 7));
    assert_eq!(agent.max_connections, 1_000);
    assert_eq!(agent.hostname, "host.example.test");
    fleet.stop().await;
}

#[tokio::test]
async fn a_snapshot_that_cannot_be_read_ends_the_session_with_the_place_and_a_remedy() {
    let mut fleet = Fleet::start().await;
    let (run, mut lab1, mut lab2) = two_at_work(&mut fleet, PLAN).await;
    let mut corrupt = v1::Snapshot::from(&lab1.snapshot(&run, 1, &[1]));
    let times =
        corrupt.stats.as_mut().unwrap().phases[0].requests[0].succeeded_times.as_mut().unwrap();
    times.response_time.as_mut().unwrap().v2 = vec![1, 2, 3].into();
    lab1.say(agent_message::Kind::Snapshot(corrupt)).await;
    let status = lab1.refusal().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    for part in
        ["lab1", "stats.phases[0].requests[0].succeeded_times.response_time", "same version"]
    {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
    let others = lab2.snapshot(&run, 1, &[1]);
    let foreign = inrush_common::stats::Snapshot {
        key: inrush_common::stats::SnapshotKey {
            agent: "lab1".parse().unwrap(),
            ..others.key.clone()
        },
        ..others
    };
    lab2.hand_in(&foreign).await;
    let status = lab2.refusal().await;
    assert_eq!(status.code(), Code::InvalidArgument);
    fleet.stop().await;
}
