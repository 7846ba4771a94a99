//! Work that gives way to all other work of the process.
//!
//! What takes the processor for longer than some milliseconds must not run on the threads of the caller's runtime: everything else would wait
//! for it. It runs on a thread of low [priority], when its owner has a [turn](fair_queue).

pub mod fair_queue;

pub mod owner_turns;

pub mod priority;

pub mod work;
