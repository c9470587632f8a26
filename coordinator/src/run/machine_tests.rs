use std::fmt::Write as _;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn origin() -> Instant {
    crate::clock::now()
}

fn name(name: &str) -> AgentName {
    name.parse().unwrap()
}

fn rules(on_loss: OnLoss) -> Rules {
    Rules {
        on_loss,
        ready_within: 30 * SECOND,
        grace: 10 * SECOND,
        ends_within: Some(100 * SECOND),
    }
}

fn prepare(now: Instant) -> Event {
    Event::Prepare { now, agents: vec![name("a"), name("b")] }
}

fn ready(now: Instant, agent: &str) -> Event {
    Event::Ready { now, agent: name(agent), round_trip: Duration::from_millis(1) }
}

fn stored(now: Instant, agent: &str, last: bool) -> Event {
    let last = last.then_some(Completion::Finished);
    Event::Stored { now, agent: name(agent), last }
}

fn left(now: Instant, agent: &str) -> Event {
    Event::Stored { now, agent: name(agent), last: Some(Completion::Stopped) }
}

fn lost(now: Instant, agent: &str) -> Event {
    Event::Lost { now, heard: now, agent: name(agent), evidence: "its process ended".to_owned() }
}

fn cancel(now: Instant, mode: StopMode) -> Event {
    Event::Cancel { now, mode }
}

fn broken(now: Instant, mode: StopMode) -> Event {
    Event::Broken { now, mode, evidence: "`failed_ratio < 5%` was broken".to_owned() }
}

fn not_ready(kind: NotReadyKind) -> Event {
    Event::NotReady { agent: name("a"), kind, detail: "no luck".to_owned() }
}

/// The run after the events, and what the last of them led to.
fn after(on_loss: OnLoss, events: Vec<Event>) -> (Run, Vec<Action>) {
    let run = Run::new(rules(on_loss));
    events.into_iter().fold((run, Vec::new()), |(run, _), event| run.step(event))
}

/// A run of the agents a and b, of which only a is ready in `preparing`.
fn run_in(state: RunState, t: Instant, on_loss: OnLoss) -> Run {
    let preparing = vec![prepare(t), ready(t, "a")];
    let all_ready = [preparing.clone(), vec![ready(t, "b")]].concat();
    let running = [all_ready.clone(), vec![Event::Tick { now: t + SECOND }]].concat();
    let more = |more: Vec<Event>| [running.clone(), more].concat();
    let events = match state {
        RunState::Queued => Vec::new(),
        RunState::Preparing => preparing,
        RunState::Ready => all_ready,
        RunState::Running => running,
        RunState::Draining => more(vec![cancel(t + SECOND, StopMode::Drain)]),
        RunState::Finished => more(vec![stored(t, "a", true), stored(t, "b", true)]),
        RunState::Failed => vec![prepare(t), not_ready(NotReadyKind::Other)],
        RunState::Cancelled => vec![cancel(t, StopMode::Drain)],
    };
    let (run, _) = after(on_loss, events);
    assert_eq!(run.state(), state);
    run
}

fn show(run: &Run, actions: &[Action], t: Instant) -> String {
    let mut text = run.state().name().to_owned();
    for action in actions {
        let words = match action {
            Action::Assign { agent } => format!("assign {agent}"),
            Action::Start { agent, at } => format!("start {agent} at {:?}", *at - t),
            Action::Stop { agent, mode, reason } => format!("{mode:?} {agent} ({reason})"),
            Action::Release { agent } => format!("release {agent}"),
            Action::NoteNotReady { agent, .. } => format!("note {agent} not ready"),
            Action::NoteLost { agent, after_start, .. } => {
                format!("note {agent} lost at {after_start:?}")
            }
        };
        write!(text, ", {words}").unwrap();
    }
    text
}

/// Every state × every event, without the pairs in which nothing happens.
const TABLE: &str = include_str!("machine_table.txt");

#[test]
fn every_event_in_every_state_does_what_the_table_says() {
    let t = origin();
    let soon = t + 2 * SECOND;
    let late = t + 1_000 * SECOND;
    let events = [
        ("prepare", prepare(soon)),
        ("give up", Event::GiveUp { detail: "no agents".to_owned() }),
        ("a ready", ready(soon, "a")),
        ("b ready", ready(soon, "b")),
        ("stranger ready", ready(soon, "z")),
        ("a not ready", not_ready(NotReadyKind::Other)),
        ("a unreachable", not_ready(NotReadyKind::TargetUnreachable)),
        ("a stored", stored(soon, "a", false)),
        ("a done", stored(soon, "a", true)),
        ("a left", left(soon, "a")),
        ("stranger done", stored(soon, "z", true)),
        ("a lost", lost(soon, "a")),
        ("stranger lost", lost(soon, "z")),
        ("a rule broken, to drain", broken(soon, StopMode::Drain)),
        ("a rule broken, to abort", broken(soon, StopMode::Abort)),
        ("cancel by draining", cancel(soon, StopMode::Drain)),
        ("cancel by aborting", cancel(soon, StopMode::Abort)),
        ("a moment passes", Event::Tick { now: t + Duration::from_millis(1) }),
        ("long time passes", Event::Tick { now: late }),
    ];
    let mut table = String::new();
    for on_loss in [OnLoss::Abort, OnLoss::Continue] {
        for state in RunState::ALL {
            for (label, event) in &events {
                let before = run_in(state, t, on_loss);
                let (after, actions) = before.clone().step(event.clone());
                if after == before && actions.is_empty() {
                    continue;
                }
                let shown = show(&after, &actions, t);
                let on_loss = on_loss.name();
                writeln!(table, "{on_loss} | {state} | {label} | {shown}").unwrap();
            }
        }
    }
    assert!(table == TABLE, "the table is now:\n{table}");
}

#[test]
fn nothing_happens_to_a_run_that_has_ended() {
    for ended in RunState::ALL.into_iter().filter(|state| state.is_ended()) {
        assert!(!TABLE.contains(&format!("| {ended} | ")), "{ended}");
    }
}

#[test]
fn the_start_is_so_far_ahead_that_the_farthest_agent_hears_of_it_in_time() {
    let t = origin();
    let far = Event::Ready { now: t, agent: name("b"), round_trip: SECOND };
    let (_, actions) = after(OnLoss::Abort, vec![prepare(t), ready(t, "a"), far]);
    let at = t + 4 * SECOND;
    let start = |agent| Action::Start { agent: name(agent), at };
    assert_eq!(actions, vec![start("a"), start("b")]);
}

#[test]
fn an_agent_whose_clock_is_hardly_known_is_named_and_puts_no_start_far_off() {
    let t = origin();
    for (round_trip, state) in [(2_500, RunState::Ready), (2_501, RunState::Failed)] {
        let round_trip = Duration::from_millis(round_trip);
        let far = Event::Ready { now: t, agent: name("b"), round_trip };
        let (run, _) = after(OnLoss::Abort, vec![prepare(t), ready(t, "a"), far]);
        assert_eq!(run.state(), state, "{round_trip:?}");
    }
    let nonsense = Event::Ready { now: t, agent: name("b"), round_trip: 7_200 * SECOND };
    let (run, actions) = after(OnLoss::Abort, vec![prepare(t), nonsense]);
    assert_eq!(show(&run, &actions, t), "failed, note b not ready, release a, release b");
    let words = run.detail();
    assert!(words.starts_with("the clock of b is only known to ±"), "{words}");
}

#[test]
fn a_deadline_names_who_missed_it() {
    let t = origin();
    let tick = |now| Event::Tick { now };
    let (run, _) = after(OnLoss::Abort, vec![prepare(t), ready(t, "b"), tick(t + 30 * SECOND)]);
    assert_eq!(run.detail(), "a did not report ready within 30.0 s");

    let running = run_in(RunState::Running, t, OnLoss::Abort);
    let (run, _) = running.clone().step(stored(t + 50 * SECOND, "b", true));
    let (run, _) = run.step(stored(t + 99 * SECOND, "a", false));
    let (run, actions) = run.step(tick(t + 101 * SECOND));
    assert_eq!(show(&run, &actions, t), "draining, Abort a (aborted)");
    let (run, actions) = run.step(tick(t + 116 * SECOND));
    assert_eq!(show(&run, &actions, t), "failed, note a lost at 115.7s, release b");
    assert_eq!(run.detail(), "a went on beyond the end of the plan's duration");

    let (run, _) = running.step(stored(t + 50 * SECOND, "b", false));
    let (run, actions) = run.step(tick(t + 61 * SECOND));
    let Some(Action::NoteLost { evidence, .. }) = actions.first() else { panic!("{actions:?}") };
    assert_eq!(evidence, "it is connected, but handed in nothing for 60.0 s");
    assert_eq!(run.state(), RunState::Draining);
}

#[test]
fn a_cancelled_run_drains_then_aborts_then_ends_without_the_silent() {
    let t = origin();
    let draining = run_in(RunState::Draining, t, OnLoss::Abort);
    let (run, actions) = draining.step(Event::Tick { now: t + 26 * SECOND });
    assert_eq!(show(&run, &actions, t), "draining, Abort a (cancelled), Abort b (cancelled)");
    let (run, actions) = run.step(stored(t + 27 * SECOND, "a", true));
    assert_eq!(show(&run, &actions, t), "draining");
    let (run, actions) = run.step(Event::Tick { now: t + 41 * SECOND });
    assert_eq!(show(&run, &actions, t), "cancelled, note b lost at 40.7s, release a");
}

#[test]
fn a_second_cancel_by_draining_changes_nothing_and_one_by_aborting_stops_at_once() {
    let t = origin();
    let draining = run_in(RunState::Draining, t, OnLoss::Abort);
    let (run, actions) = draining.clone().step(cancel(t + 2 * SECOND, StopMode::Drain));
    assert_eq!((&run, actions), (&draining, Vec::new()));
    let (run, actions) = run.step(cancel(t + 3 * SECOND, StopMode::Abort));
    assert_eq!(show(&run, &actions, t), "draining, Abort a (cancelled), Abort b (cancelled)");
}

#[test]
fn a_broken_rule_ends_a_run_by_its_name_whatever_else_happens_on_the_way() {
    let t = origin();
    let running = run_in(RunState::Running, t, OnLoss::Abort);
    let (run, actions) = running.step(broken(t + 12 * SECOND, StopMode::Drain));
    assert_eq!(
        show(&run, &actions, t),
        "draining, Drain a (threshold_broken), Drain b (threshold_broken)"
    );
    assert_eq!(run.detail(), "`failed_ratio < 5%` was broken; waits for the last numbers of a, b");
    // Another rule, a loss and the end of the grace change the way, not the reason.
    let (same, actions) = run.clone().step(broken(t + 13 * SECOND, StopMode::Abort));
    assert_eq!((&same, actions), (&run, Vec::new()));
    let (run, _) = run.step(lost(t + 14 * SECOND, "a"));
    let (run, actions) = run.step(Event::Tick { now: t + 40 * SECOND });
    assert_eq!(show(&run, &actions, t), "draining, Abort b (threshold_broken)");
    let (run, _) = run.step(stored(t + 41 * SECOND, "b", true));
    let Phase::Ended(ending) = run.phase() else { panic!("{run:?}") };
    assert_eq!(ending.outcome, RunOutcome::StoppedByThreshold);
    assert_eq!(run.detail(), "stopped: `failed_ratio < 5%` was broken");
}

#[test]
fn a_run_goes_on_without_the_lost_when_the_plan_says_so_and_is_aborted_when_all_are() {
    let t = origin();
    let running = run_in(RunState::Running, t, OnLoss::Continue);
    let (run, _) = running.step(lost(t + 2 * SECOND, "a"));
    assert_eq!(run.state(), RunState::Running);
    let (finished, _) = run.clone().step(stored(t + 3 * SECOND, "b", true));
    assert_eq!(finished.state(), RunState::Finished);
    assert_eq!(finished.detail(), "without a, lost in mid-run");
    let (aborted, _) = run.step(lost(t + 3 * SECOND, "b"));
    let Phase::Ended(ending) = aborted.phase() else { panic!("{aborted:?}") };
    assert_eq!(ending.outcome, RunOutcome::Aborted);
    assert_eq!(aborted.detail(), "every agent was lost");
}

#[test]
fn an_agent_that_leaves_unasked_is_treated_like_a_loss_and_named() {
    let t = origin();
    let running = |on_loss| run_in(RunState::Running, t, on_loss);
    let (run, _) = running(OnLoss::Abort).step(left(t + 2 * SECOND, "a"));
    let (run, _) = run.step(left(t + 3 * SECOND, "b"));
    let Phase::Ended(ending) = run.phase() else { panic!("{run:?}") };
    assert_eq!(ending.outcome, RunOutcome::Aborted);
    assert_eq!(run.detail(), "a left in mid-run: it was stopped on its own machine");

    let (one, _) = running(OnLoss::Continue).step(left(t + 2 * SECOND, "a"));
    assert!(one.is_done(&name("a")), "its numbers are in");
    let (finished, _) = one.clone().step(stored(t + 3 * SECOND, "b", true));
    assert_eq!(finished.state(), RunState::Finished);
    assert_eq!(finished.detail(), "without a, left in mid-run");
    let (none, _) = one.step(left(t + 3 * SECOND, "b"));
    let Phase::Ended(ending) = none.phase() else { panic!("{none:?}") };
    assert_eq!(ending.outcome, RunOutcome::Aborted);
    assert_eq!(none.detail(), "every agent was lost or left");

    let preparing = run_in(RunState::Preparing, t, OnLoss::Continue);
    let (failed, _) = preparing.step(left(t + SECOND, "a"));
    assert_eq!(failed.detail(), "a left before the start");
}

#[test]
fn an_agent_that_is_done_cannot_be_lost_any_more() {
    let t = origin();
    let running = run_in(RunState::Running, t, OnLoss::Abort);
    let (run, _) = running.step(stored(t + SECOND, "a", true));
    let (still, actions) = run.clone().step(lost(t + 2 * SECOND, "a"));
    assert_eq!((still, actions), (run, Vec::new()));
}

#[test]
fn an_agent_that_comes_back_is_told_again_what_it_may_have_missed() {
    let t = origin();
    let again = |state, agent: &str, holds| {
        let run = run_in(state, t, OnLoss::Abort);
        run.again(&name(agent), holds).map(|actions| show(&run, &actions, t))
    };
    let told = |text: &str| Some(text.to_owned());
    assert_eq!(again(RunState::Preparing, "b", false), told("preparing, assign b"));
    assert_eq!(again(RunState::Preparing, "a", true), told("preparing"));
    assert_eq!(again(RunState::Preparing, "a", false), None);
    assert_eq!(again(RunState::Ready, "a", true), told("ready, start a at 300ms"));
    assert_eq!(again(RunState::Running, "a", true), told("running, start a at 300ms"));
    assert_eq!(again(RunState::Running, "a", false), None);
    assert_eq!(again(RunState::Draining, "a", true), told("draining, Drain a (cancelled)"));
    assert_eq!(again(RunState::Finished, "a", true), told("finished"));
    assert_eq!(again(RunState::Running, "z", true), told("running"));
}

#[test]
fn an_agent_has_time_to_give_its_engine_up_before_it_is_given_up() {
    assert!(HAND_IN_MARGIN > inrush_common::deadlines::ENGINE_ENDS_WITHIN);
}
