//! The cache of precompiled modules: what is kept, and what is not trusted.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod fixture;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use configurator_core::handler::CallLimits;
use configurator_guest::cache::CacheFolder;
use configurator_guest::functions::CompiledFunctions;
use configurator_guest::log::no_log;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::{GuestError, GuestRuntime};
use fixture::{Guest, handler, input};
use serde_json::json;
use tempfile::TempDir;

fn try_runtime(folder: &Path, size: u64) -> Result<GuestRuntime, GuestError> {
    GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        module_cache: Some(folder.into()),
        module_cache_size: size,
        ..GuestOptions::default()
    })
}

/// Loads a module in a new runtime, as after a restart, and calls it.
fn load(folder: &Path, bytes: &[u8]) {
    let runtime = try_runtime(folder, 1 << 30).unwrap();
    let module = runtime.load_blocking(bytes, "a.wasm").unwrap();
    let report = runtime.call_blocking(
        &module,
        "root",
        &input("{}"),
        &CallLimits::default(),
        no_log(),
    );
    report.result.unwrap();
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    paths
}

#[test]
fn a_function_that_was_compiled_is_not_compiled_again() {
    let functions = CompiledFunctions::new();
    // In a new runtime each time, as the scenarios and the host of `configurator dev` have.
    let compile_and_call = |bytes: &[u8]| {
        let runtime = GuestRuntime::new(GuestOptions {
            parallel_calls: 1,
            functions: Some(functions.clone()),
            ..GuestOptions::default()
        });
        let runtime = runtime.unwrap();
        let module = runtime.load_blocking(bytes, "a.wasm").unwrap();
        let limits = CallLimits::default();
        let report = runtime.call_blocking(&module, "root", &input("{}"), &limits, no_log());
        report.result.unwrap();
        functions.len()
    };
    assert!(functions.is_empty());
    let module = Guest::new().build();
    let compiled = compile_and_call(&module);
    assert!(compiled > 1);
    // The same code with another note in it.
    let noted = [&*module, b"\x00\x02\x01v"].concat();
    // Wasmtime takes a few of its own for others when its threads make them in another order.
    assert!(compile_and_call(&noted) < compiled * 3 / 2);
    let other = Guest::new().body("(drop (i32.const 1))").build();
    assert!(compile_and_call(&other) > compiled);
}

/// A folder with the entry of one module, and the module.
fn filled() -> (TempDir, PathBuf, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let bytes = Guest::new().build();
    load(folder.path(), &bytes);
    let [entry] = &*entries(folder.path()) else {
        panic!("one entry");
    };
    let entry = entry.clone();
    (folder, entry, bytes)
}

/// The entry is not taken: the module is compiled anew, and what it is replaced with is a good one.
#[track_caller]
fn check_replaced(folder: &TempDir, entry: &Path, bytes: &[u8], spoil: impl FnOnce()) {
    let good = fs::read(entry).unwrap();
    spoil();
    load(folder.path(), bytes);
    assert_eq!(entries(folder.path()), [entry]);
    let metadata = fs::symlink_metadata(entry).unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.mode() & 0o777, 0o600);
    assert_eq!(fs::read(entry).unwrap().len(), good.len());
}

#[test]
fn a_module_is_compiled_once() {
    let (folder, entry, bytes) = filled();
    let written = fs::metadata(&entry).unwrap().ino();
    load(folder.path(), &bytes);
    assert_eq!(
        fs::metadata(&entry).unwrap().ino(),
        written,
        "it is not written again"
    );
    assert_eq!(entries(folder.path()), [entry]);
}

#[test]
fn the_folder_is_made_for_this_user_alone() {
    let folder = TempDir::new().unwrap();
    let inner = folder.path().join("a/b");
    try_runtime(&inner, 1 << 30).unwrap();
    assert_eq!(fs::metadata(&inner).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let folder = TempDir::new().unwrap();
    for mode in [0o770, 0o707, 0o1777] {
        fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        let error = try_runtime(folder.path(), 1 << 30)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("is not safe to use"), "{error}");
        assert!(error.contains(&format!("its mode is {mode:o}")), "{error}");
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    try_runtime(folder.path(), 1 << 30).unwrap();
}

#[test]
fn a_folder_behind_a_symbolic_link_is_refused() {
    let folder = TempDir::new().unwrap();
    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    let error = try_runtime(&link, 1 << 30).err().unwrap().to_string();
    assert!(error.contains("cannot be used"), "{error}");
}

#[test]
fn a_file_that_others_can_write_to_is_not_taken() {
    let (folder, entry, bytes) = filled();
    check_replaced(&folder, &entry, &bytes, || {
        fs::set_permissions(&entry, Permissions::from_mode(0o620)).unwrap();
    });
}

#[test]
fn a_symbolic_link_is_not_followed() {
    let (folder, entry, bytes) = filled();
    let elsewhere = TempDir::new().unwrap();
    let target = elsewhere.path().join("code");
    check_replaced(&folder, &entry, &bytes, || {
        fs::rename(&entry, &target).unwrap();
        symlink(&target, &entry).unwrap();
    });
    assert!(target.exists());
}

#[test]
fn a_folder_in_the_place_of_a_file_is_not_taken() {
    let (folder, entry, bytes) = filled();
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    load(folder.path(), &bytes);
}

#[test]
fn a_damaged_file_is_not_taken() {
    let (folder, entry, bytes) = filled();
    let good = fs::read(&entry).unwrap();
    for at in [0, good.len() / 2, good.len() - 1] {
        check_replaced(&folder, &entry, &bytes, || {
            let mut bad = good.clone();
            bad[at] ^= 1;
            fs::write(&entry, bad).unwrap();
        });
    }
    for length in [0, 10, good.len() / 2] {
        check_replaced(&folder, &entry, &bytes, || {
            fs::write(&entry, &good[..length]).unwrap();
        });
    }
}

#[test]
fn a_file_of_another_module_is_not_taken() {
    let (folder, entry, bytes) = filled();
    let other = TempDir::new().unwrap();
    let module = Guest::new()
        .describe(json!({"handlers": [handler("root"), handler("other")]}))
        .build();
    load(other.path(), &module);
    let [swapped] = &*entries(other.path()) else {
        panic!("one entry");
    };
    let good = fs::read(&entry).unwrap();
    fs::copy(swapped, &entry).unwrap();
    load(folder.path(), &bytes);
    assert_eq!(fs::read(&entry).unwrap(), good);
}

#[test]
fn an_operator_sees_what_is_there_and_what_is_wrong_with_it() {
    let (folder, entry, _) = filled();
    let options = GuestOptions {
        parallel_calls: 1,
        module_cache: Some(folder.path().into()),
        ..GuestOptions::default()
    };
    let name = entry.file_name().unwrap().to_string_lossy().into_owned();
    let left = format!(".{name}.1.0");
    fs::write(folder.path().join(&left), "half").unwrap();
    let foreign = name.replace(".cwasm", "0.cwasm");
    fs::copy(&entry, folder.path().join(&foreign)).unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let cache = CacheFolder::open(&options).unwrap();
    let mut found: Vec<(String, bool, Option<String>)> = cache
        .list()
        .unwrap()
        .iter()
        .map(|module| (module.file.clone(), module.fits, cache.verify(module)))
        .collect();
    found.sort();
    let mut expected = vec![
        (name.clone(), true, None),
        (foreign, false, None),
        (left, false, Some("a crash has left it".to_owned())),
    ];
    expected.sort();
    assert_eq!(found, expected);

    let mut bad = fs::read(&entry).unwrap();
    bad[100] ^= 1;
    fs::write(&entry, bad).unwrap();
    let all = cache.list().unwrap();
    let spoiled = all.iter().find(|module| module.file == name).unwrap();
    let why = cache.verify(spoiled);
    assert_eq!(
        why.as_deref(),
        Some("it is damaged: its checksum does not match")
    );
    cache.remove(spoiled).unwrap();
    assert!(!entry.exists());
}

#[test]
fn a_file_of_another_user_is_not_taken() {
    let (folder, entry, bytes) = filled();
    // Only root can give files away.
    if fs::metadata(&entry).unwrap().uid() != 0 {
        return;
    }
    check_replaced(&folder, &entry, &bytes, || {
        std::os::unix::fs::chown(&entry, Some(65534), None).unwrap();
    });
    assert_eq!(fs::metadata(&entry).unwrap().uid(), 0);
    std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
    let error = try_runtime(folder.path(), 1 << 30)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("it belongs to user 65534"), "{error}");
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let folder = TempDir::new().unwrap();
    let module = |name: &str| {
        Guest::new()
            .describe(json!({"handlers": [handler("root"), handler(name)]}))
            .build()
    };
    load(folder.path(), &module("a"));
    let [a] = &*entries(folder.path()) else {
        panic!("one entry");
    };
    let size = fs::metadata(a).unwrap().len();
    load(folder.path(), &module("b"));
    let past = std::time::UNIX_EPOCH;
    for entry in entries(folder.path()) {
        fs::File::open(&entry).unwrap().set_modified(past).unwrap();
    }
    // Used again: `a` becomes the newer one.
    load(folder.path(), &module("a"));
    let runtime = try_runtime(folder.path(), size * 5 / 2).unwrap();
    runtime.load_blocking(module("c"), "c.wasm").unwrap();
    let left = entries(folder.path());
    assert_eq!(left.len(), 2);
    assert!(left.contains(a));
}

#[test]
fn a_file_that_cannot_be_written_costs_only_the_time() {
    let folder = TempDir::new().unwrap();
    let runtime = try_runtime(folder.path(), 1 << 30).unwrap();
    folder.close().unwrap();
    runtime
        .load_blocking(Guest::new().build(), "a.wasm")
        .unwrap();
}
