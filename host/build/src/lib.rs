//! Builds handler modules: the sources of any supported language to a component.
//!
//! A module's folder has the manifest of its language ([`Language::of`]). `Build::run` finds the programs that compile it, or says which
//! command installs them, runs them, encodes what they make as a component, checks that it exports handlers and imports nothing that
//! the host does not offer, and has it say who made it.

//!
//! Without the feature `languages` there is only what building modules of this workspace needs: the toolchain of Rust, and the encoding of
//! components.

pub mod component;
pub mod error;
pub mod language;
pub mod metadata;
#[cfg(feature = "languages")]
pub mod module;
pub mod rust_toolchain;
#[cfg(feature = "languages")]
pub mod scaffold;

mod answer;
#[cfg(feature = "languages")]
mod c;
#[cfg(feature = "languages")]
mod contract;
#[cfg(feature = "languages")]
mod git;
#[cfg(feature = "languages")]
mod go;
#[cfg(feature = "languages")]
mod javascript;
#[cfg(feature = "languages")]
mod name;
#[cfg(feature = "languages")]
mod preinitialise;
#[cfg(feature = "languages")]
mod python;
#[cfg(feature = "languages")]
mod rust;
#[cfg(feature = "languages")]
mod sdk;
#[cfg(feature = "languages")]
mod segments;
#[cfg(feature = "languages")]
mod tool;
#[cfg(feature = "languages")]
mod venv;

pub use error::BuildError;
pub use language::Language;
#[cfg(feature = "languages")]
pub use module::{Build, Built, Progress, Tools};
#[cfg(feature = "languages")]
pub use scaffold::Scaffold;
