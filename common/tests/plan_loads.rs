//! What loads, phases and connection policies mean once a plan is loaded.

#![allow(clippy::unwrap_used, reason = "what cannot be unwrapped fails the test")]

use std::{collections::BTreeMap, time::Duration};

use inrush_common::{
    plan::{
        self, ArrivalProcess, ClosedLoad, ConnectionPolicy, Load, Loaded, OpenLoad, Overflow,
        Phase, Plan, Problem, Resolve, ThinkTime, code,
    },
    schedule::{Rate, RateProfile},
};

const SECOND: u64 = 1_000_000_000;

fn try_load(rest: &str) -> Result<Loaded, Vec<Problem>> {
    let source = format!("url = 'http://127.0.0.1/'\n{rest}\n");
    plan::load("plan.toml", &source, &BTreeMap::new())
}

/// Without warnings.
fn load(rest: &str) -> Plan {
    let loaded = try_load(rest).unwrap_or_else(|problems| panic!("{rest}: {problems:#?}"));
    assert_eq!(loaded.warnings, [], "{rest}");
    loaded.plan
}

fn codes(rest: &str) -> Vec<&'static str> {
    let problems = try_load(rest).map(|loaded| loaded.warnings).unwrap_or_else(|problems| problems);
    problems.into_iter().map(|problem| problem.code).collect()
}

fn open_of(plan: &Plan) -> &OpenLoad {
    match plan.workload.phases.as_slice() {
        [Phase { load: Load::Open(open), .. }] => open,
        other => panic!("{other:?}"),
    }
}

fn open(table: &str) -> OpenLoad {
    open_of(&load(&format!("[load.open]\n{table}"))).clone()
}

fn closed(table: &str) -> ClosedLoad {
    let plan = load(&format!("[load.closed]\n{table}"));
    match plan.workload.phases.as_slice() {
        [Phase { load: Load::Closed(closed), .. }] => closed.clone(),
        other => panic!("{other:?}"),
    }
}

/// When the requests are due, in milliseconds.
fn due_ms(open: &OpenLoad) -> Vec<u64> {
    let due = |k| open.profile.due(k).unwrap() / 1_000_000;
    (0..open.slots.count()).map(due).collect()
}

#[test]
fn two_of_rate_duration_and_requests_are_enough_for_an_open_load() {
    let expected: Vec<u64> = (0..10).map(|k| k * 2_000).collect();
    for table in [
        "rate = 0.5\nrequests = 10",
        "rate = 0.5\nduration = '20s'",
        "requests = 10\nduration = '20s'",
        "rate = 0.5\nduration = '20s'\nrequests = 10",
    ] {
        let open = open(table);
        assert_eq!(due_ms(&open), expected, "{table}");
        assert_eq!(open.profile.duration_ns(), 20 * SECOND, "{table}");
    }
}

#[test]
fn an_open_load_has_the_documented_defaults() {
    let few = open("rate = 100\nduration = '10s'");
    assert_eq!((few.arrivals, few.on_overflow), (ArrivalProcess::Uniform, Overflow::Queue));
    assert_eq!((few.slots.count(), few.max_in_flight), (1_000, 1_000));
    assert_eq!(open("rate = 100_000\nduration = '10s'").max_in_flight, 10_000);
    let more = open("rate = 100\nduration = '10s'\nmax_in_flight = 5_000");
    assert_eq!(more.max_in_flight, 1_000, "more requests than there are never are in flight");
}

#[test]
fn decimals_of_a_rate_are_exact() {
    for (typed, micro) in
        [("0.1", 100_000), ("0.3", 300_000), ("1_234.567_891", 1_234_567_891), ("7", 7_000_000)]
    {
        let rate = Rate::from_micro(micro).unwrap();
        let open = open(&format!("rate = {typed}\nduration = '100s'"));
        assert_eq!(open.profile, RateProfile::constant(rate, 100 * SECOND).unwrap(), "{typed}");
    }
    assert_eq!(open("rate = 0.1\nduration = '7d'").slots.count(), 60_480);
}

#[test]
fn of_a_count_and_a_time_that_disagree_the_first_ends_the_load_with_a_warning() {
    let disagree = |table: &str| {
        let loaded = try_load(&format!("[load.open]\n{table}")).unwrap();
        let codes: Vec<_> = loaded.warnings.iter().map(|warning| warning.code).collect();
        assert_eq!(codes, [code::ENDS_FIRST], "{table}");
        let open = open_of(&loaded.plan);
        (open.slots.count(), open.profile.duration_ns())
    };
    assert_eq!(disagree("rate = 100\nduration = '10s'\nrequests = 150"), (150, 3 * SECOND / 2));
    assert_eq!(disagree("rate = 100\nduration = '10s'\nrequests = 1_500"), (1_000, 10 * SECOND));
    let ramp = "rate = { from = 0, to = 100 }\nduration = '10s'";
    assert_eq!(disagree(&format!("{ramp}\nrequests = 100")), (100, 10 * SECOND));
    assert_eq!(disagree(&format!("{ramp}\nrequests = 501")), (500, 10 * SECOND));
    let steps = "steps = [{ rate = 5, duration = '2s' }, { rate = 10, duration = '1s' }]";
    assert_eq!(disagree(&format!("{steps}\nrequests = 12")), (12, 3 * SECOND));
    assert_eq!(open(&format!("{steps}\nrequests = 20")).slots.count(), 20);
}

#[test]
fn a_slow_ramp_and_what_follows_it_make_their_requests_in_their_time() {
    let open = open(
        "steps = [{ rate = { from = 0, to = 0.4 }, duration = '20s' }, { rate = 0.4, duration = '30s' }]",
    );
    let due = due_ms(&open);
    assert_eq!((due.len(), open.profile.duration_ns()), (16, 50 * SECOND));
    let steady: Vec<u64> = (0..12).map(|k| 20_000 + 2_500 * k).collect();
    assert_eq!(due[4..], steady);
}

#[test]
fn short_steps_and_pauses_between_them_add_up() {
    let pair = "{ rate = 0.5, duration = '6s' }, { rate = 0, duration = '2s' }";
    let open = open(&format!("steps = [{}]", [pair; 5].join(", ")));
    assert_eq!((open.slots.count(), open.profile.duration_ns()), (15, 40 * SECOND));
    let spread = self::open("requests = 10\nduration = '30s'");
    assert_eq!(due_ms(&spread), (0..10).map(|k| k * 3_000).collect::<Vec<_>>());
}

#[test]
fn a_ramp_may_begin_or_end_at_zero() {
    for ends in ["from = 0, to = 50", "from = 50, to = 0"] {
        let open = open(&format!("rate = {{ {ends} }}\nduration = '10s'"));
        assert_eq!((open.slots.count(), open.profile.duration_ns()), (250, 10 * SECOND));
    }
    let rising = closed("connections = { from = 1, to = 2 }\nduration = '10s'");
    assert_eq!((rising.profile.peak(), rising.duration), (2, Some(Duration::from_secs(10))));
    assert_eq!(rising.profile.lane_from(1, 0).unwrap().on_ns, 5 * SECOND);
    let falling = closed("connections = { from = 10, to = 1 }\nduration = '9s'");
    assert_eq!((falling.profile.at(0), falling.profile.at(9 * SECOND)), (10, 1));
    let from_none = closed("connections = { from = 0, to = 10 }\nduration = '10s'");
    assert_eq!((from_none.profile.at(0), from_none.lanes.count()), (0, 10));
}

#[test]
fn a_step_without_duration_does_nothing() {
    let steps = |jump: &str| {
        let (one, two) = ("{ rate = 5, duration = '2s' }", "{ rate = 9, duration = '2s' }");
        open(&format!("steps = [{one}, {jump} {two}]"))
    };
    assert_eq!(steps("{ rate = 1_000, duration = '0s' },"), steps(""));
    let last = closed(
        "steps = [{ connections = 5, duration = '2s' }, { connections = 1_000, duration = '0s' }]",
    );
    assert_eq!((last.profile.peak(), last.duration), (5, Some(Duration::from_secs(2))));
}

#[test]
fn no_more_connections_than_requests_have_work() {
    let rest = "[load.closed]\nsteps = [{ connections = { from = 0, to = 50 }, duration = '2s' }]\nrequests = 7";
    let loaded = try_load(rest).unwrap();
    let [Phase { load: Load::Closed(closed), .. }] = loaded.plan.workload.phases.as_slice() else {
        panic!()
    };
    assert_eq!((closed.profile.peak(), closed.lanes.count(), closed.requests), (50, 7, Some(7)));
}

#[test]
fn think_times_are_fixed_or_drawn() {
    let think = |typed: &str| {
        closed(&format!("connections = 1\nrequests = 1\nthink_time = {typed}")).think_time
    };
    let seconds = Duration::from_secs;
    assert_eq!(think("'0s'"), ThinkTime::None);
    assert_eq!(think("'500ms'"), ThinkTime::Fixed(Duration::from_millis(500)));
    assert_eq!(think("{ uniform = ['1s', '3s'] }"), ThinkTime::Uniform(seconds(1), seconds(3)));
    assert_eq!(think("{ uniform = ['2s', '2s'] }"), ThinkTime::Fixed(seconds(2)));
    assert_eq!(think("{ uniform = ['0s', '0s'] }"), ThinkTime::None);
    assert_eq!(think("{ exponential = '2s' }"), ThinkTime::Exponential(seconds(2)));
    assert_eq!(think("{ exponential = '0s' }"), ThinkTime::None);
}

#[test]
fn phases_start_after_each_other_or_at_their_times() {
    let phase = |name: &str, rest: &str| format!("[[phases]]\nname = '{name}'\n{rest}\n");
    let plan = load(
        &[
            phase("a", "load.closed = { connections = 1, requests = 5, duration = '10s' }"),
            phase("b", "load.open = { rate = 3, requests = 10 }"),
            phase("c", "start_at = '5s'\nload.open = { rate = 5, duration = '20s' }"),
            phase("d", "start_after = 'f'\nload.closed = { connections = 1, requests = 5 }"),
            phase("e", "start_after = 'a'\nload.open.steps = [{ rate = 5, duration = '2s' }]"),
            phase("f", "load.open = { rate = 1, duration = '1m' }"),
        ]
        .concat(),
    );
    let starts: Vec<u128> =
        plan.workload.phases.iter().map(|phase| phase.starts_at.as_nanos()).collect();
    let s = u128::from(SECOND);
    assert_eq!(starts, [0, 10 * s, 5 * s, 72 * s, 10 * s, 12 * s]);
    assert_eq!(plan.workload.ends_at(), None, "the last one ends with its count");
}

#[test]
fn the_length_of_a_run_and_of_its_list_of_phases_is_bounded() {
    let phases = |count: usize, of: &str| {
        let one = |nth| {
            format!("[[phases]]\nname = '{nth}'\nload.open = {{ rate = 1, duration = '{of}' }}\n")
        };
        (0..count).map(one).collect::<String>()
    };
    assert_eq!(codes(&phases(100, "1h")), [""; 0]);
    assert_eq!(codes(&phases(101, "1h")), [code::OUT_OF_RANGE]);
    assert_eq!(codes(&phases(7, "1d")), [""; 0]);
    assert_eq!(codes(&phases(8, "1d")), [code::OUT_OF_RANGE]);
    assert_eq!(codes(&phases(100, "7d")), [code::OUT_OF_RANGE]);
}

#[test]
fn one_mistake_in_a_phase_is_one_problem() {
    let with = |phase: &str| {
        let fine = "load.open = { rate = 5, duration = '1s' }";
        format!(
            "[[phases]]\nname = 'a'\n{fine}\n[[phases]]\n{phase}\n[[phases]]\nname = 'c'\n{fine}\n"
        )
    };
    for (phase, expected) in [
        ("name = 'b'\nload.closed = { conections = 1, duration = '1s' }", code::UNKNOWN_KEY),
        ("name = 'b'\nload.closd = { connections = 1, duration = '1s' }", code::UNKNOWN_KEY),
        ("name = 'b'\nclosed = { connections = 1, duration = '1s' }", code::UNKNOWN_KEY),
        ("name = 'b'\nlaod.open = { rate = 1, duration = '1s' }", code::UNKNOWN_KEY),
        ("name = 'b'\nload.open = { rat = 1, duration = '1s' }", code::UNKNOWN_KEY),
        ("name = 'b'\nload.open = { rate = 1, duration = 5 }", code::MISSING_UNIT),
        (
            "name = 'b'\nload.open = { rate = { from = 1, to = 'x' }, duration = '5s' }",
            code::WRONG_TYPE,
        ),
        ("name = 'b'\nload.open.steps = [{ rate = -1, duration = '5s' }]", code::OUT_OF_RANGE),
        ("name = 'b'\nload.open.steps = [{ rate = 1, duration = '' }]", code::BAD_DURATION),
        ("name = 'b'\nload.open.steps = { rate = 1, duration = '5s' }", code::WRONG_TYPE),
        ("name = 'b'\nload = 'open'", code::WRONG_TYPE),
        ("name = 'b'", code::NO_LOAD),
        ("name = 'b'\nload.closed = { connections = 1, requests = 5 }", code::UNKNOWN_END),
        ("name = ''\nload.open = { rate = 1, duration = '1s' }", code::BAD_NAME),
        ("name = 7\nload.open = { rate = 1, duration = '1s' }", code::WRONG_TYPE),
        ("nam = 'b'\nload.open = { rate = 1, duration = '1s' }", code::UNKNOWN_KEY),
        ("name = 'c'\nload.open = { rate = 1, duration = '1s' }", code::DUPLICATE_PHASE),
    ] {
        assert_eq!(codes(&with(phase)), [expected], "{phase}");
    }
    assert_eq!(codes("[phases]\nname = 'a'\nload.open = { rate = 5, duration = '1s' }"), [""; 0]);
    assert_eq!(codes("phases = 'a'"), [code::WRONG_TYPE]);
    assert_eq!(
        codes("[[phase]]\nname = 'a'\nload.open = { rate = 5, duration = '1s' }"),
        [code::UNKNOWN_KEY]
    );
}

#[test]
fn a_circle_of_phases_is_told_once() {
    let phase = |name: &str, after: &str| {
        format!(
            "[[phases]]\nname = '{name}'\nstart_after = '{after}'\nload.open = {{ rate = 5, duration = '1s' }}\n"
        )
    };
    let circle = [phase("a", "c"), phase("b", "a"), phase("c", "b"), phase("d", "c")].concat();
    assert_eq!(codes(&circle), [code::PHASE_CYCLE]);
    let two = [phase("a", "b"), phase("b", "a"), phase("c", "d"), phase("d", "c")].concat();
    assert_eq!(codes(&two), [code::PHASE_CYCLE; 2]);
}

#[test]
fn thresholds_know_the_phases_by_their_names() {
    let plan = |name: &str| {
        format!(
            "thresholds = ['p99(response_time{{phase=\"{name}\"}}) < 1s']\n\
             [[phases]]\nname = 'peak'\nload.open = {{ rate = 5, duration = '1s' }}"
        )
    };
    assert_eq!(codes(&plan("peak")), [""; 0]);
    assert_eq!(codes(&plan("main")), [code::UNKNOWN_NAME]);
}

#[test]
fn connections_are_made_and_kept_as_the_plan_says() {
    let small = "[load.closed]\nconnections = 1\nrequests = 1";
    let policy = |top: &str| load(&format!("{top}\n{small}")).workload.connections;
    let usual = ConnectionPolicy::default();
    assert_eq!(policy("keep_alive = true"), usual);
    let one = ConnectionPolicy { requests_per_connection: Some(1), ..usual.clone() };
    assert_eq!(policy("keep_alive = false"), one);
    assert_eq!(policy("requests_per_connection = 1"), one);
    assert_eq!(policy("keep_alive = false\nrequests_per_connection = 1"), one);
    let ten = ConnectionPolicy { requests_per_connection: Some(10), ..usual };
    assert_eq!(policy("keep_alive = true\nrequests_per_connection = 10"), ten);
    for contradiction in [
        "keep_alive = false\nrequests_per_connection = 2",
        "keep_alive = true\nrequests_per_connection = 1",
    ] {
        assert_eq!(codes(&format!("{contradiction}\n{small}")), [code::CONFLICT]);
    }
    let all = policy(
        "connect_rate = 0.25\nresolve = 'per-connection'\nconnect_to = '[::1]:80'\nhold = 10_000_000",
    );
    assert_eq!(all.connect_rate.map(Rate::micro), Some(250_000));
    assert_eq!((all.resolve, all.hold), (Resolve::PerConnection, 10_000_000));
    assert_eq!(all.connect_to, ["[::1]:80"]);
    assert_eq!(
        load(&format!("seed = 18_446_744_073_709_551_615\n{small}")).workload.seed,
        u64::MAX
    );
}
