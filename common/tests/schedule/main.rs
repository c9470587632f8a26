//! Schedules: the examples that people ask for, and what holds for all of them.

#[cfg(test)]
mod arrivals;
#[cfg(test)]
mod connections;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod interleave;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod strategies;
