//! One call of a guest, under limits: in a fresh instance, or in one that has served calls before.

use std::sync::Arc;

use configurator_core::handler::{CallFault, CallLimits, HandlerInput, ModuleDescription};
use configurator_core::time::Timestamp;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::deadline::Stopwatch;
use crate::idle::{IdleInstances, Instance};
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

/// A call to be made.
struct Work<'w> {
    module: &'w Arc<Module>,
    handler: &'w str,
    input: &'w HandlerInput,
    limits: &'w CallLimits,
    log: LogSink,
}

/// What calls need of the runtime.
pub(crate) struct Caller {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) log_limits: LogLimits,
    /// Ceiling of `limits.memory`, in bytes.
    pub(crate) max_memory: u64,
    pub(crate) idle: Arc<IdleInstances>,
}

impl Caller {
    /// Calls a handler. The future waits for nothing: see [`drive`](crate::drive).
    pub(crate) async fn handle(
        &self,
        module: &Arc<Module>,
        handler: &str,
        input: &HandlerInput,
        limits: &CallLimits,
        log: LogSink,
    ) -> CallReport {
        if let Err(fault) = check_call(module, handler, input, limits) {
            return CallReport::not_begun(fault);
        }
        let work = Work {
            module,
            handler,
            input,
            limits,
            log,
        };
        let memory_limit = limits.memory.min(self.max_memory);
        if limits.instance_calls > 1
            && let Some(instance) = self.idle.take(module, limits.owner, memory_limit)
        {
            let report = self.call(&work, Some(instance)).await;
            let is_spoilt = matches!(
                report.result,
                Err(CallFault::Trap { .. } | CallFault::Memory { .. } | CallFault::Stack { .. })
            );
            if !is_spoilt {
                return report;
            }
            // What calls before it have left behind must not count. A handler is a pure function: to call it again does no harm.
        }
        self.call(&work, None).await
    }

    /// Calls a handler in this instance, or in a new one, and keeps the instance where it may serve more calls.
    async fn call(&self, work: &Work<'_>, instance: Option<Instance>) -> CallReport {
        let Work {
            module,
            handler,
            input,
            limits,
            log,
        } = work;
        let watch = Stopwatch::start();
        let _running = self.ticker.running();
        let log = CallLog::new(self.log_limits, log.clone());
        let context = &input.context;
        let (mut store, live, calls) = match instance {
            None => {
                let wasi = Wasi::new(context.now, context.seed);
                (
                    self.store(CallState::new(self.limiter(limits), log, wasi)),
                    None,
                    0,
                )
            }
            Some(Instance {
                mut store,
                live,
                calls,
            }) => {
                let state = store.data_mut();
                state.log = log;
                state.wasi.restart(context.now, context.seed);
                (store, Some(live), calls)
            }
        };
        prepare(&mut store, limits, watch.clone());
        let called = async {
            let live = match live {
                Some(live) => live,
                None => module.pre().instantiate(&mut store).await?,
            };
            let output = live.handle(&mut store, handler, input, limits.output_size);
            let output = output.await?;
            Ok((output, live))
        };
        let result = match called.await {
            Ok((output, live)) => {
                let calls = calls.saturating_add(1);
                Ok((
                    output,
                    (calls < limits.instance_calls).then_some((live, calls)),
                ))
            }
            Err(HandleError::Wasm(error)) => Err(classify(&error, limits, store.data())),
            Err(HandleError::Fault(fault)) => Err(fault),
        };
        let mut cost = cost_of(store.data());
        let result = result.map(|(output, kept)| {
            match kept {
                Some((live, calls)) => {
                    let instance = Instance { store, live, calls };
                    self.idle.put(module, limits.owner, instance);
                }
                // Giving the instance back is part of what the call costs.
                None => drop(store),
            }
            output
        });
        cost.cpu_time = watch.cpu();
        cost.wall_time = watch.wall();
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
        let watch = Stopwatch::start();
        let _running = self.ticker.running();
        let state = CallState::new(self.limiter(limits), log, wasi);
        let mut store = self.store(state);
        prepare(&mut store, limits, watch);
        let description = pre.describe(&mut store, limits.output_size).await;
        description.map_err(|error| match error {
            HandleError::Wasm(error) => classify(&error, limits, store.data()),
            HandleError::Fault(fault) => fault,
        })
    }

    fn limiter(&self, limits: &CallLimits) -> MemoryLimiter {
        MemoryLimiter::new(limits.memory.min(self.max_memory))
    }

    fn store(&self, state: CallState) -> Store<CallState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limiter);
        store
    }
}

/// Holds the next call to its limits.
fn prepare(store: &mut Store<CallState>, limits: &CallLimits, watch: Stopwatch) {
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
}

/// What a call has cost, but for its time.
fn cost_of(state: &CallState) -> CallCost {
    CallCost {
        memory_peak: state.limiter.peak(),
        log_lines: state.log.lines(),
        log_dropped: state.log.dropped(),
        ..CallCost::default()
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
