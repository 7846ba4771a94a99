//! A host on embedded stores, as tests want it.

pub mod gate;
pub mod guests;
pub mod program;
pub mod world;
