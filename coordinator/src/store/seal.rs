//! Plans are sealed on disk: they may hold passwords and tokens of the system under test.
//!
//! The key is a file of its own beside the database, for its owner only. So a copy of the database alone, in a backup or
//! in a bug report, gives no secret away. Who may read the whole data directory may read the plans.

use std::{fs, io, path::PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use inrush_agent::credentials::{random, write_private};
use inrush_common::id::RunId;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use rusqlite::Connection;

use super::StoreError;

const FILE: &str = "plans.key";

/// Before sealed text; what has it not was written in the clear.
const MARK: &str = "sealed:";

/// Seals and opens what belongs to a run.
pub(super) struct Seal(LessSafeKey);

impl Seal {
    /// With the key beside the database of `rows`. Where there is none yet, it is made.
    pub(super) fn beside(rows: &Connection) -> Result<Self, StoreError> {
        let database = PathBuf::from(rows.path().unwrap_or_default());
        let path = database.with_file_name(FILE);
        let unusable =
            |cause: String| StoreError::Directory { path: path.display().to_string(), cause };
        let key = match fs::read(&path) {
            Ok(key) => key,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = random().map_err(|error| unusable(error.to_string()))?;
                write_private(&path, &key).map_err(|error| unusable(error.to_string()))?;
                key.to_vec()
            }
            Err(error) => return Err(unusable(error.to_string())),
        };
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key);
        let key = key.map_err(|_| unusable("it does not hold a key of 32 bytes".to_owned()))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals bytes of a run, called `what`.
    pub(super) fn seal(
        &self,
        run: &RunId,
        what: &str,
        clear: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let failed = |cause: &str| StoreError::corrupt(format!("{what} of run {run}"), cause);
        let random = random().map_err(|error| failed(&error.to_string()))?;
        let nonce: [u8; NONCE_LEN] = *random.first_chunk().expect("32 are more than 12");
        let mut sealed = clear.to_vec();
        let nonce_used = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(nonce_used, about(run, what), &mut sealed)
            .map_err(|_| failed("it is too long to be sealed"))?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what [`seal`](Self::seal) has sealed.
    pub(super) fn open(
        &self,
        run: &RunId,
        what: &str,
        sealed: &[u8],
    ) -> Result<Vec<u8>, StoreError> {
        let corrupt = || {
            let cause =
                format!("it was sealed with another key than the one in {FILE}, or changed");
            StoreError::corrupt(format!("{what} of run {run}"), cause)
        };
        let (nonce, rest) = sealed.split_first_chunk::<NONCE_LEN>().ok_or_else(corrupt)?;
        let mut clear = rest.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length =
            self.0.open_in_place(nonce, about(run, what), &mut clear).map_err(|_| corrupt())?.len();
        clear.truncate(length);
        Ok(clear)
    }

    /// [`seal`](Self::seal), as text.
    pub(super) fn seal_text(
        &self,
        run: &RunId,
        what: &str,
        clear: &str,
    ) -> Result<String, StoreError> {
        Ok(format!("{MARK}{}", BASE64.encode(self.seal(run, what, clear.as_bytes())?)))
    }

    /// Opens what [`seal_text`](Self::seal_text) has sealed.
    pub(super) fn open_text(
        &self,
        run: &RunId,
        what: &str,
        text: &str,
    ) -> Result<String, StoreError> {
        let corrupt = |cause: String| StoreError::corrupt(format!("{what} of run {run}"), cause);
        let sealed = text.strip_prefix(MARK).unwrap_or(text);
        let sealed = BASE64.decode(sealed).map_err(|error| corrupt(error.to_string()))?;
        let clear = self.open(run, what, &sealed)?;
        String::from_utf8(clear).map_err(|error| corrupt(error.to_string()))
    }
}

/// Whether text is sealed.
pub(super) fn is_sealed(text: &str) -> bool {
    text.starts_with(MARK)
}

/// What is sealed opens only in its own place.
fn about(run: &RunId, what: &str) -> Aad<Vec<u8>> {
    Aad::from(format!("{run}\0{what}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_only_with_its_key_and_in_its_place() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let rows = Connection::open(dir.path().join("inrush.db")).unwrap();
        let (run, other): (RunId, RunId) = ("r1".parse().unwrap(), "r2".parse().unwrap());
        let sealed = Seal::beside(&rows).unwrap().seal_text(&run, "the plan", "secret").unwrap();
        assert!(is_sealed(&sealed) && !sealed.contains("secret"), "{sealed}");
        let again = Seal::beside(&rows).unwrap();
        assert_eq!(again.open_text(&run, "the plan", &sealed).unwrap(), "secret");
        assert_ne!(again.seal_text(&run, "the plan", "secret").unwrap(), sealed);
        assert!(again.open_text(&other, "the plan", &sealed).is_err());
        assert!(again.open_text(&run, "a file", &sealed).is_err());
        let stranger = Connection::open(elsewhere.path().join("inrush.db")).unwrap();
        let stranger = Seal::beside(&stranger).unwrap();
        let error = stranger.open_text(&run, "the plan", &sealed).unwrap_err().to_string();
        assert!(error.contains("another key than the one in plans.key"), "{error}");
    }

    #[test]
    fn the_key_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let rows = Connection::open(dir.path().join("inrush.db")).unwrap();
        let _made = Seal::beside(&rows).unwrap();
        let mode = fs::metadata(dir.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
