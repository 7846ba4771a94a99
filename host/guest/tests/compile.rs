//! Limits of compiling, and fairness between owners of modules.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::path::Path;
use std::time::Duration;

use configurator_guest::code_size::CodeLimits;
use configurator_guest::compiler::{Compiler, CompilerLimits, CompilerProcess};
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use expect_test::{Expect, expect};
use fixture::Guest;
use tempfile::TempDir;

/// Bytes after the machine code in a file of the cache.
const TRAILER: usize = 56;

fn module(name: &str) -> Vec<u8> {
    Guest::new().items(&format!("(func ${name})")).build()
}

#[track_caller]
fn check(code: CodeLimits, bytes: &[u8], expected: Expect) {
    let runtime = GuestRuntime::new(GuestOptions {
        code,
        ..GuestOptions::default()
    });
    let error = runtime.unwrap().load_blocking(bytes, "a.wasm").unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[test]
fn code_that_passes_a_limit_is_refused_with_both_numbers() {
    let large = Guest::new()
        .items(&format!("(func {})", "nop ".repeat(3 << 20)))
        .build();
    check(
        CodeLimits::default(),
        &large,
        expect![
            "a.wasm is not compiled: its function 0 has 3145730 bytes, and a function may have 2097152"
        ],
    );
    let many = Guest::new().items(&"(func)".repeat(120_000)).build();
    check(
        CodeLimits::default(),
        &many,
        expect!["a.wasm is not compiled: it has 120003 functions, and a module may have 100000"],
    );
}

/// A compiler that is a script. It finds machine code of a good module in `code`.
struct Script {
    folder: TempDir,
    text: &'static str,
}

impl Script {
    fn new(text: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, text }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Keeps the machine code of this module.
    fn knows(&self, bytes: &[u8]) {
        let cache = self.path("cache");
        let runtime = GuestRuntime::new(GuestOptions {
            module_cache: Some(cache.clone()),
            ..GuestOptions::default()
        });
        runtime.unwrap().load_blocking(bytes, "a.wasm").unwrap();
        let file = std::fs::read_dir(cache).unwrap().next().unwrap().unwrap();
        let mut code = std::fs::read(file.path()).unwrap();
        code.truncate(code.len() - TRAILER);
        std::fs::write(self.path("code"), code).unwrap();
    }

    fn runtime(&self) -> GuestRuntime {
        let text = format!("cd {}; {}", self.folder.path().display(), self.text);
        GuestRuntime::new(GuestOptions {
            compiler: Compiler::Process(CompilerProcess {
                program: "/bin/sh".into(),
                arguments: vec!["-c".into(), text.into(), "compiler".into()],
                limits: CompilerLimits {
                    memory: 100 << 20,
                    time: Duration::from_secs(7),
                },
            }),
            ..GuestOptions::default()
        })
        .unwrap()
    }
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[tokio::test]
async fn a_slow_compilation_does_not_delay_another_module() {
    let script = Script::new(
        "cat > module.$$; if grep -q slow module.$$; then cat gate; fi; echo refused >&2; exit 3",
    );
    pipe(&script.path("gate"));
    let runtime = script.runtime();
    let slow = tokio::spawn({
        let runtime = runtime.clone();
        async move { runtime.load_for(1, module("slow"), "slow.wasm").await }
    });
    for owner in [1, 2, 3] {
        let error = runtime.load_for(owner, module("quick"), "quick.wasm").await;
        expect!["quick.wasm is not a valid component: refused"]
            .assert_eq(&error.unwrap_err().to_string());
    }
    assert!(!slow.is_finished());
    std::fs::write(script.path("gate"), "").unwrap();
    slow.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_module_that_several_load_is_compiled_once() {
    let script = Script::new("cat > module; echo once >> count; cat gate; cat code");
    pipe(&script.path("gate"));
    let bytes = module("shared");
    script.knows(&bytes);
    let runtime = script.runtime();
    let loads = [1, 2, 3].map(|owner| {
        let (runtime, bytes) = (runtime.clone(), bytes.clone());
        tokio::spawn(async move { runtime.load_for(owner, bytes, "a.wasm").await.unwrap() })
    });
    while runtime.waiting_compilations() < 2 {
        tokio::task::yield_now().await;
    }
    std::fs::write(script.path("gate"), "").unwrap();
    // A module that nobody has any more would be compiled again.
    let mut modules = Vec::new();
    for load in loads {
        modules.push(load.await.unwrap());
    }
    assert_eq!(
        std::fs::read_to_string(script.path("count")).unwrap(),
        "once\n"
    );
}

#[test]
fn a_compiler_that_passes_its_limits_is_named_with_them() {
    let check = |text, expected: Expect| {
        let error = Script::new(text)
            .runtime()
            .load_blocking(module("a"), "a.wasm");
        expected.assert_eq(&error.unwrap_err().to_string());
    };
    check(
        "kill -XCPU $$",
        expect![
            "a.wasm is not compiled: compiling it takes more than 7s of CPU time; raise compile_seconds of the host if it is trusted"
        ],
    );
    check(
        "kill -ABRT $$",
        expect![
            "a.wasm is not compiled: compiling it takes more than 104857600 bytes of memory; raise compile_memory of the host if it is trusted"
        ],
    );
    check(
        "cat > module; echo $1 $2",
        expect![
            "a.wasm is not a valid component: failed to parse precompiled artifact as an ELF: Invalid ELF header size or alignment"
        ],
    );
    check(
        "echo broken >&2; exit 9",
        expect!["a.wasm could not be loaded: the compiler ended with exit status: 9: broken"],
    );
}
