//! Files that are no usable module, each with its message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use expect_test::{Expect, expect};
use fixture::{Guest, handler, runtime};
use serde_json::json;

#[track_caller]
fn check(bytes: &[u8], expected: Expect) {
    let error = runtime().load_blocking(bytes, "a.wasm").unwrap_err();
    expected.assert_eq(&error.to_string());
}

#[track_caller]
fn check_text(wat: &str, expected: Expect) {
    check(&wat::parse_str(wat).unwrap(), expected);
}

#[test]
fn what_is_no_wasm() {
    check(b"", expect![""]);
    check(b"#!/bin/sh\n", expect![""]);
    check(b"(module)", expect![""]);
    check(b"\x7fELF\x02\x01", expect![""]);
    check(b"\0asm", expect![""]);
    check(b"\0asm\x0d\0\x01\0garbage", expect![""]);
    check(b"\0asm\xff\0\x01\0", expect![""]);
}

#[test]
fn a_core_module() {
    check_text("(module (func (export \"root\")))", expect![""]);
}

#[test]
fn a_component_of_another_world() {
    check_text("(component)", expect![""]);
    check_text(
        r#"(component (instance $i) (export "wasi:cli/run@0.2.0" (instance $i)) (export "b" (instance $i)))"#,
        expect![""],
    );
}

#[test]
fn a_component_of_another_version() {
    check_text(
        r#"(component (instance $i) (export "configurator:handler/handler@0.2.0" (instance $i)))"#,
        expect![""],
    );
    check_text(
        r#"(component (instance $i) (export "configurator:handler/handler@0.1.0-rc1" (instance $i)))"#,
        expect![""],
    );
}

#[test]
fn a_component_with_other_types() {
    check_text(
        r#"(component (instance $i) (export "configurator:handler/handler@0.1.0" (instance $i)))"#,
        expect![""],
    );
    check_text(
        r#"(component
            (core module $m (func (export "f") (result i32) (i32.const 0)))
            (core instance $c (instantiate $m))
            (func $f (result u32) (canon lift (core func $c "f")))
            (instance $i (export "describe" (func $f)) (export "handle" (func $f)))
            (export "configurator:handler/handler@0.1.0" (instance $i)))"#,
        expect![""],
    );
}

#[test]
fn an_import_that_is_not_offered() {
    let guest = Guest::new()
        .imports(
            "import wasi:sockets/tcp@0.2.0; import wasi:cli/stdin@0.2.0;",
            "package wasi:sockets@0.2.0 { interface tcp { connect: func(); } }",
        )
        .items(r#"(import "wasi:sockets/tcp@0.2.0" "connect" (func $connect))"#)
        .body("(call $connect)");
    check(&guest.build(), expect![""]);
    check_text(
        r#"(component
            (import "env" (func $f))
            (instance $i)
            (export "configurator:handler/handler@0.1.0" (instance $i)))"#,
        expect![""],
    );
}

#[test]
fn switched_off_features() {
    check_text(
        r#"(component (core module (memory 1 1 shared)))"#,
        expect![""],
    );
    check_text(
        r#"(component (core module (func (param v128 v128 v128) (result v128)
            (f32x4.relaxed_madd (local.get 0) (local.get 1) (local.get 2)))))"#,
        expect![""],
    );
}

#[test]
fn a_module_that_does_not_fit() {
    let module = Guest::new().items("(table 30000 funcref)").build();
    check(&module, expect![""]);
    let module = Guest::new().memory(20_000).build();
    check(&module, expect![""]);
    let instances = "(core instance (instantiate $m))".repeat(40);
    check_text(
        &format!("(component (core module $m) {instances})"),
        expect![""],
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
        expect![""],
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
        &Guest::new()
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
        expect![""],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [handler("a"), handler("b"), handler("a")]}))
            .build(),
        expect![""],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [handler("")]}))
            .build(),
        expect![""],
    );
    check(
        &Guest::new()
            .describe(json!({"handlers": [{"name": "a", "parameters-schema": "{"}]}))
            .build(),
        expect![""],
    );
}

#[test]
fn options_without_sense() {
    let error = GuestRuntime::new(GuestOptions {
        threads: 0,
        ..GuestOptions::default()
    });
    let error = error.err().unwrap();
    expect!["the option threads is 0; it must be 1 to 1024"].assert_eq(&error.to_string());
}
