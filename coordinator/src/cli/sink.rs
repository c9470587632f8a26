//! Where the reports for programs go. The places are tried before the run starts: an hour of load must not end with
//! "permission denied".

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::error::CliError;

/// A place for a report.
#[derive(Debug)]
pub(super) enum Sink {
    /// None is wanted.
    Nowhere,
    /// Stdout, instead of the text report.
    Stdout,
    /// A file. Written beside its place and moved there when it is whole: a reader never sees half a report, and an
    /// earlier report stays until there is a new one.
    File {
        /// The file beside it.
        temporary: NamedTempFile,
        /// Its place.
        path: PathBuf,
    },
    /// A pipe or device, which is written to directly.
    Device {
        /// It, open.
        file: File,
        /// Its name.
        path: PathBuf,
    },
}

impl Sink {
    /// Gets the place ready.
    ///
    /// # Errors
    /// When it cannot be written to.
    pub(super) fn prepare(option: &str, path: Option<&Path>) -> Result<Self, CliError> {
        match path {
            None => Ok(Self::Nowhere),
            Some(path) if path == Path::new("-") => Ok(Self::Stdout),
            Some(path) => Self::open(path).map_err(|error| refused(option, path, &error)),
        }
    }

    /// Whether it takes the place of the text report.
    pub(super) const fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Whether it is a place of its own, to write to.
    pub(super) const fn is_file(&self) -> bool {
        !matches!(self, Self::Nowhere | Self::Stdout)
    }

    /// Writes the report. Nothing is written for [`Sink::Nowhere`] and [`Sink::Stdout`], which are the
    /// console's.
    ///
    /// # Errors
    /// When the place takes it no more.
    pub(super) fn write(self, text: &str) -> Result<(), CliError> {
        let failed = |path: &Path, error: &io::Error| {
            CliError::Internal(format!("cannot write {}: {error}", path.display()))
        };
        match self {
            Self::Nowhere | Self::Stdout => Ok(()),
            Self::Device { mut file, path } => {
                file.write_all(text.as_bytes()).map_err(|error| failed(&path, &error))
            }
            Self::File { mut temporary, path } => {
                let file = temporary.as_file_mut();
                file.write_all(text.as_bytes())
                    .and_then(|()| file.sync_all())
                    .map_err(|error| failed(&path, &error))?;
                temporary.persist(&path).map(drop).map_err(|error| failed(&path, &error.error))
            }
        }
    }

    fn open(path: &Path) -> io::Result<Self> {
        // A link's place is what it points to: renaming over the link would leave the file behind it stale.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        match fs::metadata(&path) {
            Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&path)?;
                Ok(Self::Device { file, path })
            }
            // Moving a file over one that may not be written to works, and is not what its owner wants.
            Ok(_) => {
                OpenOptions::new().append(true).open(&path)?;
                Self::beside(path)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::beside(path),
            Err(error) => Err(error),
        }
    }

    fn beside(path: PathBuf) -> io::Result<Self> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let temporary = tempfile::Builder::new()
            .prefix(".inrush-report-")
            .suffix(".part")
            // As any new file: the umask takes off what it takes off.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory)?;
        Ok(Self::File { temporary, path })
    }
}

fn refused(option: &str, path: &Path, error: &io::Error) -> CliError {
    CliError::Usage(format!(
        "{option} {}: cannot be written ({}); name a file in a directory that exists and is yours to write, or \"-\" for \
         stdout",
        path.display(),
        plain(error)
    ))
}

/// The error in words, without the temporary file's name, which means nothing to the reader.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

/// The places for all forms.
#[derive(Debug)]
pub(super) struct Sinks {
    /// For the JSON report.
    pub(super) json: Sink,
    /// For the thresholds as JUnit XML.
    pub(super) junit: Sink,
    /// For the figures as CSV.
    pub(super) csv: Sink,
}

impl Sinks {
    /// Gets the places ready.
    ///
    /// # Errors
    /// When one cannot be written to, or two are the same.
    pub(super) fn prepare(
        json: Option<&Path>,
        junit: Option<&Path>,
        csv: Option<&Path>,
    ) -> Result<Self, CliError> {
        let given = [("--json", json), ("--junit", junit), ("--csv", csv)];
        let given: Vec<(&str, &Path)> =
            given.into_iter().filter_map(|(option, path)| Some((option, path?))).collect();
        for (index, (option, path)) in given.iter().enumerate() {
            if let Some((other, _)) = given[..index].iter().find(|(_, other)| is_same(other, path))
            {
                return Err(CliError::Usage(format!(
                    "{other} and {option} are both to be written to {:?}; name two places",
                    path.display().to_string()
                )));
            }
        }
        Ok(Self {
            json: Sink::prepare("--json", json)?,
            junit: Sink::prepare("--junit", junit)?,
            csv: Sink::prepare("--csv", csv)?,
        })
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other && one.is_file(),
        _ => one == other && one != Path::new("/dev/null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reports_do_not_go_to_one_place() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let new = directory.path().join("c");
        let stdout = Path::new("-");
        for (json, junit) in [(&*file, &*file), (&file, &link), (&new, &new), (stdout, stdout)] {
            let error = Sinks::prepare(Some(json), Some(junit), None).unwrap_err();
            assert!(error.to_string().contains("two places"), "{error}");
            let error = Sinks::prepare(None, Some(json), Some(junit)).unwrap_err();
            assert!(error.to_string().starts_with("--junit and --csv"), "{error}");
        }
        let null = Path::new("/dev/null");
        assert!(Sinks::prepare(Some(null), Some(null), Some(null)).is_ok());
        assert!(Sinks::prepare(Some(&file), Some(&new), None).is_ok());
    }

    #[test]
    fn the_file_appears_whole_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.json");
        fs::write(&path, "the one before").unwrap();
        let sink = Sink::prepare("--json", Some(&path)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "the one before");
        sink.write("{}\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_run_that_comes_to_nothing_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        drop(Sink::prepare("--json", Some(&directory.path().join("report.json"))).unwrap());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_beforehand() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        for (path, why) in [
            (directory.path().to_path_buf(), "it is a directory"),
            (directory.path().join("none").join("report.json"), "no such directory"),
            (file.join("report.json"), "not a directory"),
        ] {
            let error = Sink::prepare("--json", Some(&path)).unwrap_err();
            assert!(matches!(error, CliError::Usage(_)));
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("real"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Sink::prepare("--json", Some(&link)).unwrap().write("new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }

    #[test]
    fn a_device_is_written_to_and_not_replaced() {
        let sink = Sink::prepare("--json", Some(Path::new("/dev/null"))).unwrap();
        assert!(matches!(sink, Sink::Device { .. }));
        sink.write("{}").unwrap();
    }
}
