//! Between the domain's types and the wire's messages.
