//! What keeps the core pure: it can do no I/O with what it depends on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

/// Formats, maps, digests, the search for bytes, and errors. None of these opens a file or a socket, reads a clock, spawns or awaits.
const ALLOWED: [&str; 9] = [
    "serde",
    "serde_json",
    "indexmap",
    "base64",
    "memchr",
    "sha2",
    "jiff",
    "percent-encoding",
    "thiserror",
];

/// The names in the tables that end up in the library: `[dependencies]`, and the same for one target.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut is_inside = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(table) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            let library = |table: &str| table == "dependencies" || table.ends_with(".dependencies");
            is_inside = library(table);
            if let Some((before, name)) = table.rsplit_once('.')
                && library(before)
            {
                names.push(name);
            }
        } else if is_inside
            && !line.starts_with('#')
            && let Some((name, _)) = line.split_once('=')
        {
            names.push(name.split('.').next().unwrap_or_default().trim());
        }
    }
    names
}

#[test]
fn the_core_depends_on_what_does_no_io() {
    let manifest = include_str!("../Cargo.toml");
    let found = dependencies(manifest);
    assert!(
        !found.is_empty(),
        "no dependencies were found in Cargo.toml"
    );
    for name in found {
        assert!(
            ALLOWED.contains(&name),
            "configurator-core depends on {name}, which is not among {ALLOWED:?}: the core only decides. Do the \
             work in the host, or add it here when it does no I/O and reads no clock"
        );
    }
}

#[test]
fn every_way_to_name_a_dependency_is_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\n# a = 1\na = \"1\"\nb.workspace = true\n\
                    [dependencies.c]\nversion = \"1\"\n[target.'cfg(unix)'.dependencies]\nd = { version = \"1\" }\n\
                    [dev-dependencies]\ne = \"1\"\n";
    assert_eq!(dependencies(manifest), ["a", "b", "c", "d"]);
}
