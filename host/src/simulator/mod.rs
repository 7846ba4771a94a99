//! The host with scripted servers and a scripted clock: one test of a module in milliseconds.
//!
//! A [`Scenario`] says what exists at the start, which requests fail, and what happens then. It is
//! played by the production host: the same queue, runs, executor and sinks, over an embedded API and embedded stores in
//! memory. Only faults are injected before the sinks, and time is virtual: a backoff of a minute takes no time.
//!
//! ```no_run
//! use configurator_host::simulator::{Simulator, scenario::Scenario};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let simulator = Simulator::new()?;
//! let scenario = Scenario::read("scenarios/a-pod-appears.yaml".as_ref())?;
//! let outcome = simulator.play(&scenario)?;
//! assert_eq!(outcome.mistakes(&scenario)?, Vec::<String>::new());
//! # Ok(())
//! # }
//! ```

mod answers;
pub mod explore;
mod extensions;
mod faults;
pub mod outcome;
mod play;
mod record;
pub mod scenario;
mod view;

use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::{GuestError, GuestRuntime};

use explore::{Exploration, Explored};
use outcome::Outcome;
use scenario::Scenario;

/// Plays scenarios. Modules are compiled once and shared.
pub struct Simulator {
    guest: GuestRuntime,
}

/// Why a scenario could not be played.
#[derive(Debug, thiserror::Error)]
pub enum SimulatorError {
    /// The engine for modules could not be started.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file does not say what it should.
    #[error("{path}: {message}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong.
        message: String,
    },
    /// The world of the scenario could not be set up.
    #[error("{scenario}: {message}")]
    Setup {
        /// The scenario.
        scenario: String,
        /// What could not be done, and why.
        message: String,
    },
}

impl Simulator {
    /// A simulator of its own engine, which compiles modules anew.
    ///
    /// # Errors
    /// When the engine cannot be started.
    pub fn new() -> Result<Self, SimulatorError> {
        Self::with_options(GuestOptions {
            parallel_calls: 1,
            // The result must not depend on the memory of the machine.
            memory: u64::MAX,
            ..GuestOptions::default()
        })
    }

    /// A simulator with these options of its engine.
    ///
    /// # Errors
    /// When the engine cannot be started.
    pub fn with_options(options: GuestOptions) -> Result<Self, SimulatorError> {
        Ok(Self {
            guest: GuestRuntime::new(options)?,
        })
    }

    /// Plays a scenario to its end. Must not be called on a thread of an asynchronous runtime.
    ///
    /// # Errors
    /// When the scenario's files cannot be read or its world cannot be set up. What the handlers do wrong is no
    /// error: it is in the outcome.
    pub fn play(&self, scenario: &Scenario) -> Result<Outcome, SimulatorError> {
        play::play(&self.guest, scenario)
    }

    /// Plays a scenario many times, each time with other faults, and looks for what the module does not stand. Must not be called on a thread of an
    /// asynchronous runtime.
    ///
    /// # Errors
    /// As [`play`](Self::play).
    pub fn explore(
        &self,
        scenario: &Scenario,
        exploration: &Exploration,
    ) -> Result<Explored, SimulatorError> {
        explore::explore(&self.guest, scenario, exploration)
    }
}
