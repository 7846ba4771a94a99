//! The bindings of `configurator:handler@0.1`. Their types stay in here; the rest of the crate sees those of the core.

mod from_guest;

mod to_guest;

use std::marker::PhantomData;

use configurator_core::handler::{
    CallFault, CallLimits, HandlerInput, HandlerOutput, ModuleDescription,
};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    ComponentExportIndex, ComponentNamedList, HasSelf, Instance, InstancePre, Lift, Linker, Lower,
    TypedFunc,
};
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
pub(crate) const IMPORTS: [&str; 4] = [
    "configurator:handler/desired",
    "configurator:handler/log",
    "configurator:handler/requests",
    "configurator:handler/types",
];

/// Versions of the package that these bindings serve.
pub(crate) const VERSION: &str = "0.1";

/// A module of this version, ready to be instantiated.
pub(crate) struct Pre {
    instance: InstancePre<CallState>,
    describe: Export<(), (wit::ModuleDescription,)>,
    handle: Export<(String, wit::HandlerInput), (Result<wit::HandlerOutput, wit::HandlerError>,)>,
}

/// A function of a component, whose type was checked.
///
/// The bindings would check the types of all exports with every instance, which costs as much as the call of a small
/// handler.
struct Export<Params, Return> {
    index: ComponentExportIndex,
    types: PhantomData<fn(Params) -> Return>,
}

/// An instance that can be called.
pub(crate) struct Live {
    handle:
        TypedFunc<(String, wit::HandlerInput), (Result<wit::HandlerOutput, wit::HandlerError>,)>,
}

/// Why [`Live::handle`] gave no output.
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
        Ok(Self {
            describe: Export::checked(&instance, "describe")?,
            handle: Export::checked(&instance, "handle")?,
            instance,
        })
    }

    /// Calls `describe` in a new instance.
    pub(crate) async fn describe(
        &self,
        store: &mut Store<CallState>,
        limit: u64,
    ) -> Result<ModuleDescription, HandleError> {
        let instance = self.instance.instantiate_async(&mut *store).await?;
        let function = self.describe.of(&mut *store, &instance)?;
        let (description,) = function.call_async(&mut *store, ()).await?;
        Ok(from_guest::module_description(description, limit)?)
    }

    /// A new instance.
    pub(crate) async fn instantiate(
        &self,
        store: &mut Store<CallState>,
    ) -> Result<Live, HandleError> {
        let instance = self.instance.instantiate_async(&mut *store).await?;
        let handle = self.handle.of(&mut *store, &instance)?;
        Ok(Live { handle })
    }
}

impl Live {
    /// Calls a handler.
    pub(crate) async fn handle(
        &self,
        store: &mut Store<CallState>,
        handler: &str,
        input: &HandlerInput,
        limits: &CallLimits,
    ) -> Result<HandlerOutput, HandleError> {
        let input = to_guest::handler_input(input);
        let (output,) = self
            .handle
            .call_async(&mut *store, (handler.into(), input))
            .await?;
        Ok(from_guest::handler_output(output, limits)?)
    }
}

impl<Params, Return> Export<Params, Return>
where
    Params: ComponentNamedList + Lower,
    Return: ComponentNamedList + Lift,
{
    fn checked(instance: &InstancePre<CallState>, name: &str) -> wasmtime::Result<Self> {
        let component = instance.component();
        let missing = || wasmtime::Error::msg(format!("it has no function {name:?}"));
        let (_, interface) = component
            .get_export(None, format!("{EXPORT}@{VERSION}.0"))
            .ok_or_else(missing)?;
        let Some((ComponentItem::ComponentFunc(function), index)) =
            component.get_export(Some(&interface), name)
        else {
            return Err(missing());
        };
        function
            .typecheck::<Params, Return>(&instance.instance_type())
            .map_err(|error| {
                wasmtime::Error::msg(format!("the function {name:?} has another type: {error:#}"))
            })?;
        Ok(Self {
            index,
            types: PhantomData,
        })
    }

    /// The function in an instance of the component that was checked.
    #[allow(
        unsafe_code,
        reason = "the type is not checked again with every instance"
    )]
    fn of(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> wasmtime::Result<TypedFunc<Params, Return>> {
        let function = instance
            .get_func(store, self.index)
            .ok_or_else(|| wasmtime::Error::msg("the export has gone"))?;
        // SAFETY: `checked` has checked that this export of the component has these types.
        Ok(unsafe { TypedFunc::new_unchecked(function) })
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

impl bindings::configurator::handler::desired::Host for CallState {}
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
