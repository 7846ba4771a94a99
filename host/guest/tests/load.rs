//! Files that are no usable module, each with its message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::sync::LazyLock;
use std::time::Duration;

use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use expect_test::{Expect, expect};
use fixture::{Guest, handler};
use proptest::prelude::*;
use serde_json::json;

#[track_caller]
fn check(bytes: &[u8], expected: Expect) {
    let runtime = GuestRuntime::new(GuestOptions {
        memory: 1 << 30,
        ..GuestOptions::default()
    });
    let error = runtime.unwrap().load_blocking(bytes, "a.wasm").unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[track_caller]
fn check_text(wat: &str, expected: Expect) {
    check(&wat::parse_str(wat).unwrap(), expected);
}

#[test]
fn what_is_no_wasm() {
    check(
        b"",
        expect![
            "a.wasm is not a WebAssembly file: it is empty. A module is a component of the world configurator:handler/configurator@0.1.0"
        ],
    );
    check(
        b"#!/bin/sh\n",
        expect![[
            r#"a.wasm is not a WebAssembly file: it does not begin with \0asm. A module is a component of the world configurator:handler/configurator@0.1.0"#
        ]],
    );
    check(
        b"(module)",
        expect![
            "a.wasm is not a WebAssembly file: it seems to be WebAssembly text; convert it with `wasm-tools parse`. A module is a component of the world configurator:handler/configurator@0.1.0"
        ],
    );
    check(
        b"\x7fELF\x02\x01",
        expect![
            "a.wasm is not a WebAssembly file: it is a native binary or a precompiled module, which is never loaded from outside. A module is a component of the world configurator:handler/configurator@0.1.0"
        ],
    );
    check(
        b"\0asm",
        expect![[
            r#"a.wasm is not a WebAssembly file: it does not begin with \0asm. A module is a component of the world configurator:handler/configurator@0.1.0"#
        ]],
    );
    check(
        b"\0asm\x0d\0\x01\0garbage",
        expect![
            "a.wasm is not a valid component: failed to parse WebAssembly module: unexpected end-of-file (at offset 0xa)"
        ],
    );
    check(
        b"\0asm\xff\0\x01\0",
        expect![
            "a.wasm is not a valid component: failed to parse WebAssembly module: unknown binary version:    0x100ff (at offset 0x4)"
        ],
    );
}

#[test]
fn a_core_module() {
    check_text(
        "(module (func (export \"root\")))",
        expect![
            "a.wasm is a core WebAssembly module, not a component. Make it one with `wasm-tools component new`"
        ],
    );
}

#[test]
fn a_component_of_another_world() {
    check_text(
        "(component)",
        expect![
            "a.wasm is a component of another world: it does not export configurator:handler/handler. It exports: nothing. A module implements the world configurator:handler/configurator@0.1.0"
        ],
    );
    check_text(
        r#"(component (instance $i) (export "wasi:cli/run@0.2.0" (instance $i)) (export "b" (instance $i)))"#,
        expect![
            "a.wasm is a component of another world: it does not export configurator:handler/handler. It exports: wasi:cli/run@0.2.0, b. A module implements the world configurator:handler/configurator@0.1.0"
        ],
    );
}

#[test]
fn a_component_of_another_version() {
    check_text(
        r#"(component (instance $i) (export "configurator:handler/handler@0.2.0" (instance $i)))"#,
        expect![
            "a.wasm is built for configurator:handler@0.2.0; this host runs 0.1.x. Build it against one of these, or use a newer host"
        ],
    );
    check_text(
        r#"(component (instance $i) (export "configurator:handler/handler@0.1.0-rc1" (instance $i)))"#,
        expect![
            "a.wasm is built for configurator:handler@0.1.0-rc1; this host runs 0.1.x. Build it against one of these, or use a newer host"
        ],
    );
}

#[test]
fn a_component_with_other_types() {
    check_text(
        r#"(component (instance $i) (export "configurator:handler/handler@0.1.0" (instance $i)))"#,
        expect![[
            r#"a.wasm does not implement configurator:handler/configurator@0.1.0 as this host knows it: it has no function "describe". Build it against the wit folder of this version"#
        ]],
    );
    check_text(
        r#"(component
            (core module $m (func (export "f") (result i32) (i32.const 0)))
            (core instance $c (instantiate $m))
            (func $f (result u32) (canon lift (core func $c "f")))
            (instance $i (export "describe" (func $f)) (export "handle" (func $f)))
            (export "configurator:handler/handler@0.1.0" (instance $i)))"#,
        expect![[
            r#"a.wasm does not implement configurator:handler/configurator@0.1.0 as this host knows it: the function "describe" has another type: expected `record` found `u32`. Build it against the wit folder of this version"#
        ]],
    );
}

#[test]
fn an_import_that_is_not_offered() {
    let guest = Guest::new()
        .imports(
            "import wasi:http/outgoing@0.2.0; import wasi:cli/stdin@0.2.0;",
            "package wasi:http@0.2.0 { interface outgoing { send: func(); } }",
        )
        .items(r#"(import "wasi:http/outgoing@0.2.0" "send" (func $send))"#)
        .body("(call $send)");
    check(
        &guest.build(),
        expect![
            "a.wasm imports wasi:http/outgoing@0.2.0, which the host does not offer: a module gets logging and, for its language's runtime, WASI 0.2 without files and network"
        ],
    );
    check_text(
        r#"(component
            (import "env" (func $f))
            (instance $i)
            (export "configurator:handler/handler@0.1.0" (instance $i)))"#,
        expect![
            "a.wasm imports env, which the host does not offer: a module gets logging and, for its language's runtime, WASI 0.2 without files and network"
        ],
    );
}

#[test]
fn switched_off_features() {
    check_text(
        r#"(component (core module (memory 1 1 shared)))"#,
        expect![
            "a.wasm is not a valid component: failed to parse WebAssembly module: threads must be enabled for shared memories (at offset 0x15)"
        ],
    );
    check_text(
        r#"(component (core module (func (param v128 v128 v128) (result v128)
            (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))))"#,
        expect![
            "a.wasm is not a valid component: failed to compile: wasm[0]::function[0]: WebAssembly translation error: Invalid input WebAssembly code at offset 43: relaxed SIMD support is not enabled"
        ],
    );
}

#[test]
fn a_module_that_does_not_fit() {
    let module = Guest::new().items("(table 30000 funcref)").build();
    check(
        &module,
        expect![
            "a.wasm does not fit into an instance of this host: module table does not fit in pooling allocator requirements: table index 0 has a minimum element size of 30000 which exceeds the limit of 20000"
        ],
    );
    let module = Guest::new().memory(20_000).build();
    check(
        &module,
        expect![
            "a.wasm does not fit into an instance of this host: module memory does not fit in pooling allocator requirements: memory index 0 is unsupported in this pooling allocator configuration: memory has a minimum byte size of 1310720000 which exceeds the limit of 0x40000000 bytes"
        ],
    );
    let instances = "(core instance (instantiate $m))".repeat(40);
    check_text(
        &format!("(component (core module $m) {instances})"),
        expect![
            "a.wasm does not fit into an instance of this host: The component transitively contains 40 core module instances, which exceeds the configured maximum of 32 in the pooling allocator"
        ],
    );
}

#[test]
fn a_module_that_is_too_large() {
    let runtime = GuestRuntime::new(GuestOptions {
        max_module_size: 10,
        ..GuestOptions::default()
    })
    .unwrap();
    let error = runtime.load_blocking(&[0; 11], "big.wasm").unwrap_err();
    expect!["big.wasm has 11 bytes; at most 10 are loaded"].assert_eq(&error.to_string());
}

#[test]
fn a_module_that_does_not_describe_itself() {
    check(
        &Guest::new().describe_body("(unreachable)").build(),
        expect![[r#"
            a.wasm does not describe itself: the handler trapped: wasm trap: wasm `unreachable` instruction executed
              in guest!describe"#]],
    );
    let error = GuestRuntime::new(GuestOptions {
        describe: configurator_core::handler::CallLimits {
            deadline: std::time::Duration::from_millis(50),
            ..GuestOptions::default().describe
        },
        ..GuestOptions::default()
    })
    .unwrap()
    .load_blocking(
        Guest::new()
            .describe_body("(loop $again (br $again))")
            .build(),
        "a.wasm",
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.starts_with(
            "a.wasm does not describe itself: the handler passed its deadline of 50ms"
        ),
        "{error}"
    );
}

#[test]
fn a_module_that_describes_itself_wrongly() {
    check(
        &Guest::new().describe(json!({"handlers": []})).build(),
        expect!["a.wasm describes itself wrongly: it lists no handler"],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [handler("a"), handler("b"), handler("a")]}))
            .build(),
        expect![[r#"a.wasm describes itself wrongly: it lists the handler "a" twice"#]],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [handler("")]}))
            .build(),
        expect!["a.wasm describes itself wrongly: it lists a handler without a name"],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [{"name": "a", "parameters-schema": "{"}]}))
            .build(),
        expect![[
            r#"a.wasm does not describe itself: the output is invalid: handler "a": parameters-schema is not well-formed JSON: EOF while parsing an object at line 1 column 1"#
        ]],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [{"name": "a", "capabilities": "{"}]}))
            .build(),
        expect![[
            r#"a.wasm does not describe itself: the output is invalid: handler "a": capabilities is not well-formed JSON: EOF while parsing an object at line 1 column 1"#
        ]],
    );
}

#[test]
fn options_without_sense() {
    let error = GuestRuntime::new(GuestOptions {
        parallel_calls: 0,
        ..GuestOptions::default()
    });
    let error = error.err().unwrap();
    expect!["the option parallel_calls is 0; it must be 1 to 1024"].assert_eq(&error.to_string());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn a_damaged_module_never_harms_the_host(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = MODULE.clone();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Whether it loads or not, it returns, and a good module still loads.
        let _ = RUNTIME.load_blocking(&bytes, "damaged");
        RUNTIME.load_blocking(&*MODULE, "good").unwrap();
    }
}

static MODULE: LazyLock<Vec<u8>> = LazyLock::new(|| Guest::new().build());

static RUNTIME: LazyLock<GuestRuntime> = LazyLock::new(|| {
    let mut options = GuestOptions::default();
    options.describe.deadline = Duration::from_millis(100);
    GuestRuntime::new(options).unwrap()
});
