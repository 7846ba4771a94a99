//! CPU-bound work at a low priority.
//!
//! Work that uses the processor for more than a few milliseconds must not run on the threads of an async runtime, because all other tasks
//! would wait for it. It runs on a thread of low [priority] instead, when its owner gets a [turn](fair_queue).

pub mod fair_queue;

pub mod owners;

pub mod priority;

pub mod rest;

pub mod work;
