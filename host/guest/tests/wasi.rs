//! WASI as modules see it: it grants nothing, and its time and chance are the run's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::sync::{Arc, Mutex};

use configurator_core::handler::{CallFault, CallLimits, HandlerInput};
use configurator_core::time::Timestamp;
use configurator_guest::log::LogSink;
use expect_test::{Expect, expect};
use fixture::{Guest, input, runtime};

/// Logs a number as 16 hexadecimal digits, in the order of its digits.
const HEX: &str = r#"
(func $digit (param $value i64) (result i32)
  (local $n i32)
  (local.set $n (i32.wrap_i64 (i64.and (local.get $value) (i64.const 15))))
  (i32.add (local.get $n)
    (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $n) (i32.const 10)))))
(func $hex (param $value i64)
  (local $i i32)
  (loop $next
    (i32.store8 (i32.sub (i32.const 79) (local.get $i)) (call $digit (local.get $value)))
    (local.set $value (i64.shr_u (local.get $value) (i64.const 4)))
    (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 16))))
  (call $log (i32.const 2) (i32.const 64) (i32.const 16) (i32.const 0) (i32.const 0)))
"#;

const CLOCKS: &str = r#"
(import "wasi:clocks/wall-clock@0.2.0" "now" (func $wall (param i32)))
(import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $monotonic (result i64)))
(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
(import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.ready" (func $ready (param i32) (result i32)))
(import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
"#;

/// The last lines of the guest's log, and how the call ended.
fn run(guest: &Guest, input: &Arc<HandlerInput>) -> (Vec<String>, Result<(), CallFault>) {
    let runtime = runtime();
    let module = runtime
        .load_blocking(guest.build(), "a.wasm")
        .unwrap_or_else(|error| panic!("{error}"));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let of_sink = Arc::clone(&lines);
    let sink: LogSink = Arc::new(move |line| of_sink.lock().unwrap().push(line.message));
    let report = runtime.call_blocking(&module, "root", input, &CallLimits::default(), sink);
    let lines = lines.lock().unwrap().clone();
    (lines, report.result.map(drop))
}

#[track_caller]
fn check(guest: &Guest, expected: Expect) {
    let (lines, result) = run(guest, &input("{}"));
    let end = match result {
        Ok(()) => "done".to_owned(),
        Err(fault) => fault.to_string(),
    };
    expected.assert_eq(&format!("{}\n{end}", lines.join("\n")));
}

fn clocks(body: &str) -> Guest {
    Guest::new()
        .imports(
            "import wasi:clocks/wall-clock@0.2.0; import wasi:clocks/monotonic-clock@0.2.0; import wasi:io/poll@0.2.0;",
            "",
        )
        .items(&format!("{CLOCKS}{HEX}"))
        .body(body)
}

#[test]
fn time_begins_at_now_and_passes_only_in_sleep() {
    let show = "(call $wall (i32.const 96)) (call $hex (i64.load (i32.const 96))) (call $hex (i64.load32_u (i32.const 104)))";
    // Sleeps a day, which takes no time.
    let sleep = "(call $block (call $after (i64.const 86400000000000)))";
    let guest = clocks(&format!("{show} {show} {sleep} {show}"));
    let mut input = HandlerInput::clone(&input("{}"));
    input.context.now = Timestamp::from_millis(0x1234_0000 * 1000 + 1);
    let (lines, result) = run(&guest, &Arc::new(input));
    result.unwrap();
    let (before, after) = ("0000000012340000", "0000000012355180");
    let millisecond = "00000000000f4240";
    assert_eq!(
        lines,
        [before, millisecond, before, millisecond, after, millisecond]
    );
}

#[test]
fn poll_returns_the_earliest_at_once() {
    let guest = clocks(
        r#"(i32.store (i32.const 96) (call $after (i64.const 3000)))
           (i32.store (i32.const 100) (call $after (i64.const 2000)))
           (call $hex (i64.extend_i32_u (call $ready (i32.load (i32.const 100)))))
           (call $poll (i32.const 96) (i32.const 2) (i32.const 112))
           (call $hex (i64.load32_u (i32.const 116)))
           (call $hex (i64.load32_u (i32.load (i32.const 112))))
           (call $hex (i64.extend_i32_u (call $ready (i32.load (i32.const 100)))))
           (call $hex (i64.sub (call $monotonic) (i64.const 1000000000)))"#,
    );
    check(
        &guest,
        expect![[r#"
            0000000000000000
            0000000000000001
            0000000000000001
            0000000000000001
            00000000000007d0
            done"#]],
    );
}

#[test]
fn polling_nothing_is_a_trap() {
    let guest = clocks("(call $poll (i32.const 96) (i32.const 0) (i32.const 112))");
    let CallFault::Trap { message } = run(&guest, &input("{}")).1.unwrap_err() else {
        panic!("no trap");
    };
    assert!(
        message.starts_with("the guest waits for 0 things at once; it must be 1 to 1000"),
        "{message}"
    );
}

#[test]
fn chance_comes_from_the_seed() {
    let guest = Guest::new()
        .imports(
            "import wasi:random/random@0.2.0; import wasi:random/insecure-seed@0.2.0;",
            "",
        )
        .items(&format!(
            r#"(import "wasi:random/random@0.2.0" "get-random-u64" (func $random (result i64)))
               (import "wasi:random/random@0.2.0" "get-random-bytes" (func $bytes (param i64 i32)))
               (import "wasi:random/insecure-seed@0.2.0" "insecure-seed" (func $seed (param i32)))
               {HEX}"#
        ))
        .body(
            r#"(call $hex (call $random)) (call $hex (call $random))
               (call $bytes (i64.const 8) (i32.const 96)) (call $hex (i64.load (i32.load (i32.const 96))))
               (call $seed (i32.const 96)) (call $hex (i64.load (i32.const 104)))"#,
        );
    let (first, result) = run(&guest, &input("{}"));
    result.unwrap();
    assert_eq!(run(&guest, &input("{}")).0, first);
    let mut distinct = first.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 4, "{first:?}");
    let mut other = HandlerInput::clone(&input("{}"));
    other.context.seed += 1;
    assert_ne!(run(&guest, &Arc::new(other)).0, first);
}

#[test]
fn too_much_chance_at_once_is_a_trap() {
    let guest = Guest::new()
        .imports("import wasi:random/random@0.2.0;", "")
        .items(r#"(import "wasi:random/random@0.2.0" "get-random-bytes" (func $bytes (param i64 i32)))"#)
        .body("(call $bytes (i64.const 0xffffffffffff) (i32.const 96))");
    let CallFault::Trap { message } = run(&guest, &input("{}")).1.unwrap_err() else {
        panic!("no trap");
    };
    assert!(
        message.starts_with("the guest asked for 281474976710655 random bytes at once"),
        "{message}"
    );
}

#[test]
fn stderr_and_an_exit_show_in_the_fault() {
    let guest = Guest::new()
        .imports(
            "import wasi:cli/stderr@0.2.0; import wasi:cli/exit@0.2.0; import wasi:io/streams@0.2.0;",
            "",
        )
        .items(
            r#"(import "wasi:cli/stderr@0.2.0" "get-stderr" (func $stderr (result i32)))
               (import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))
               (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush" (func $write (param i32 i32 i32 i32)))"#,
        )
        .body("(call $write (call $stderr) (i32.const 16) (i32.const 20) (i32.const 96)) (call $exit (i32.const 1))");
    check(
        &guest,
        expect![[r#"

        the handler trapped: the guest ended itself with exit status 1
          in guest!handle
        the end of its log:
        hello from the guest"#]],
    );
}

#[test]
fn there_is_no_environment_no_input_and_no_folder() {
    let guest = Guest::new()
        .imports(
            "import wasi:cli/environment@0.2.0; import wasi:cli/stdin@0.2.0; import wasi:io/streams@0.2.0; import wasi:cli/terminal-stdin@0.2.0; import wasi:filesystem/preopens@0.2.3;",
            "package wasi:filesystem@0.2.3 {
               interface types {
                 use wasi:io/streams@0.2.0.{input-stream};
                 resource descriptor { read-via-stream: func() -> input-stream; }
               }
               interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }
             }",
        )
        .items(&format!(
            r#"(import "wasi:cli/environment@0.2.0" "get-environment" (func $environment (param i32)))
               (import "wasi:cli/environment@0.2.0" "get-arguments" (func $arguments (param i32)))
               (import "wasi:cli/stdin@0.2.0" "get-stdin" (func $stdin (result i32)))
               (import "wasi:cli/terminal-stdin@0.2.0" "get-terminal-stdin" (func $terminal (param i32)))
               (import "wasi:io/streams@0.2.0" "[method]input-stream.blocking-read" (func $read (param i32 i64 i32)))
               (import "wasi:filesystem/preopens@0.2.3" "get-directories" (func $folders (param i32)))
               {HEX}"#
        ))
        .body(
            r#"(call $environment (i32.const 96)) (call $hex (i64.load32_u (i32.const 100)))
               (call $arguments (i32.const 96)) (call $hex (i64.load32_u (i32.const 100)))
               (call $folders (i32.const 96)) (call $hex (i64.load32_u (i32.const 100)))
               (call $terminal (i32.const 96)) (call $hex (i64.load8_u (i32.const 96)))
               (call $read (call $stdin) (i64.const 10) (i32.const 96))
               (call $hex (i64.load8_u (i32.const 96))) (call $hex (i64.load8_u (i32.const 100)))"#,
        );
    // No variables, no arguments, no folders, no terminal; reading fails with `closed`.
    check(
        &guest,
        expect![[r#"
            0000000000000000
            0000000000000000
            0000000000000000
            0000000000000000
            0000000000000001
            0000000000000001
            done"#]],
    );
}

#[test]
fn a_socket_is_denied_and_a_network_is_a_trap() {
    let guest = |body: &str| {
        Guest::new()
            .imports(
                "import wasi:sockets/tcp-create-socket@0.2.9; import wasi:sockets/instance-network@0.2.9;",
                "package wasi:sockets@0.2.9 {
                   interface network { resource network; enum error-code { unknown, access-denied, timeout } }
                   interface tcp { resource tcp-socket; }
                   interface tcp-create-socket {
                     use tcp.{tcp-socket}; use network.{error-code};
                     create-tcp-socket: func() -> result<tcp-socket, error-code>;
                   }
                   interface instance-network { use network.{network}; instance-network: func() -> network; }
                 }",
            )
            .items(&format!(
                r#"(import "wasi:sockets/tcp-create-socket@0.2.9" "create-tcp-socket" (func $create (param i32)))
                   (import "wasi:sockets/instance-network@0.2.9" "instance-network" (func $network (result i32)))
                   {HEX}"#
            ))
            .body(body)
    };
    // An error, and its code: `access-denied`.
    check(
        &guest(
            "(call $create (i32.const 96)) (call $hex (i64.load8_u (i32.const 96))) (call $hex (i64.load8_u (i32.const 100)))",
        ),
        expect![[r#"
            0000000000000001
            0000000000000001
            done"#]],
    );
    let CallFault::Trap { message } = run(&guest("(drop (call $network))"), &input("{}"))
        .1
        .unwrap_err()
    else {
        panic!("no trap");
    };
    assert!(
        message.contains("wasi:sockets/instance-network@0.2.9 instance-network: a module has no files and no network"),
        "{message}"
    );
}

#[test]
fn later_versions_of_the_same_interfaces_link() {
    let guest = Guest::new()
        .imports(
            "import wasi:random/random@0.2.9;",
            "package wasi:random@0.2.9 { interface random { get-random-u64: func() -> u64; } }",
        )
        .items(
            r#"(import "wasi:random/random@0.2.9" "get-random-u64" (func $random (result i64)))"#,
        )
        .body("(drop (call $random))");
    check(
        &guest,
        expect![[r#"

            done"#]],
    );
}

#[test]
fn handles_are_limited() {
    let guest = clocks("(loop $more (drop (call $after (i64.const 1))) (br $more))");
    let CallFault::Trap { message } = run(&guest, &input("{}")).1.unwrap_err() else {
        panic!("no trap");
    };
    assert!(
        message.starts_with("the guest holds more than 1000 handles of WASI"),
        "{message}"
    );
}
