//! `configurator cache`: what an operator sees of compiled modules, and what they remove.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use configurator_guest::digest::Digest;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_tests::guests;
use configurator_tests::program::Program;
use expect_test::expect;
use tempfile::TempDir;

/// A cache with two modules, as a host leaves it.
struct Cache {
    folder: TempDir,
    /// Their digests, the one that was compiled first before the other.
    modules: Vec<(Digest, &'static str)>,
}

impl Cache {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let guest = GuestRuntime::new(GuestOptions {
            parallel_calls: 1,
            module_cache: Some(folder.path().to_owned()),
            ..GuestOptions::default()
        })?;
        let mut modules = Vec::new();
        for (file, name) in [("nothing.wasm", "NOTHING"), ("scripted.wasm", "SCRIPTED")] {
            let bytes = fs::read(guests::folder()?.join(file))?;
            modules.push((Digest::of(&bytes), name));
            guest.load_blocking(bytes, file)?;
        }
        Ok(Self { folder, modules })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The file of a module.
    fn file(&self, name: &str) -> Result<PathBuf> {
        let digest = self.modules.iter().find(|(_, other)| *other == name);
        let hex = digest.map(|(digest, _)| digest.hex()).unwrap_or_default();
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(&hex) {
                return Ok(entry.path());
            }
        }
        anyhow::bail!("{name} is not in the cache")
    }

    fn program(&self, words: &str) -> Program {
        Program::new("cache")
            .args(words)
            .arg("--module-cache")
            .arg(self.path())
    }

    /// What was said, with what differs from build to build left out.
    fn shown(&self, text: &str) -> String {
        let mut text = text.replace(&self.path().display().to_string(), "CACHE");
        for (digest, name) in &self.modules {
            text = text.replace(&digest.to_string(), name);
        }
        let of_a_build = |word: &str| match word {
            word if word.parse::<u64>().is_ok_and(|number| number > 1000) => "SIZE".to_owned(),
            word if word.starts_with("20") && word.ends_with('Z') => "TIME".to_owned(),
            word => word.to_owned(),
        };
        let lines = text.lines().map(|line| {
            let words = line.split_whitespace().map(of_a_build);
            words.collect::<Vec<String>>().join(" ") + "\n"
        });
        lines.collect()
    }

    /// What `verify` said, in the order of the names: it goes by digests, and a module's is another with every compiler.
    fn verdicts(&self, text: &str) -> String {
        let shown = self.shown(text);
        let mut lines: Vec<&str> = shown.lines().collect();
        lines.sort_by_key(|line| line.split_once(' ').map(|(_, of)| of));
        lines
            .into_iter()
            .map(|line| line.to_owned() + "\n")
            .collect()
    }
}

#[test]
fn an_operator_sees_and_removes_what_is_no_good() -> Result<()> {
    let cache = Cache::new()?;
    expect![[r#"
        SCRIPTED SIZE TIME
        NOTHING SIZE TIME
        2 files, SIZE bytes
    "#]]
    .assert_eq(&cache.shown(&cache.program("list").succeeds()?));
    expect![[r#"
        ✓ NOTHING
        ✓ SCRIPTED
    "#]]
    .assert_eq(&cache.verdicts(&cache.program("verify").succeeds()?));

    // What was used longest ago is listed first; of two files at the same time, by name.
    fs::write(cache.path().join(".half.cwasm.1.0"), "half")?;
    let damaged = cache.file("NOTHING")?;
    let mut bytes = fs::read(&damaged)?;
    bytes.truncate(bytes.len() / 2);
    fs::write(&damaged, bytes)?;
    let failed = cache.program("verify").output()?;
    assert_eq!(failed.status.code(), Some(1));
    expect![[r#"
        ✗ .half.cwasm.1.0: a crash has left it
        ✗ NOTHING: it is damaged: its end is missing
        ✓ SCRIPTED
    "#]]
    .assert_eq(&cache.verdicts(&String::from_utf8(failed.stdout)?));
    expect![[r#"
        .half.cwasm.1.0 4 TIME removed
        NOTHING SIZE TIME removed
        left: 1 file, SIZE bytes
    "#]]
    .assert_eq(&cache.shown(&cache.program("prune").succeeds()?));
    expect![[r#"
        ✓ SCRIPTED
    "#]]
    .assert_eq(&cache.verdicts(&cache.program("verify").succeeds()?));
    Ok(())
}

#[test]
fn what_is_of_another_build_is_no_fault() -> Result<()> {
    let cache = Cache::new()?;
    let file = cache.file("NOTHING")?;
    let hex = cache.modules[0].0.hex();
    // Its inside is whatever that build makes it.
    fs::write(
        cache.path().join(format!("{hex}-0000000000000000.cwasm")),
        "other",
    )?;
    fs::remove_file(file)?;
    expect![[r#"
        - NOTHING: not for this host
        ✓ SCRIPTED
    "#]]
    .assert_eq(&cache.verdicts(&cache.program("verify").succeeds()?));
    expect![[r#"
        NOTHING 5 TIME removed
        left: 1 file, SIZE bytes
    "#]]
    .assert_eq(&cache.shown(&cache.program("prune").succeeds()?));
    Ok(())
}

#[test]
fn what_is_too_much_or_old_is_removed() -> Result<()> {
    let cache = Cache::new()?;
    let size = fs::metadata(cache.file("SCRIPTED")?)?.len();
    let prune = format!("prune --unused-for 1h --max-size {size}");
    expect![[r#"
        NOTHING SIZE TIME removed
        left: 1 file, SIZE bytes
    "#]]
    .assert_eq(&cache.shown(&cache.program(&prune).succeeds()?));
    let file = fs::File::open(cache.file("SCRIPTED")?)?;
    file.set_modified(std::time::UNIX_EPOCH)?;
    let prune = "prune --unused-for 1h";
    expect![[r#"
        SCRIPTED SIZE 1970-01-01T00:00:00Z removed
        left: 0 files, 0 bytes
    "#]]
    .assert_eq(&cache.shown(&cache.program(prune).succeeds()?));

    let cache = Cache::new()?;
    cache.program("prune --all").succeeds()?;
    expect![[r#"
        0 files, 0 bytes
    "#]]
    .assert_eq(&cache.shown(&cache.program("list").succeeds()?));
    Ok(())
}

#[test]
fn a_folder_that_others_can_write_to_is_not_touched() -> Result<()> {
    let cache = Cache::new()?;
    fs::set_permissions(cache.path(), Permissions::from_mode(0o777))?;
    for words in ["list", "verify", "prune --all"] {
        let said = cache.program(words).fails()?;
        assert!(said.contains("is not safe to use"), "{words}: {said}");
    }
    fs::set_permissions(cache.path(), Permissions::from_mode(0o700))?;
    cache.program("verify").succeeds()?;
    Ok(())
}
