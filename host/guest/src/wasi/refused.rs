//! `wasi:filesystem` and `wasi:sockets`: there are no folders and no network.
//!
//! The runtimes of languages import them whether or not a program opens anything (Python imports all of both), so they
//! link. What could give a handle fails with an error that the language raises; everything else needs a handle that
//! nobody can have.

use wasmtime::component::types::{ComponentFunc, ComponentItem, Type};
use wasmtime::component::{Component, Linker, ResourceType, Val};

use super::VERSION;
use super::io::{Empty, Failure, LogTail, Pollable};
use crate::load::is_version;
use crate::state::CallState;

const PREOPENS: &str = "wasi:filesystem/preopens";

/// Interfaces that are refused, without their versions.
pub(super) const INTERFACES: [&str; 9] = [
    PREOPENS,
    "wasi:filesystem/types",
    "wasi:sockets/network",
    "wasi:sockets/instance-network",
    "wasi:sockets/ip-name-lookup",
    "wasi:sockets/tcp",
    "wasi:sockets/tcp-create-socket",
    "wasi:sockets/udp",
    "wasi:sockets/udp-create-socket",
];

/// Error codes that say "you may not", in the words of the two packages.
const DENIALS: [&str; 2] = ["not-permitted", "access-denied"];

/// A file, folder or socket. There is none.
enum Handle {}

/// Defines what a component imports of these interfaces, in the version that it imports.
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
                    stubs.resource(name, resource(name), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(function) => {
                    let answer = answer(interface, &function);
                    let message = format!("{import} {name}: a module has no files and no network");
                    stubs.func_new(name, move |_, _, _, results| match (results, &answer) {
                        ([result], Some(answer)) => {
                            *result = answer.clone();
                            Ok(())
                        }
                        _ => Err(wasmtime::Error::msg(message.clone())),
                    })?;
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The host's type of a resource. These interfaces repeat those of `wasi:io` that they use.
fn resource(name: &str) -> ResourceType {
    match name {
        "error" => ResourceType::host::<Failure>(),
        "pollable" => ResourceType::host::<Pollable>(),
        "input-stream" => ResourceType::host::<Empty>(),
        "output-stream" => ResourceType::host::<LogTail>(),
        _ => ResourceType::host::<Handle>(),
    }
}

/// What a function answers: no folders, or a denial where its type has one. `None` is a trap.
fn answer(interface: &str, function: &ComponentFunc) -> Option<Val> {
    match function.results().next()? {
        Type::List(_) if interface == PREOPENS => Some(Val::List(Vec::new())),
        Type::Result(result) => match result.err()? {
            Type::Enum(codes) => codes
                .names()
                .find(|name| DENIALS.contains(name))
                .map(|name| Val::Result(Err(Some(Box::new(Val::Enum(name.to_owned())))))),
            _ => None,
        },
        _ => None,
    }
}
