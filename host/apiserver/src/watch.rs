//! Watches: changes as lines of JSON, for as long as the client listens.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use configurator_schema::FieldError;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::history::{Change, ChangeKind, Channel, Compacted, line};
use crate::media::Form;
use crate::output::Output;
use crate::request::ResourcePath;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::server::Inner;
use crate::status::{Result, Status};
use crate::{query::Query, read};

/// Changes that are taken from the ring at a time.
const BATCH: usize = 64;

/// In place of a revision: whatever is the newest one.
const NEWEST: u64 = u64::MAX;

/// Starts a watch. It ends at its timeout, when the client goes, or when the watcher falls behind.
pub(crate) fn start(
    server: &Arc<Inner>,
    resource: &Arc<Resource>,
    path: &ResourcePath,
    query: &Query,
    output: Output,
) -> Result<impl Stream<Item = Bytes> + Send + use<>> {
    let permit = Arc::clone(&server.watches)
        .try_acquire_owned()
        .map_err(|_| {
            Status::too_many_requests("too many watches are open; close some, or try again later")
        })?;
    let selector = Selector::parse(&query.label_selector, &query.field_selector, resource)?;
    let initial = Initial::of(query)?;
    let channel = server.history.channel(&resource.storage);
    let timeout = query
        .timeout_seconds
        .filter(|&seconds| seconds > 0)
        .map_or(server.options.watch_timeout, Duration::from_secs);
    let bookmarks = query.allow_watch_bookmarks.then(|| {
        let period = server.options.bookmark_interval;
        let mut interval = tokio::time::interval_at(Instant::now() + period, period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        interval
    });
    let mut watcher = Watcher {
        server: Arc::clone(server),
        resource: Arc::clone(resource),
        namespace: path.namespace.clone(),
        name: path.name.clone(),
        selector,
        output,
        head: channel.subscribe(),
        channel,
        cursor: 0,
        pending: VecDeque::new(),
        columns_sent: false,
        bookmarks,
        deadline: Instant::now() + timeout,
        ended: false,
        _permit: permit,
    };
    match initial {
        Initial::From(revision) => {
            watcher.cursor = revision;
            // A revision of another store, such as one that was wiped since: the client has to begin anew.
            let current = server.store.revision()?;
            if revision != NEWEST && revision > current {
                watcher.fail(&Status::expired(format!(
                    "resource version {revision} is newer than the newest one, {current}"
                )));
            }
        }
        Initial::State { bookmark } => {
            let (revision, items) = read::all(server, resource, path, &watcher.selector)?;
            watcher.cursor = revision;
            for item in items {
                let line = watcher.line("ADDED", &item)?;
                watcher.pending.push_back(line);
            }
            if bookmark {
                watcher.push_bookmark(true)?;
            }
        }
    }
    Ok(stream::unfold(watcher, |mut watcher| async move {
        watcher.next().await.map(|line| (line, watcher))
    }))
}

/// What a watch begins with.
enum Initial {
    /// The changes after this revision.
    From(u64),
    /// The state now, as added objects, with a bookmark behind it if it was asked for.
    State { bookmark: bool },
}

impl Initial {
    fn of(query: &Query) -> Result<Self> {
        // A watch refuses this by itself, without the class that a list gives it.
        let revision = read::parse_revision(&query.resource_version).map_err(|_| {
            let given = &query.resource_version;
            Status::unclassified(format!(
                "resourceVersion: Invalid value: {given:?}: strconv.ParseUint: parsing {given:?}: invalid syntax"
            ))
        })?;
        match (query.send_initial_events, revision) {
            (Some(true), _) => {
                if query.resource_version_match != "NotOlderThan" {
                    let mut errors = vec![FieldError::forbidden(
                        "resourceVersionMatch",
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    )];
                    let given = &query.resource_version_match;
                    if !given.is_empty() {
                        errors.push(FieldError::not_supported(
                            "resourceVersionMatch",
                            &json!(given),
                            ["NotOlderThan"],
                        ));
                    }
                    return Err(Status::invalid_kind(
                        "meta.k8s.io",
                        "ListOptions",
                        "",
                        &errors,
                    ));
                }
                Ok(Self::State {
                    bookmark: query.allow_watch_bookmarks,
                })
            }
            (_, _)
                if !query.resource_version_match.is_empty()
                    && query.send_initial_events.is_none() =>
            {
                Err(invalid_list_options(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ))
            }
            (None, None | Some(0)) => Ok(Self::State { bookmark: false }),
            (Some(false), None | Some(0)) => Ok(Self::From(NEWEST)),
            (_, Some(revision)) => Ok(Self::From(revision)),
        }
    }
}

fn invalid_list_options(field: &str, why: &str) -> Status {
    let error = FieldError::forbidden(field, why);
    Status::invalid_kind("meta.k8s.io", "ListOptions", "", &[error])
}

struct Watcher {
    server: Arc<Inner>,
    resource: Arc<Resource>,
    namespace: Option<String>,
    name: Option<String>,
    selector: Selector,
    output: Output,
    channel: Arc<Channel>,
    head: watch::Receiver<u64>,
    /// All changes up to here have been seen.
    cursor: u64,
    pending: VecDeque<Bytes>,
    columns_sent: bool,
    bookmarks: Option<Interval>,
    deadline: Instant,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Watcher {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.pending.pop_front() {
                return Some(line);
            }
            if self.ended || Instant::now() >= self.deadline {
                return None;
            }
            self.head.borrow_and_update();
            let published = self.server.history.published();
            if self.cursor == NEWEST {
                self.cursor = published;
            }
            match self.channel.since(self.cursor, BATCH) {
                Err(compacted) => self.expire(&compacted),
                Ok(changes) if changes.is_empty() => {
                    // Whatever is published later is newer than this.
                    self.cursor = self.cursor.max(published);
                    if self.channel.is_closed() {
                        return None;
                    }
                    self.wait().await;
                }
                Ok(changes) => {
                    for change in changes {
                        self.cursor = change.revision;
                        match self.event(&change) {
                            Ok(Some(line)) => self.pending.push_back(line),
                            Ok(None) => {}
                            Err(status) => self.fail(&status),
                        }
                    }
                }
            }
        }
    }

    /// Until there may be more to say.
    async fn wait(&mut self) {
        let tick = async {
            match &mut self.bookmarks {
                Some(interval) => interval.tick().await,
                None => std::future::pending().await,
            }
        };
        let mut stopping = self.server.stopping.subscribe();
        tokio::select! {
            changed = self.head.changed() => self.ended |= changed.is_err(),
            _ = tick => {
                if let Err(status) = self.push_bookmark(false) {
                    self.fail(&status);
                }
            }
            () = tokio::time::sleep_until(self.deadline) => self.ended = true,
            _ = stopping.wait_for(|stopping| *stopping) => self.ended = true,
        }
    }

    /// What this watcher sees of a change: with a selector, an object can come and go by being modified.
    fn event(&mut self, change: &Change) -> Result<Option<Bytes>> {
        if self
            .namespace
            .as_ref()
            .is_some_and(|namespace| *namespace != change.namespace)
            || self.name.as_ref().is_some_and(|name| *name != change.name)
        {
            return Ok(None);
        }
        let matches = |traits| {
            self.selector.is_empty()
                || self
                    .selector
                    .matches(&change.namespace, &change.name, traits)
        };
        let before = change.before.as_ref().is_some_and(matches);
        let after = change.kind != ChangeKind::Deleted && matches(&change.traits);
        let kind = match (before, after) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return Ok(None),
        };
        if kind == change.kind.event() && self.output.is_native(&self.resource) {
            return Ok(Some(change.line.clone()));
        }
        let object = match (&change.left, after) {
            (Some(left), false) => left,
            _ => &change.object,
        };
        self.line(kind, object).map(Some)
    }

    fn line(&mut self, kind: &str, stored: &Bytes) -> Result<Bytes> {
        let object = match self.output.form {
            Form::Table => {
                let columns = !std::mem::replace(&mut self.columns_sent, true);
                crate::output::encode(&self.output.table(
                    &self.resource,
                    std::slice::from_ref(stored),
                    columns,
                )?)?
            }
            Form::Object | Form::Metadata => self.output.one(&self.resource, stored)?,
        };
        Ok(line(kind, &object))
    }

    fn push_bookmark(&mut self, initial_events_end: bool) -> Result<()> {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string()});
        if initial_events_end {
            crate::object::set_field(
                &mut metadata,
                "annotations",
                Some(json!({"k8s.io/initial-events-end": "true"})),
            );
        }
        let object = match self.output.form {
            Form::Object => {
                json!({"kind": self.resource.kind, "apiVersion": self.resource.api_version(), "metadata": metadata})
            }
            Form::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": self.cursor.to_string()},
                "columnDefinitions": [], "rows": [{"cells": [], "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}}],
            }),
        };
        self.pending
            .push_back(line("BOOKMARK", &crate::output::encode(&object)?));
        Ok(())
    }

    fn expire(&mut self, compacted: &Compacted) {
        let message = format!(
            "too old resource version: {} ({})",
            self.cursor, compacted.oldest
        );
        self.fail(&Status::expired(message));
    }

    fn fail(&mut self, status: &Status) {
        let value: Value = status.to_value();
        self.pending
            .push_back(line("ERROR", value.to_string().as_bytes()));
        self.ended = true;
    }
}
