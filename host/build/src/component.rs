//! Core module to component, what the component may import, and who made it.

use std::fs;
use std::path::Path;

use wasm_metadata::{AddMetadata, AddMetadataField, Revision, Source, Version};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::{Resolve, WorldId, WorldItem};

use crate::error::BuildError;

/// The only interface with functions that a module of a language without a runtime imports.
const LOG: &str = "configurator:handler/log@0.1.0";
/// What every module exports.
const HANDLER: &str = "configurator:handler/handler@0.1.0";
/// Interfaces that runtimes of languages need, and that the host grants nothing by.
const WASI: &str = "wasi:";
/// Of the imports that core modules of Go and C have.
const ADAPTER: &str = "wasi_snapshot_preview1";

/// What may be imported beside logging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Imports {
    /// Nothing.
    Nothing,
    /// What the language's runtime asks of WASI.
    Wasi,
}

/// Who made a component, as it says itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The name of the module.
    pub name: String,
    /// Its version, where its manifest has one.
    pub version: Option<String>,
    /// The revision of its sources, where they are under version control; with `-dirty` where they differ from it.
    pub revision: Option<String>,
    /// Where its sources are.
    pub source: Option<String>,
    /// The language, and the version of its compiler.
    pub language: (String, String),
    /// The SDK's name and version.
    pub sdk: (String, String),
}

/// Encodes a core module that carries the contract's types as a component, and checks it.
///
/// # Errors
/// When it does not fit the contract, or imports what no module gets.
pub fn encode(core: &[u8], imports: Imports) -> Result<Vec<u8>, String> {
    let mut encoder = ComponentEncoder::default();
    encoder.validate(true);
    if imports == Imports::Wasi {
        let adapter =
            wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
        encoder
            .adapter(ADAPTER, adapter)
            .map_err(|error| format!("{error:#}"))?;
    }
    let component = encoder
        .module(core)
        .and_then(ComponentEncoder::encode)
        .map_err(|error| format!("the core module does not fit the contract: {error:#}"))?;
    check(&component, imports)?;
    Ok(component)
}

/// Checks that a component exports handlers, and imports logging and what is allowed beside it.
///
/// # Errors
/// When it does not; with what it has instead.
pub fn check(component: &[u8], imports: Imports) -> Result<(), String> {
    match wit_component::decode(component).map_err(|error| format!("{error:#}"))? {
        DecodedWasm::Component(resolve, world) => check_world(&resolve, world, imports),
        DecodedWasm::WitPackage(..) => Err("it is a package of types without code".to_owned()),
    }
}

fn check_world(resolve: &Resolve, world: WorldId, allowed: Imports) -> Result<(), String> {
    let Some(world) = resolve.worlds.get(world) else {
        return Err("the component has no world".to_owned());
    };
    let mut strays = Vec::new();
    for (key, item) in &world.imports {
        let name = resolve.name_world_key(key);
        match item {
            WorldItem::Type { .. } => {}
            // An interface without functions only names types.
            WorldItem::Interface { id, .. } => {
                let is_wasi = allowed == Imports::Wasi && name.starts_with(WASI);
                let interface = resolve.interfaces.get(*id);
                if name != LOG
                    && !is_wasi
                    && interface.is_some_and(|interface| !interface.functions.is_empty())
                {
                    strays.push(name);
                }
            }
            WorldItem::Function(_) => strays.push(name),
        }
    }
    if !strays.is_empty() {
        let strays = strays.join(", ");
        return Err(format!(
            "it imports {strays}, and a module may import only {LOG}: find the dependency that wants it, and leave it out"
        ));
    }
    let mut exports = world.exports.keys();
    match exports.any(|key| resolve.name_world_key(key) == HANDLER) {
        true => Ok(()),
        false => Err(format!(
            "it does not export {HANDLER}: declare its handlers as the SDK's documentation says"
        )),
    }
}

impl Metadata {
    /// The component, which says this of itself.
    ///
    /// # Errors
    /// When it is no component, or a text is none that metadata can have.
    pub fn embed(&self, component: &[u8]) -> Result<Vec<u8>, String> {
        let said =
            |error: &dyn std::fmt::Display| format!("its metadata cannot be written: {error:#}");
        let mut add = AddMetadata::default();
        add.name = AddMetadataField::Set(self.name.clone());
        add.language = vec![self.language.clone()];
        add.processed_by = vec![(
            "configurator".to_owned(),
            env!("CARGO_PKG_VERSION").to_owned(),
        )];
        add.sdk = vec![self.sdk.clone()];
        if let Some(version) = &self.version {
            add.version = AddMetadataField::Set(Version::new(version.clone()));
        }
        if let Some(revision) = &self.revision {
            add.revision = AddMetadataField::Set(Revision::new(revision.clone()));
        }
        if let Some(source) = &self.source {
            let source = Source::new(source).map_err(|error| said(&error))?;
            add.source = AddMetadataField::Set(source);
        }
        add.to_wasm(component).map_err(|error| said(&error))
    }
}

/// Writes a component aside and renames it, so that a host that reloads the file never sees half of it. One that is there already is left.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), BuildError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = fs::write(&aside, bytes).and_then(|()| fs::rename(&aside, path));
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written.map_err(BuildError::file("write", path))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn answer(world: &str, imports: Imports) -> String {
        let text = format!(
            "package configurator:handler@0.1.0;
             interface types {{ type json = string; }}
             interface log {{ log: func(message: string); }}
             interface files {{ open: func(path: string); }}
             interface handler {{ use types.{{json}}; handle: func(input: json); }}
             world module {{ {world} }}"
        );
        let mut resolve = Resolve::default();
        let package = resolve.push_str("test.wit", &text).unwrap();
        let world = resolve.select_world(&[package], Some("module")).unwrap();
        match check_world(&resolve, world, imports) {
            Ok(()) => "fits".to_owned(),
            Err(error) => error,
        }
    }

    fn check(world: &str, expected: Expect) {
        expected.assert_eq(&answer(world, Imports::Nothing));
    }

    #[test]
    fn a_module_imports_logging_and_types_only() {
        check("import log; import types; export handler;", expect!["fits"]);
        check("export handler;", expect!["fits"]);
        check(
            "import files; import log; export handler;",
            expect![
                "it imports configurator:handler/files@0.1.0, and a module may import only configurator:handler/log@0.1.0: find the dependency that wants it, and leave it out"
            ],
        );
        check(
            "import now: func() -> u64; export handler;",
            expect![
                "it imports now, and a module may import only configurator:handler/log@0.1.0: find the dependency that wants it, and leave it out"
            ],
        );
    }

    #[test]
    fn a_module_without_handlers_is_refused() {
        check(
            "import log;",
            expect![
                "it does not export configurator:handler/handler@0.1.0: declare its handlers as the SDK's documentation says"
            ],
        );
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(encode(b"hello", Imports::Nothing).is_err());
        let empty = b"\0asm\x01\0\0\0";
        assert!(encode(empty, Imports::Nothing).is_err(), "no handlers");
    }
}
