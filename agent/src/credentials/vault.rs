//! Credentials on disk: one file for each coordinator, role and name, for its owner only.

use std::{
    ffi::OsString,
    fs, io,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use inrush_common::{
    id::AgentName,
    join::{Fingerprint, Role},
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, pem::PemObject as _};

use super::Credentials;

/// What a file of credentials says before its blocks.
const TOKEN_LINE: &str = "joined with ";
const RENEW_LINE: &str = "renew at ";

/// Why credentials cannot be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The file system says no.
    #[error("cannot {doing} {path}: {error}")]
    Io {
        /// "read".
        doing: &'static str,
        /// Which file or folder.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Others could have read the key.
    #[error(
        "{path} can be read by others (mode {mode:o}): chmod 600 it, and join again if somebody else may have used it"
    )]
    Exposed {
        /// Which file.
        path: String,
        /// Its mode.
        mode: u32,
    },
    /// Not what was written.
    #[error("{path} is damaged ({what}): remove it, and join again with a new token")]
    Damaged {
        /// Which file.
        path: String,
        /// What is missing.
        what: &'static str,
    },
    /// More than one agent has joined from here.
    #[error("{} agents have joined {coordinator} from here ({}): choose one with --name", .names.len(), .names.join(", "))]
    Ambiguous {
        /// The coordinator.
        coordinator: String,
        /// The agents.
        names: Vec<String>,
    },
}

fn io_error<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> VaultError + 'a {
    move |error| VaultError::Io { doing, path: path.display().to_string(), error }
}

/// All credentials of one machine's user.
#[derive(Debug, Clone)]
pub struct Vault {
    dir: PathBuf,
}

impl Vault {
    /// Below the folder `state_dir`.
    pub fn new(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("credentials") }
    }

    /// The file for a role at a coordinator (`HOST:PORT`).
    pub fn file(&self, coordinator: &str, role: Role, name: &AgentName) -> PathBuf {
        let file = match role {
            Role::Agent => format!("agent-{name}.pem"),
            Role::User => "user.pem".to_owned(),
        };
        self.folder(coordinator).join(file)
    }

    fn folder(&self, coordinator: &str) -> PathBuf {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        let name: String = coordinator
            .chars()
            .map(|c| if plain(c) { c.to_ascii_lowercase() } else { '_' })
            .collect();
        self.dir.join(name)
    }

    /// A user's credentials for a coordinator, if there are any.
    ///
    /// # Errors
    /// When there are and they cannot be used.
    pub fn user(&self, coordinator: &str) -> Result<Option<(Credentials, PathBuf)>, VaultError> {
        let file = self.folder(coordinator).join("user.pem");
        // The name is only for people, and the coordinator knows it.
        let name = "user".parse().expect("a name");
        Ok(read(&file, Role::User, name)?.map(|credentials| (credentials, file)))
    }

    /// An agent's credentials for a coordinator, if there are any. Without a name: those of `otherwise`, or else the
    /// only ones.
    ///
    /// # Errors
    /// When there are and they cannot be used, or there are several.
    pub fn agent(
        &self,
        coordinator: &str,
        name: Option<&AgentName>,
        otherwise: &AgentName,
    ) -> Result<Option<(Credentials, PathBuf)>, VaultError> {
        let names = self.agents(coordinator)?;
        let name = match name {
            Some(name) => name,
            None if names.contains(otherwise) => otherwise,
            None => match names.as_slice() {
                [] => return Ok(None),
                [only] => only,
                names => {
                    return Err(VaultError::Ambiguous {
                        coordinator: coordinator.to_owned(),
                        names: names.iter().map(AgentName::to_string).collect(),
                    });
                }
            },
        };
        let file = self.file(coordinator, Role::Agent, name);
        Ok(read(&file, Role::Agent, name.clone())?.map(|credentials| (credentials, file)))
    }

    fn agents(&self, coordinator: &str) -> Result<Vec<AgentName>, VaultError> {
        let folder = self.folder(coordinator);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("list", &folder)(error)),
        };
        let mut names: Vec<AgentName> = entries
            .flatten()
            .filter_map(|entry| {
                let file = entry.file_name().into_string().ok()?;
                file.strip_prefix("agent-")?.strip_suffix(".pem")?.parse().ok()
            })
            .collect();
        names.sort();
        Ok(names)
    }
}

/// Writes credentials so that there is never half a file, and nobody else can read it.
pub(super) fn write(file: &Path, credentials: &Credentials) -> Result<(), VaultError> {
    let folder = file.parent().expect("a file of a vault is in a folder");
    let make = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    make.map_err(io_error("make", folder))?;
    let mut text = String::new();
    if let Some(token) = credentials.token {
        text.push_str(&format!("{TOKEN_LINE}{token}\n"));
    }
    text.push_str(&format!("{RENEW_LINE}{}\n", credentials.renew_at_s));
    for (label, der) in [
        ("CERTIFICATE", credentials.certificate.as_ref()),
        ("CERTIFICATE", credentials.ca.as_ref()),
        ("PRIVATE KEY", credentials.key.secret_pkcs8_der()),
    ] {
        text.push_str(&pem(label, der));
    }
    write_private(file, text.as_bytes()).map_err(io_error("write", file))
}

/// Writes a file of mode 0600, whole or not at all.
///
/// # Errors
/// What the file system says.
pub fn write_private(file: &Path, content: &[u8]) -> io::Result<()> {
    let new = file.with_extension(format!("new-{}", std::process::id()));
    let written = (|| {
        let mut options = fs::OpenOptions::new();
        let mut out = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        out.write_all(content)?;
        out.sync_all()?;
        fs::rename(&new, file)
    })();
    if written.is_err() {
        drop(fs::remove_file(&new));
    }
    written
}

/// A PEM block.
pub fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut block = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(64) {
        block.push_str(&String::from_utf8_lossy(line));
        block.push('\n');
    }
    block.push_str(&format!("-----END {label}-----\n"));
    block
}

fn read(file: &Path, role: Role, name: AgentName) -> Result<Option<Credentials>, VaultError> {
    let path = || file.display().to_string();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", file)(error)),
    };
    let mode = fs::metadata(file).map_err(io_error("read", file))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(VaultError::Exposed { path: path(), mode });
    }
    let damaged = |what| VaultError::Damaged { path: path(), what };
    let blocks = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let Ok([certificate, ca]) = <[_; 2]>::try_from(blocks.unwrap_or_default()) else {
        return Err(damaged("it has not two certificates"));
    };
    let key = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
        .map_err(|_| damaged("it has no private key"))?;
    let token = text.lines().find_map(|line| digest(line.strip_prefix(TOKEN_LINE)?));
    let renew_at_s = text.lines().find_map(|line| line.strip_prefix(RENEW_LINE)?.parse().ok());
    let renew_at_s = renew_at_s.unwrap_or(0);
    Ok(Some(Credentials { role, name, ca, certificate, key, token, renew_at_s }))
}

/// A digest as it is printed.
fn digest(text: &str) -> Option<Fingerprint> {
    let hex = text.strip_prefix("sha256:")?;
    let mut bytes = [0; 32];
    if hex.len() != 2 * bytes.len() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(Fingerprint(bytes))
}

/// Where state belongs: `$XDG_STATE_HOME/inrush`, `~/.local/state/inrush`, or `./inrush-data`. A relative
/// `XDG_STATE_HOME` is ignored, as the XDG base directory specification wants it.
pub fn default_state_dir(state_home: Option<OsString>, home: Option<OsString>) -> PathBuf {
    let absolute =
        |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(state_home)
        .map(|state| state.join("inrush"))
        .or_else(|| absolute(home).map(|home| home.join(".local/state/inrush")))
        .unwrap_or_else(|| PathBuf::from("inrush-data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(name: &str) -> Credentials {
        Credentials {
            role: Role::Agent,
            name: name.parse().unwrap(),
            ca: vec![1; 70].into(),
            certificate: vec![2; 100].into(),
            key: vec![3; 48].into(),
            token: Some(Fingerprint([0xab; 32])),
            renew_at_s: 1_234,
        }
    }

    #[test]
    fn credentials_survive_their_file_which_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::new(dir.path());
        let lab1 = "lab1".parse().unwrap();
        let file = vault.file("[::1]:7070", Role::Agent, &lab1);
        write(&file, &credentials("lab1")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let (found, at) = vault.agent("[::1]:7070", Some(&lab1), &lab1).unwrap().unwrap();
        let written = credentials("lab1");
        assert_eq!(at, file);
        assert_eq!((found.ca, found.certificate), (written.ca, written.certificate));
        assert_eq!(found.key, written.key);
        assert_eq!((found.token, found.renew_at_s), (written.token, 1_234));
        assert!(vault.agent("127.0.0.1:7070", None, &lab1).unwrap().is_none());

        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let error = vault.agent("[::1]:7070", Some(&lab1), &lab1).unwrap_err().to_string();
        assert!(error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn an_agent_without_a_name_is_the_one_of_this_host_or_the_only_one() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::new(dir.path());
        let (here, lab1, lab2) =
            ("here".parse().unwrap(), "lab1".parse().unwrap(), "lab2".parse().unwrap());
        let keep = |name: &AgentName| {
            write(&vault.file("c:1", Role::Agent, name), &credentials(name.as_str())).unwrap();
        };
        let found = || vault.agent("c:1", None, &here).map(|found| found.map(|(it, _)| it.name));
        assert_eq!(found().unwrap(), None);
        keep(&lab1);
        assert_eq!(found().unwrap(), Some(lab1.clone()));
        keep(&lab2);
        let error = found().unwrap_err().to_string();
        assert!(error.contains("lab1, lab2") && error.contains("--name"), "{error}");
        keep(&here);
        assert_eq!(found().unwrap(), Some(here.clone()));
    }

    #[test]
    fn a_damaged_file_is_named_with_the_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::new(dir.path());
        let lab1 = "lab1".parse().unwrap();
        let file = vault.file("c:1", Role::Agent, &lab1);
        write(&file, &credentials("lab1")).unwrap();
        write_private(&file, b"nothing of ours").unwrap();
        let error = vault.agent("c:1", Some(&lab1), &lab1).unwrap_err().to_string();
        assert!(error.contains("agent-lab1.pem is damaged") && error.contains("join"), "{error}");
    }

    #[test]
    fn state_is_kept_where_it_belongs() {
        let of = |state: &str, home: &str| {
            let given = |text: &str| (!text.is_empty()).then(|| text.into());
            default_state_dir(given(state), given(home))
        };
        assert_eq!(of("/s", "/home/u"), Path::new("/s/inrush"));
        assert_eq!(of("relative", "/home/u"), Path::new("/home/u/.local/state/inrush"));
        assert_eq!(of("", "/home/u"), Path::new("/home/u/.local/state/inrush"));
        assert_eq!(of("", ""), Path::new("inrush-data"));
    }
}
