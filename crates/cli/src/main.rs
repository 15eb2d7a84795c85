//! The `rota` binary.
fn main() {}
