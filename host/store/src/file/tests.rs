//! The file store on a disk that fails on command.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Database, StorageBackend};

use super::*;
use crate::WriteError;

/// A disk that keeps what was written, over any number of openings, and is full on command.
#[derive(Debug, Default, Clone)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    full: Arc<AtomicBool>,
}

impl Disk {
    fn check(&self) -> io::Result<()> {
        if self.full.load(Ordering::SeqCst) {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        } else {
            Ok(())
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock().unwrap();
        let offset = offset as usize;
        let part = bytes
            .get(offset..offset + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(part);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check()?;
        self.bytes.lock().unwrap().resize(len as usize, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.check()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.check()?;
        let mut bytes = self.bytes.lock().unwrap();
        let offset = offset as usize;
        bytes
            .get_mut(offset..offset + data.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?
            .copy_from_slice(data);
        Ok(())
    }
}

fn open(disk: &Disk) -> File {
    let disk = disk.clone();
    let opener = move || {
        Database::builder()
            .set_cache_size(1 << 20)
            .create_with_backend(disk.clone())
    };
    File::start(Path::new("disk"), StoreOptions::default(), Box::new(opener)).unwrap()
}

fn put(file: &File, key: &'static str, value: Vec<u8>) -> Result<u64, WriteError<String>> {
    file.write_blocking(move |tx| {
        tx.put(key, value);
        Ok(tx.revision())
    })
}

fn value(file: &File, key: &str) -> Result<Option<usize>, StoreError> {
    file.read(|state| state.get(key.as_bytes()))?
        .map(|value| value.map(|value| value.len()))
}

#[test]
fn a_full_disk_fails_the_write_and_nothing_else() {
    let disk = Disk::default();
    let file = open(&disk);
    assert_eq!(put(&file, "a", vec![1; 100]).unwrap(), 1);

    disk.full.store(true, Ordering::SeqCst);
    let error = put(&file, "b", vec![1; 200_000]).unwrap_err();
    assert!(
        matches!(error, WriteError::Store(StoreError::Full { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("free some space"), "{error}");

    disk.full.store(false, Ordering::SeqCst);
    assert_eq!(value(&file, "a").unwrap(), Some(100));
    assert_eq!(value(&file, "b").unwrap(), None);
    assert_eq!(put(&file, "b", vec![1; 300_000]).unwrap(), 2);

    drop(file);
    let file = open(&disk);
    assert_eq!(value(&file, "b").unwrap(), Some(300_000));
    assert_eq!(put(&file, "c", vec![]).unwrap(), 3);
}

#[test]
fn a_panicking_transaction_leaves_no_trace() {
    let file = open(&Disk::default());
    let error = file
        .write_blocking::<(), String>(|tx| {
            tx.put("a", "1");
            panic!("on purpose")
        })
        .unwrap_err();
    assert!(error.to_string().contains("on purpose"), "{error}");
    assert_eq!(value(&file, "a").unwrap(), None);
    assert_eq!(put(&file, "b", vec![]).unwrap(), 1);
}

/// Whatever bits flip, there is an error or an answer, never a panic or a hang.
#[test]
fn flipped_bits_are_an_error_at_worst() {
    let disk = Disk::default();
    {
        let file = open(&disk);
        for key in ["a", "b", "c", "d"] {
            put(&file, key, vec![7; 3000]).unwrap();
        }
    }
    let sound = disk.bytes.lock().unwrap().clone();
    // The database is mostly empty space: flip in the parts that hold something.
    let used: Vec<usize> = (0..sound.len())
        .step_by(64)
        .filter(|&at| {
            sound[at..(at + 64).min(sound.len())]
                .iter()
                .any(|&byte| byte != 0 && byte != 7)
        })
        .collect();
    for at in used.into_iter().step_by(29) {
        let mut bytes = sound.clone();
        for byte in &mut bytes[at..(at + 16).min(sound.len())] {
            *byte ^= 0xa5;
        }
        let broken = Disk {
            bytes: Arc::new(Mutex::new(bytes)),
            full: Arc::default(),
        };
        let opener = move || {
            Database::builder()
                .set_cache_size(1 << 20)
                .create_with_backend(broken.clone())
        };
        if let Ok(file) = File::start(Path::new("disk"), StoreOptions::default(), Box::new(opener))
        {
            for key in ["a", "b", "c", "d"] {
                let _ = value(&file, key);
            }
            let _ = put(&file, "e", vec![1; 5000]);
        }
    }
}
