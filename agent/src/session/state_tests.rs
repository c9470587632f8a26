//! Every phase × every event.

use super::*;

fn id(text: &str) -> RunId {
    text.parse().unwrap()
}

fn phases() -> [Phase; 6] {
    let run = || id("r1");
    [
        Phase::Idle,
        Phase::Preparing(run()),
        Phase::Ready(run()),
        Phase::Running(run()),
        Phase::Draining(run()),
        Phase::HandingIn(run()),
    ]
}

/// A state in that phase of run r1, as it comes about.
fn at(phase: &Phase) -> State {
    let mut state = State { phase: phase.clone(), ..State::default() };
    if !matches!(phase, Phase::Idle | Phase::Preparing(_) | Phase::Ready(_)) {
        state.remember(id("r1"));
    }
    state
}

fn stop(run: &str, mode: StopMode) -> Event {
    Event::Stop { run: id(run), mode, reason: NotStarted::Cancelled }
}

fn events() -> Vec<(&'static str, Event)> {
    let unprepared = Event::Unprepared { fault: Fault::Capacity, detail: "too small".into() };
    vec![
        ("assign other", Event::Assign(id("r2"))),
        ("assign same", Event::Assign(id("r1"))),
        ("start", Event::Start { run: id("r1"), at_ns: 5 }),
        ("start other", Event::Start { run: id("r2"), at_ns: 5 }),
        ("drain", stop("r1", StopMode::Drain)),
        ("abort", stop("r1", StopMode::Abort)),
        ("abort other", stop("r2", StopMode::Abort)),
        ("release", Event::Release(id("r1"))),
        ("release other", Event::Release(id("r2"))),
        ("welcomed", Event::Welcomed),
        ("forget", Event::WelcomedForget),
        ("lease", Event::LeaseExpired),
        ("prepared", Event::Prepared),
        ("unprepared", unprepared),
        ("completed", Event::Completed),
        ("stuck", Event::EngineStuck),
        ("stored", Event::Stored),
        ("leave", Event::Leave),
    ]
}

fn show(action: &Action) -> String {
    match action {
        Action::Prepare => "prepare".into(),
        Action::AbandonPreparing => "abandon".into(),
        Action::SendReady(run) => format!("say {run} ready"),
        Action::SendNotReady { run, why } => {
            let why = match why {
                Refusal::Busy => "busy",
                Refusal::Executed => "executed",
                Refusal::Leaving => "leaving",
                Refusal::Stopped => "stopped",
                Refusal::Failed { fault: Fault::Capacity, .. } => "capacity",
                Refusal::Failed { .. } => "failed",
            };
            format!("refuse {run} {why}")
        }
        Action::StartEngine { at_ns } => format!("start at {at_ns}"),
        Action::StopEngine { mode: StopMode::Drain, reason } => format!("drain {reason}"),
        Action::StopEngine { mode: StopMode::Abort, reason } => format!("abort {reason}"),
        Action::GiveUpEngine => "give up".into(),
        Action::DropRun => "drop".into(),
        Action::Exit => "exit".into(),
    }
}

fn phase_name(phase: &Phase) -> String {
    match phase {
        Phase::HandingIn(_) => "handing in".into(),
        phase => phase.name().into(),
    }
}

/// What follows, as `new phase: action, action`; `-` when nothing changes.
fn follows(state: &State, event: &Event) -> String {
    let (next, actions) = state.clone().step(event.clone());
    if next.phase == state.phase && actions.is_empty() {
        return "-".into();
    }
    let actions: Vec<_> = actions.iter().map(show).collect();
    let mut name = phase_name(&next.phase);
    if next.phase.run().is_some_and(|run| *run != id("r1")) {
        name.push_str(" r2");
    }
    format!("{name}: {}", actions.join(", "))
}

/// Rows: events. Columns: idle, preparing, ready, running, draining, handing in.
#[rustfmt::skip]
const TABLE: &[(&str, [&str; 6])] = &[
    ("assign other", [
        "preparing r2: prepare", "preparing: refuse r2 busy", "ready: refuse r2 busy", "running: refuse r2 busy",
        "draining: refuse r2 busy", "handing in: refuse r2 busy",
    ]),
    ("assign same", [
        "preparing: prepare", "-", "ready: say r1 ready", "running: refuse r1 executed",
        "draining: refuse r1 executed", "handing in: refuse r1 executed",
    ]),
    ("start", ["-", "-", "running: start at 5", "-", "-", "-"]),
    ("start other", ["-"; 6]),
    ("drain", [
        "-", "idle: abandon, refuse r1 stopped", "draining: drain cancelled", "draining: drain cancelled", "-", "-",
    ]),
    ("abort", [
        "-", "idle: abandon, refuse r1 stopped", "draining: abort cancelled", "draining: abort cancelled",
        "draining: abort cancelled", "-",
    ]),
    ("abort other", ["-"; 6]),
    ("release", ["-", "idle: abandon", "idle: drop", "idle: drop", "idle: drop", "idle: drop"]),
    ("release other", ["-"; 6]),
    ("welcomed", ["-", "-", "ready: say r1 ready", "-", "-", "-"]),
    ("forget", ["-", "idle: abandon", "idle: drop", "idle: drop", "idle: drop", "idle: drop"]),
    ("lease", [
        "-", "idle: abandon", "draining: abort lease_expired", "draining: abort lease_expired",
        "draining: abort lease_expired", "-",
    ]),
    ("prepared", ["-", "ready: say r1 ready", "-", "-", "-", "-"]),
    ("unprepared", ["-", "idle: refuse r1 capacity", "-", "-", "-", "-"]),
    ("completed", ["-", "-", "handing in: ", "handing in: ", "handing in: ", "-"]),
    ("stuck", ["-", "-", "handing in: give up", "handing in: give up", "handing in: give up", "-"]),
    ("stored", ["-", "-", "-", "-", "-", "idle: drop"]),
    ("leave", [
        "idle: exit", "idle: abandon, refuse r1 leaving, exit", "draining: drain agent_lost",
        "draining: drain agent_lost", "-", "-",
    ]),
];

#[test]
fn every_event_in_every_phase_has_the_consequence_in_the_table() {
    let events = events();
    let names: Vec<_> = events.iter().map(|(name, _)| *name).collect();
    let rows: Vec<_> = TABLE.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, rows, "the table has a row for each event");
    let mut wrong = Vec::new();
    for ((name, event), (_, row)) in events.iter().zip(TABLE) {
        for (phase, expected) in phases().iter().zip(row) {
            let found = follows(&at(phase), event);
            if found != *expected {
                let phase = phase_name(phase);
                wrong.push(format!("{phase} × {name}: expected {expected:?}, got {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_leaving_agent_takes_no_work_and_goes_when_its_hands_are_empty() {
    for phase in phases() {
        let (state, actions) = at(&phase).step(Event::Leave);
        let gone = actions.contains(&Action::Exit);
        let (_, refusal) = state.clone().step(Event::Assign(id("r2")));
        let why = Refusal::Leaving;
        assert_eq!(refusal, [Action::SendNotReady { run: id("r2"), why }], "{phase:?}");
        if gone {
            continue;
        }
        // Whatever it is at: the engine ends, then the results are stored.
        let (state, mut actions) = state.step(Event::Completed);
        let (state, more) = state.step(Event::Stored);
        actions.extend(more);
        assert!(actions.contains(&Action::Exit), "{phase:?}: {actions:?}");
        assert_eq!(*state.phase(), Phase::Idle, "{phase:?}");
    }
}

#[test]
fn a_run_is_executed_once_however_often_it_is_assigned() {
    let mut state = State::default();
    for event in [
        Event::Assign(id("r1")),
        Event::Prepared,
        Event::Start { run: id("r1"), at_ns: 1 },
        Event::Completed,
        Event::Stored,
        Event::Release(id("r1")),
    ] {
        state = state.step(event).0;
    }
    assert_eq!(follows(&state, &Event::Assign(id("r1"))), "idle: refuse r1 executed");
    assert_eq!(follows(&state, &Event::Assign(id("r2"))), "preparing r2: prepare");
}

#[test]
fn a_run_that_never_started_can_come_again() {
    let mut state = State::default();
    for event in [Event::Assign(id("r1")), Event::Prepared, Event::Release(id("r1"))] {
        state = state.step(event).0;
    }
    assert_eq!(follows(&state, &Event::Assign(id("r1"))), "preparing: prepare");
}

#[test]
fn the_memory_of_executed_runs_is_bounded() {
    let mut state = State::default();
    for n in 0..REMEMBERED + 5 {
        state.remember(id(&format!("run{n}")));
    }
    assert_eq!(state.executed.len(), REMEMBERED);
    assert!(!state.executed.contains(&id("run4")) && state.executed.contains(&id("run5")));
}
