//! A store in a real file: opening, restarting, being killed, many writers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use configurator_store::{OpenError, Read, Store, StoreOptions, WriteError};

fn open(path: &Path) -> Result<Store, OpenError> {
    Store::open(path, StoreOptions::default())
}

fn number(bytes: Option<bytes::Bytes>) -> u64 {
    bytes.map_or(0, |bytes| {
        std::str::from_utf8(&bytes).unwrap().parse().unwrap()
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_increments_lose_nothing_and_callbacks_keep_the_order() {
    let folder = tempfile::tempdir().unwrap();
    for store in [
        Store::memory(),
        open(&folder.path().join("a.redb")).unwrap(),
    ] {
        let published = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for _ in 0..50 {
            let (store, published) = (store.clone(), Arc::clone(&published));
            tasks.push(tokio::spawn(async move {
                for _ in 0..10 {
                    let published = Arc::clone(&published);
                    store
                        .write_then(
                            |tx| {
                                let next = number(tx.get(b"n").unwrap()) + 1;
                                tx.put("n", next.to_string());
                                Ok::<_, ()>(tx.revision())
                            },
                            move |revision| published.lock().unwrap().push(*revision),
                        )
                        .await
                        .unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(number(store.get(b"n").unwrap()), 500);
        assert_eq!(*published.lock().unwrap(), (1..=500).collect::<Vec<u64>>());
    }
}

#[tokio::test]
async fn a_refusal_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    for store in [
        Store::memory(),
        open(&folder.path().join("a.redb")).unwrap(),
    ] {
        let refused = store
            .write(|tx| {
                tx.put("a", "1");
                Err::<(), _>("no")
            })
            .await;
        assert!(matches!(refused, Err(WriteError::Refused("no"))));
        assert_eq!(store.get(b"a").unwrap(), None);
        assert_eq!(store.revision().unwrap(), 0);
    }
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let store = open(&path).unwrap();
    store
        .write(|tx| {
            tx.put("a/1", "x");
            tx.put("a/2", "y");
            tx.put("b", "z");
            Ok::<_, ()>(())
        })
        .await
        .unwrap();
    drop(store);
    let store = open(&path).unwrap();
    let keys: Vec<_> = store
        .range(b"a/", 10)
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, ["a/1", "a/2"]);
    assert_eq!(store.revision().unwrap(), 1);
}

#[test]
fn a_file_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    let _first = open(&path).unwrap();
    let error = open(&path).unwrap_err();
    assert!(
        matches!(error, OpenError::HeldByAnotherProcess { .. }),
        "{error:?}"
    );
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    for content in [
        b"hello, this is no database".to_vec(),
        vec![0; 100_000],
        vec![0xff; 4096],
    ] {
        std::fs::write(&path, content).unwrap();
        let error = open(&path).unwrap_err();
        assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}");
        assert!(
            error.to_string().contains("Restore it from a copy"),
            "{error}"
        );
    }
    std::fs::remove_file(&path).unwrap();
    drop(open(&path).unwrap());
    let whole = std::fs::read(&path).unwrap();
    for length in [1, 100, 4096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..length]).unwrap();
        if let Err(error) = open(&path) {
            assert!(
                matches!(error, OpenError::Damaged { .. }),
                "{length}: {error:?}"
            );
        }
    }
    assert!(matches!(
        open(&folder.path().join("no/such/folder.redb")).unwrap_err(),
        OpenError::Io { .. }
    ));
}

/// A process that ended while it made the file has left one aside, of which nothing is sure.
#[test]
fn a_file_is_made_aside_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let aside = folder.path().join(format!("a.{}.new", std::process::id()));
    std::fs::write(&aside, vec![0; 100_000]).unwrap();
    let path = folder.path().join("a.redb");
    drop(open(&path).unwrap());
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(files, ["a.redb"]);
    assert_eq!(open(&path).unwrap().revision().unwrap(), 0);
}

/// A child process counts up two keys together and prints each number that is durable; it is killed in the middle.
#[test]
fn a_killed_process_loses_nothing_that_it_reported() {
    const CHILD: &str = "CONFIGURATOR_STORE_TEST_CHILD";
    if let Some(path) = std::env::var_os(CHILD) {
        let store = open(Path::new(&path)).unwrap();
        let mut out = std::io::stdout().lock();
        loop {
            let count = store
                .write_blocking(|tx| {
                    let next = number(tx.get(b"left").unwrap()) + 1;
                    tx.put("left", next.to_string());
                    tx.put("right", next.to_string());
                    Ok::<_, ()>(next)
                })
                .unwrap();
            writeln!(out, "count {count}").unwrap();
            out.flush().unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.redb");
    for round in 1..=5 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "a_killed_process_loses_nothing_that_it_reported",
            ])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut reported = 0;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = 0;
        while seen < 20 * round {
            let line = lines.next().expect("the child goes on").unwrap();
            // The first line may share its place with the test harness's own output.
            if let Some((_, count)) = line.rsplit_once("count ") {
                reported = count.parse().unwrap();
                seen += 1;
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            if let Some(count) = line
                .strip_prefix("count ")
                .and_then(|count| count.parse().ok())
            {
                reported = count;
            }
        }
        let store = open(&path).unwrap();
        let (left, right) = (
            number(store.get(b"left").unwrap()),
            number(store.get(b"right").unwrap()),
        );
        assert_eq!(left, right);
        assert!(left >= reported, "{left} < {reported}");
        assert_eq!(store.revision().unwrap(), left);
    }
}

#[cfg(unix)]
#[test]
fn a_file_may_be_a_link_to_one_that_is_still_to_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link.redb");
    let file = folder.path().join("elsewhere.redb");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for _ in 0..2 {
        drop(open(&link).unwrap());
        assert!(file.exists());
    }
}
