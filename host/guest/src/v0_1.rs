//! The bindings of `configurator:handler@0.1`. Their types stay in here; the rest of the crate sees those of the core.

mod from_guest;

mod to_guest;

use configurator_core::handler::{CallFault, HandlerInput, HandlerOutput, ModuleDescription};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{ComponentExportIndex, Func, HasSelf, InstancePre, Linker, TypedFunc};
use wasmtime::{Engine, Store};

use crate::log::{LogLevel, LogLine};
use crate::state::CallState;
use crate::wasi;

#[allow(
    missing_docs,
    clippy::pedantic,
    reason = "generated; nothing of it is public"
)]
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "configurator",
    });
}

use bindings::configurator::handler::log as wit_log;
use bindings::exports::configurator::handler::handler as wit;

/// The exported interface without its version.
pub(crate) const EXPORT: &str = "configurator:handler/handler";

/// The imported interfaces without their versions.
pub(crate) const IMPORTS: [&str; 3] = [
    "configurator:handler/log",
    "configurator:handler/requests",
    "configurator:handler/types",
];

/// Versions of the package that these bindings serve.
pub(crate) const VERSION: &str = "0.1";

/// A module of this version, ready to be instantiated.
///
/// The bindings would check the types of all exports with every instance, which costs as much as the call of a small
/// handler. They are checked once here.
pub(crate) struct Pre {
    instance: InstancePre<CallState>,
    describe: ComponentExportIndex,
    handle: ComponentExportIndex,
}

type Described = (wit::ModuleDescription,);
type Handled = (Result<wit::HandlerOutput, wit::HandlerError>,);

/// Why [`Pre::handle`] gave no output.
pub(crate) enum HandleError {
    /// The guest trapped, or what it returned could not be read.
    Wasm(wasmtime::Error),
    /// Everything else.
    Fault(CallFault),
}

impl Pre {
    /// A linker with what modules of this world may import.
    pub(crate) fn linker(engine: &Engine) -> wasmtime::Result<Linker<CallState>> {
        let mut linker = Linker::new(engine);
        wasi::add_to_linker(&mut linker)?;
        bindings::Configurator::add_to_linker::<_, HasSelf<CallState>>(&mut linker, |state| state)?;
        Ok(linker)
    }

    /// Looks up the exports and checks their types.
    pub(crate) fn new(instance: InstancePre<CallState>) -> wasmtime::Result<Self> {
        let component = instance.component();
        let types = instance.instance_type();
        let function = |name: &str| {
            let missing = || wasmtime::Error::msg(format!("it has no function {name:?}"));
            let (_, interface) = component
                .get_export(None, format!("{EXPORT}@{VERSION}.0"))
                .ok_or_else(missing)?;
            match component.get_export(Some(&interface), name) {
                Some((ComponentItem::ComponentFunc(function), index)) => Ok((function, index)),
                _ => Err(missing()),
            }
        };
        let within = |name: &str, error: wasmtime::Error| {
            wasmtime::Error::msg(format!("the function {name:?} has another type: {error:#}"))
        };
        let (function_type, describe) = function("describe")?;
        function_type
            .typecheck::<(), Described>(&types)
            .map_err(|error| within("describe", error))?;
        let (function_type, handle) = function("handle")?;
        function_type
            .typecheck::<(&str, &wit::HandlerInput), Handled>(&types)
            .map_err(|error| within("handle", error))?;
        Ok(Self {
            instance,
            describe,
            handle,
        })
    }

    /// Calls `describe` in a new instance.
    #[allow(
        unsafe_code,
        reason = "functions whose types were checked are not checked again with every instance"
    )]
    pub(crate) fn describe(
        &self,
        store: &mut Store<CallState>,
        limit: u64,
    ) -> Result<ModuleDescription, HandleError> {
        let function = self.function(store, &self.describe)?;
        // SAFETY: `new` has checked that this export of the component has these types.
        let function = unsafe { TypedFunc::<(), Described>::new_unchecked(function) };
        let (description,) = function.call(&mut *store, ())?;
        Ok(from_guest::module_description(description, limit)?)
    }

    /// Calls a handler in a new instance.
    #[allow(
        unsafe_code,
        reason = "functions whose types were checked are not checked again with every instance"
    )]
    pub(crate) fn handle(
        &self,
        store: &mut Store<CallState>,
        handler: &str,
        input: &HandlerInput,
        output_limit: u64,
    ) -> Result<HandlerOutput, HandleError> {
        let function = self.function(store, &self.handle)?;
        // SAFETY: `new` has checked that this export of the component has these types.
        let function =
            unsafe { TypedFunc::<(&str, &wit::HandlerInput), Handled>::new_unchecked(function) };
        let input = to_guest::handler_input(input);
        let (output,) = function.call(&mut *store, (handler, &input))?;
        Ok(from_guest::handler_output(output, output_limit)?)
    }

    /// An export of a new instance.
    fn function(
        &self,
        store: &mut Store<CallState>,
        export: &ComponentExportIndex,
    ) -> wasmtime::Result<Func> {
        self.instance
            .instantiate(&mut *store)?
            .get_func(&mut *store, export)
            .ok_or_else(|| wasmtime::Error::msg("the export has gone"))
    }
}

impl From<wasmtime::Error> for HandleError {
    fn from(error: wasmtime::Error) -> Self {
        Self::Wasm(error)
    }
}

impl From<CallFault> for HandleError {
    fn from(fault: CallFault) -> Self {
        Self::Fault(fault)
    }
}

impl bindings::configurator::handler::types::Host for CallState {}

impl bindings::configurator::handler::requests::Host for CallState {}

impl wit_log::Host for CallState {
    fn log(&mut self, level: wit_log::Level, message: String, fields: Vec<(String, String)>) {
        self.log.line(LogLine {
            level: match level {
                wit_log::Level::Trace => LogLevel::Trace,
                wit_log::Level::Debug => LogLevel::Debug,
                wit_log::Level::Info => LogLevel::Info,
                wit_log::Level::Warn => LogLevel::Warn,
                wit_log::Level::Error => LogLevel::Error,
            },
            message,
            fields,
        });
    }
}
