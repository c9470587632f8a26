//! A plan as a file: reading it with the files it names, and showing what is wrong with it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use inrush_common::plan::{
    Files, MAX_BODY_FILE, MAX_PLAN, Plan, Problem, Severity, decode, load, named_files, render,
};

use super::{console::Console, error::CliError};

/// A plan that was read and is good.
#[derive(Debug)]
pub(super) struct PlanFile {
    /// The file's name, for a plan that has none.
    pub name: String,
    /// The plan as written.
    pub source: String,
    /// The files it names, by their paths as it writes them.
    pub files: BTreeMap<String, Bytes>,
    /// What it means.
    pub plan: Plan,
}

impl PlanFile {
    /// Reads a plan, "-" from stdin, and says what is doubtful about it on stderr.
    ///
    /// # Errors
    /// With all that is wrong with it.
    pub(super) fn read(path: &Path, console: &mut Console<'_>) -> Result<Self, CliError> {
        let (shown, name, folder) = if path == Path::new("-") {
            ("stdin".to_owned(), "stdin".to_owned(), PathBuf::new())
        } else {
            let name = path.file_name().unwrap_or(path.as_os_str());
            let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
            (path.display().to_string(), name.to_string_lossy().into_owned(), folder)
        };
        let bytes = read_source(path).map_err(|error| unreadable(&shown, &error))?;
        let color = console.color_err();
        let source = decode(bytes)
            .map_err(|not| CliError::Plan(refusal(&shown, &not.shown, &[not.problem], color)))?;
        let files = Gathered::of(&source, &folder);
        let loaded = load(&name, &source, &files)
            .map_err(|problems| CliError::Plan(refusal(&shown, &source, &problems, color)))?;
        if !loaded.warnings.is_empty() {
            console.say(render(&shown, &source, &loaded.warnings, color).trim_end());
        }
        Ok(Self { name, source, files: files.read(), plan: loaded.plan })
    }

    /// A plan of ours, which names no files.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub(super) fn of_text(name: &str, source: String) -> Result<Self, CliError> {
        let files = BTreeMap::new();
        let loaded = load(name, &source, &files)
            .map_err(|problems| CliError::Plan(refusal(name, &source, &problems, false)))?;
        Ok(Self { name: name.to_owned(), source, files, plan: loaded.plan })
    }
}

/// The problems, and what follows from them.
fn refusal(shown: &str, source: &str, problems: &[Problem], color: bool) -> String {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let rendered = render(shown, source, problems, color);
    let noun = if errors == 1 { "problem" } else { "problems" };
    format!("{}\n\n{errors} {noun} in {shown}; nothing was sent", rendered.trim_end())
}

fn read_source(path: &Path) -> io::Result<Vec<u8>> {
    // One byte more than a plan may have is enough to see that it is too long.
    let most = MAX_PLAN as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn unreadable(shown: &str, error: &io::Error) -> CliError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "; `inrush init` writes a plan to start from",
        io::ErrorKind::IsADirectory => "; name the plan in it",
        _ => "",
    };
    CliError::Usage(format!("cannot read the plan {shown}: {error}{remedy}"))
}

/// The files a plan names, or why they cannot be read.
struct Gathered(BTreeMap<String, Result<Bytes, String>>);

impl Gathered {
    /// Paths start at the plan's folder.
    fn of(source: &str, folder: &Path) -> Self {
        let gather = |named: String| {
            let read = read_named(&folder.join(&named));
            (named, read)
        };
        Self(named_files(source).into_iter().map(gather).collect())
    }

    fn read(self) -> BTreeMap<String, Bytes> {
        self.0.into_iter().filter_map(|(named, read)| Some((named, read.ok()?))).collect()
    }
}

impl Files for Gathered {
    fn read(&self, path: &str) -> Result<Bytes, String> {
        let unknown = || Err("it was not looked for".to_owned());
        self.0.get(path).cloned().unwrap_or_else(unknown)
    }
}

fn read_named(path: &Path) -> Result<Bytes, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_BODY_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cli::args::ColorWhen;

    fn read(path: &Path) -> (Result<PlanFile, CliError>, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let read = PlanFile::read(path, &mut Console::new(&mut out, &mut err, ColorWhen::Never));
        assert!(out.is_empty(), "stdout is for results");
        (read, String::from_utf8(err).unwrap())
    }

    const LOAD: &str = "[load.closed]\nconnections = 1\nrequests = 1\n";

    #[test]
    fn a_body_file_is_looked_for_beside_the_plan_and_comes_along() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        let head = "url = \"http://127.0.0.1/\"\nmethod = \"POST\"\nbody_file = \"body.json\"\n";
        fs::write(&path, format!("{head}{LOAD}")).unwrap();
        let (refused, _) = read(&path);
        let text = refused.unwrap_err().to_string();
        let flat: String = text.split_whitespace().collect();
        assert!(flat.contains("body.json") && flat.contains("nothingwassent"), "{text}");
        fs::write(folder.path().join("body.json"), "{}").unwrap();
        let plan = read(&path).0.unwrap();
        assert_eq!(plan.files["body.json"], "{}");
        assert_eq!((plan.name.as_str(), plan.plan.name.as_str()), ("plan.toml", "plan"));
    }

    #[test]
    fn a_plan_that_is_not_there_is_a_usage_error_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let (missing, _) = read(&folder.path().join("plan.toml"));
        let text = missing.unwrap_err().to_string();
        assert!(text.contains("plan.toml") && text.contains("inrush init"), "{text}");
        assert!(matches!(read(folder.path()).0, Err(CliError::Usage(_))));
    }

    #[test]
    fn what_is_doubtful_is_said_and_does_not_stop() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan.toml");
        let load = "[load.closed]\nconnections = 5\nrequests = 2\n";
        fs::write(&path, format!("url = \"http://127.0.0.1/\"\n{load}")).unwrap();
        let (plan, said) = read(&path);
        assert!(plan.is_ok());
        assert!(said.contains("more connections than requests: 5 for 2"), "{said}");
    }

    #[test]
    fn a_plan_without_end_is_not_read_to_its_end() {
        let (refused, _) = read(Path::new("/dev/zero"));
        assert!(matches!(refused, Err(CliError::Plan(_))), "{refused:?}");
    }
}
