//! WASI 0.2 that grants nothing: the runtimes of many languages import it even where their programs need none of it.
//!
//! Its clock and randomness are the run's, so it takes nothing from a guest's determinism.

mod cli;

mod clock;

mod io;

mod random;

mod refused;

use configurator_core::time::Timestamp;
use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceTable};

use self::clock::VirtualClock;
use self::io::Pollable;
use self::random::Random;
use crate::state::CallState;

#[allow(
    missing_docs,
    clippy::pedantic,
    reason = "generated; nothing of it is public"
)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "wasi",
        imports: { default: trappable },
        with: {
            "wasi:io/error.error": super::io::Failure,
            "wasi:io/poll.pollable": super::io::Pollable,
            "wasi:io/streams.input-stream": super::io::Empty,
            "wasi:io/streams.output-stream": super::io::LogTail,
            "wasi:cli/terminal-input.terminal-input": super::cli::Terminal,
            "wasi:cli/terminal-output.terminal-output": super::cli::Terminal,
        },
    });
}

/// Interfaces that are served, without their versions.
const SERVED: [&str; 18] = [
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
];

/// Versions of WASI that are served.
pub(crate) const VERSION: &str = "0.2";

/// Handles that a guest may hold at a time.
const HANDLES: usize = 1000;

/// What a guest sees of the world.
pub(crate) struct Wasi {
    table: ResourceTable,
    clock: VirtualClock,
    random: Random,
}

impl Wasi {
    /// The world of a run: its time and its chance.
    pub(crate) fn new(now: Timestamp, seed: u64) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES);
        Self {
            table,
            clock: VirtualClock::new(now),
            random: Random::new(seed),
        }
    }

    /// The world of another run, for an instance that has handles of this one.
    pub(crate) fn restart(&mut self, now: Timestamp, seed: u64) {
        self.clock.restart(now);
        self.random = Random::new(seed);
    }

    fn push<T: Send + 'static>(&mut self, entry: T) -> wasmtime::Result<Resource<T>> {
        self.table.push(entry).map_err(|_| {
            wasmtime::Error::msg(format!(
                "the guest holds more than {HANDLES} handles of WASI"
            ))
        })
    }

    fn ready(&mut self) -> wasmtime::Result<Resource<Pollable>> {
        self.push(Pollable::Ready)
    }
}

/// Whether an interface, named without its version, is served.
pub(crate) fn is_served(interface: &str) -> bool {
    SERVED.contains(&interface) || refused::INTERFACES.contains(&interface)
}

/// Adds what every module may import.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    bindings::Wasi::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

/// The linker for one component: with the stubs that it needs.
pub(crate) fn linker_for(
    component: &Component,
    linker: &Linker<CallState>,
) -> wasmtime::Result<Linker<CallState>> {
    let mut linker = linker.clone();
    refused::stub(component, &mut linker)?;
    Ok(linker)
}
