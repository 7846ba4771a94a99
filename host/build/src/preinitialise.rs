//! A module whose runtime has started already: it is run at build time up to where the host's first call would come, and its memory is kept.
//!
//! What the runtime asks of the world while it starts is answered the same every time, so that the same sources make the same module: no
//! arguments, no environment, no files, the start of the year 1970, and chance that is none.

use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use wasmtime::{
    Caller, Config, Engine, Extern, ExternType, FuncType, Instance, Linker, Memory, Module,
    OptLevel, Store, Val, ValType,
};
use wasmtime_wizer::{InstanceState, SnapshotVal, Wizer};

use crate::segments;

/// Starts the runtime and declares the handlers.
const START: &str = "_initialize";
/// How long that may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes of what it writes that are kept.
const MAX_OUTPUT: usize = 64 << 10;
/// WASI's word for a file that is not open.
const BAD_FILE: i32 = 8;

/// What a module has while it starts.
#[derive(Default)]
struct World {
    /// What it wrote.
    output: Vec<u8>,
    /// What its chance is made of.
    chance: u64,
}

/// A core module that has been started, and what it wrote meanwhile. Nothing, where `asked` is not exported or does not answer with one:
/// the module then says itself that its memory must not be kept.
///
/// # Errors
/// When it fails at its start; with what it wrote.
pub(crate) fn preinitialise(core: &[u8], asked: &str) -> Result<(Option<Vec<u8>>, String), String> {
    let mut wizer = Wizer::new();
    wizer.init_func(START);
    let (context, instrumented) = wizer.instrument(core).map_err(text)?;
    let mut config = Config::new();
    // It runs once, for some milliseconds.
    config
        .cranelift_opt_level(OptLevel::None)
        .epoch_interruption(true);
    let engine = Engine::new(&config).map_err(text)?;
    let module = Module::new(&engine, &instrumented).map_err(text)?;
    let mut store = Store::new(&engine, World::default());
    store.set_epoch_deadline(1);
    let instance = linker(&module)
        .and_then(|linker| linker.instantiate(&mut store, &module))
        .map_err(text)?;
    let started = within_limit(&engine, || {
        let start = instance.get_typed_func::<(), ()>(&mut store, START)?;
        start.call(&mut store, ())
    });
    let output = String::from_utf8_lossy(&store.data().output).into_owned();
    if let Err(error) = started {
        return Err(format!("its start fails: {error:#}\n{output}")
            .trim_end()
            .to_owned());
    }
    let answer = instance
        .get_typed_func::<(), i32>(&mut store, asked)
        .and_then(|asked| asked.call(&mut store, ()));
    if !answer.is_ok_and(|answer| answer == 1) {
        return Ok((None, output));
    }
    let mut state = Started { store, instance };
    let snapshot = pin!(wizer.snapshot(&context, &mut state));
    match snapshot.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(module) => {
            let module = segments::merge(&module.map_err(text)?)?;
            Ok((Some(module), output))
        }
        Poll::Pending => Err("reading memory does not wait".to_owned()),
    }
}

fn text(error: wasmtime::Error) -> String {
    format!("{error:#}")
}

/// Runs something that is interrupted when it takes too long.
fn within_limit<T>(engine: &Engine, run: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    let engine = engine.clone();
    let watch = thread::spawn(move || {
        if is_done.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            engine.increment_epoch();
        }
    });
    let result = run();
    drop(done);
    let _ = watch.join();
    result
}

/// Answers everything that the module imports.
fn linker(module: &Module) -> wasmtime::Result<Linker<World>> {
    let mut linker = Linker::new(module.engine());
    // Go imports a function as often as its types differ in Go.
    linker.allow_shadowing(true);
    for import in module.imports() {
        let ExternType::Func(kind) = import.ty() else {
            return Err(wasmtime::Error::msg(format!(
                "it imports {}, which is no function",
                import.name()
            )));
        };
        let name = import.name().to_owned();
        let results = kind.clone();
        linker.func_new(
            import.module(),
            import.name(),
            kind,
            move |mut caller, values, out| {
                let errno = answer(&name, &mut caller, values)?;
                fill(&results, errno, out);
                Ok(())
            },
        )?;
    }
    Ok(linker)
}

fn fill(kind: &FuncType, errno: i32, out: &mut [Val]) {
    for (kind, out) in kind.results().zip(out) {
        *out = match kind {
            ValType::I64 => Val::I64(0),
            _ => Val::I32(errno),
        };
    }
}

/// What WASI answers. Functions that need a file that is open find none; those of the contract, which are lines of log, do nothing.
fn answer(name: &str, caller: &mut Caller<'_, World>, values: &[Val]) -> wasmtime::Result<i32> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return Err(wasmtime::Error::msg("it has no memory"));
    };
    let at = |index: usize| match values.get(index) {
        Some(Val::I32(value)) => value.cast_unsigned() as usize,
        _ => 0,
    };
    match name {
        "args_get" | "environ_get" | "sched_yield" => {}
        "args_sizes_get" | "environ_sizes_get" => {
            memory.write(&mut *caller, at(0), &[0; 4])?;
            memory.write(caller, at(1), &[0; 4])?;
        }
        "clock_time_get" => {
            // The runtime takes a clock that stands at zero for a broken one.
            let time = u64::from(at(0) != 0);
            memory.write(caller, at(2), &time.to_le_bytes())?;
        }
        "random_get" => {
            let bytes = chance(&mut caller.data_mut().chance, at(1));
            memory.write(caller, at(0), &bytes)?;
        }
        // Of the standard streams: characters, in no mode.
        "fd_fdstat_get" if at(0) <= 2 => memory.write(caller, at(1), &[0; 24])?,
        "fd_fdstat_set_flags" if at(0) <= 2 => {}
        "fd_write" if at(0) <= 2 => {
            let written = write(caller, memory, at(1), at(2))?;
            memory.write(caller, at(3), &written.to_le_bytes())?;
        }
        "proc_exit" => {
            let message = format!("it ends itself with exit status {}", at(0));
            return Err(wasmtime::Error::msg(message));
        }
        _ => return Ok(BAD_FILE),
    }
    Ok(0)
}

/// Keeps what is written; the number of its bytes.
fn write(
    caller: &mut Caller<'_, World>,
    memory: Memory,
    vectors: usize,
    count: usize,
) -> wasmtime::Result<u32> {
    let mut total = 0;
    for vector in 0..count {
        let mut place = [0; 8];
        memory.read(&mut *caller, vectors + 8 * vector, &mut place)?;
        let [a, b, c, d, e, f, g, h] = place;
        let (start, length) = (
            u32::from_le_bytes([a, b, c, d]) as usize,
            u32::from_le_bytes([e, f, g, h]),
        );
        let (data, world) = memory.data_and_store_mut(&mut *caller);
        let bytes = data.get(start..start.saturating_add(length as usize));
        let room = MAX_OUTPUT.saturating_sub(world.output.len());
        world
            .output
            .extend(bytes.unwrap_or_default().iter().take(room));
        total += length;
    }
    Ok(total)
}

/// Bytes that look like chance, and are the same at each build.
fn chance(state: &mut u64, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// A module that has started.
struct Started {
    store: Store<World>,
    instance: Instance,
}

#[allow(
    clippy::panic,
    reason = "names and types are those that the instrumentation has given the module"
)]
impl InstanceState for Started {
    async fn global_get(&mut self, name: &str, _: wasmtime_wizer::ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name);
        match global.map(|global| global.get(&mut self.store)) {
            Some(Val::I32(value)) => SnapshotVal::I32(value),
            Some(Val::I64(value)) => SnapshotVal::I64(value),
            Some(Val::F32(bits)) => SnapshotVal::F32(bits),
            Some(Val::F64(bits)) => SnapshotVal::F64(bits),
            other => panic!("the global {name} is {other:?}"),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        match self.instance.get_memory(&mut self.store, name) {
            Some(memory) => contents(memory.data(&self.store)),
            None => panic!("there is no memory {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// A module with a memory, a number, and what is given.
    fn core(items: &str) -> Vec<u8> {
        let text = format!(
            r#"(module
                (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "clock_time_get" (func $time (param i32 i64 i32) (result i32)))
                (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "fd_prestat_get" (func $folder (param i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
                (memory (export "memory") 1)
                (global $number (mut i32) (i32.const 1))
                {items}
                (func (export "seen") (result i32) (i32.add (i32.load (i32.const 100)) (global.get $number))))"#
        );
        wat::parse_str(text).unwrap()
    }

    const READY: &str = r#"(func (export "ready") (result i32) (i32.const 1))"#;

    fn started(items: &str) -> Vec<u8> {
        let core = core(&format!("{READY} {items}"));
        preinitialise(&core, "ready").unwrap().0.unwrap()
    }

    /// What `seen` returns in a new instance.
    fn seen(core: &[u8]) -> i32 {
        let engine = Engine::default();
        let module = Module::new(&engine, core).unwrap();
        assert!(module.get_export(START).is_none());
        let mut store = Store::new(&engine, World::default());
        let linker = linker(&module).unwrap();
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let seen = instance.get_typed_func::<(), i32>(&mut store, "seen");
        seen.unwrap().call(&mut store, ()).unwrap()
    }

    #[test]
    fn what_the_start_has_done_is_there_and_is_not_done_again() {
        let core = started(
            r#"(func (export "_initialize")
                (i32.store (i32.const 100) (i32.add (i32.load (i32.const 100)) (i32.const 40)))
                (global.set $number (i32.const 2)))"#,
        );
        assert_eq!(seen(&core), 42);
    }

    #[test]
    fn the_same_module_starts_the_same_every_time() {
        let items = r#"(func (export "_initialize")
            (drop (call $random (i32.const 100) (i32.const 300)))
            (drop (call $time (i32.const 0) (i64.const 0) (i32.const 500)))
            (drop (call $time (i32.const 1) (i64.const 0) (i32.const 600))))"#;
        assert_eq!(started(items), started(items));
    }

    #[test]
    fn there_are_no_folders() {
        let core = started(
            r#"(func (export "_initialize") (global.set $number (call $folder (i32.const 3) (i32.const 0))))"#,
        );
        assert_eq!(seen(&core), BAD_FILE);
    }

    #[test]
    fn a_module_that_is_not_ready_is_left_as_it_is() {
        for items in [
            r#"(func (export "_initialize"))"#,
            r#"(func (export "_initialize")) (func (export "ready") (result i32) (i32.const 0))"#,
        ] {
            assert_eq!(preinitialise(&core(items), "ready").unwrap().0, None);
        }
    }

    #[test]
    fn what_it_writes_is_told_also_when_it_fails() {
        let failing = core(
            r#"(data (i32.const 8) "\10\00\00\00\05\00\00\00sorry")
            (func (export "_initialize")
                (drop (call $write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 0)))
                (call $exit (i32.const 2)))"#,
        );
        let error = preinitialise(&failing, "ready").unwrap_err();
        assert!(error.ends_with("\nsorry"), "{error}");
        assert!(
            error.contains("it ends itself with exit status 2"),
            "{error}"
        );
    }

    #[test]
    fn what_has_no_start_is_refused() {
        let error = preinitialise(&core(READY), "ready").unwrap_err();
        expect!["its start fails: failed to find function export `_initialize`"].assert_eq(&error);
    }
}
