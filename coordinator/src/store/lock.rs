//! One coordinator per data directory: a lock that the kernel takes back when its holder dies, however it dies.

use std::{
    fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::Path,
};

use super::StoreError;

const FILE: &str = "inrush.lock";

/// Held as long as it lives.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "held for its lock")] File);

/// Makes the directory if need be, and takes it.
pub(super) fn take(data_dir: &Path) -> Result<Lock, StoreError> {
    let path = || data_dir.display().to_string();
    let unusable =
        |error: std::io::Error| StoreError::Directory { path: path(), cause: error.to_string() };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(unusable)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(data_dir.join(FILE)).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::InUse { path: path(), holder: holder(&mut file) });
        }
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    // The number is only for the words of the refusal.
    file.set_len(0).map_err(unusable)?;
    file.rewind().map_err(unusable)?;
    writeln!(file, "{}", std::process::id()).map_err(unusable)?;
    Ok(Lock(file))
}

/// Makes sure that a file is there and for its owner only. What SQLite makes beside a database gets its mode.
pub(super) fn make_private(path: &Path) -> Result<(), StoreError> {
    let unusable = |error: std::io::Error| StoreError::Directory {
        path: path.display().to_string(),
        cause: error.to_string(),
    };
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    file.and_then(|file| file.set_permissions(Permissions::from_mode(0o600))).map_err(unusable)
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(20).read_to_string(&mut text) {
        Ok(_) if text.trim().parse::<u32>().is_ok() => format!(" (process {})", text.trim()),
        _ => String::new(),
    }
}
