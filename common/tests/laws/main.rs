//! Laws that hold for all values: of the wire, of adding up, of splitting.

#[cfg(test)]
mod merge;
#[cfg(test)]
mod split;
#[cfg(test)]
mod strategies;
#[cfg(test)]
mod wire;
