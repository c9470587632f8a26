//! Who gets in, who does not, and what strangers can do to a coordinator: nothing.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

#[path = "../cli/process.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line")]
mod process;
#[path = "../cli/support.rs"]
#[allow(dead_code, reason = "shared with the tests of the command line")]
mod support;

mod bounds;
mod desk;
mod renewal;
mod roles;
mod secrets;
mod strangers;
mod way;
