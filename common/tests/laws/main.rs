//! Laws that hold for all values: of the wire, of adding up, of splitting.

#[cfg(test)]
mod strategies;
#[cfg(test)]
mod wire;
