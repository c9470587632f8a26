//! The built `inrush`, as a user or a CI job meets it: arguments and signals in, streams and exit codes out.

mod fleet;
mod kill;
mod plain;
mod process;
mod run;
mod signals;
mod support;
