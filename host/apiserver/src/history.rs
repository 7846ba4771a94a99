//! The latest changes of each resource, from which watchers go on.
//!
//! There is one ring of changes for each resource, and no queue for each watcher: a watcher is a position. One that falls behind the
//! ring is told to list anew, so a slow watcher costs nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use tokio::sync::watch;

use crate::object::Traits;

/// One change of one object.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) storage: Arc<str>,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) revision: u64,
    /// The line that most watchers get.
    pub(crate) line: Bytes,
    /// The object after the change; of a deleted one, its last state under the revision of the deletion. A part of the
    /// line, so that it is in memory once.
    pub(crate) object: Bytes,
    pub(crate) traits: Traits,
    /// What selectors saw before; none if it was created.
    pub(crate) before: Option<Traits>,
    /// The object before under the revision of the change, where selectors see a difference: whoever watches by one that
    /// lets the object go is shown what it was.
    pub(crate) left: Option<Bytes>,
}

impl Change {
    fn size(&self) -> usize {
        self.line.len() + self.left.as_ref().map_or(0, Bytes::len)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

impl ChangeKind {
    /// The type of the event that shows it.
    pub(crate) fn event(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// A line of a watch.
pub(crate) fn line(event: &str, object: &[u8]) -> Bytes {
    let parts: [&[u8]; 5] = [LINE_START, event.as_bytes(), LINE_OBJECT, object, LINE_END];
    parts.concat().into()
}

/// A line of a watch, and the object in it.
pub(crate) fn line_and_object(kind: ChangeKind, object: &[u8]) -> (Bytes, Bytes) {
    let line = line(kind.event(), object);
    let start = LINE_START.len() + kind.event().len() + LINE_OBJECT.len();
    let object = line.slice(start..start + object.len());
    (line, object)
}

const LINE_START: &[u8] = br#"{"type":""#;
const LINE_OBJECT: &[u8] = br#"","object":"#;
const LINE_END: &[u8] = b"}\n";

/// Where a watcher cannot go on from: it is older than the ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compacted {
    /// The oldest revision to go on from.
    pub(crate) oldest: u64,
}

pub(crate) struct History {
    channels: RwLock<HashMap<Arc<str>, Arc<Channel>>>,
    /// What happened up to here is forgotten: the server was opened then.
    opened: u64,
    published: AtomicU64,
    events: usize,
    bytes: usize,
}

/// The changes of one resource.
pub(crate) struct Channel {
    ring: Mutex<Ring>,
    head: watch::Sender<u64>,
}

struct Ring {
    changes: VecDeque<Arc<Change>>,
    bytes: usize,
    compacted: u64,
    closed: bool,
}

impl History {
    pub(crate) fn new(opened: u64, events: usize, bytes: usize) -> Self {
        Self {
            channels: RwLock::default(),
            opened,
            published: AtomicU64::new(opened),
            events,
            bytes,
        }
    }

    pub(crate) fn channel(&self, storage: &Arc<str>) -> Arc<Channel> {
        if let Some(channel) = self
            .channels
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(storage)
        {
            return Arc::clone(channel);
        }
        let mut channels = self
            .channels
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let make = || {
            // Nothing of this resource has been published so far, so any position since the opening is good.
            let ring = Ring {
                changes: VecDeque::new(),
                bytes: 0,
                compacted: self.opened,
                closed: false,
            };
            Arc::new(Channel {
                ring: Mutex::new(ring),
                head: watch::Sender::new(self.opened),
            })
        };
        Arc::clone(channels.entry(Arc::clone(storage)).or_insert_with(make))
    }

    /// Takes a change in; calls come in the order of the revisions.
    pub(crate) fn publish(&self, change: Arc<Change>) {
        let channel = self.channel(&change.storage);
        let revision = change.revision;
        {
            let mut ring = channel.ring.lock().unwrap_or_else(PoisonError::into_inner);
            ring.bytes += change.size();
            ring.changes.push_back(change);
            while ring.changes.len() > self.events.max(1)
                || (ring.bytes > self.bytes && ring.changes.len() > 1)
            {
                let Some(oldest) = ring.changes.pop_front() else {
                    break;
                };
                ring.bytes -= oldest.size();
                ring.compacted = oldest.revision;
            }
        }
        self.published.store(revision, Ordering::Release);
        channel.head.send_replace(revision);
    }

    /// Every change up to this revision has been published.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Ends the watches of a resource that is served no more.
    pub(crate) fn close(&self, storage: &str) {
        let channel = self
            .channels
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(storage);
        if let Some(channel) = channel {
            channel
                .ring
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .closed = true;
            channel.head.send_modify(|_| ());
        }
    }
}

impl Channel {
    /// At most `limit` changes after a revision.
    pub(crate) fn since(&self, revision: u64, limit: usize) -> Result<Vec<Arc<Change>>, Compacted> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        if revision < ring.compacted {
            return Err(Compacted {
                oldest: ring.compacted,
            });
        }
        let start = ring
            .changes
            .partition_point(|change| change.revision <= revision);
        Ok(ring
            .changes
            .iter()
            .skip(start)
            .take(limit)
            .cloned()
            .collect())
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed
    }

    /// Tells when there is more.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(revision: u64, bytes: usize) -> Arc<Change> {
        Arc::new(Change {
            kind: ChangeKind::Modified,
            storage: Arc::from("/pods"),
            namespace: String::new(),
            name: String::new(),
            revision,
            line: Bytes::from(vec![b'x'; bytes]),
            object: Bytes::new(),
            traits: Traits::default(),
            before: None,
            left: None,
        })
    }

    #[test]
    fn the_object_is_a_part_of_its_line() {
        let (line, object) = line_and_object(ChangeKind::Added, br#"{"a":1}"#);
        assert_eq!(&line[..], b"{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n");
        assert_eq!(&object[..], br#"{"a":1}"#);
    }

    #[test]
    fn the_ring_forgets_the_oldest() {
        let history = History::new(10, 3, 100);
        let channel = history.channel(&Arc::from("/pods"));
        let revisions = |since| {
            channel.since(since, 10).map(|changes| {
                changes
                    .iter()
                    .map(|change| change.revision)
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(revisions(9), Err(Compacted { oldest: 10 }));
        assert_eq!(revisions(10), Ok(vec![]));
        for revision in 11..=14 {
            history.publish(change(revision, 10));
        }
        assert_eq!(revisions(10), Err(Compacted { oldest: 11 }));
        assert_eq!(revisions(11), Ok(vec![12, 13, 14]));
        history.publish(change(15, 95));
        assert_eq!(revisions(14), Ok(vec![15]));
        assert_eq!(revisions(13), Err(Compacted { oldest: 14 }));
        assert_eq!(history.published(), 15);
    }
}
