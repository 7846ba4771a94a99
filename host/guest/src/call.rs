//! One call of a guest: a fresh store and instance, under limits.

use configurator_core::handler::{CallFault, CallLimits, HandlerInput, ModuleDescription};
use configurator_core::time::Timestamp;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::deadline::Stopwatch;
use crate::input_size::input_size;
use crate::limiter::MemoryLimiter;
use crate::log::{CallLog, LogSink, no_log};
use crate::module::Module;
use crate::options::LogLimits;
use crate::report::{CallCost, CallReport};
use crate::state::CallState;
use crate::ticker::Ticker;
use crate::trap::{classify, transfer_limit};
use crate::v0_1::{HandleError, Pre};
use crate::wasi::Wasi;

/// What calls need of the runtime.
pub(crate) struct Caller {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) log_limits: LogLimits,
    /// Ceiling of `limits.memory`, in bytes.
    pub(crate) max_memory: u64,
}

impl Caller {
    /// Calls a handler. The future waits for nothing: see [`drive`](crate::drive).
    pub(crate) async fn handle(
        &self,
        module: &Module,
        handler: &str,
        input: &HandlerInput,
        limits: &CallLimits,
        log: LogSink,
    ) -> CallReport {
        if let Err(fault) = check_call(module, handler, input, limits) {
            return CallReport::not_begun(fault);
        }
        let log = CallLog::new(self.log_limits, log);
        let wasi = Wasi::new(input.context.now, input.context.seed);
        let (result, cost) = self
            .run(limits, log, wasi, async |store| {
                module
                    .pre()
                    .handle(store, handler, input, limits.output_size)
                    .await
            })
            .await;
        CallReport { result, cost }
    }

    /// Asks a module what it is.
    pub(crate) async fn describe(
        &self,
        pre: &Pre,
        limits: &CallLimits,
    ) -> Result<ModuleDescription, CallFault> {
        let log = CallLog::new(self.log_limits, no_log());
        let wasi = Wasi::new(Timestamp::default(), 0);
        let (description, _) = self
            .run(limits, log, wasi, async |store| {
                pre.describe(store, limits.output_size).await
            })
            .await;
        description
    }

    async fn run<T>(
        &self,
        limits: &CallLimits,
        log: CallLog,
        wasi: Wasi,
        call: impl AsyncFnOnce(&mut Store<CallState>) -> Result<T, HandleError>,
    ) -> (Result<T, CallFault>, CallCost) {
        let watch = Stopwatch::start();
        let _running = self.ticker.running();
        let limiter = MemoryLimiter::new(limits.memory.min(self.max_memory));
        let mut store = self.store(limits, CallState { limiter, log, wasi }, watch.clone());
        let result = call(&mut store).await.map_err(|error| match error {
            HandleError::Wasm(error) => classify(&error, limits, store.data()),
            HandleError::Fault(fault) => fault,
        });
        let state = store.data();
        let mut cost = CallCost {
            memory_peak: state.limiter.peak(),
            log_lines: state.log.lines(),
            log_dropped: state.log.dropped(),
            ..CallCost::default()
        };
        // Giving the instance back is part of what the call costs.
        drop(store);
        cost.cpu_time = watch.cpu();
        cost.wall_time = watch.wall();
        (result, cost)
    }

    fn store(&self, limits: &CallLimits, state: CallState, watch: Stopwatch) -> Store<CallState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(transfer_limit(limits));
        let deadline = limits.deadline;
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| match watch.check(deadline) {
            Ok(()) => Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(watch.clone().step_aside()),
            )),
            Err(exceeded) => Err(wasmtime::Error::new(exceeded)),
        });
        store
    }
}

fn check_call(
    module: &Module,
    handler: &str,
    input: &HandlerInput,
    limits: &CallLimits,
) -> Result<(), CallFault> {
    if module.description().handler(handler).is_none() {
        return Err(CallFault::UnknownHandler {
            name: handler.into(),
            available: module.handler_names(),
        });
    }
    let size = input_size(input);
    if size > limits.input_size {
        return Err(CallFault::InputTooLarge {
            size,
            limit: limits.input_size,
        });
    }
    Ok(())
}
