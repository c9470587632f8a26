//! Who may talk to this coordinator: a CA of its own, join tokens, the certificates it has issued, and their end.
//!
//! All of it is in the folder `certs` of the data directory. The CA's key never leaves it, and signs two kinds of
//! certificates: the coordinator's own, made anew at each start and kept in memory, and those of agents and users.
//! Whether a certificate is good is not only a matter of its signature: it must stand in the register ([`Register`]),
//! which is where it is revoked.

mod authority;
mod files;
mod register;
mod standing;
mod tls;

use std::{io, sync::Arc};

pub use authority::{Authority, LIFETIME, Signed};
pub use files::is_there;
pub use register::{Admission, Entry, Grant, Register, State};
pub(crate) use standing::revoked_words;
pub use standing::{Standing, Standings};

/// What can go wrong with certificates.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CertsError {
    /// The file system says no.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// "read".
        doing: &'static str,
        /// Which file or folder.
        path: String,
        /// Why.
        error: Arc<io::Error>,
    },
    /// There is none.
    #[error("there is no CA in {0}: make one with `inrush certs init --data-dir {0}`")]
    Missing(String),
    /// A file is not what was written.
    #[error("{path} is damaged: {cause}")]
    Damaged {
        /// Which.
        path: String,
        /// Why.
        cause: String,
    },
    /// The register fails.
    #[error("the register of certificates failed: {0}")]
    Register(Arc<rusqlite::Error>),
    /// No certificate can be made.
    #[error("cannot make a certificate: {0}")]
    Make(String),
    /// A token that lets nobody in.
    #[error("{0}")]
    Refused(Refused),
}

/// Why somebody gets no certificate. A stranger learns no more of it than needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Never made here, or made for another role.
    #[error("the join token is not known here: get one from `inrush certs token`")]
    Unknown,
    /// Too old.
    #[error("the join token has expired: get another one from `inrush certs token`")]
    Expired,
    /// Used before.
    #[error(
        "the join token was used before, and is good for once only: get another one from `inrush certs token`"
    )]
    Used,
    /// For another name.
    #[error(
        "the join token is for {token}, not for {asked}: leave the name away, or get a token for {asked}"
    )]
    Name {
        /// Whose it is.
        token: String,
        /// Who asked.
        asked: String,
    },
    /// The name has an owner.
    #[error(
        "{0} has a certificate already: choose another name, or have a token made for this one with `inrush certs token --name {0}`"
    )]
    Taken(String),
    /// Not a public key.
    #[error(
        "the public key is no uncompressed point on P-256: run the same version of Inrush on both sides"
    )]
    Key,
}

impl From<rusqlite::Error> for CertsError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Register(Arc::new(error))
    }
}

impl From<Refused> for CertsError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

fn io_error<'a>(
    doing: &'static str,
    path: &'a std::path::Path,
) -> impl Fn(io::Error) -> CertsError + 'a {
    move |error| CertsError::Io { doing, path: path.display().to_string(), error: Arc::new(error) }
}
