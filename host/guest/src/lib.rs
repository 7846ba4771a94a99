//! Runs handler modules.
//!
//! A [`GuestRuntime`](runtime::GuestRuntime) loads WebAssembly components of the package `configurator:handler` and
//! calls their handlers: each call in a fresh instance, on a stack of its own, under the limits of that call. What goes in and
//! comes out are the types of `configurator-core`; nothing of wasmtime shows.
//!
//! A guest can do nothing but compute. It has no files, no network, no environment; its clock is the call's `now`,
//! its randomness the call's `seed`, so the same input gives the same output.
//!
//! ```
//! use configurator_guest::options::GuestOptions;
//! use configurator_guest::runtime::GuestRuntime;
//!
//! let runtime = GuestRuntime::new(GuestOptions::default())?;
//! let error = runtime.load_blocking(b"#!/bin/sh\n", "deploy.sh").unwrap_err();
//! assert!(error.to_string().starts_with("deploy.sh is not a WebAssembly file"));
//! # Ok::<(), configurator_guest::runtime::GuestError>(())
//! ```

pub mod runtime;

pub mod module;

pub mod report;

pub mod log;

pub mod load;

pub mod code_size;

pub mod compiler;

mod compile_queue;

mod long_calls;

pub mod call_queue;
pub mod owner;

pub mod bytes;

pub mod digest;

pub mod functions;

pub mod options;

pub mod budget;

pub mod memory;

pub mod cache;

mod call;

mod idle;
mod input_size;

mod limiter;

mod deadline;

mod ticker;

mod drive;

mod slots;

mod trap;

mod state;

mod engine;

mod v0_1;

mod wasi;
