//! The file store on a disk that fails on command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures::future::join_all;

use crate::testing::{Dice, Disk, Fault, Hold};
use crate::{Read as _, Store, StoreError, StoreOptions, WriteError};

type Published = Arc<Mutex<Vec<u64>>>;

fn put(store: &Store, key: &'static str, value: Vec<u8>) -> Result<u64, WriteError<String>> {
    store.write_blocking(move |tx| {
        tx.put(key, value);
        Ok(tx.revision())
    })
}

fn value(store: &Store, key: &str) -> Result<Option<usize>, StoreError> {
    Ok(store.get(key.as_bytes())?.map(|value| value.len()))
}

#[test]
fn a_full_disk_fails_the_write_and_nothing_else() {
    let disk = Disk::default();
    let file = disk.store().unwrap();
    assert_eq!(put(&file, "a", vec![1; 100]).unwrap(), 1);

    disk.set_full(true);
    let error = put(&file, "b", vec![1; 20_000_000]).unwrap_err();
    assert!(
        matches!(error, WriteError::Store(StoreError::Full { .. })),
        "{error:?}"
    );
    assert!(error.to_string().contains("free some space"), "{error}");

    disk.set_full(false);
    assert_eq!(value(&file, "a").unwrap(), Some(100));
    assert_eq!(value(&file, "b").unwrap(), None);
    assert_eq!(put(&file, "b", vec![1; 300_000]).unwrap(), 2);

    drop(file);
    let file = disk.store().unwrap();
    assert_eq!(value(&file, "b").unwrap(), Some(300_000));
    assert_eq!(put(&file, "c", vec![]).unwrap(), 3);
}

#[test]
fn a_panicking_transaction_leaves_no_trace() {
    let file = Disk::default().store().unwrap();
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

/// So long that each key has a page of its own, which writing another key leaves as it is.
fn content(revision: u64) -> String {
    format!("{revision:<3000}")
}

/// Writes a key and notes the revision once it is published. With `only_new`, a key that is there is refused.
async fn publish(
    store: &Store,
    published: &Published,
    key: &'static str,
    only_new: bool,
) -> Result<u64, WriteError<&'static str>> {
    let published = Arc::clone(published);
    let change = move |tx: &mut crate::Transaction<'_>| {
        if only_new && tx.get(key.as_bytes()).unwrap().is_some() {
            return Err("exists");
        }
        tx.put(key, content(tx.revision()));
        Ok(tx.revision())
    };
    store
        .write_then(change, move |revision| {
            published.lock().unwrap().push(*revision);
        })
        .await
}

/// A group of three writes meets a fault, then the disk works again, then the power goes.
async fn meet(after: u64, fault: Fault) -> bool {
    let disk = Disk::default();
    let store = disk.store().unwrap();
    let published = Published::default();
    publish(&store, &published, "a", false).await.unwrap();

    let at = disk.fail(after, fault);
    let hold = Hold::start(&store);
    let writes = [("b", false), ("b", true), ("c", true)]
        .map(|(key, only_new)| publish(&store, &published, key, only_new));
    let (results, ()) = tokio::join!(join_all(writes), async { drop(hold) });
    let has_met = disk.operations() > at;
    disk.repair();

    let revision = store.revision().unwrap();
    let every = |last| (1..=last).collect::<Vec<u64>>();
    let context = format!("{fault:?} after {after}: {results:?}");
    assert_eq!(*published.lock().unwrap(), every(revision), "{context}");
    for (key, result) in ["b", "b", "c"].into_iter().zip(&results) {
        let found = store.get(key.as_bytes()).unwrap();
        match result {
            Ok(revision) => assert_eq!(found.unwrap(), content(*revision), "{context}"),
            Err(WriteError::Refused(_)) => assert!(found.is_some(), "{context}"),
            Err(WriteError::Store(StoreError::Unknown { .. })) => {}
            Err(WriteError::Store(_)) => assert_eq!(found, None, "{context}"),
        }
    }
    let last = publish(&store, &published, "d", false).await.unwrap();
    assert_eq!(*published.lock().unwrap(), every(last), "{context}");

    let acknowledged = store.range(b"", 10).unwrap();
    disk.power_loss(&mut Dice::new(after));
    drop(store);
    let store = disk.store().unwrap();
    assert_eq!(store.range(b"", 10).unwrap(), acknowledged, "{context}");
    has_met
}

/// Wherever one operation fails: an error says that nothing was written, unless it says that nobody knows; what was written is
/// published, and durable.
#[tokio::test]
async fn an_error_means_that_nothing_was_written() {
    for fault in [
        Fault::Retained,
        Fault::Forgotten,
        Fault::Reverted,
        Fault::Permanent,
    ] {
        let mut positions = 0;
        while meet(positions, fault).await {
            positions += 1;
        }
        assert!(positions > 5, "{fault:?}: {positions}");
    }
}

/// A process meets a sync that fails, and is killed before it has written again what was lost. The next one does not build upon what can be
/// read but is not on the disk: wherever the power then goes, the store opens.
#[test]
fn what_a_failed_sync_of_an_earlier_process_left_is_not_built_upon() {
    let mut positions = 0;
    loop {
        let disk = Disk::default();
        let store = disk.store().unwrap();
        put(&store, "a", vec![1; 3_000]).unwrap();
        let at = disk.fail(positions, Fault::Forgotten);
        // The process does not get to open the file again.
        disk.fail(positions + 1, Fault::Permanent);
        let written = put(&store, "b", vec![2; 3_000]).is_ok();
        if disk.operations() <= at {
            break;
        }
        positions += 1;
        disk.kill();
        drop(store);
        for more in 0.. {
            let disk = disk.copy();
            let store = disk.store().unwrap();
            let off = disk.fail(more, Fault::PowerOff);
            let acknowledged = put(&store, "c", vec![3; 3_000]).is_ok();
            let is_last = disk.operations() <= off;
            disk.power_loss(&mut Dice::new(more));
            drop(store);
            let context = format!("sync {positions}, power off after {more}");
            let store = disk.store().expect(&context);
            assert_eq!(value(&store, "a").unwrap(), Some(3_000), "{context}");
            assert!(
                !written || value(&store, "b").unwrap().is_some(),
                "{context}"
            );
            assert!(
                !acknowledged || value(&store, "c").unwrap().is_some(),
                "{context}"
            );
            if is_last {
                break;
            }
        }
    }
    assert!(positions > 3, "{positions}");
}

/// While the disk does not work, nobody knows what became of a transaction that was being flushed. Later it is published after all.
#[tokio::test]
async fn an_outcome_that_was_unknown_is_published_later() {
    let mut unknown = 0;
    for after in 0.. {
        let disk = Disk::default();
        let store = disk.store().unwrap();
        let published = Published::default();
        let at = disk.fail(after, Fault::Permanent);
        let result = publish(&store, &published, "a", false).await;
        if disk.operations() <= at {
            break;
        }
        let is_unknown = matches!(result, Err(WriteError::Store(StoreError::Unknown { .. })));
        unknown += u32::from(is_unknown);
        assert!(store.get(b"a").is_err());
        assert_eq!(*published.lock().unwrap(), []);

        disk.repair();
        let is_there = store.get(b"a").unwrap().is_some();
        assert!(is_unknown || !is_there, "{after}: {result:?}");
        let expected = if is_there { vec![1] } else { vec![] };
        assert_eq!(*published.lock().unwrap(), expected, "{after}: {result:?}");
    }
    assert!(unknown > 0);
}

/// A file of 20 MB in which all but 50 of 200 values have been deleted in one transaction, and nothing else written since.
fn sparse(disk: &Disk) -> Store {
    let store = disk.store().unwrap();
    for key in 0..200 {
        store
            .write_blocking(move |tx| {
                tx.put(format!("{key}"), vec![7; 100_000]);
                Ok::<_, ()>(())
            })
            .unwrap();
    }
    store
        .write_blocking(|tx| {
            (50..200).for_each(|key| tx.delete(format!("{key}")));
            Ok::<_, ()>(())
        })
        .unwrap();
    store
}

/// One more turn of the writer, which writes nothing.
fn turn(store: &Store) {
    store.write_blocking(|_| Ok::<_, ()>(())).unwrap();
}

/// Gives the writer turns until it has found time to compact: it does so only when nothing waits.
fn wait_for_compaction(store: &Store, disk: &Disk) {
    for _ in 0..100_000 {
        if disk.file_length() < 8_000_000 {
            return;
        }
        turn(store);
    }
    panic!("the file still has {} bytes", disk.file_length());
}

#[test]
fn a_file_that_is_mostly_free_is_compacted_when_the_writer_has_time() {
    let disk = Disk::default();
    let store = sparse(&disk);
    wait_for_compaction(&store, &disk);
    assert_eq!(store.range(b"", 1000).unwrap().len(), 50);
    disk.power_loss(&mut Dice::new(1));
    assert_eq!(disk.store().unwrap().range(b"", 1000).unwrap().len(), 50);
}

#[test]
fn compaction_does_not_wait_for_readers() {
    let disk = Disk::default();
    let store = disk.store().unwrap();
    put(&store, "big", vec![7; 20_000_000]).unwrap();
    store
        .read(|_| {
            put(&store, "big", vec![]).unwrap();
            turn(&store);
            assert!(disk.file_length() > 20_000_000);
        })
        .unwrap();
    wait_for_compaction(&store, &disk);
}

#[test]
fn a_file_too_large_to_compact_while_open_is_compacted_when_it_is_opened() {
    let disk = Disk::default();
    let options = StoreOptions {
        compact_open_bytes: 1_000_000,
        ..StoreOptions::default()
    };
    let store = disk.store_with(options.clone()).unwrap();
    put(&store, "kept", vec![7; 2_000_000]).unwrap();
    put(&store, "big", vec![7; 20_000_000]).unwrap();
    put(&store, "big", vec![]).unwrap();
    turn(&store);
    disk.kill();
    drop(store);
    assert!(disk.file_length() > 20_000_000);
    let store = disk.store_with(options).unwrap();
    assert!(disk.file_length() < 8_000_000, "{}", disk.file_length());
    assert_eq!(value(&store, "kept").unwrap(), Some(2_000_000));
}

/// Wherever a compaction is interrupted, the content stays.
#[test]
fn a_compaction_that_fails_loses_nothing() {
    let disk = Disk::default();
    disk.store_with(StoreOptions {
        free_percent: 100,
        ..StoreOptions::default()
    })
    .map(|store| {
        put(&store, "kept", vec![7; 500_000]).unwrap();
        put(&store, "big", vec![7; 3_000_000]).unwrap();
        for key in ["a", "b", "c", "d"] {
            put(&store, key, vec![7; 10_000]).unwrap();
        }
        put(&store, "big", vec![]).unwrap();
        disk.kill();
    })
    .unwrap();
    let image = disk.image();
    for after in 0.. {
        let fault = [Fault::PowerOff, Fault::Forgotten, Fault::Permanent][after as usize % 3];
        let disk = Disk::with_image(image.clone());
        let at = disk.fail(after, fault);
        let opened = disk.store();
        if disk.operations() <= at {
            assert!(disk.file_length() < 2_000_000, "{}", disk.file_length());
            assert!(after > 10, "{after}");
            break;
        }
        if let Ok(store) = opened
            && !disk.is_powered_off()
        {
            disk.repair();
            assert_eq!(
                value(&store, "kept").unwrap(),
                Some(500_000),
                "{fault:?} {after}"
            );
            put(&store, "e", vec![]).unwrap();
        }
        disk.power_loss(&mut Dice::new(after));
        let store = disk.store().unwrap();
        let lengths: Vec<_> = ["kept", "a", "b", "c", "d", "big"]
            .map(|key| value(&store, key).unwrap())
            .to_vec();
        let small = Some(10_000);
        let expected = vec![Some(500_000), small, small, small, small, Some(0)];
        assert_eq!(lengths, expected, "{fault:?} {after}");
    }
}

/// Whatever bits flip, there is an error or an answer, never a panic or a hang.
#[test]
fn flipped_bits_are_an_error_at_worst() {
    let disk = Disk::default();
    {
        let file = disk.store().unwrap();
        for key in ["a", "b", "c", "d"] {
            put(&file, key, vec![7; 3000]).unwrap();
        }
    }
    let sound = disk.image();
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
        if let Ok(file) = Disk::with_image(bytes).store() {
            for key in ["a", "b", "c", "d"] {
                let _ = value(&file, key);
            }
            let _ = put(&file, "e", vec![1; 5000]);
        }
    }
}

#[test]
fn a_write_that_failed_is_answered_though_a_reader_opens_the_file_again() {
    const WRITES: u64 = 2_000;
    let disk = Disk::default();
    let store = disk.store().unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // It fails as often as the disk does.
                    let _ = value(&store, "a");
                }
            });
        }
        for number in 0..WRITES {
            disk.fail(number % 12, Fault::Retained);
            let _ = put(&store, "a", vec![1; 10]);
            disk.repair();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(value(&store, "a").unwrap(), Some(10));
}
