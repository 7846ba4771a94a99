//! Precompiled modules in a folder.
//!
//! A precompiled module is machine code that the host runs unchecked, so what may be read from the folder is decided by
//! ownership: the folder and each file belong to the host's user, and nobody else can write to them. All of it is
//! checked on open descriptors, and files are reached through the folder's descriptor, so nothing can be swapped in
//! between. A checksum finds files that were damaged, and a file says which module it is of. What fails a check is never
//! run; the module is compiled anew.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};
use twox_hash::XxHash3_128;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::digest::Digest;
use crate::engine::engine;
use crate::options::GuestOptions;

/// Every file has after the code: this, the SHA-256 of the module's source, and the checksum of the code. It need not withstand anybody, since
/// nobody else can write here, but be quick: a runtime as large as Python's has 40 MB of code. It is that of the checksums of all parts, which
/// are worked out side by side.
const MAGIC: &[u8; 8] = b"cfgr\0cw3";

/// Bytes of [`MAGIC`], digest and checksum.
const TRAILER: usize = 8 + 32 + 16;
/// What files end in.
const ENDING: &str = ".cwasm";
/// Size of a part.
const PART: usize = 1 << 20;
/// How much of a part is read at a time.
const READ: usize = 1 << 16;
/// Parts for which no thread is started.
const FEW_PARTS: u64 = 4;

/// The folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// It cannot be made or opened.
    #[error("the module cache {} cannot be used: {reason}", path.display())]
    Unusable {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// It belongs to somebody else, or somebody else can write to it.
    #[error(
        "the module cache {} is not safe to use: {reason}. What lies in it is run as machine code; give it to this user with `chown` and `chmod 700`, or choose another folder",
        path.display()
    )]
    Untrusted {
        /// The folder.
        path: PathBuf,
        /// Which rule it breaks.
        reason: Distrust,
    },
}

/// Which rule of trust a folder or file breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    /// It belongs to another user.
    #[error("it belongs to user {owner}, and this process runs as user {user}")]
    Owner {
        /// Its owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Others can write to it.
    #[error("its mode is {mode:o}: others can write to it")]
    Writable {
        /// Its permission bits.
        mode: u32,
    },
    /// It is a symbolic link, a pipe or the like.
    #[error("it is not a regular file")]
    Irregular,
}

/// Why an entry was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EntryError {
    #[error(transparent)]
    Untrusted(#[from] Distrust),
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("wasmtime refuses it: {0}")]
    Refused(String),
}

/// The folder, open and trusted.
pub(crate) struct ModuleCache {
    folder: OwnedFd,
    path: PathBuf,
    max_size: u64,
    /// Distinguishes engines whose code would not fit each other.
    compatibility: String,
    written: AtomicU64,
}

impl ModuleCache {
    /// Opens the folder; makes it, for this user alone, where there is none.
    pub(crate) fn open(path: &Path, max_size: u64, engine: &Engine) -> Result<Self, CacheError> {
        let unusable = |reason: std::io::Error| CacheError::Unusable {
            path: path.into(),
            reason,
        };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(unusable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder =
            rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| unusable(errno.into()))?;
        let stat = rustix::fs::fstat(&folder).map_err(|errno| unusable(errno.into()))?;
        check_owner(&stat).map_err(|reason| CacheError::Untrusted {
            path: path.into(),
            reason,
        })?;
        let mut hasher = ShaHasher(Sha256::new());
        engine.precompile_compatibility_hash().hash(&mut hasher);
        let compatibility = Digest::from_bytes(hasher.0.finalize().into()).hex();
        Ok(Self {
            folder,
            path: path.into(),
            max_size,
            compatibility: compatibility.chars().take(16).collect(),
            written: AtomicU64::new(0),
        })
    }

    /// The precompiled module of this source, or `None`. An entry that must not be taken is left alone, with a warning.
    pub(crate) fn get(&self, engine: &Engine, source: &Digest) -> Option<Component> {
        let name = self.name(source);
        match self.read(engine, &name, source) {
            Ok(component) => component,
            Err(error) => {
                let path = self.path.join(&name);
                tracing::warn!(path = %path.display(), "a precompiled module is not used: {error}; the module is compiled anew");
                None
            }
        }
    }

    /// Stores a precompiled module. Failure costs only time, so it is only a warning.
    pub(crate) fn put(&self, source: &Digest, component: &Component) {
        let name = self.name(source);
        let stored = component
            .serialize()
            .map_err(|error| std::io::Error::other(format!("{error:#}")))
            .and_then(|code| {
                let size = code.len().saturating_add(TRAILER) as u64;
                self.make_room(size)?;
                self.write(&name, source, &code)
            });
        if let Err(error) = stored {
            tracing::warn!(path = %self.path.display(), "a precompiled module is not kept: {error}");
        }
    }

    fn name(&self, source: &Digest) -> String {
        format!("{}-{}{ENDING}", source.hex(), self.compatibility)
    }

    fn read(
        &self,
        engine: &Engine,
        name: &str,
        source: &Digest,
    ) -> Result<Option<Component>, EntryError> {
        let Some(file) = self.checked(name, source)? else {
            return Ok(None);
        };
        let component = deserialize(engine, &file)?;
        // The time of its last use decides what is evicted; not worth a warning where it cannot be set.
        let _ = file.set_modified(now());
        Ok(Some(component))
    }

    /// A file that may be run as the code of this source, or `None` where there is none.
    fn checked(&self, name: &str, source: &Digest) -> Result<Option<File>, EntryError> {
        // Without NONBLOCK, a pipe in the place of a file would block.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(Distrust::Irregular.into()),
            Err(errno) => return Err(EntryError::Io(errno.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(std::io::Error::from)?;
        if !FileType::from_raw_mode(stat.st_mode).is_file() {
            return Err(Distrust::Irregular.into());
        }
        check_owner(&stat)?;
        check_code(&file, source)?;
        Ok(Some(file))
    }

    fn write(&self, name: &str, source: &Digest, code: &[u8]) -> std::io::Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let aside = format!(".{name}.{}.{number}", std::process::id());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(rustix::fs::openat(&self.folder, &aside, flags, mode)?);
        let written = file
            .write_all(code)
            .and_then(|()| file.write_all(MAGIC))
            .and_then(|()| file.write_all(source.bytes()))
            .and_then(|()| file.write_all(&checksum(code.chunks(PART).map(XxHash3_128::oneshot))))
            .and_then(|()| file.sync_all())
            .and_then(|()| {
                Ok(rustix::fs::renameat(
                    &self.folder,
                    &aside,
                    &self.folder,
                    name,
                )?)
            });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.folder, &aside, AtFlags::empty());
        }
        written?;
        Ok(rustix::fs::fsync(&self.folder)?)
    }

    /// Removes what has not been used for longest, until the folder is under its size with so many bytes more: the volume may have no more.
    fn make_room(&self, needed: u64) -> std::io::Result<()> {
        let mut files = self.files()?;
        let mut size: u64 = files.iter().map(|file| file.size).sum();
        files.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
        for file in files {
            if size.saturating_add(needed) <= self.max_size {
                break;
            }
            rustix::fs::unlinkat(&self.folder, &file.name, AtFlags::empty())?;
            size = size.saturating_sub(file.size);
        }
        Ok(())
    }

    fn files(&self) -> std::io::Result<Vec<CachedFile>> {
        let mut files = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            // Also those that a crash left aside.
            if !name.contains(ENDING) {
                continue;
            }
            let stat = match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            };
            files.push(CachedFile {
                name: name.into(),
                size: u64::try_from(stat.st_size).unwrap_or(0),
                used: (stat.st_mtime, stat.st_mtime_nsec),
            });
        }
        Ok(files)
    }
}

/// The module cache as its operator sees it.
pub struct CacheFolder {
    cache: ModuleCache,
}

/// A precompiled module in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedModule {
    /// The name of its file.
    pub file: String,
    /// The digest of the module; `None` for what a crash has left.
    pub module: Option<Digest>,
    /// Its bytes.
    pub size: u64,
    /// When it was last used, in seconds since 1970.
    pub used: i64,
    /// Whether this build of the host would use it.
    pub fits: bool,
}

impl CacheFolder {
    /// That of these options, which is made where there is none.
    ///
    /// # Errors
    /// When it cannot be used, or somebody else can write to it; when there is none in the options.
    pub fn open(options: &GuestOptions) -> Result<Self, CacheError> {
        let path = options.module_cache.clone().unwrap_or_default();
        let unusable = |error: wasmtime::Error| CacheError::Unusable {
            path: path.clone(),
            reason: std::io::Error::other(format!("{error:#}")),
        };
        let engine = engine(options, 1).map_err(unusable)?;
        let cache = ModuleCache::open(&path, options.module_cache_size, &engine)?;
        Ok(Self { cache })
    }

    /// What is in it, that which was used least lately first.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> std::io::Result<Vec<CachedModule>> {
        let mut files = self.cache.files()?;
        files.sort_by(|a, b| (a.used, &a.name).cmp(&(b.used, &b.name)));
        let modules = files.into_iter().map(|file| {
            let parts = file
                .name
                .strip_suffix(ENDING)
                .and_then(|name| name.split_once('-'));
            let module = parts.and_then(|(hex, _)| Digest::from_hex(hex));
            let fits =
                parts.is_some_and(|(_, compatibility)| compatibility == self.cache.compatibility);
            CachedModule {
                fits: fits && module.is_some(),
                module,
                file: file.name,
                size: file.size,
                used: file.used.0,
            }
        });
        Ok(modules.collect())
    }

    /// Why the host would not use it, where it would not. That it is of another build is not looked at.
    #[must_use]
    pub fn verify(&self, module: &CachedModule) -> Option<String> {
        let Some(source) = &module.module else {
            return Some("a crash has left it".to_owned());
        };
        let checked = self.cache.checked(&module.file, source);
        checked.err().map(|error| error.to_string())
    }

    /// Removes it.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn remove(&self, module: &CachedModule) -> std::io::Result<()> {
        rustix::fs::unlinkat(&self.cache.folder, &module.file, AtFlags::empty())?;
        Ok(())
    }
}

struct CachedFile {
    name: String,
    size: u64,
    used: (i64, u64),
}

fn check_owner(stat: &Stat) -> Result<(), Distrust> {
    let user = rustix::process::geteuid().as_raw();
    if stat.st_uid != user {
        return Err(Distrust::Owner {
            owner: stat.st_uid,
            user,
        });
    }
    let mode = stat.st_mode & 0o7777;
    if mode & 0o022 != 0 {
        return Err(Distrust::Writable { mode });
    }
    Ok(())
}

fn check_code(file: &File, source: &Digest) -> Result<(), EntryError> {
    let length = file.metadata()?.len();
    let code = length
        .checked_sub(TRAILER as u64)
        .ok_or(EntryError::Damaged("it is too short"))?;
    let mut trailer = [0; TRAILER];
    file.read_exact_at(&mut trailer, code)?;
    let rest = trailer
        .strip_prefix(MAGIC)
        .ok_or(EntryError::Damaged("its end is missing"))?;
    let sum = rest
        .strip_prefix(source.bytes())
        .ok_or(EntryError::Damaged("it is of another module"))?;
    if sum != checksum(parts(file, code)?) {
        return Err(EntryError::Damaged("its checksum does not match"));
    }
    Ok(())
}

/// The checksums of the parts of so many bytes of a file, in order. This thread and one more take part after part, so that neither waits for the other
/// when it comes late: two read about as fast as memory is.
fn parts(file: &File, code: u64) -> std::io::Result<Vec<u128>> {
    let count = code.div_ceil(PART as u64);
    let next = AtomicU64::new(0);
    let work = || -> std::io::Result<_> {
        let mut read = vec![0; READ];
        let mut sums = Vec::new();
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= count {
                return Ok(sums);
            }
            sums.push((part, read_part(file, code, part, &mut read)?));
        }
    };
    let mut sums: Vec<(u64, u128)> = thread::scope(|scope| {
        let another = match count > FEW_PARTS {
            true => Some(thread::Builder::new().spawn_scoped(scope, work)?),
            false => None,
        };
        let mut sums = work()?;
        if let Some(another) = another {
            sums.extend(
                another
                    .join()
                    .unwrap_or_else(|panic| resume_unwind(panic))?,
            );
        }
        std::io::Result::Ok(sums)
    })?;
    sums.sort_unstable_by_key(|(part, _)| *part);
    Ok(sums.into_iter().map(|(_, sum)| sum).collect())
}

fn read_part(file: &File, code: u64, part: u64, read: &mut [u8]) -> std::io::Result<u128> {
    let mut start = part.saturating_mul(PART as u64);
    let end = code.min(start.saturating_add(PART as u64));
    let mut hasher = XxHash3_128::new();
    while start < end {
        let most = usize::try_from(end - start).map_or(READ, |left| left.min(READ));
        let read = read.get_mut(..most).unwrap_or_default();
        file.read_exact_at(read, start)?;
        hasher.write(read);
        start = start.saturating_add(read.len() as u64);
    }
    Ok(hasher.finish_128())
}

fn checksum(parts: impl IntoIterator<Item = u128>) -> [u8; 16] {
    let mut hasher = XxHash3_128::new();
    for part in parts {
        hasher.write(&part.to_le_bytes());
    }
    hasher.finish_128().to_le_bytes()
}

#[allow(
    unsafe_code,
    reason = "machine code can only be trusted, not checked; this module is about that trust"
)]
fn deserialize(engine: &Engine, file: &File) -> Result<Component, EntryError> {
    // The descriptor, not the name: what was checked is what is mapped.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    // SAFETY: the file is what `write` of this module left there. It and its folder belong to this process's user, who
    // could change the process itself as well, and are writable by nobody else; its checksum matches; its name holds
    // the engine's compatibility hash. Files are never written in place, so the mapping does not change.
    unsafe { Component::deserialize_file(engine, path) }
        .map_err(|error| EntryError::Refused(format!("{error:#}")))
}

#[allow(
    clippy::disallowed_methods,
    reason = "the time of use of a file, for other processes that share the folder; nothing that a guest sees"
)]
fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// A hasher whose result is the same in every process.
struct ShaHasher(Sha256);

impl Hasher for ShaHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_before_something_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let options = GuestOptions::default();
        let engine = engine(&options, 1).unwrap();
        let cache = ModuleCache::open(folder.path(), 25, &engine).unwrap();
        let left = || cache.files().unwrap().len();
        for (name, age) in [("old", 2), ("new", 1)] {
            let file = folder.path().join(format!("{name}{ENDING}"));
            std::fs::write(&file, [0; 10]).unwrap();
            let used = now() - std::time::Duration::from_secs(age);
            File::open(file).unwrap().set_modified(used).unwrap();
        }
        cache.make_room(5).unwrap();
        assert_eq!(left(), 2);
        cache.make_room(6).unwrap();
        assert_eq!(cache.files().unwrap()[0].name, format!("new{ENDING}"));
        assert_eq!(left(), 1);
        // What alone is too large is kept alone: it would be compiled each time.
        cache.make_room(100).unwrap();
        assert_eq!(left(), 0);
    }
}
