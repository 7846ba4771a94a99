//! Write configurator handlers in Rust
