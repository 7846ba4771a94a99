//! What an embedder can set.

use std::path::PathBuf;
use std::time::Duration;

use configurator_background::work::spare_processors;
use configurator_core::handler::CallLimits;

use crate::code_size::CodeLimits;
use crate::compiler::Compiler;
use crate::functions::CompiledFunctions;
use crate::memory::{GUEST_MEMORY, available_memory};

/// Settings of a [`GuestRuntime`](crate::runtime::GuestRuntime).
#[derive(Debug, Clone)]
pub struct GuestOptions {
    /// Calls that may run at a time; the others wait for their turn. Default: one per core.
    pub parallel_calls: u32,
    /// Long calls, which use more CPU time than [`tick`](Self::tick), that may run at a time beside those. Default: one less than there are
    /// processors, and at least one.
    pub parallel_long_calls: u32,
    /// Instances that are kept for their next call, of all modules together; only where `limits.instance_calls` is more than 1. Each
    /// keeps its memory. Default: two per core.
    pub idle_instances: u32,
    /// Memory of guests in the whole process, in bytes: linear memories and tables of the calls that run and of the instances that
    /// are kept. A call that does not fit waits. It is the ceiling of `limits.memory` as well. Default: a quarter of the memory that
    /// the process may have ([`available_memory`]), and at least 64 MiB.
    pub memory: u64,
    /// Largest module, in bytes. Default: 128 MiB.
    pub max_module_size: u64,
    /// Limits of the code of a module.
    pub code: CodeLimits,
    /// The compiler of modules. Default: this process.
    pub compiler: Compiler,
    /// Modules that may be compiled at a time; the others wait, and their owners take turns. Default: 2.
    pub parallel_compilations: u32,
    /// Stack of a guest, in bytes. Default: 512 KiB.
    pub stack: usize,
    /// How often the deadlines of running calls are looked at: a call may last as much longer. A call that has used more CPU time
    /// than this leaves the thread of its caller at the next look. Default: 10 ms.
    pub tick: Duration,
    /// Limits of the one call of `describe` at load. Default: 5 s, 256 MiB, 1 MiB of output.
    pub describe: CallLimits,
    /// What is kept of a guest's log.
    pub log: LogLimits,
    /// Folder for precompiled modules. Default: none, every load compiles.
    pub module_cache: Option<PathBuf>,
    /// Size that the folder is kept under, in bytes. Default: 1 GiB.
    pub module_cache_size: u64,
    /// Functions that need not be compiled again. They are of this process, so where they are used every module is compiled in it.
    /// Default: none, every function of a module that is not in the folder is compiled.
    pub functions: Option<CompiledFunctions>,
}

impl Default for GuestOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            parallel_calls: u32::try_from(cores).unwrap_or(u32::MAX),
            parallel_long_calls: spare_processors(),
            idle_instances: u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(2),
            memory: GUEST_MEMORY.of(available_memory()),
            max_module_size: 128 << 20,
            code: CodeLimits::default(),
            compiler: Compiler::default(),
            parallel_compilations: 2,
            stack: 512 << 10,
            tick: Duration::from_millis(10),
            describe: CallLimits {
                deadline: Duration::from_secs(5),
                memory: 256 << 20,
                input_size: 0,
                output_size: 1 << 20,
                ..CallLimits::default()
            },
            log: LogLimits::default(),
            module_cache: None,
            module_cache_size: 1 << 30,
            functions: None,
        }
    }
}

/// What is kept of the log of one call. The rest is dropped and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLimits {
    /// Lines delivered. Default: 1,000.
    pub lines: u32,
    /// Bytes delivered: messages, and names and values of fields. Default: 64 KiB.
    pub bytes: usize,
    /// Bytes of one line; a longer one is cut. Default: 4 KiB.
    pub line_bytes: usize,
    /// Bytes of log, stdout and stderr that a fault's message carries. Default: 8 KiB.
    pub tail: usize,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self {
            lines: 1000,
            bytes: 64 << 10,
            line_bytes: 4 << 10,
            tail: 8 << 10,
        }
    }
}
