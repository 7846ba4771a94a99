//! The entry point of this crate.

use std::sync::Arc;
use std::thread::Builder;
use std::time::Instant;

use configurator_core::handler::{CallFault, CallLimits, HandlerInput};
use tokio::sync::oneshot;

use crate::cache::{CacheError, ModuleCache};
use crate::call::Caller;
use crate::engine::engine;
use crate::load::{LoadError, Loader};
use crate::log::LogSink;
use crate::module::Module;
use crate::options::GuestOptions;
use crate::pool::Pool;
use crate::report::CallReport;
use crate::slots::Slots;
use crate::ticker::Ticker;
use crate::v0_1;

/// Instances that may run at a time on threads of callers: loading, and [`GuestRuntime::call_blocking`].
const CALLER_SLOTS: u32 = 4;

/// Native stack of a guest thread beyond the guest's own, in bytes.
const HOST_STACK: usize = 2 << 20;

/// Loads modules and calls their handlers. Cloning is cheap; the threads end with the last clone.
#[derive(Clone)]
pub struct GuestRuntime {
    inner: Arc<Inner>,
    pool: Arc<Pool>,
}

struct Inner {
    caller: Caller,
    loader: Loader,
    slots: Slots,
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
    /// No thread could be started.
    #[error("the threads for guests do not start")]
    Threads(#[source] std::io::Error),
}

impl GuestRuntime {
    /// Starts the engine and the threads.
    ///
    /// # Errors
    /// When an option has no sense, or the machine has no room for threads or address space.
    pub fn new(options: GuestOptions) -> Result<Self, GuestError> {
        check_options(&options)?;
        let engine_error = |error: wasmtime::Error| GuestError::Engine {
            message: format!("{error:#}"),
        };
        let threads = u32::try_from(options.threads).unwrap_or(u32::MAX);
        let engine =
            engine(&options, threads.saturating_add(CALLER_SLOTS)).map_err(engine_error)?;
        let linker = v0_1::Pre::linker(&engine).map_err(engine_error)?;
        let cache = options
            .module_cache
            .as_deref()
            .map(|path| ModuleCache::open(path, options.module_cache_size, &engine))
            .transpose()?;
        let ticker = Ticker::start(engine.clone(), options.tick).map_err(GuestError::Threads)?;
        let stack = options.stack.saturating_add(HOST_STACK);
        let pool =
            Pool::start(options.threads, options.queue, stack).map_err(GuestError::Threads)?;
        let inner = Inner {
            loader: Loader::new(linker, cache, &options),
            caller: Caller {
                engine,
                ticker,
                log_limits: options.log,
                max_memory: options.max_memory,
            },
            slots: Slots::new(CALLER_SLOTS),
        };
        Ok(Self {
            inner: Arc::new(inner),
            pool: Arc::new(pool),
        })
    }

    /// Loads a module: compiles it, or takes it from the cache; checks its exports and imports; calls `describe`.
    /// A module that is loaded already is returned as it is. `name` is for messages.
    ///
    /// Runs on a thread of its own, one at a time; large modules take seconds to compile.
    ///
    /// # Errors
    /// See [`LoadError`]; each says what is wrong with the file and what to do.
    pub async fn load(&self, bytes: Vec<u8>, name: &str) -> Result<Arc<Module>, LoadError> {
        let (reply, result) = oneshot::channel();
        let runtime = self.clone();
        let of_thread = name.to_owned();
        let failed = |message: String| LoadError::Host {
            name: name.into(),
            message,
        };
        Builder::new()
            .name("guest-load".into())
            .stack_size(HOST_STACK * 2)
            .spawn(move || {
                let _ = reply.send(runtime.load_blocking(&bytes, &of_thread));
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
    pub fn load_blocking(&self, bytes: &[u8], name: &str) -> Result<Arc<Module>, LoadError> {
        let _slot = self.inner.slots.take();
        self.inner.loader.load(&self.inner.caller, bytes, name)
    }

    /// Calls a handler in a fresh instance, on one of the runtime's threads.
    ///
    /// # Guarantees
    /// The same module and input give the same output, unless a limit of `limits` is hit. Nothing that a guest does
    /// harms the host or other calls. If the future is dropped before a thread takes the call, it is not made.
    /// When all threads are busy and the queue is full, the future waits.
    pub async fn call(
        &self,
        module: &Arc<Module>,
        handler: &str,
        input: Arc<HandlerInput>,
        limits: CallLimits,
        log: LogSink,
    ) -> CallReport {
        let queued = Instant::now();
        let inner = Arc::clone(&self.inner);
        let (module, handler) = (Arc::clone(module), handler.to_owned());
        let job = move || {
            let queue_time = queued.elapsed();
            let mut report = inner.caller.handle(&module, &handler, &input, &limits, log);
            report.cost.queue_time = queue_time;
            report
        };
        self.pool.run(job).await.unwrap_or_else(|error| {
            CallReport::not_begun(CallFault::Host {
                message: error.to_string(),
            })
        })
    }

    /// As [`call`](Self::call), on this thread, which needs about 1 MiB of free stack. Not for threads of an async runtime.
    #[must_use]
    pub fn call_blocking(
        &self,
        module: &Module,
        handler: &str,
        input: &HandlerInput,
        limits: &CallLimits,
        log: LogSink,
    ) -> CallReport {
        let _slot = self.inner.slots.take();
        self.inner
            .caller
            .handle(module, handler, input, limits, log)
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
    rule(
        (1..=1024).contains(&options.threads),
        "threads",
        options.threads.to_string(),
        "1 to 1024",
    )?;
    rule(
        options.queue > 0,
        "queue",
        options.queue.to_string(),
        "at least 1",
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
        (64 << 10..=1 << 32).contains(&options.max_memory),
        "max_memory",
        options.max_memory.to_string(),
        "64 KiB to 4 GiB",
    )
}
