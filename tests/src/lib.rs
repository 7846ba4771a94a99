//! A host on embedded stores, as tests want it.

pub mod guests;
pub mod program;
pub mod world;
