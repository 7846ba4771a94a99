//! A disk in memory that loses, tears and fails as disks do.
//!
//! ```
//! use configurator_store::testing::{Dice, Disk};
//! let disk = Disk::default();
//! let store = disk.store()?;
//! store.write_blocking(|tx| Ok::<_, ()>(tx.put("greeting", "hello"))).unwrap();
//! disk.power_loss(&mut Dice::new(7));
//! assert_eq!(disk.store()?.get(b"greeting").unwrap().as_deref(), Some(&b"hello"[..]));
//! # Ok::<_, configurator_store::OpenError>(())
//! ```

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use crate::{OpenError, StorageBackend, Store, StoreOptions};

/// The bytes that a disk writes as one. A write of more can be torn.
const SECTOR: usize = 512;

/// A disk in memory with one file. Clones are the same disk.
///
/// It tells what readers see (the operating system's cache) from what a power loss leaves.
#[derive(Debug, Default, Clone)]
pub struct Disk(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The file as it is read.
    cache: Vec<u8>,
    /// The file as it is after a power loss, without the changes since the last sync.
    durable: Vec<u8>,
    /// Changes that are in the cache and may or may not be durable, oldest first.
    unsynced: Vec<Change>,
    /// Writes, changes of the length and syncs so far, those that failed included.
    operations: u64,
    faults: Vec<(u64, Fault)>,
    full: bool,
    broken: bool,
    powered_off: bool,
    /// Counts the crashes. A handle of an earlier process reaches the disk no more.
    process: u64,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

/// How one operation of a [`Disk`] fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An input or output error. What was not synced stays so: the next sync tries again. Of a write the first half arrives.
    Retained,
    /// The same. If it is a sync, some of the changes have arrived. All stay in the cache, but no later sync writes them: what Linux does on
    /// most file systems.
    Forgotten,
    /// The same, but those that have not arrived are gone from the cache as well.
    Reverted,
    /// The same, for this and every later operation, until [`Disk::repair`].
    Permanent,
    /// The power goes: this and every later operation fails, until [`Disk::power_loss`] brings the power back.
    PowerOff,
}

impl Disk {
    /// Opens the store that is on the disk, with a small cache.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn store(&self) -> Result<Store, OpenError> {
        self.store_with(StoreOptions {
            cache_bytes: 1 << 20,
            ..StoreOptions::default()
        })
    }

    /// Opens the store that is on the disk, as a process does that has not had it open.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn store_with(&self, options: StoreOptions) -> Result<Store, OpenError> {
        let path = Path::new("disk");
        let disk = self.clone();
        let process = self.state().process;
        self.forget_cached().map_err(|source| OpenError::Io {
            path: path.to_owned(),
            source,
        })?;
        let storage = move || -> io::Result<Box<dyn StorageBackend>> {
            Ok(Box::new(Handle {
                disk: disk.clone(),
                process,
            }))
        };
        Store::open_on(path, storage, options)
    }

    /// What the operating system does when a process opens a store file: what it has cached is synced and forgotten.
    fn forget_cached(&self) -> io::Result<()> {
        let mut state = self.state();
        state.sync()?;
        let State { cache, durable, .. } = &mut *state;
        cache.clone_from(durable);
        Ok(())
    }

    /// A disk whose file has this content.
    pub fn with_image(image: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State {
            cache: image.clone(),
            durable: image,
            ..State::default()
        })))
    }

    /// Another disk with the same content, synced and not.
    #[must_use]
    pub fn copy(&self) -> Self {
        let state = self.state();
        Self(Arc::new(Mutex::new(State {
            cache: state.cache.clone(),
            durable: state.durable.clone(),
            unsynced: state.unsynced.clone(),
            ..State::default()
        })))
    }

    /// The file as it is read.
    pub fn image(&self) -> Vec<u8> {
        self.state().cache.clone()
    }

    /// Writes, changes of the length and syncs so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// The length of the file.
    pub fn file_length(&self) -> usize {
        self.state().cache.len()
    }

    /// The bytes of memory that the disk takes.
    pub fn allocated(&self) -> usize {
        let state = self.state();
        let unsynced = state.unsynced.iter().map(|change| match change {
            Change::Write(_, data) => data.capacity(),
            Change::Length(_) => 0,
        });
        state.cache.capacity() + state.durable.capacity() + unsynced.sum::<usize>()
    }

    /// Makes one operation fail, after so many others. Returns its number among [all](Self::operations).
    pub fn fail(&self, after: u64, fault: Fault) -> u64 {
        let mut state = self.state();
        let at = state.operations + after;
        state.faults.push((at, fault));
        at
    }

    /// The disk works again. Faults that have not come yet do not come.
    pub fn repair(&self) {
        let mut state = self.state();
        state.broken = false;
        state.faults.clear();
    }

    /// Leaves no space for the file to grow, or gives it back.
    pub fn set_full(&self, full: bool) {
        self.state().full = full;
    }

    /// Whether the power has gone.
    pub fn is_powered_off(&self) -> bool {
        self.state().powered_off
    }

    /// The process ends at once; the operating system keeps what was written. Stores that are open have lost the disk.
    pub fn kill(&self) {
        let mut state = self.state();
        state.process += 1;
        state.faults.clear();
        state.full = false;
        state.broken = false;
    }

    /// The machine loses its power and gets it back. Of what was not synced, an arbitrary part is there, sector by sector.
    pub fn power_loss(&self, dice: &mut Dice) {
        self.kill();
        let mut state = self.state();
        let mut image = std::mem::take(&mut state.durable);
        // All of it, none of it, or about so much of a hundred parts.
        let share = *dice.pick(&[0, 100, 50, 50, 10, 90]);
        for change in std::mem::take(&mut state.unsynced) {
            match change {
                Change::Length(length) => {
                    if dice.below(100) < share {
                        image.resize(length, 0);
                    }
                }
                Change::Write(offset, data) => {
                    write_some_sectors(&mut image, offset, &data, share, dice);
                }
            }
        }
        state.cache.clone_from(&image);
        state.durable = image;
        state.powered_off = false;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a store's writer busy until this is dropped: the transactions that come meanwhile share the next flush to the disk.
///
/// It takes a thread. Where the store cannot begin a transaction, nothing is held.
#[derive(Debug)]
pub struct Hold {
    release: Option<mpsc::Sender<()>>,
    holder: Option<JoinHandle<()>>,
}

impl Hold {
    /// Blocks until the writer has begun to wait.
    pub fn start(store: &Store) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (start, started) = mpsc::channel::<()>();
        let store = store.clone();
        let wait = move || {
            let _ = store.write_blocking(move |_| {
                drop(start);
                let _ = released.recv();
                Ok::<_, ()>(())
            });
        };
        let holder = std::thread::spawn(wait);
        let _ = started.recv();
        Self {
            release: Some(release),
            holder: Some(holder),
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.release = None;
        if let Some(holder) = self.holder.take() {
            let _ = holder.join();
        }
    }
}

/// Writes into a file, which grows if it is too short.
fn put(file: &mut Vec<u8>, offset: usize, data: &[u8]) {
    let end = offset + data.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    if let Some(place) = file.get_mut(offset..end) {
        place.copy_from_slice(data);
    }
}

/// Writes about `percent` of the sectors of `data`.
fn write_some_sectors(
    file: &mut Vec<u8>,
    offset: usize,
    data: &[u8],
    percent: u64,
    dice: &mut Dice,
) {
    for (number, sector) in data.chunks(SECTOR).enumerate() {
        if dice.below(100) < percent {
            put(file, offset + number * SECTOR, sector);
        }
    }
}

impl State {
    /// Counts one operation and says whether it fails.
    fn next_fault(&mut self) -> Option<Fault> {
        let number = self.operations;
        self.operations += 1;
        let at = self.faults.iter().position(|(at, _)| *at == number)?;
        let (_, fault) = self.faults.swap_remove(at);
        self.powered_off = fault == Fault::PowerOff;
        self.broken = fault == Fault::Permanent;
        Some(fault)
    }

    fn change(&mut self, change: Change) {
        match &change {
            Change::Write(offset, data) => put(&mut self.cache, *offset, data),
            Change::Length(length) => self.cache.resize(*length, 0),
        }
        self.unsynced.push(change);
    }

    fn sync(&mut self) -> io::Result<()> {
        self.refuse()?;
        let fault = self.next_fault();
        match fault {
            None => {
                for change in self.unsynced.drain(..) {
                    match change {
                        Change::Write(offset, data) => put(&mut self.durable, offset, &data),
                        Change::Length(length) => self.durable.resize(length, 0),
                    }
                }
                return Ok(());
            }
            Some(Fault::Retained | Fault::Permanent | Fault::PowerOff) => {}
            Some(Fault::Forgotten) => self.lose_unsynced(),
            Some(Fault::Reverted) => {
                self.lose_unsynced();
                let length = self.cache.len();
                self.cache.clone_from(&self.durable);
                self.cache.resize(length, 0);
            }
        }
        Err(broken())
    }

    /// About half of what was not synced has arrived, sector by sector. The rest never does.
    fn lose_unsynced(&mut self) {
        let mut dice = Dice::new(self.operations);
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::Length(_) => self.unsynced.push(change),
                Change::Write(offset, data) => {
                    write_some_sectors(&mut self.durable, offset, &data, 50, &mut dice);
                }
            }
        }
    }

    /// Fails where every operation does.
    fn refuse(&self) -> io::Result<()> {
        if self.powered_off || self.broken {
            return Err(broken());
        }
        Ok(())
    }
}

/// The disk as one process has it open.
#[derive(Debug)]
struct Handle {
    disk: Disk,
    process: u64,
}

impl Handle {
    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.state();
        if state.process != self.process {
            return Err(io::Error::other("this process has ended"));
        }
        Ok(state)
    }
}

fn broken() -> io::Error {
    io::Error::other("the disk failed, as the test wanted")
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        Ok(self.state()?.cache.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.state()?;
        state.refuse()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let part = state
            .cache
            .get(offset..offset + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.state()?;
        state.refuse()?;
        let length = usize::try_from(length).map_err(io::Error::other)?;
        if state.full && length > state.cache.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if state.next_fault().is_some() {
            return Err(broken());
        }
        state.change(Change::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.state()?.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.state()?;
        state.refuse()?;
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        let fault = state.next_fault();
        let arrived = match fault {
            None => data,
            Some(_) => data.get(..data.len() / 2).unwrap_or_default(),
        };
        state.change(Change::Write(offset, arrived.to_vec()));
        match fault {
            None => Ok(()),
            Some(_) => Err(broken()),
        }
    }
}

/// Numbers that look random and are the same for the same seed.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice with a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `limit`, or 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    /// One of the choices.
    pub fn pick<'a, T, const N: usize>(&mut self, choices: &'a [T; N]) -> &'a T {
        const { assert!(N > 0) };
        #[allow(
            clippy::indexing_slicing,
            reason = "the number is below the length, which is not 0"
        )]
        &choices[self.below(N as u64) as usize]
    }
}
