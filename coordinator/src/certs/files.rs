//! The folder `certs` of a data directory.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use inrush_agent::credentials::{pem, write_private};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, pem::PemObject as _};

use super::{CertsError, io_error};

const FOLDER: &str = "certs";
const CERTIFICATE: &str = "ca.pem";
const KEY: &str = "ca.key";
const REGISTER: &str = "certs.db";

/// The CA's certificate and key.
pub(super) struct Pair {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) key: PrivatePkcs8KeyDer<'static>,
}

pub(super) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER)
}

pub(super) fn register(data_dir: &Path) -> PathBuf {
    folder(data_dir).join(REGISTER)
}

/// Whether a data directory has a CA, or a part of one: then nobody may be served without it.
pub fn is_there(data_dir: &Path) -> bool {
    // Also when it cannot be looked at, for that must not end in plain text.
    folder(data_dir).try_exists().unwrap_or(true)
}

/// Makes a folder for its owner only. One that is there is left as it is.
pub(super) fn make_private(path: &Path) -> Result<(), CertsError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(io_error("make", path))
}

/// Writes a new CA, all of it or nothing. `false`: somebody else was faster.
pub(super) fn write(data_dir: &Path, pair: &Pair) -> Result<bool, CertsError> {
    let folder = folder(data_dir);
    make_private(data_dir)?;
    let new = data_dir.join(format!("{FOLDER}.new-{}", std::process::id()));
    make_private(&new)?;
    let write = |name: &str, label: &str, der: &[u8]| {
        let file = new.join(name);
        write_private(&file, pem(label, der).as_bytes()).map_err(io_error("write", &file))
    };
    let renamed = write(KEY, "PRIVATE KEY", pair.key.secret_pkcs8_der())
        .and_then(|()| write(CERTIFICATE, "CERTIFICATE", &pair.certificate))
        .and_then(|()| match fs::rename(&new, &folder) {
            Ok(()) => Ok(true),
            // A folder that is not empty is not replaced.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                ) =>
            {
                Ok(false)
            }
            Err(error) => Err(io_error("make", &folder)(error)),
        });
    if !matches!(renamed, Ok(true)) {
        drop(fs::remove_dir_all(&new));
    }
    renamed
}

pub(super) fn read(data_dir: &Path) -> Result<Pair, CertsError> {
    let folder = folder(data_dir);
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    if !is_there(data_dir) {
        return Err(CertsError::Missing(data_dir.display().to_string()));
    }
    let text = |path: &Path| fs::read(path).map_err(io_error("read", path));
    let damaged = |path: &Path, cause: String| CertsError::Damaged {
        path: path.display().to_string(),
        cause,
    };
    Ok(Pair {
        certificate: CertificateDer::from_pem_slice(&text(&certificate)?)
            .map_err(|error| damaged(&certificate, error.to_string()))?,
        key: PrivatePkcs8KeyDer::from_pem_slice(&text(&key)?)
            .map_err(|_| damaged(&key, "it holds no PKCS #8 private key".to_owned()))?,
    })
}
