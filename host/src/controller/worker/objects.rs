//! The watched objects: events of the watches become work for the queue.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::queue::{Action, Observed};
use configurator_core::request::{ObjectRef, SinkName};
use configurator_core::time::Timestamp;
use futures::stream::SelectAll;
use futures::{Stream, StreamExt};
use kube::Resource as _;
use kube::api::Api;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};

use super::{ObjectStream, PAGE_SIZE, Worker};
use crate::cluster::WatchBackoff;
use crate::controller::cleanup::{self, Cleanup, Records};
use crate::controller::driver::Resting;
use crate::controller::finalizer::finalizer_name;
use crate::controller::inbox::Wake;
use crate::objects;
use crate::shards::ConfiguratorClaim;
use crate::tasks::TaskKind;
use crate::watched::Watched;

impl Worker {
    /// Lists and watches the objects, from the start.
    pub(super) async fn list(&mut self) {
        // What the ledger has is known before the first run asks, so that nothing is recorded twice.
        self.recorded = self.read_recorded().await;
        self.streams = self.streams();
        self.unlisted = self.streams.len();
    }

    /// Takes over the objects of shards that were gained, and lets go of those of shards that were lost.
    pub(super) async fn share(&mut self, claim: &ConfiguratorClaim) {
        let held = claim.held();
        let before = std::mem::replace(&mut self.held, held.clone());
        if before.difference(&held).next().is_some() {
            let is_let_go = |uid: &str| !held.contains(&claim.of(uid));
            if let Some(ledger) = &self.parts.context.ledger {
                ledger.let_go(is_let_go);
            }
            if let Some(finalizer) = &self.parts.context.finalizer {
                finalizer.let_go(is_let_go);
            }
            if let Some(sets) = &self.parts.context.sets {
                sets.let_go(is_let_go);
            }
            self.failures.retain(|failed| !is_let_go(&failed.uid));
            self.pending.retain(|uid| !is_let_go(uid));
            let now = self.now();
            let actions = self.queue.let_go(is_let_go, now);
            self.act(actions).await;
        }
        if held.is_empty() {
            self.streams = SelectAll::new();
            self.unlisted = 0;
        } else if held.difference(&before).next().is_some() {
            // Nothing is kept of objects that are another host's, so they are listed when they no longer are.
            self.list().await;
        }
    }

    /// Whether the object is in a namespace that the Configurator excludes or does not select.
    pub(super) fn excludes(&self, object: &Watched) -> bool {
        let namespace = object.meta().namespace.as_deref();
        let selected = self.parts.namespaces.as_ref();
        namespace.is_some_and(|namespace| {
            self.parts.configurator.watch.excludes(namespace)
                || selected.is_some_and(|selected| !selected.contains(namespace))
        })
    }

    /// Whether the object with this uid is this host's.
    pub(super) fn has(&self, uid: &str) -> bool {
        let claim = self.parts.claim.as_ref();
        claim.is_none_or(|claim| self.held.contains(&claim.of(uid)))
    }

    pub(super) fn streams(&self) -> SelectAll<ObjectStream> {
        let watched = &self.parts.configurator.watch;
        // The state comes as events of the watch, one after another: neither side holds a page of it, and there is one
        // request where pages are many.
        let mut config = watcher::Config::default()
            .page_size(PAGE_SIZE)
            .streaming_lists();
        if !watched.label_selector.is_empty() {
            config = config.labels(&watched.label_selector);
        }
        if !watched.field_selector.is_empty() {
            config = config.fields(&watched.field_selector);
        }
        let namespaces: Vec<String> = if watched.namespaces.is_empty() || !self.parts.is_namespaced
        {
            vec![String::new()]
        } else {
            watched.namespaces.clone()
        };
        let mut streams = SelectAll::new();
        for namespace in namespaces {
            let client = self.parts.client.clone();
            let api: Api<Watched> = if namespace.is_empty() {
                Api::all_with(client, &self.parts.resource)
            } else {
                Api::namespaced_with(client, &namespace, &self.parts.resource)
            };
            let events = watched_by(api, config.clone(), self.parts.seed);
            streams.push(events.map(move |event| (namespace.clone(), event)).boxed());
        }
        streams
    }

    pub(super) async fn on_event(&mut self, scope: &str, event: watcher::Result<Event<Watched>>) {
        let event = match event {
            Ok(event) => {
                self.watch_error = None;
                event
            }
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    configurator = %self.parts.configurator.key,
                    error,
                    "the watch failed; it is tried again"
                );
                self.watch_error = Some(error);
                return;
            }
        };
        if let Event::InitApply(object) | Event::Apply(object) | Event::Delete(object) = &event
            && self.excludes(object)
        {
            return;
        }
        let now = self.now();
        let mut shown = None;
        let mut is_listing_over = false;
        let actions = match event {
            Event::Init => {
                self.queue.list(scope);
                Vec::new()
            }
            Event::InitApply(object) => {
                shown = Some(object.key());
                // Where hosts share objects, another host may have handled it before.
                let is_known_new = self.is_listed && self.parts.claim.is_none();
                self.observe(object, is_known_new.then_some(now))
            }
            Event::Apply(object) => {
                shown = Some(object.key());
                self.observe(object, Some(now))
            }
            Event::Delete(object) => {
                if let Some(inbox) = self.inboxes.get(&object.key()) {
                    inbox.put(Wake::Deleted);
                }
                self.queue.gone(&object.key(), object.uid(), now)
            }
            Event::InitDone => {
                if self.unlisted == 0 {
                    self.recorded = self.read_recorded().await;
                }
                self.unlisted = self.unlisted.saturating_sub(1);
                is_listing_over = self.unlisted == 0;
                self.is_listed |= self.unlisted == 0;
                // With the last listing also what was handled in namespaces that are not watched any more.
                let is_last = self.unlisted == 0;
                let in_scope = |(key, _): &mut (ObjectRef, String)| {
                    is_last || scope.is_empty() || key.namespace == scope
                };
                let expected = self.recorded.extract_if(.., in_scope).collect();
                self.queue
                    .listed(scope, expected, self.unlisted == 0, self.now())
            }
        };
        self.act(actions).await;
        if self.is_listed && self.unlisted == 0 {
            if !std::mem::replace(&mut self.has_swept, true) {
                self.sweep().await;
            }
            if let Some(key) = shown {
                self.deliver(&key).await;
            }
            if is_listing_over {
                self.deliver_all().await;
            }
        }
    }

    /// Removes what is stored of objects that went while no host was there.
    pub(super) async fn sweep(&mut self) {
        let known = match cleanup::stored_objects(&self.parts.context).await {
            Ok(known) => known,
            Err(fault) => {
                return tracing::warn!(%fault, "it cannot be read which objects something is stored of; what has gone is removed at the next start");
            }
        };
        let there = self.queue.uids();
        let gone: Vec<(ObjectRef, String)> = known
            .into_iter()
            .filter(|(_, uid)| self.has(uid) && !there.contains(uid.as_str()))
            .collect();
        if gone.is_empty() {
            return;
        }
        let cleanups = self.cleanups();
        let (claim, stop) = (self.parts.claim.clone(), self.stop.clone());
        let queueing = async move {
            for (key, uid) in gone {
                let Ok(permit) = ConfiguratorClaim::permit(claim.as_ref(), &uid) else {
                    continue;
                };
                let cleanup = Box::new(Cleanup {
                    key,
                    uid,
                    records: Records::Stored,
                    permit: permit.map(Arc::new),
                });
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    _ = cleanups.send(cleanup) => {}
                }
            }
        };
        self.parts.tasks.spawn(TaskKind::Publisher, queueing);
    }

    /// Takes in a watched object. `appeared` is when it appeared, if the queue does not know it yet.
    pub(super) fn observe(
        &mut self,
        object: Watched,
        appeared: Option<Timestamp>,
    ) -> Vec<Action<Resting>> {
        if !self.has(object.uid()) {
            let now = self.now();
            return self.queue.displaced(&object.key(), object.uid(), now);
        }
        let finalizer = finalizer_name(&self.parts.configurator.key);
        if self.parts.configurator.ending().is_some() && !object.has_finalizer(&finalizer) {
            // It has no set.
            let now = self.now();
            return self.queue.displaced(&object.key(), object.uid(), now);
        }
        if let Some(placed) = &self.parts.context.finalizer
            && object.has_finalizer(&finalizer)
        {
            placed.note_placed(object.uid(), object.version());
        }
        let is_cancelled = object.is_cancelled();
        match object.observe(&self.parts.configurator, &finalizer) {
            Ok(observed) => {
                let now = self.now();
                if let Some(inbox) = self.inboxes.get(&observed.key) {
                    let known = self.queue.known(&observed.key);
                    if observed.deleting_since.is_some() {
                        inbox.put(Wake::Deleted);
                    } else if known.is_some_and(|(_, content)| content != observed.content) {
                        inbox.put(Wake::Observed { is_cancelled });
                    }
                }
                let observed = Observed {
                    appeared,
                    ..observed
                };
                self.queue.observe(observed, now)
            }
            Err(error) => {
                tracing::warn!(configurator = %self.parts.configurator.key, %error, "an object is left alone");
                Vec::new()
            }
        }
    }

    /// What was handled once, and may have gone or be watched no more. Until it can be read, nothing that is missing
    /// can be noticed, so it is waited for.
    pub(super) async fn read_recorded(&mut self) -> Vec<(ObjectRef, String)> {
        let context = self.parts.context.clone();
        let mut failures = 0;
        loop {
            let read = match (&context.ledger, &context.finalizer) {
                (Some(ledger), _) => ledger.read().await,
                (None, Some(finalizer)) => finalizer.held().await,
                (None, None) => Ok(Vec::new()),
            };
            match read {
                Ok(mut recorded) => {
                    self.unread = None;
                    recorded.retain(|(_, uid)| self.has(uid));
                    return recorded;
                }
                Err(fault) => {
                    failures += 1;
                    let sink = fault.kind.sink().unwrap_or(SinkName::Kubernetes);
                    self.unread = Some((sink, fault.message.clone()));
                    self.report();
                    tracing::warn!(configurator = %self.parts.configurator.key, %fault, "what was handled before cannot be read; it is tried again");
                    let wait = jittered(
                        Duration::from_secs(1 << failures.min(3)),
                        self.parts.seed ^ failures,
                    );
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => return Vec::new(),
                        () = context.clock.sleep(wait) => {}
                    }
                }
            }
        }
    }
}

/// Watches, and begins anew with a listing in pages where the server refuses to stream one.
fn watched_by(
    api: Api<Watched>,
    config: watcher::Config,
    seed: u64,
) -> impl Stream<Item = watcher::Result<Event<Watched>>> + Send {
    let paged = watcher::Config {
        initial_list_strategy: InitialListStrategy::ListWatch,
        ..config.clone()
    };
    let backoff = move || WatchBackoff::new(seed);
    let streamed = watch_kind(api.clone(), config).backoff(backoff()).boxed();
    // Few need the fallback, so it is boxed.
    let (mut events, mut fallback) = (streamed, Some(Box::new((api, paged))));
    futures::stream::poll_fn(move |context| {
        let polled = events.poll_next_unpin(context);
        if let Poll::Ready(Some(Err(error))) = &polled
            && refuses_to_stream(error)
            && let Some(fallback) = fallback.take()
        {
            let (api, paged) = *fallback;
            events = watch_kind(api, paged).backoff(backoff()).boxed();
            return events.poll_next_unpin(context);
        }
        polled
    })
}

/// Whether a server answers that it does not know, or does not allow, what a streamed listing is asked for with.
fn refuses_to_stream(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}
