//! Join tokens: what a newcomer is given to become an agent or a user of a coordinator that speaks TLS.
//!
//! A token says whom to trust (the fingerprint of the coordinator's CA) and carries a secret that lets its holder in, once.

use std::{fmt, str::FromStr};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use inrush_proto::v1;

const PREFIX: &str = "inrush-join-";

/// What a certificate allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// To take work and hand in results.
    Agent,
    /// To submit plans, and to see and stop runs.
    User,
}

impl Role {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Agent, Self::User];

    /// The word in options, files and tokens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
        }
    }

    /// The one that a message names, if it names one.
    pub const fn from_wire(role: v1::Role) -> Option<Self> {
        match role {
            v1::Role::Agent => Some(Self::Agent),
            v1::Role::User => Some(Self::User),
            v1::Role::Unspecified => None,
        }
    }
}

impl From<Role> for v1::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Agent => Self::Agent,
            Role::User => Self::User,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| format!("expected agent or user, got {text:?}"))
    }
}

/// The SHA-256 of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Lets its holder in. Never printed but as a part of its token.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A join token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinToken {
    /// What its holder becomes.
    pub role: Role,
    /// The CA whose certificate the coordinator must show.
    pub ca: Fingerprint,
    /// What the coordinator must be shown.
    pub secret: Secret,
}

impl JoinToken {
    /// The token as its holder gets it. There is no `Display`: a token must not get into a log by accident.
    pub fn reveal(&self) -> String {
        let both = [self.ca.0, self.secret.0].concat();
        format!("{PREFIX}{}-{}", self.role, BASE64.encode(both))
    }

    /// Whether a text is meant to be a token, and no file's name.
    pub fn is_meant_by(text: &str) -> bool {
        text.starts_with(PREFIX)
    }
}

/// Not a token. The text is not repeated: it may be one with a letter missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no join token: expected one as `inrush certs token` prints it, {PREFIX} and a role before 86 letters and \
     digits, whole and on one line"
)]
pub struct NoToken;

impl FromStr for JoinToken {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let rest = text.trim().strip_prefix(PREFIX).ok_or(NoToken)?;
        let (role, rest) = rest.split_once('-').ok_or(NoToken)?;
        let role = role.parse().map_err(|_| NoToken)?;
        let bytes = BASE64.decode(rest).map_err(|_| NoToken)?;
        let (ca, secret) = bytes.split_first_chunk::<32>().ok_or(NoToken)?;
        let secret = <[u8; 32]>::try_from(secret).map_err(|_| NoToken)?;
        Ok(Self { role, ca: Fingerprint(*ca), secret: Secret(secret) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> JoinToken {
        // The last bytes give '-' in base64.
        JoinToken { role: Role::Agent, ca: Fingerprint([7; 32]), secret: Secret([0xfb; 32]) }
    }

    #[test]
    fn a_token_survives_its_text() {
        let text = token().reveal();
        assert!(JoinToken::is_meant_by(&text), "{text}");
        assert_eq!(format!("{text}\n").parse(), Ok(token()));
    }

    #[test]
    fn what_is_not_whole_is_no_token_and_is_not_repeated() {
        let text = token().reveal();
        let cut = text.get(..text.len() - 2).unwrap();
        for bad in ["", "inrush-join-", "inrush-join-king-AAAA", cut, &format!("{text}AA")] {
            let error = bad.parse::<JoinToken>().unwrap_err().to_string();
            assert!(error.contains("inrush certs token"), "{error}");
            assert!(bad.len() < 20 || !error.contains(bad), "{error}");
        }
    }

    #[test]
    fn a_secret_is_not_in_what_is_printed_for_debugging() {
        let printed = format!("{:?}", token());
        assert!(!printed.contains("251") && printed.contains("Secret(…)"), "{printed}");
    }
}
