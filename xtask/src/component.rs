//! Core module to component, and what the component may import.

use anyhow::{Context, Result, bail, ensure};
use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::{Resolve, WorldId, WorldItem};

/// The only interface with functions that a module imports.
const LOG: &str = "configurator:handler/log@0.1.0";
/// What every module exports.
const HANDLER: &str = "configurator:handler/handler@0.1.0";

/// Encodes a core module that carries the contract's types as a component, and checks that it imports logging only.
pub fn encode(core: &[u8]) -> Result<Vec<u8>> {
    let component = ComponentEncoder::default()
        .validate(true)
        .module(core)
        .and_then(ComponentEncoder::encode)
        .context("the core module does not fit the contract: does the crate invoke `configurator_sdk::module!`?")?;
    match wit_component::decode(&component)? {
        DecodedWasm::Component(resolve, world) => check(&resolve, world)?,
        DecodedWasm::WitPackage(..) => {
            bail!("the encoded component is a package of types without code")
        }
    }
    Ok(component)
}

fn check(resolve: &Resolve, world: WorldId) -> Result<()> {
    let Some(world) = resolve.worlds.get(world) else {
        bail!("the component has no world")
    };
    let mut strays = Vec::new();
    for (key, item) in &world.imports {
        let name = resolve.name_world_key(key);
        match item {
            WorldItem::Type { .. } => {}
            // An interface without functions only names types.
            WorldItem::Interface { id, .. } => {
                if name != LOG
                    && resolve
                        .interfaces
                        .get(*id)
                        .is_some_and(|i| !i.functions.is_empty())
                {
                    strays.push(name);
                }
            }
            WorldItem::Function(_) => strays.push(name),
        }
    }
    ensure!(
        strays.is_empty(),
        "it imports {}, and a module may import only {LOG}: find the dependency that wants it, and leave it out",
        strays.join(", ")
    );
    let exported = world
        .exports
        .keys()
        .any(|key| resolve.name_world_key(key) == HANDLER);
    ensure!(
        exported,
        "it does not export {HANDLER}: invoke `configurator_sdk::module!` at the root of the crate"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn answer(world: &str) -> String {
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
        check(&resolve, world).map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    fn case(world: &str, expected: Expect) {
        expected.assert_eq(&answer(world));
    }

    #[test]
    fn a_module_imports_logging_and_types_only() {
        case("import log; import types; export handler;", expect!["fits"]);
        case("export handler;", expect!["fits"]);
        case(
            "import files; import log; export handler;",
            expect![
                "it imports configurator:handler/files@0.1.0, and a module may import only configurator:handler/log@0.1.0: find the dependency that wants it, and leave it out"
            ],
        );
        case(
            "import now: func() -> u64; export handler;",
            expect![
                "it imports now, and a module may import only configurator:handler/log@0.1.0: find the dependency that wants it, and leave it out"
            ],
        );
    }

    #[test]
    fn a_module_without_handlers_is_refused() {
        case(
            "import log;",
            expect![
                "it does not export configurator:handler/handler@0.1.0: invoke `configurator_sdk::module!` at the root of the crate"
            ],
        );
    }

    #[test]
    fn what_is_no_module_is_refused() {
        assert!(encode(b"hello").is_err());
        assert!(
            encode(b"\0asm\x01\0\0\0").is_err(),
            "an empty module has no handlers"
        );
    }
}
