//! What a path asks for; no I/O.

use std::time::Duration;

use http::StatusCode;
use thiserror::Error;

/// The most bytes `/bytes/N` sends.
pub(super) const MAX_BYTES: u64 = 1 << 30;
/// The longest `/delay/MS` waits.
pub(super) const MAX_DELAY_MS: u64 = 60_000;

/// What is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Hello,
    Bytes(u64),
    Delay(Duration),
    Status(StatusCode),
    Echo,
    Stats,
}

/// Why a path is not served.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum RouteError {
    #[error(
        "there is nothing at \"{0}\"; this target has /, /bytes/N, /delay/MS, /status/CODE, /echo and /__stats"
    )]
    Unknown(String),
    #[error("\"{path}\" needs {expected}, like {example}")]
    BadNumber { path: String, expected: &'static str, example: &'static str },
}

impl RouteError {
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Unknown(_) => StatusCode::NOT_FOUND,
            Self::BadNumber { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

/// Reads a path without its query.
pub(super) fn route(path: &str) -> Result<Route, RouteError> {
    let bad = |expected, example| RouteError::BadNumber { path: path.into(), expected, example };
    match path {
        "/" => return Ok(Route::Hello),
        "/echo" => return Ok(Route::Echo),
        "/__stats" => return Ok(Route::Stats),
        _ => {}
    }
    if let Some(number) = path.strip_prefix("/bytes/") {
        let bytes = number.parse().ok().filter(|bytes| *bytes <= MAX_BYTES);
        bytes
            .map(Route::Bytes)
            .ok_or_else(|| bad("a number of bytes from 0 to 1073741824 (1 GiB)", "/bytes/1024"))
    } else if let Some(number) = path.strip_prefix("/delay/") {
        let millis = number.parse().ok().filter(|millis| *millis <= MAX_DELAY_MS);
        millis
            .map(|millis| Route::Delay(Duration::from_millis(millis)))
            .ok_or_else(|| bad("a number of milliseconds from 0 to 60000", "/delay/250"))
    } else if let Some(number) = path.strip_prefix("/status/") {
        let code = number.parse().ok().filter(|code| (200..600).contains(code));
        code.and_then(|code| StatusCode::from_u16(code).ok())
            .map(Route::Status)
            .ok_or_else(|| bad("a status code from 200 to 599", "/status/503"))
    } else {
        Err(RouteError::Unknown(path.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_says_what_it_asks_for() {
        for (path, wanted) in [
            ("/", Route::Hello),
            ("/echo", Route::Echo),
            ("/__stats", Route::Stats),
            ("/bytes/0", Route::Bytes(0)),
            ("/bytes/1073741824", Route::Bytes(MAX_BYTES)),
            ("/delay/60000", Route::Delay(Duration::from_secs(60))),
            ("/status/200", Route::Status(StatusCode::OK)),
            ("/status/599", Route::Status(StatusCode::from_u16(599).unwrap())),
        ] {
            assert_eq!(route(path), Ok(wanted), "{path}");
        }
    }

    #[test]
    fn a_number_out_of_range_is_told_what_was_expected() {
        for path in [
            "/bytes/",
            "/bytes/1073741825",
            "/bytes/-1",
            "/bytes/1k",
            "/bytes/1/2",
            "/delay/60001",
            "/delay/1.5",
            "/status/199",
            "/status/600",
            "/status/ok",
        ] {
            let error = route(path).unwrap_err();
            assert_eq!(error.status(), StatusCode::BAD_REQUEST, "{path}");
            let text = error.to_string();
            assert!(text.starts_with(&format!("\"{path}\" needs a")), "{text}");
            let (_, example) = text.split_once(", like ").unwrap();
            assert!(route(example).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_wrong_path_is_told_the_right_ones() {
        for path in ["/hello", "//", "/echo/", "/bytes", "*", "/favicon.ico"] {
            let error = route(path).unwrap_err();
            assert_eq!(error.status(), StatusCode::NOT_FOUND, "{path}");
            assert!(error.to_string().contains("/bytes/N"), "{error}");
        }
    }
}
