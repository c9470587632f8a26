//! What was probably meant.

use super::metric::{ConnectionCount, Counter, Pace};
use crate::{outcome::ErrorClass, plan::nearest::nearest};

/// What can be counted, by name; statuses by two examples.
pub(super) fn counter_names() -> Vec<String> {
    let requests = Counter::OF_REQUESTS.iter().map(|(name, _)| (*name).to_owned());
    let errors = ErrorClass::ALL.into_iter().map(|class| Counter::Errors(Some(class)));
    let connections = ConnectionCount::ALL.iter().map(|which| Counter::Connections(*which));
    let others = errors.chain(connections).chain([Counter::Errors(None)]);
    let statuses = ["status.5xx".to_owned(), "status.503".to_owned()];
    requests.chain(others.map(|counter| counter.to_string())).chain(statuses).collect()
}

/// How a metric that takes no aggregate is written.
pub(super) fn stands_alone(typed: &str) -> Option<String> {
    match Pace::from_name(typed) {
        Some(pace) => Some(format!("{pace} > 5000/s")),
        None if typed == "failed_ratio" => Some("failed_ratio < 0.1%".to_owned()),
        None => None,
    }
}

/// What other tools call it.
pub(super) fn other_words(typed: &str) -> Option<String> {
    let meant = match typed {
        "latency" | "duration" | "http_req_duration" | "response" | "rt" => {
            "did you mean `response_time`? It is from the intended start, `service_time` from the actual one"
        }
        "rps" | "qps" | "rate" | "http_reqs" | "rates.throughput" => {
            "did you mean `throughput`? It counts what succeeded"
        }
        "rates.started" => "did you mean `started_rate`?",
        "rates.completed" => "did you mean `completed_rate`?",
        "error_rate" | "error_ratio" | "fail_ratio" | "errors_ratio" | "http_req_failed" => {
            "did you mean `failed_ratio`? It counts errors and the statuses that the plan does not expect"
        }
        _ => return None,
    };
    Some(meant.to_owned())
}

pub(super) fn suggestion<'a>(
    typed: &str,
    words: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    match nearest(typed, words.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
            format!("there are {}", words.join(", "))
        }
    }
}
