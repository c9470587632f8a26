//! An explanation says what a run would do: over any plan and any fleet its sums are the plan's, and what it says would do,
//! does.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use inrush_common::{
    capacity::Capacity,
    explain::{
        Explanation, FleetSource, Machine, Question, RefusalCode, Remedy, WarningCode, explain,
    },
    plan::{Plan, load},
};
use jsonschema::Validator;
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

const HOUR: u64 = 3_600;

fn plan(text: &str) -> Plan {
    let read = load("plan.toml", text, &BTreeMap::new());
    read.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}")).plan
}

fn machine(number: usize, workers: u32, files: u64, ports: u64, sources: u32) -> Machine {
    let name = format!("lab{number:03}").parse().unwrap();
    let (memory, cpu_quota_millis) = (None, None);
    Machine {
        name,
        capacity: Capacity { workers, files, ports, sources, memory, cpu_quota_millis },
    }
}

fn ask(plan: &Plan, agents: &[Machine]) -> Explanation {
    explain(&Question {
        plan,
        agents,
        fleet: FleetSource::Assumed,
        request_bytes: &[100],
        response_bytes: Some(1_000),
        port_hold: Duration::from_secs(60),
    })
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/explain.schema.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A rate as it is written in a plan, over the whole range and all magnitudes.
fn rate() -> impl Strategy<Value = String> {
    let micro = (0_u32..44, any::<u64>()).prop_map(|(bits, noise)| {
        ((1_u64 << bits) | (noise & ((1 << bits) - 1))).min(10_000_000_000_000)
    });
    micro.prop_map(|micro| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000))
}

fn open() -> impl Strategy<Value = String> {
    let rates = prop_oneof![
        rate().prop_map(|rate| format!("rate = {rate}")),
        (rate(), rate()).prop_map(|(from, to)| format!("rate = {{ from = {from}, to = {to} }}")),
    ];
    let arrivals = select(&["uniform", "poisson"][..]);
    let overflow = select(&["queue", "drop"][..]);
    (rates, 1_u64..50 * HOUR, arrivals, overflow, option::of(1_u64..=10_000_000)).prop_map(
        |(rates, seconds, arrivals, overflow, most)| {
            let most = most.map(|most| format!("max_in_flight = {most}\n")).unwrap_or_default();
            format!(
                "load.open]\n{rates}\nduration = \"{seconds}s\"\narrivals = \"{arrivals}\"\non_overflow = \
                 \"{overflow}\"\n{most}"
            )
        },
    )
}

fn closed() -> impl Strategy<Value = String> {
    let count = prop_oneof![1_u64..20, 1_u64..=1_000_000_000_000];
    (1_u64..=1_000_000, option::of(count), 1_u64..50 * HOUR).prop_map(
        |(connections, requests, seconds)| {
            let requests = requests.map(|it| format!("requests = {it}\n")).unwrap_or_default();
            format!(
                "load.closed]\nconnections = {connections}\n{requests}duration = \"{seconds}s\"\n"
            )
        },
    )
}

/// Up to three phases, one after the other: at most 150 of the 168 hours that a plan may last.
fn any_plan() -> impl Strategy<Value = String> {
    let phase = (prop_oneof![open(), closed()], any::<bool>());
    let hold = prop_oneof![3 => Just(0_u64), 1 => 1_u64..1_000];
    (vec(phase, 1..4), option::of(1_u64..100), hold, 1_u32..4).prop_map(
        |(phases, each, hold, min)| {
            let mut text = "url = \"http://192.0.2.1/\"\n".to_owned();
            if let Some(each) = each {
                text.push_str(&format!("requests_per_connection = {each}\n"));
            }
            if hold > 0 {
                text.push_str(&format!("hold = {hold}\n"));
            }
            for (index, (load, measure)) in phases.iter().enumerate() {
                let measure = *measure || index == 0;
                text.push_str(&format!(
                    "[[phases]]\nname = \"p{index}\"\nmeasure = {measure}\n[phases.{load}"
                ));
            }
            text.push_str(&format!("[agents]\nmin = {min}\n"));
            text
        },
    )
}

fn fleet() -> impl Strategy<Value = Vec<Machine>> {
    let files = prop_oneof![0_u64..100, 1_000_u64..2_000_000, Just(u64::MAX)];
    vec((0_u32..64, files, 0_u64..=65_535, 0_u32..5), 0..12).prop_map(|machines| {
        let machines = machines.into_iter().enumerate();
        machines
            .map(|(i, (workers, files, ports, sources))| machine(i, workers, files, ports, sources))
            .collect()
    })
}

fn sum(of: impl Iterator<Item = u64>) -> u128 {
    of.map(u128::from).sum()
}

/// The fleet after a remedy.
fn after(agents: &[Machine], remedy: &Remedy) -> Vec<Machine> {
    let best = agents.iter().rev().max_by_key(|machine| machine.capacity.max_connections());
    let mut agents: Vec<Machine> = match remedy.agents {
        Some(1) => best.cloned().into_iter().collect(),
        _ => agents.to_vec(),
    };
    for machine in &mut agents {
        let capacity = &mut machine.capacity;
        let sources = remedy.sources.map_or(0, |sources| u32::try_from(sources).unwrap());
        capacity.sources = capacity.sources.max(sources);
        capacity.files = capacity.files.max(remedy.files.unwrap_or(0));
    }
    let best = best.cloned();
    while (agents.len() as u64) < remedy.agents.unwrap_or(0) {
        let Some(best) = &best else { break };
        agents.push(Machine {
            name: format!("more{}", agents.len()).parse().unwrap(),
            ..best.clone()
        });
    }
    agents
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_shares_sum_to_the_plan_and_what_would_do_does(text in any_plan(), agents in fleet()) {
        let plan = plan(&text);
        let explained = ask(&plan, &agents);
        let value = serde_json::to_value(&explained).unwrap();
        let back: Explanation = serde_json::from_value(value).unwrap();
        prop_assert_eq!(&back, &explained, "every number is finite and written whole");
        prop_assert_eq!(explained.can_run, explained.refusals.is_empty());
        prop_assert_eq!(explained.run.requests, plan.workload.planned_requests());

        let shares: Vec<_> = explained.agents.iter().filter_map(|agent| agent.share.as_ref()).collect();
        if !shares.is_empty() {
            prop_assert_eq!(shares.len(), agents.len());
            for (index, phase) in explained.phases.iter().enumerate() {
                let rows = || shares.iter().map(|share| &share.phases[index]);
                prop_assert_eq!(sum(rows().map(|row| row.connections)), u128::from(phase.connections));
                if let Some(requests) = phase.requests {
                    prop_assert_eq!(sum(rows().map(|row| row.requests.unwrap())), u128::from(requests));
                }
                if let Some(open) = &phase.open {
                    let rates: f64 = rows().map(|row| row.peak_rate_per_s.unwrap()).sum();
                    // A share is rounded down to a millionth of a request per second.
                    let lost = open.peak_per_s - rates;
                    prop_assert!((-1e-6..=1e-6 * agents.len() as f64 + open.peak_per_s * 1e-9).contains(&lost));
                }
            }
            if let Some(bytes) = explained.run.bytes_out {
                prop_assert_eq!(sum(shares.iter().map(|share| share.bytes_out.unwrap())), u128::from(bytes));
            }
            prop_assert_eq!(sum(shares.iter().map(|share| share.held)), u128::from(explained.run.held));
            for (agent, share) in explained.agents.iter().zip(&shares) {
                prop_assert!(share.connections <= agent.max_connections);
            }
        }
        for refusal in &explained.refusals {
            for remedy in &refusal.remedies {
                if refusal.code != RefusalCode::TooManyConnections || remedy.connections.is_some() {
                    continue;
                }
                // Above the most agents that a plan could be tried over.
                if remedy.agents.unwrap_or(0) > 5_000 {
                    continue;
                }
                let again = ask(&plan, &after(&agents, remedy));
                let still = again.refusals.iter().any(|it| it.code == RefusalCode::TooManyConnections);
                prop_assert!(!still, "{}: {:?}", refusal.text, remedy);
            }
        }
    }

    #[test]
    fn every_explanation_fits_the_schema(text in any_plan(), agents in fleet()) {
        let validator: Validator = jsonschema::draft202012::new(&schema()).unwrap();
        let value = serde_json::to_value(ask(&plan(&text), &agents)).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        prop_assert!(errors.is_empty(), "{errors:#?}");
    }
}

/// One that has something in every place.
fn full() -> Explanation {
    let text = r#"
        url = "http://192.0.2.1/"
        keep_alive = false
        thresholds = ["p99(response_time) < 1s"]
        [[phases]]
        name = "a"
        [phases.load.closed]
        connections = 3
        requests = 9
        [[phases]]
        name = "b"
        start_at = "1h"
        [phases.load.open]
        rate = 10_000
        duration = "1h"
        [agents]
        min = 3
        [[stop_when]]
        threshold = "failed_ratio < 5%"
    "#;
    ask(&plan(text), &[machine(1, 1, 50_000, 20_000, 1), machine(2, 1, 50_000, 20_000, 1)])
}

#[test]
fn the_schema_refuses_a_key_too_many_and_a_key_too_few_anywhere() {
    fn objects(value: &Value, pointer: &str, found: &mut Vec<String>) {
        if let Value::Object(fields) = value {
            found.push(pointer.to_owned());
            fields
                .iter()
                .for_each(|(key, value)| objects(value, &format!("{pointer}/{key}"), found));
        } else if let Value::Array(rows) = value {
            rows.iter()
                .enumerate()
                .for_each(|(i, row)| objects(row, &format!("{pointer}/{i}"), found));
        }
    }
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let whole = serde_json::to_value(full()).unwrap();
    assert!(validator.is_valid(&whole), "{whole:#}");
    let mut found = Vec::new();
    objects(&whole, "", &mut found);
    assert!(found.len() > 15, "{found:?}");
    for pointer in found {
        let fields = |value: &mut Value| {
            value.pointer_mut(&pointer).unwrap().as_object_mut().unwrap().clone()
        };
        let keys: Vec<String> = fields(&mut whole.clone()).keys().cloned().collect();
        for key in keys.iter().map(String::as_str).chain(["surprise"]) {
            let mut changed = whole.clone();
            let object = changed.pointer_mut(&pointer).unwrap().as_object_mut().unwrap();
            if key == "surprise" {
                object.insert(key.to_owned(), json!(1));
            } else {
                object.shift_remove(key);
            }
            assert!(!validator.is_valid(&changed), "{pointer} {key}");
        }
    }
}

#[test]
fn the_schema_and_the_reference_know_exactly_the_names_that_the_code_has() {
    let schema = schema();
    let listed = |pointer: &str| schema.pointer(pointer).unwrap().as_array().unwrap().clone();
    let refusals: Vec<Value> = RefusalCode::ALL.iter().map(|it| json!(it)).collect();
    let warnings: Vec<Value> = WarningCode::ALL.iter().map(|it| json!(it)).collect();
    assert_eq!(listed("/$defs/refusal/properties/code/enum"), refusals);
    assert_eq!(listed("/$defs/warning/properties/code/enum"), warnings);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/explain.md");
    let reference = fs::read_to_string(path).unwrap();
    for code in refusals.iter().chain(&warnings) {
        assert!(reference.contains(&format!("`{}`", code.as_str().unwrap())), "{code}");
    }
}

#[test]
fn fractional_rates_and_ramps_are_counted_exactly() {
    // A ramp to 0.4/s and then 0.4/s; and five times half a request per second with pauses in between.
    let count = |load: &str| {
        let text = format!("url = \"http://127.0.0.1/\"\n[load.open]\n{load}\n");
        ask(&plan(&text), &[machine(1, 1, 100_000, 28_232, 1)]).run.requests
    };
    let ramp = "{ rate = { from = 0, to = 0.4 }, duration = \"20s\" }";
    assert_eq!(count(&format!("steps = [{ramp}, {{ rate = 0.4, duration = \"30s\" }}]")), Some(16));
    let pulse = "{ rate = 0.5, duration = \"6s\" }, { rate = 0, duration = \"2s\" }";
    assert_eq!(count(&format!("steps = [{}]", [pulse; 5].join(", "))), Some(15));
    assert_eq!(count("requests = 10\nduration = \"30s\""), Some(10));
    assert_eq!(count("rate = { from = 100, to = 10_000 }\nduration = \"20s\""), Some(101_000));
}

#[test]
fn littles_law_says_from_when_on_requests_wait() {
    let text = "url = \"http://127.0.0.1/\"\ntimeout = \"2s\"\n[load.open]\nrate = 1_000\nduration = \"1m\"\nmax_in_flight = \
                500\n";
    let two = [machine(1, 1, 100_000, 28_232, 1), machine(2, 3, 100_000, 28_232, 1)];
    let explained = ask(&plan(text), &two);
    let open = explained.phases[0].open.as_ref().unwrap();
    assert_eq!((open.in_flight_at_timeout, open.full_from_ns), (2_000, Some(500_000_000)));
    assert_eq!((open.first_due_ns, open.last_due_ns), (Some(0), Some(59_999_000_000)));
    let rows = explained.agents.iter().map(|agent| &agent.share.as_ref().unwrap().phases[0]);
    let shares: Vec<_> =
        rows.map(|row| (row.connections, row.requests, row.peak_rate_per_s)).collect();
    assert_eq!(shares, [(125, Some(15_000), Some(250.0)), (375, Some(45_000), Some(750.0))]);
    let enough = ask(&plan(&text.replace("500\n", "2_000\n")), &two);
    assert_eq!(enough.phases[0].open.as_ref().unwrap().full_from_ns, None);
}

#[test]
fn what_is_probably_not_meant_is_said() {
    let codes = |text: &str, agents: &[Machine]| -> Vec<WarningCode> {
        ask(&plan(text), agents).warnings.iter().map(|warning| warning.code).collect()
    };
    let one = [machine(1, 1, 100_000, 28_232, 1)];
    let url = "url = \"http://192.0.2.1/\"\n";
    let closed = "[load.closed]\nconnections = 1\nrequests = 100\n";
    let two = [one[0].clone(), machine(2, 1, 100_000, 28_232, 1)];
    assert_eq!(codes(&format!("{url}{closed}"), &two), [WarningCode::IdleAgents]);
    let fast = "[load.open]\nrate = 1_000_000\nduration = \"1s\"\n";
    assert_eq!(codes(&format!("{url}{fast}"), &one), [WarningCode::RateAboveWorkers]);
    let endless = "[load.closed]\nconnections = 1\nduration = \"1h\"\n";
    assert_eq!(
        codes(&format!("{url}keep_alive = false\n{endless}"), &one),
        [WarningCode::PortsInTimeWait]
    );
    let p99 = "thresholds = [\"p99(response_time) < 1s\"]\n";
    assert_eq!(codes(&format!("{url}{p99}{closed}"), &one), [WarningCode::TooFewSamples]);
    let rule =
        |threshold: &str| format!("[[stop_when]]\nthreshold = \"{threshold}\"\nafter = \"10s\"\n");
    let short = "[load.closed]\nconnections = 1\nduration = \"5s\"\n";
    let rules = [
        format!("{url}{short}{}", rule("failed_ratio < 5%")),
        format!("{url}{endless}{}", rule("count(in_flight_at_end) < 5")),
    ];
    for text in rules {
        assert_eq!(codes(&text, &one), [WarningCode::RuleNeverJudged], "{text}");
    }
    assert!(codes(&format!("{url}{endless}{}", rule("failed_ratio < 5%")), &one).is_empty());
}
