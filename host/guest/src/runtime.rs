//! The entry point of this crate.

use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use configurator_background::owners::Owner;
use configurator_core::handler::{CallFault, CallLimits, HandlerInput};
use tokio::sync::oneshot;

use crate::budget::MemoryBudget;
use crate::bytes::ModuleBytes;
use crate::cache::{CacheError, ModuleCache};
use crate::call::{Caller, Need, Start, Work, check_call};
use crate::call_queue::{CallQueue, QueuedCall};
use crate::drive::{Begun, DriveError, Fiber, begin};
use crate::engine::engine;
use crate::idle::IdleInstances;
use crate::load::{LoadError, Loader};
use crate::log::{LogSink, without_repetition};
use crate::long_calls;
use crate::module::Module;
use crate::options::GuestOptions;
use crate::report::CallReport;
use crate::slots::Slots;
use crate::ticker::Ticker;
use crate::v0_1;

/// Instances that may exist at a time for callers that block: loading, and [`GuestRuntime::call_blocking`].
const BLOCKING_SLOTS: u32 = 4;

/// Stack of the thread that compiles a module, in bytes.
const COMPILER_STACK: usize = 4 << 20;

/// Loads modules and calls their handlers. Cloning is cheap.
#[derive(Clone)]
pub struct GuestRuntime {
    inner: Arc<Inner>,
}

struct Inner {
    caller: Caller,
    loader: Loader,
    /// The order of [`GuestRuntime::call`].
    queue: CallQueue,
}

/// The runtime could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// An option has no sense.
    #[error("the option {option} is {value}; it must be {rule}")]
    Option {
        /// Its name in [`GuestOptions`].
        option: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// wasmtime does not run on this machine with these options.
    #[error("the WebAssembly engine does not start: {message}")]
    Engine {
        /// What wasmtime says.
        message: String,
    },
    /// The folder for precompiled modules cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The thread that keeps the deadlines could not be started.
    #[error("the thread for deadlines does not start")]
    Thread(#[source] std::io::Error),
}

impl GuestRuntime {
    /// Starts the engine.
    ///
    /// # Errors
    /// When an option has no sense, or the machine has no room for a thread or address space.
    pub fn new(options: GuestOptions) -> Result<Self, GuestError> {
        check_options(&options)?;
        let engine_error = |error: wasmtime::Error| GuestError::Engine {
            message: format!("{error:#}"),
        };
        let slots = options
            .parallel_calls
            .saturating_add(options.parallel_long_calls)
            .saturating_add(BLOCKING_SLOTS)
            .saturating_add(options.idle_instances);
        let engine = engine(&options, slots).map_err(engine_error)?;
        let linker = v0_1::Pre::linker(&engine).map_err(engine_error)?;
        let cache = options
            .module_cache
            .as_deref()
            .map(|path| ModuleCache::open(path, options.module_cache_size, &engine))
            .transpose()?;
        let ticker = Ticker::start(engine.clone(), options.tick).map_err(GuestError::Thread)?;
        let inner = Inner {
            loader: Loader::new(linker, cache, &options),
            caller: Caller {
                engine,
                ticker,
                tick: options.tick,
                log_limits: options.log,
                budget: MemoryBudget::new(options.memory),
                idle: Arc::new(IdleInstances::new(
                    usize::try_from(options.idle_instances).unwrap_or(0),
                )),
                slots: Slots::new(BLOCKING_SLOTS),
            },
            queue: CallQueue::new(
                options.parallel_calls,
                options.parallel_long_calls,
                options.tick,
            ),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Loads a module: compiles it, or takes it from the cache; checks its exports and imports; calls `describe`.
    /// A module that is loaded already is returned as it is. `name` is for messages.
    ///
    /// Runs on a thread of its own; large modules take seconds to compile.
    ///
    /// # Errors
    /// See [`LoadError`]; each says what is wrong with the file and what to do.
    pub async fn load(
        &self,
        bytes: impl Into<ModuleBytes>,
        name: &str,
    ) -> Result<Arc<Module>, LoadError> {
        self.load_for(0, bytes, name).await
    }

    /// As [`load`](Self::load), for this owner: when several modules wait to be compiled, owners take turns.
    ///
    /// # Errors
    /// As there.
    pub async fn load_for(
        &self,
        owner: impl Into<Owner>,
        bytes: impl Into<ModuleBytes>,
        name: &str,
    ) -> Result<Arc<Module>, LoadError> {
        let owner = owner.into();
        let bytes = bytes.into();
        let (reply, result) = oneshot::channel();
        let runtime = self.clone();
        let of_thread = name.to_owned();
        let failed = |message: String| LoadError::Host {
            name: name.into(),
            message,
        };
        Builder::new()
            .name("guest-load".into())
            .stack_size(COMPILER_STACK)
            .spawn(move || {
                let Inner { loader, caller, .. } = &*runtime.inner;
                let _ = reply.send(loader.load(caller, owner, &bytes, &of_thread));
            })
            .map_err(|error| failed(format!("no thread can be started: {error}")))?;
        result
            .await
            .unwrap_or_else(|_| Err(failed("the loading thread panicked".into())))
    }

    /// As [`load`](Self::load), on this thread. Not for threads of an async runtime.
    ///
    /// # Errors
    /// As there.
    pub fn load_blocking(
        &self,
        bytes: impl Into<ModuleBytes>,
        name: &str,
    ) -> Result<Arc<Module>, LoadError> {
        let bytes = bytes.into();
        self.inner
            .loader
            .load(&self.inner.caller, Owner::default(), &bytes, name)
    }

    /// The memory of all guests: linear memories and tables of calls that run and of instances that are kept.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.inner.caller.budget
    }

    /// Returns how many modules wait to be compiled.
    #[must_use]
    pub fn waiting_compilations(&self) -> usize {
        self.inner.loader.waiting()
    }

    /// Returns how many calls that last longer than a tick wait for a long turn.
    #[must_use]
    pub fn waiting_long_calls(&self) -> usize {
        self.inner.queue.waiting_long()
    }

    /// How many instances wait for their next call.
    #[must_use]
    pub fn idle_instances(&self) -> usize {
        self.inner.caller.idle.len()
    }

    /// Calls a handler in a fresh instance, or in one that has served calls of the same owner. Needs a tokio runtime.
    ///
    /// A call that uses less CPU time than a tick runs on the thread that polls the future. One that lasts longer goes on on a thread of
    /// its own, which gives way to all others. So no guest keeps a thread of the caller's runtime for longer than two ticks of CPU time.
    ///
    /// # Guarantees
    /// The same module and input give the same output, unless a limit of `limits` is hit. Nothing that a guest does
    /// harms the host or other calls. If the future is dropped before its turn, the call is not made.
    /// When as many calls run as the options allow, the future waits for its turn: owners alternate, and the calls of one owner come in
    /// order, but for those that yield. When there is no memory for the call, it waits for that without a turn, in the order of [`MemoryBudget`].
    ///
    /// Calls that use more than a tick run beside the short ones, as many at a time as the options allow. One more is aborted after a
    /// tick, releases its memory and its turn, waits for a long turn, and is made again. Owners take turns. A call waits for a long turn
    /// before it begins if the last call for its objects was long, or if its input has 1 MiB or more. If a call yields, the next one for its objects
    /// does so from a tenth of a tick on.
    ///
    /// A call that finds no more memory while it runs is stopped as well, waits for all the memory that its limit allows, and is made
    /// again. If a call is made again, each line of its log is delivered once.
    pub async fn call(
        &self,
        module: &Arc<Module>,
        handler: &str,
        input: Arc<HandlerInput>,
        limits: CallLimits,
        log: LogSink,
    ) -> CallReport {
        let inner = &self.inner;
        let mut queue_time = Duration::ZERO;
        let mut need = Need::Any;
        let checked = check_call(
            module,
            handler,
            &input,
            &limits,
            inner.caller.budget.limit(),
        );
        let input_size = match checked {
            Ok(size) => size,
            Err(fault) => return CallReport::not_begun(fault),
        };
        let log = without_repetition(log);
        let mut queued = inner.queue.enqueue(&limits, input_size);
        loop {
            let waiting = Instant::now();
            let log = log();
            let work = Work {
                module,
                handler,
                input: &input,
                limits: &limits,
                log: log.clone(),
            };
            let start = match inner.admit(&work, need, &mut queued).await {
                Ok(start) => start,
                Err(fault) => return CallReport::not_begun(fault),
            };
            queue_time = queue_time.saturating_add(waiting.elapsed());
            let of_attempt = Arc::clone(inner);
            let (module, handler) = (Arc::clone(module), handler.to_owned());
            let input = Arc::clone(&input);
            let attempt = async move {
                let work = Work {
                    module: &module,
                    handler: &handler,
                    input: &input,
                    limits: &limits,
                    log,
                };
                of_attempt.caller.attempt(&work, start).await
            };
            let ticker = &inner.caller.ticker;
            let ended = match run(Box::pin(attempt), &mut queued, ticker).await {
                Ok(Some(ended)) => ended,
                // It is made again, with a long turn.
                Ok(None) => continue,
                Err(error) => return CallReport::not_begun(error.into()),
            };
            match ended {
                Ok(mut report) => {
                    queued.end(report.cost.cpu_time);
                    report.cost.queue_time = queue_time;
                    return report;
                }
                Err(next) => need = next,
            }
        }
    }

    /// As [`call`](Self::call), but to its end on this thread, and at the latest when another such call has ended.
    /// Not for threads of an async runtime that has other work.
    #[must_use]
    pub fn call_blocking(
        &self,
        module: &Arc<Module>,
        handler: &str,
        input: &HandlerInput,
        limits: &CallLimits,
        log: LogSink,
    ) -> CallReport {
        let caller = &self.inner.caller;
        if let Err(fault) = check_call(module, handler, input, limits, caller.budget.limit()) {
            return CallReport::not_begun(fault);
        }
        caller.call_blocking(&Work {
            module,
            handler,
            input,
            limits,
            log,
        })
    }
}

impl Inner {
    /// Waits for a turn, and for what the call begins with. While it waits for memory it has no short turn.
    async fn admit(
        &self,
        work: &Work<'_>,
        need: Need,
        queued: &mut QueuedCall<'_>,
    ) -> Result<Start, CallFault> {
        queued.take_turn().await;
        if let Some(start) = self.caller.try_start(work, need) {
            return Ok(start);
        }
        queued.return_short_turn();
        let memory = self.caller.queue(work, need)?.await;
        queued.take_turn().await;
        Ok(Start::New(memory))
    }
}

/// Runs an attempt to its end: on this thread while it has a short turn, then with a long turn. Returns `None` if no long turn is free: the
/// attempt is aborted.
async fn run<T: Send + 'static>(
    attempt: Fiber<'static, T>,
    queued: &mut QueuedCall<'_>,
    ticker: &Ticker,
) -> Result<Option<T>, DriveError> {
    let attempt = match queued.is_long() {
        true => attempt,
        false => match begin(attempt)? {
            Begun::Ended(ended) => {
                queued.return_short_turn();
                return Ok(Some(ended));
            }
            Begun::Lasts(attempt) => attempt,
        },
    };
    match queued.exchange_turn() {
        Some(turn) => {
            let ended = long_calls::run(turn, attempt, ticker.shorten()).await?;
            Ok(Some(ended))
        }
        None => Ok(None),
    }
}

fn check_options(options: &GuestOptions) -> Result<(), GuestError> {
    let rule = |holds: bool, option, value: String, rule| {
        if holds {
            Ok(())
        } else {
            Err(GuestError::Option {
                option,
                value,
                rule,
            })
        }
    };
    for (option, calls) in [
        ("parallel_calls", options.parallel_calls),
        ("parallel_long_calls", options.parallel_long_calls),
    ] {
        rule(
            (1..=1024).contains(&calls),
            option,
            calls.to_string(),
            "1 to 1024",
        )?;
    }
    rule(
        options.parallel_compilations > 0,
        "parallel_compilations",
        options.parallel_compilations.to_string(),
        "more than zero",
    )?;
    rule(
        !options.tick.is_zero(),
        "tick",
        format!("{:?}", options.tick),
        "more than zero",
    )?;
    rule(
        (64 << 10..=64 << 20).contains(&options.stack),
        "stack",
        options.stack.to_string(),
        "64 KiB to 64 MiB",
    )?;
    rule(
        options.memory >= 64 << 10,
        "memory",
        options.memory.to_string(),
        "64 KiB or more",
    )
}
