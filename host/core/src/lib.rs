//! Every decision of the configurator runtime: pure functions and state machines.
//!
//! Nothing here does I/O, awaits, reads a clock or draws a random number: time and chance are arguments, and
//! what is to be done is returned as data. The host carries it out.

pub mod document;
pub mod fault;
pub mod time;
pub mod request;
pub mod result;
pub mod handler;

pub mod configurator;
pub mod projection;
pub mod capability;
pub mod glob;
pub mod backoff;
pub mod layers;
