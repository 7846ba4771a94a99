//! The compiler of modules: in this process, or in a process for each module, which the operating system holds to limits.
//!
//! The cost of compiling a function does not follow from its size: 2 KiB of nested loops take longer than all of CPython. No limit on
//! the content of a module bounds it. A thread cannot be ended from outside, but a process can.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, nice, setrlimit};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::engine;
use crate::options::GuestOptions;

/// Threads of a process that compiles: more of them need more memory at a time.
const THREADS: &str = "2";
/// The niceness of a process that compiles; 19 is the lowest priority.
const NICENESS: i32 = 10;
/// The most that is read of what such a process says, in bytes.
const MAX_MESSAGE: u64 = 4 << 10;
/// The most that is read of the machine code for each byte of a module; CPython takes 7 for each byte of its functions.
const MAX_GROWTH: u64 = 64;
/// Signals that end a process which passes its CPU time, or runs out of memory. Their numbers are the same on all systems.
const SIGABRT: i32 = 6;
const SIGXCPU: i32 = 24;

/// The compiler of modules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Compiler {
    /// On threads of this process. Only [`CodeLimits`](crate::code_size::CodeLimits) bound the time and memory of a compilation, so this is
    /// for modules whose authors you trust.
    #[default]
    InProcess,
    /// In a process for each module, with limits on memory and CPU time.
    Process(CompilerProcess),
}

/// A program that compiles one module, from its standard input to its standard output, by calling [`compile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerProcess {
    /// The program.
    pub program: PathBuf,
    /// Arguments that come before those of [`CompilerLimits`].
    pub arguments: Vec<OsString>,
    /// Its limits.
    pub limits: CompilerLimits,
}

/// Limits of a process that compiles a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompilerLimits {
    /// Memory, in bytes, with what the allocator keeps. A module in Python takes about 560 MiB, of which 345 MiB are in use at a time.
    pub memory: u64,
    /// CPU time, in whole seconds. A module in Python takes about 10 s.
    pub time: Duration,
}

/// Why a module was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CompileError {
    /// The compiler refuses it.
    #[error("{0}")]
    Refused(String),
    /// Compiling passes a limit.
    #[error("{0}")]
    TooExpensive(String),
    /// The host has failed.
    #[error("{0}")]
    Host(String),
}

impl Compiler {
    /// Compiles a component for this engine, which has these options.
    pub(crate) fn compile(
        &self,
        engine: &Engine,
        options: &EngineOptions,
        bytes: &[u8],
    ) -> Result<Component, CompileError> {
        match self {
            Self::InProcess => Component::from_binary(engine, bytes)
                .map_err(|error| CompileError::Refused(format!("{error:#}"))),
            Self::Process(process) => trusted(engine, &process.run(options, bytes)?),
        }
    }
}

#[allow(unsafe_code, reason = "machine code can only be trusted, not checked")]
fn trusted(engine: &Engine, code: &[u8]) -> Result<Component, CompileError> {
    // SAFETY: the code comes through a pipe from a process that this one has started, running a program that its operator named for
    // that. Anyone able to change it could change this process as well.
    unsafe { Component::deserialize(engine, code) }
        .map_err(|error| CompileError::Refused(format!("{error:#}")))
}

/// Options that machine code depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EngineOptions {
    pub(crate) memory: u64,
    pub(crate) stack: usize,
}

impl CompilerProcess {
    fn run(&self, options: &EngineOptions, bytes: &[u8]) -> Result<Vec<u8>, CompileError> {
        let failed = |error: std::io::Error| {
            let program = self.program.display();
            CompileError::Host(format!("the compiler {program} does not run: {error}"))
        };
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .arg(self.limits.memory.to_string())
            .arg(self.limits.time.as_secs().to_string())
            .arg(options.memory.to_string())
            .arg(options.stack.to_string())
            // The environment of a host holds credentials, and a compiler reads what a stranger has made.
            .env_clear()
            .env("RAYON_NUM_THREADS", THREADS)
            // Where the program's allocator is mimalloc: memory that it reserves counts when it is used.
            .env("MIMALLOC_ARENA_EAGER_COMMIT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let most = (bytes.len() as u64)
            .saturating_mul(MAX_GROWTH)
            .saturating_add(1 << 20);
        let (code, message) = std::thread::scope(|scope| {
            scope.spawn(move || {
                // If the compiler has ended, its exit status says why.
                let _ = stdin.map(|mut stdin| stdin.write_all(bytes));
            });
            let message = scope.spawn(move || read(stderr, MAX_MESSAGE));
            let code = read(stdout, most);
            (code, message.join().unwrap_or_default())
        });
        let status = child.wait().map_err(failed)?;
        if status.success() && (code.len() as u64) < most {
            return Ok(code);
        }
        let message = String::from_utf8_lossy(&message);
        Err(self.why(status, message.trim()))
    }

    fn why(&self, status: ExitStatus, message: &str) -> CompileError {
        let CompilerLimits { memory, time } = self.limits;
        match (status.signal(), status.code()) {
            (Some(SIGXCPU), _) => CompileError::TooExpensive(format!(
                "compiling it takes more than {time:?} of CPU time; raise compile_seconds of the host if it is trusted"
            )),
            (Some(SIGABRT), _) => CompileError::TooExpensive(format!(
                "compiling it takes more than {memory} bytes of memory; raise compile_memory of the host if it is trusted"
            )),
            (_, Some(REFUSED)) => CompileError::Refused(message.to_owned()),
            _ => CompileError::Host(format!("the compiler ended with {status}: {message}")),
        }
    }
}

/// Reads to the end, and keeps at most so many bytes.
fn read(pipe: Option<impl Read>, most: u64) -> Vec<u8> {
    let mut kept = Vec::new();
    let _ = pipe.map(|pipe| pipe.take(most).read_to_end(&mut kept));
    kept
}

/// The exit code of a compiler that refuses a module.
const REFUSED: i32 = 3;

/// Compiles the module on standard input to machine code on standard output, as the process that [`CompilerProcess`] starts. `arguments`
/// are those that come after [`CompilerProcess::arguments`]. Returns the exit code.
///
/// # Errors
/// When the arguments are wrong, a limit cannot be set, or standard input or output fails.
pub fn compile(arguments: &[u64]) -> std::io::Result<u8> {
    let [memory, seconds, guest_memory, stack] = arguments else {
        return Err(std::io::Error::other("it takes four numbers"));
    };
    let limit = |resource, current: u64, maximum: u64| {
        let limit = Rlimit {
            current: Some(current),
            maximum: Some(maximum),
        };
        setrlimit(resource, limit)
    };
    limit(Resource::Core, 0, 0)?;
    limit(Resource::Data, *memory, *memory)?;
    // The first limit sends SIGXCPU, the second SIGKILL.
    limit(Resource::Cpu, *seconds, seconds.saturating_add(1))?;
    let _ = nice(NICENESS);
    let options = GuestOptions {
        memory: *guest_memory,
        stack: usize::try_from(*stack).unwrap_or(usize::MAX),
        ..GuestOptions::default()
    };
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    let compiled = engine(&options, 1).and_then(|engine| engine.precompile_component(&bytes));
    match compiled {
        Ok(code) => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(&code)?;
            stdout.flush()?;
            Ok(0)
        }
        Err(error) => {
            let _ = write!(std::io::stderr(), "{error:#}");
            Ok(REFUSED.unsigned_abs().try_into().unwrap_or(1))
        }
    }
}
