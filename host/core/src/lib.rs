//! Every decision of the configurator runtime: pure functions and state machines.
//!
//! Nothing here does I/O, awaits, reads a clock or draws a random number: time and chance are arguments, and
//! what is to be done is returned as data. The host carries it out.

#[cfg(test)]
mod fixtures;

pub mod document;
pub mod fault;
pub mod field;
pub mod handler;
pub mod request;
pub mod result;
mod text;
mod text_or_bytes;
pub mod time;
pub mod trigger;

pub mod authorization;
pub mod backoff;
pub mod canary;
pub mod capability;
pub mod ceiling;
pub mod configurator;
pub mod content;
pub mod desired;
pub mod digest;
pub mod field_manager;
pub mod glob;
pub mod graph;
pub mod kubernetes_call;
pub mod layers;
pub mod loop_guard;
pub mod machine;
pub mod module;
pub mod output;
pub mod parking;
pub mod partition;
pub mod plan;
pub mod projection;
pub mod queue;
pub mod retry;
pub mod ring;
pub mod run;
pub mod service_account;
