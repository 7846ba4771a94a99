//! One behaviour, five languages: `tests/modules/conformance`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod canonical;
mod case;
mod mistakes;
mod scenarios;
mod transcript;
mod walk;

use std::path::{Path, PathBuf};

use anyhow::Result;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_tests::guests;
use expect_test::expect_file;

use crate::case::Case;

/// Holds the modules of a language to the files that all five are held to.
fn check(language: &str) {
    let folder = modules(language);
    let path = folder.join("conformance.wasm");
    let bytes = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask guests`", path.display()));
    let runtime = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        module_cache: Some(guests::cache().unwrap().join("modules")),
        ..GuestOptions::default()
    })
    .unwrap();
    let module = runtime.load_blocking(&bytes, language).unwrap();
    let cases = cases();
    let mut text = transcript::described(module.description());
    for case in &cases {
        let told = transcript::called(&runtime, &module, case);
        assert_eq!(
            told,
            transcript::called(&runtime, &module, case),
            "{}: the same input has given two outputs",
            case.name
        );
        text.push_str(&told);
    }
    expect_file![guests::workspace().join("tests/modules/conformance/golden.txt")].assert_eq(&text);
    transcript::check_chance(&runtime, &module);
    scenarios::check(language, folder);
}

/// The folder with the modules of a language.
fn modules(language: &str) -> PathBuf {
    let folder = guests::folder().unwrap();
    match language {
        "rust" => folder,
        other => folder.join(other),
    }
}

fn cases() -> Vec<Case> {
    let path = guests::workspace().join("tests/modules/conformance/cases.yaml");
    read(&path)
}

fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn there_are_enough_cases() {
    assert!(cases().len() >= 25);
}

#[test]
fn rust() {
    check("rust");
}

#[test]
fn go() {
    check("go");
}

#[test]
fn javascript() {
    check("javascript");
}

#[test]
fn python() {
    check("python");
}

#[test]
fn c() {
    check("c");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_application_is_configured_alike_by_all() -> Result<()> {
    let Some(application) = scenarios::application()? else {
        return Ok(());
    };
    let expected = scenarios::configured("rust", &application).await?;
    assert_eq!(expected.len(), 12, "{expected:?}");
    for language in ["go", "javascript", "python", "c"] {
        let keys = scenarios::configured(language, &application).await?;
        assert_eq!(keys, expected, "{language}");
    }
    Ok(())
}
