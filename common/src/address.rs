//! Where a coordinator listens, as people write it. The agent and the command line read the same variable, so they read it
//! in the same way.

use http::uri::Authority;

/// A coordinator on this machine, on the usual port.
pub const DEFAULT_COORDINATOR: &str = "127.0.0.1:7070";

/// The port of a coordinator, where none is given.
pub const DEFAULT_PORT: u16 = 7070;

/// Not the address of a coordinator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not the address of a coordinator: expected HOST:PORT, such as {DEFAULT_COORDINATOR}{hint}"
)]
pub struct BadAddress {
    text: String,
    hint: &'static str,
}

/// `HOST:PORT` out of what people write: with `http://` before it, or without the usual port.
///
/// # Errors
/// When it is none.
pub fn coordinator(text: &str) -> Result<String, BadAddress> {
    let bad = |hint| BadAddress { text: text.to_owned(), hint };
    if text.starts_with("https://") {
        return Err(bad(" (TLS is spoken where this machine has joined; the address is the same)"));
    }
    let plain = text.strip_prefix("http://").unwrap_or(text);
    let plain = plain.strip_suffix('/').unwrap_or(plain);
    let authority: Authority = plain.parse().map_err(|_| bad(""))?;
    let host = authority.host();
    if host.is_empty() {
        return Err(bad(""));
    }
    // A port alone; as a host it would be an address in a notation that nobody means.
    if host.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad(" (the host is missing)"));
    }
    match plain.strip_prefix(host) {
        Some("") => Ok(format!("{plain}:{DEFAULT_PORT}")),
        Some(port) => match port.strip_prefix(':').map(str::parse::<u16>) {
            Some(Ok(1..)) => Ok(plain.to_owned()),
            _ => Err(bad("")),
        },
        None => Err(bad("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_as_people_write_them() {
        for (text, meant) in [
            (DEFAULT_COORDINATOR, "127.0.0.1:7070"),
            ("127.0.0.1", DEFAULT_COORDINATOR),
            ("http://127.0.0.1:7071/", "127.0.0.1:7071"),
            ("coordinator.example.test", "coordinator.example.test:7070"),
            ("[::1]:7070", "[::1]:7070"),
            ("[::1]", "[::1]:7070"),
        ] {
            assert_eq!(coordinator(text).as_deref(), Ok(meant));
        }
        let bad = [
            "",
            ":7070",
            "7070",
            "127.0.0.1:x",
            "127.0.0.1:0",
            "127.0.0.1:70700",
            "a b",
            "u@h:1",
            "h:",
            "http://",
            "lab:1/x",
        ];
        for bad in bad {
            let error = coordinator(bad).unwrap_err().to_string();
            assert!(error.contains("expected HOST:PORT"), "{bad:?}: {error}");
        }
        let error = coordinator("https://127.0.0.1:7070").unwrap_err().to_string();
        assert!(error.contains("TLS is spoken where this machine has joined"), "{error}");
    }
}
