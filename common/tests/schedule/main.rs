//! Schedules: the examples that people ask for, and what holds for all of them.

#[cfg(test)]
mod examples;
#[cfg(test)]
mod strategies;
