//! Copies of modules that were fetched, for when their source is away or has another one.

use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use configurator_guest::bytes::ModuleBytes;
use configurator_guest::digest::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file_threads::FileThreads;

/// How many bytes of modules are kept unless something else is said: 1 GiB.
pub const DEFAULT_COPIES: u64 = 1 << 30;
/// How many records are kept, each of a name that modules were fetched by.
const MAX_RECORDS: usize = 1_000;
/// What files of modules end in.
const MODULE: &str = ".wasm";
/// What records end in.
const RECORD: &str = ".json";
/// What files begin with that are being written.
const ASIDE: &str = ".";
/// For how long a file may be written; after that, nobody does any more.
const MAX_WRITING: Duration = Duration::from_secs(3600);

/// A folder of modules by their digests, and of what names stood for when they were last asked for.
///
/// A module is taken from it only when it has its digest. Records are trusted, so the folder must belong to this user, and nobody else may write
/// to it. What was used least lately goes first when there are too many bytes.
#[derive(Debug)]
pub struct Copies {
    folder: PathBuf,
    max_size: u64,
    threads: FileThreads,
}

impl Copies {
    /// Those in this folder, which is made where there is none, with at most so many bytes of modules.
    ///
    /// # Errors
    /// When the folder cannot be made, is of another user, or others may write to it.
    pub fn open(folder: impl Into<PathBuf>, max_size: u64) -> io::Result<Self> {
        let folder = folder.into();
        let named = |error: io::Error| {
            let message = format!("the folder of copies {}: {error}", folder.display());
            io::Error::new(error.kind(), message)
        };
        let mut made = fs::DirBuilder::new();
        made.recursive(true).mode(0o700);
        made.create(&folder).map_err(named)?;
        let found = fs::symlink_metadata(&folder).map_err(named)?;
        let refused = |why: &str| named(io::Error::new(ErrorKind::PermissionDenied, why));
        if !found.is_dir() {
            return Err(refused("it is no folder"));
        }
        if found.uid() != rustix::process::geteuid().as_raw() {
            return Err(refused("it belongs to another user"));
        }
        if found.mode() & 0o022 != 0 {
            return Err(refused(
                "others may write to it; take that right from them with `chmod go-w`",
            ));
        }
        let copies = Self {
            folder: folder.clone(),
            max_size,
            threads: FileThreads::default(),
        };
        copies.sweep().map_err(named)?;
        Ok(copies)
    }

    /// Does this on a thread that may wait for files. `None`: it could not be done.
    pub(super) async fn on_thread<T: Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let threads = self.threads.clone();
        threads.run(move || work(&self)).await.ok()
    }

    /// The module of this digest. One that is damaged is removed.
    #[must_use]
    pub fn get(&self, digest: &str) -> Option<ModuleBytes> {
        let path = self.path(digest, MODULE)?;
        let bytes = ModuleBytes::from(fs::read(&path).ok()?);
        if bytes.digest().to_string() != digest {
            tracing::warn!(path = %path.display(), "a copy of a module is damaged; it is removed");
            let _ = fs::remove_file(&path);
            return None;
        }
        used(&path);
        Some(bytes)
    }

    /// Keeps a module. That it could not be kept is only logged: nothing runs worse for it now.
    pub fn put(&self, bytes: &ModuleBytes) {
        let digest = bytes.digest().to_string();
        let Some(path) = self.path(&digest, MODULE) else {
            return;
        };
        if path.exists() {
            return used(&path);
        }
        let kept = self.write(&path, bytes).and_then(|()| self.evict(&path));
        if let Err(error) = kept {
            tracing::warn!(path = %path.display(), "a copy of a module is not kept: {error}");
        }
    }

    /// What was recorded of this name.
    #[must_use]
    pub fn record<R: DeserializeOwned>(&self, name: &str) -> Option<R> {
        let path = self.record_path(name)?;
        let record = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        used(&path);
        Some(record)
    }

    /// Records something of this name, in place of what was there.
    pub fn put_record<R: Serialize>(&self, name: &str, record: &R) {
        let Some(path) = self.record_path(name) else {
            return;
        };
        let Ok(text) = serde_json::to_vec(record) else {
            return;
        };
        if fs::read(&path).is_ok_and(|old| old == text) {
            return used(&path);
        }
        let kept = self.write(&path, &text).and_then(|()| self.forget());
        if let Err(error) = kept {
            tracing::warn!(path = %path.display(), "what a module is a copy of is not recorded: {error}");
        }
    }

    fn record_path(&self, name: &str) -> Option<PathBuf> {
        self.path(&Digest::of(name.as_bytes()).to_string(), RECORD)
    }

    /// A digest is nothing that leads elsewhere.
    fn path(&self, digest: &str, ending: &str) -> Option<PathBuf> {
        let hex = digest.strip_prefix("sha256:")?;
        let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex.then(|| self.folder.join(format!("sha256-{hex}{ending}")))
    }

    /// Writes aside and renames, so that nobody reads half of it.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // Hosts that share the folder may be containers, in which all have the same number.
        let number = getrandom::u64().map_err(io::Error::other)?;
        let aside = self.folder.join(format!("{ASIDE}{number:016x}"));
        let written = fs::write(&aside, bytes).and_then(|()| fs::rename(&aside, path));
        if written.is_err() {
            let _ = fs::remove_file(&aside);
        }
        written
    }

    /// Removes what was being written when a host crashed.
    fn sweep(&self) -> io::Result<()> {
        let oldest = now().checked_sub(MAX_WRITING);
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().starts_with(ASIDE) {
                continue;
            }
            // Another host may be removing it at the same time.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_file() && metadata.modified().ok() < oldest {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Removes modules until they have no more bytes than they may; the newest stays.
    fn evict(&self, newest: &Path) -> io::Result<()> {
        let mut files = self.files(MODULE)?;
        let mut size: u64 = files.iter().map(|(_, size, _)| size).sum();
        files.sort();
        for (_, bytes, path) in files {
            if size <= self.max_size {
                break;
            }
            if path != newest {
                fs::remove_file(&path)?;
                size -= bytes;
            }
        }
        Ok(())
    }

    fn forget(&self) -> io::Result<()> {
        let mut files = self.files(RECORD)?;
        files.sort();
        let beyond = files.len().saturating_sub(MAX_RECORDS);
        files
            .iter()
            .take(beyond)
            .try_for_each(|(_, _, path)| fs::remove_file(path))
    }

    /// Time of use, bytes and path of the files that end so.
    fn files(&self, ending: &str) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().ends_with(ending) {
                continue;
            }
            // Another host may be removing it at the same time.
            if let Ok(metadata) = entry.metadata() {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        Ok(files)
    }
}

/// The time of its last use decides what goes; not worth a warning where it cannot be set.
fn used(path: &Path) {
    if let Ok(file) = fs::File::open(path) {
        let _ = file.set_modified(now());
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the time of use of a file, for other processes that share the folder; nothing that a run sees"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn digest(bytes: &[u8]) -> String {
        Digest::of(bytes).to_string()
    }

    #[test]
    fn a_copy_is_found_by_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path().join("a/b"), DEFAULT_COPIES).unwrap();
        assert_eq!(copies.get(&digest(b"one")), None);
        copies.put(&b"one".into());
        copies.put(&b"one".into());
        assert_eq!(copies.get(&digest(b"one")), Some(b"one".into()));
        for strange in ["", "sha256:", "sha256:../../../etc/passwd", "md5:00"] {
            assert_eq!(copies.get(strange), None);
        }
    }

    #[test]
    fn what_is_damaged_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path(), DEFAULT_COPIES).unwrap();
        copies.put(&b"one".into());
        let path = copies.path(&digest(b"one"), MODULE).unwrap();
        fs::write(&path, b"two").unwrap();
        assert_eq!(copies.get(&digest(b"one")), None);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_used_least_lately_goes_first() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path(), 8).unwrap();
        for (age, bytes) in [(3, b"aaaa"), (2, b"bbbb")] {
            copies.put(&bytes.into());
            let path = copies.path(&digest(bytes), MODULE).unwrap();
            self::age(&path, Duration::from_secs(age));
        }
        assert!(copies.get(&digest(b"aaaa")).is_some());
        copies.put(&b"cccc".into());
        assert!(copies.get(&digest(b"aaaa")).is_some());
        assert!(copies.get(&digest(b"bbbb")).is_none());
        assert!(copies.get(&digest(b"cccc")).is_some());
    }

    #[test]
    fn a_record_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path(), 0).unwrap();
        assert_eq!(copies.record::<String>("a"), None);
        copies.put_record("a", &"first");
        copies.put_record("a", &"second");
        assert_eq!(copies.record("a"), Some("second".to_owned()));
    }

    fn age(path: &Path, age: Duration) {
        let file = fs::File::open(path).unwrap();
        file.set_modified(now() - age).unwrap();
    }

    #[test]
    fn a_record_that_is_used_stays() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path(), 0).unwrap();
        for name in ["read", "written", "old"] {
            copies.put_record(name, &name);
            let path = copies.record_path(name).unwrap();
            age(&path, Duration::from_secs(60));
        }
        assert_eq!(copies.record("read"), Some("read".to_owned()));
        copies.put_record("written", &"written");
        for number in 0..MAX_RECORDS - 2 {
            copies.put_record(&number.to_string(), &number);
        }
        assert_eq!(copies.record::<String>("old"), None);
        assert_eq!(copies.record("read"), Some("read".to_owned()));
        assert_eq!(copies.record("written"), Some("written".to_owned()));
    }

    #[test]
    fn what_a_crash_left_is_swept_and_what_is_being_written_stays() {
        let folder = tempfile::tempdir().unwrap();
        let [left, now] = ["left", "now"].map(|name| folder.path().join(format!("{ASIDE}{name}")));
        for path in [&left, &now] {
            fs::write(path, b"half").unwrap();
        }
        age(&left, MAX_WRITING * 2);
        Copies::open(folder.path(), 0).unwrap();
        assert_eq!((left.exists(), now.exists()), (false, true));
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o770)).unwrap();
        let error = Copies::open(folder.path(), 0).unwrap_err().to_string();
        assert!(error.contains("others may write to it"), "{error}");
        let link = folder.path().join("link");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        let error = Copies::open(&link, 0).unwrap_err().to_string();
        assert!(error.contains("it is no folder"), "{error}");
    }
}
