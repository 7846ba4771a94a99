//! One call of a guest, under limits: in a fresh instance, or in one that has served calls before.
//!
//! A call begins with the memory that calls of its module have had so far, and takes more from the budget of the process
//! as it grows. When the budget has no more, the call is given up: it returns all its memory, waits for as much as its limit
//! allows, and is made again. So whatever waits for memory holds none, and a call is made again for lack of memory at most once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use configurator_core::handler::{CallFault, CallLimits, HandlerInput, ModuleDescription};
use configurator_core::time::Timestamp;
use wasmtime::{Engine, Store, UpdateDeadline};

use crate::budget::{MemoryBudget, Reservation, Wait};
use crate::deadline::Stopwatch;
use crate::drive::{drive_blocking, steps_often};
use crate::idle::{IdleInstances, Instance};
use crate::input_size::input_size;
use crate::limiter::{MemoryLimiter, TABLES_SIZE};
use crate::log::{CallLog, LogSink, no_log};
use crate::module::Module;
use crate::options::LogLimits;
use crate::report::{CallCost, CallReport};
use crate::slots::Slots;
use crate::state::CallState;
use crate::ticker::Ticker;
use crate::trap::{classify, transfer_limit};
use crate::v0_1::{HandleError, Pre};
use crate::wasi::Wasi;

/// A call to be made.
pub(crate) struct Work<'w> {
    pub(crate) module: &'w Arc<Module>,
    pub(crate) handler: &'w str,
    pub(crate) input: &'w HandlerInput,
    pub(crate) limits: &'w CallLimits,
    pub(crate) log: LogSink,
}

/// The instance or memory that an attempt to make a call begins with.
pub(crate) enum Start {
    /// An instance that has served calls before.
    Kept(Box<Instance>),
    /// Memory for a new instance.
    New(Reservation),
}

/// The start that an attempt needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// An instance that has served calls before, or a new one.
    Any,
    /// A new instance.
    New,
    /// A new instance, with as much memory as the call may ever have.
    Whole,
}

/// What calls need of the runtime.
pub(crate) struct Caller {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) tick: Duration,
    pub(crate) log_limits: LogLimits,
    /// Memory of all guests.
    pub(crate) budget: MemoryBudget,
    pub(crate) idle: Arc<IdleInstances>,
    /// Room for the instances of callers that block.
    pub(crate) slots: Slots,
}

impl Caller {
    /// Returns what the call can begin with now: a kept instance, or free memory. Other kept instances are evicted to make room.
    pub(crate) fn try_start(&self, work: &Work<'_>, need: Need) -> Option<Start> {
        if need == Need::Any && work.limits.instance_calls > 1 {
            let Work { module, limits, .. } = work;
            if let Some(instance) = self.idle.take(module, limits.owner, limits.memory) {
                return Some(Start::Kept(Box::new(instance)));
            }
        }
        loop {
            if let Some(memory) = self.budget.try_reserve(self.wanted(work, need)) {
                return Some(Start::New(memory));
            }
            if !self.idle.evict() {
                return None;
            }
        }
    }

    /// Queues for the memory of a call. Kept instances are evicted to make room.
    pub(crate) fn queue(&self, work: &Work<'_>, need: Need) -> Result<Wait, CallFault> {
        self.wait_for(self.wanted(work, need))
    }

    /// The memory that an attempt begins with, in bytes.
    fn wanted(&self, work: &Work<'_>, need: Need) -> u64 {
        let whole = whole(work.limits, &self.budget);
        match need {
            Need::Whole => whole,
            Need::Any | Need::New => work.module.memory.load(Ordering::Relaxed).min(whole),
        }
    }

    fn wait_for(&self, bytes: u64) -> Result<Wait, CallFault> {
        let wait = self
            .budget
            .reserve(bytes)
            .map_err(|never| CallFault::Memory {
                limit: never.limit,
                message: never.to_string(),
            })?;
        while wait.is_waiting() && self.idle.evict() {}
        Ok(wait)
    }

    /// Makes an attempt to call a handler. The future waits for nothing: see [`drive`](crate::drive).
    ///
    /// # Errors
    /// The start that another attempt needs, when this one failed because of the host.
    pub(crate) async fn attempt(&self, work: &Work<'_>, start: Start) -> Result<CallReport, Need> {
        let is_kept = matches!(start, Start::Kept(_));
        let report = self.call(work, start).await?;
        let is_spoilt = matches!(
            report.result,
            Err(CallFault::Trap { .. } | CallFault::Memory { .. } | CallFault::Stack { .. })
        );
        // Traces of earlier calls in the instance must not count. A handler is a pure function, so calling it again does no harm.
        match is_kept && is_spoilt {
            true => Err(Need::New),
            false => Ok(report),
        }
    }

    /// Calls a handler to its end, on this thread.
    pub(crate) fn call_blocking(&self, work: &Work<'_>) -> CallReport {
        let mut need = Need::Any;
        loop {
            let start = match self.try_start(work, need) {
                Some(start) => start,
                None => match self.queue(work, need) {
                    Ok(wait) => Start::New(wait.blocking()),
                    Err(fault) => return CallReport::not_begun(fault),
                },
            };
            let _slot = self.slots.take();
            match drive_blocking(Box::pin(self.attempt(work, start))) {
                Ok(Ok(report)) => return report,
                Ok(Err(next)) => need = next,
                Err(error) => return CallReport::not_begun(error.into()),
            }
        }
    }

    /// Calls a handler in this instance, or in a new one, and keeps the instance where it may serve more calls.
    async fn call(&self, work: &Work<'_>, start: Start) -> Result<CallReport, Need> {
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
        let (mut store, live, calls) = match start {
            Start::New(memory) => {
                let wasi = Wasi::new(context.now, context.seed);
                let limiter = MemoryLimiter::new(limits.memory, memory);
                (self.store(CallState::new(limiter, log, wasi)), None, 0)
            }
            Start::Kept(instance) => {
                let Instance {
                    mut store,
                    live,
                    calls,
                } = *instance;
                let state = store.data_mut();
                state.log = log;
                state.wasi.restart(context.now, context.seed);
                (store, Some(live), calls)
            }
        };
        self.prepare(&mut store, limits, watch.clone());
        let called = async {
            let live = match live {
                Some(live) => live,
                None => module.pre().instantiate(&mut store).await?,
            };
            let output = live.handle(&mut store, handler, input, limits);
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
            Err(_) if store.data().limiter.lacked_room() => return Err(Need::Whole),
            Err(HandleError::Wasm(error)) => Err(classify(&error, limits, store.data())),
            Err(HandleError::Fault(fault)) => Err(fault),
        };
        let mut cost = cost_of(store.data());
        module.memory.fetch_max(cost.memory_peak, Ordering::Relaxed);
        let result = result.map(|(output, kept)| {
            match kept {
                Some((live, calls)) => {
                    let instance = Instance { store, live, calls };
                    self.idle.put(module, limits.owner, instance);
                    // No call may wait for memory that an idle instance holds.
                    while self.budget.waiting() > 0 && self.idle.evict() {}
                }
                // Giving the instance back is part of what the call costs.
                None => drop(store),
            }
            output
        });
        cost.cpu_time = watch.cpu();
        cost.wall_time = watch.wall();
        Ok(CallReport { result, cost })
    }

    /// Calls `describe` on this thread. Returns also the memory that it took, in bytes.
    pub(crate) fn describe(
        &self,
        pre: &Pre,
        limits: &CallLimits,
    ) -> Result<(ModuleDescription, u64), CallFault> {
        let limits = CallLimits {
            memory: limits.memory.min(self.budget.limit()),
            ..*limits
        };
        let mut bytes = 0;
        loop {
            let memory = self.wait_for(bytes)?.blocking();
            let _slot = self.slots.take();
            let described = self.try_describe(pre, &limits, memory);
            match drive_blocking(Box::pin(described)).unwrap_or_else(|error| Ok(Err(error.into())))
            {
                Ok(description) => return description,
                Err(Need::Any | Need::New | Need::Whole) => bytes = whole(&limits, &self.budget),
            }
        }
    }

    async fn try_describe(
        &self,
        pre: &Pre,
        limits: &CallLimits,
        memory: Reservation,
    ) -> Result<Result<(ModuleDescription, u64), CallFault>, Need> {
        let log = CallLog::new(self.log_limits, no_log());
        let wasi = Wasi::new(Timestamp::default(), 0);
        let watch = Stopwatch::start();
        let _running = self.ticker.running();
        let limiter = MemoryLimiter::new(limits.memory, memory);
        let mut store = self.store(CallState::new(limiter, log, wasi));
        self.prepare(&mut store, limits, watch);
        let description = pre.describe(&mut store, limits.output_size).await;
        let state = store.data();
        Ok(match description {
            Ok(description) => Ok((description, state.limiter.peak())),
            Err(_) if state.limiter.lacked_room() => return Err(Need::Whole),
            Err(HandleError::Wasm(error)) => Err(classify(&error, limits, state)),
            Err(HandleError::Fault(fault)) => Err(fault),
        })
    }

    fn store(&self, state: CallState) -> Store<CallState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.limiter);
        store
    }

    /// Sets the limits of the next call. The call steps aside at each tick after it has used a tick of CPU time. CPU time decides, because the
    /// system may interrupt a short call for several ticks.
    fn prepare(&self, store: &mut Store<CallState>, limits: &CallLimits, watch: Stopwatch) {
        store.set_hostcall_fuel(transfer_limit(limits));
        let (deadline, tick) = (limits.deadline, self.tick);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(move |_| match watch.check(deadline) {
            Ok(used) if used < tick && !steps_often() => Ok(UpdateDeadline::Continue(1)),
            Ok(_) => Ok(UpdateDeadline::YieldCustom(
                1,
                Box::pin(watch.clone().step_aside()),
            )),
            Err(exceeded) => Err(wasmtime::Error::new(exceeded)),
        });
    }
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

/// The most memory that a call under these limits holds, in bytes.
fn whole(limits: &CallLimits, budget: &MemoryBudget) -> u64 {
    let most = limits.memory.saturating_add(TABLES_SIZE);
    most.min(budget.limit())
}

/// Checks a call before it is made. Returns the size of the input in bytes.
pub(crate) fn check_call(
    module: &Module,
    handler: &str,
    input: &HandlerInput,
    limits: &CallLimits,
    memory: u64,
) -> Result<u64, CallFault> {
    if limits.memory > memory {
        return Err(CallFault::Memory {
            limit: memory,
            message: format!(
                "limits.memory is {} bytes, and the guests of this host have {memory} bytes in all; lower limits.memory, or raise guest_memory of the host",
                limits.memory
            ),
        });
    }
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
    Ok(size)
}
