//! What a module says of itself.

use wasm_metadata::{Metadata as Known, Payload};

/// What `configurator build` has embedded in a module; what another tool has made may lack all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The revision of its sources.
    pub revision: Option<String>,
    /// What it was made with, as in `configurator-sdk (Go) 0.1.0`.
    pub made_with: Vec<String>,
}

/// That of a component.
#[must_use]
pub fn of(component: &[u8]) -> Metadata {
    let Ok(payload) = Payload::from_binary(component) else {
        return Metadata::default();
    };
    let Known {
        name,
        version,
        revision,
        producers,
        ..
    } = payload.metadata();
    let mut made_with = Vec::new();
    for (_, values) in producers.iter().flat_map(|producers| producers.iter()) {
        for (name, version) in values.iter() {
            made_with.push(format!("{name} {version}").trim_end().to_owned());
        }
    }
    Metadata {
        name: name.clone(),
        version: version.as_ref().map(ToString::to_string),
        revision: revision.as_ref().map(ToString::to_string),
        made_with,
    }
}
