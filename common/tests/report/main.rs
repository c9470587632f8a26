//! The report: built from runs that never were, checked against its laws, its schema and its reference.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod contract;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod load_verdicts;
#[cfg(test)]
mod loads;
#[cfg(test)]
mod phases;
#[cfg(test)]
mod verdicts;
