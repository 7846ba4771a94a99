//! `wasi:filesystem`: there are no folders, so nothing can be opened, and nothing of the rest can be reached.

use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceType, Val};

use super::VERSION;
use crate::load::is_version;
use crate::state::CallState;

const PREOPENS: &str = "wasi:filesystem/preopens";

const TYPES: &str = "wasi:filesystem/types";

/// Interfaces that are stubbed, without their versions.
pub(super) const INTERFACES: [&str; 2] = [PREOPENS, TYPES];

/// A file or folder. There is none.
enum Descriptor {}

/// Defines what a component imports of these interfaces, in the version that it imports.
///
/// `get-directories` returns an empty list. Everything else takes a handle that nobody can have, and traps.
pub(super) fn stub(component: &Component, linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let engine = component.engine();
    for (import, item) in component.component_type().imports(engine) {
        let ComponentItem::ComponentInstance(instance) = item.ty else {
            continue;
        };
        let Some((interface, version)) = import.split_once('@') else {
            continue;
        };
        if !INTERFACES.contains(&interface) || !is_version(version, VERSION) {
            continue;
        }
        let mut stubs = linker.instance(import)?;
        for (name, item) in instance.exports(engine) {
            match item.ty {
                ComponentItem::Resource(_) => {
                    let kind = ResourceType::host::<Descriptor>();
                    stubs.resource(name, kind, |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(_) if interface == PREOPENS => {
                    stubs.func_new(name, |_, _, _, results| {
                        if let [directories] = results {
                            *directories = Val::List(Vec::new());
                        }
                        Ok(())
                    })?;
                }
                ComponentItem::ComponentFunc(_) => {
                    let message = format!("{import} {name}: there is no file system");
                    stubs.func_new(name, move |_, _, _, _| {
                        Err(wasmtime::Error::msg(message.clone()))
                    })?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}
