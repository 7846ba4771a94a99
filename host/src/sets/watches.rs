//! Watches the members of the sets of one Configurator: one watch for each kind and namespace that a set has members of, or one for a kind in
//! all namespaces where there are many. They begin and end with the sets. What cannot be watched is listed periodically.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use configurator_core::desired::marks::{self, CONFIGURATOR};
use configurator_core::graph::member::MemberKey;
use configurator_core::request::{ObjectRef, api_version};
use configurator_core::time::Timestamp;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::Client;
use kube::api::{Api, ApiResource, ListParams};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};

use super::registry::{Sets, Shown, WatchedKind};
use crate::clock::SharedClock;
use crate::cluster::WatchBackoff;
use crate::kubernetes_faults::watch_status;
use crate::objects;
use crate::watched::Watched;

/// From so many namespaces on, a kind is watched in all of them at once, until it is half as many.
const WIDE_FROM: usize = 8;
/// The objects of one page of a listing.
const PAGE: u32 = 500;
/// A kind whose watch was refused is listed so often before the host tries to watch it again.
const LISTINGS: u32 = 10;

type WatchResult = watcher::Result<Event<Watched>>;

/// How members are watched.
pub(crate) struct WatchOptions {
    /// The uid of the Configurator.
    pub(crate) configurator: String,
    /// Whether members can be in several namespaces.
    pub(crate) is_wide: bool,
    /// The most watches. Further kinds and namespaces are listed.
    pub(crate) max_watches: usize,
    /// The time between two listings.
    pub(crate) interval: Duration,
    pub(crate) clock: SharedClock,
    pub(crate) seed: u64,
}

/// The watches of one Configurator.
pub(crate) struct MemberWatches {
    client: Client,
    options: WatchOptions,
    /// What the sets have members of.
    wanted: HashSet<WatchedKind>,
    /// The groups and kinds that may not be watched in all namespaces at once.
    narrow: HashSet<(String, String)>,
    watches: HashMap<WatchedKind, Watch>,
}

struct Watch {
    means: Means,
    events: BoxStream<'static, WatchResult>,
    /// The objects of the listing under way.
    listing: HashSet<MemberKey>,
}

/// How events come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    /// The server sends them.
    Watch,
    /// The objects are listed, because there are too many watches.
    Listings,
    /// The objects are listed for a while, because the server refuses to send events.
    Refused,
}

/// An event of a watch.
pub(crate) struct MemberEvent {
    watched: WatchedKind,
    event: WatchResult,
}

impl MemberWatches {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Self {
        Self {
            client,
            options,
            wanted: HashSet::new(),
            narrow: HashSet::new(),
            watches: HashMap::new(),
        }
    }

    /// From now on these kinds are watched, and no others.
    pub(crate) fn watch(&mut self, all: HashSet<WatchedKind>) {
        self.wanted = all;
        self.arrange();
    }

    /// Begins and ends watches.
    fn arrange(&mut self) {
        let needed = self.needed();
        self.watches.retain(|watched, _| needed.contains(watched));
        // One that is refused is tried again, so it keeps its place.
        let has_place = |watch: &&Watch| watch.means != Means::Listings;
        let watches = self.watches.values().filter(has_place).count();
        let mut room = self.options.max_watches.saturating_sub(watches);
        for watched in needed {
            let means = match self.watches.get(&watched).map(|watch| watch.means) {
                Some(Means::Watch | Means::Refused) => continue,
                Some(Means::Listings) if room == 0 => continue,
                Some(Means::Listings) | None if room > 0 => Means::Watch,
                Some(Means::Listings) | None => Means::Listings,
            };
            if means == Means::Watch {
                room -= 1;
            }
            self.begin(watched, means);
        }
    }

    /// The watches that the wanted kinds need.
    fn needed(&self) -> BTreeSet<WatchedKind> {
        let mut needed: BTreeSet<WatchedKind> = self.wanted.iter().cloned().collect();
        if !self.options.is_wide {
            return needed;
        }
        let mut namespaces: HashMap<WatchedKind, usize> = HashMap::new();
        for watched in needed.iter().filter(|of| !of.namespace.is_empty()) {
            *namespaces.entry(watched.everywhere()).or_default() += 1;
        }
        for (everywhere, number) in namespaces {
            let is_many = number >= WIDE_FROM
                || number > WIDE_FROM / 2 && self.watches.contains_key(&everywhere);
            if is_many && !self.narrow.contains(&everywhere.group_kind()) {
                needed.retain(|watched| watched.everywhere() != everywhere);
                needed.insert(everywhere);
            }
        }
        needed
    }

    fn begin(&mut self, watched: WatchedKind, means: Means) {
        let resource = ApiResource {
            group: watched.group.clone(),
            version: watched.version.clone(),
            api_version: api_version(&watched.group, &watched.version),
            kind: watched.kind.clone(),
            plural: watched.plural.clone(),
        };
        let client = self.client.clone();
        let api: Api<Watched> = match watched.namespace.as_str() {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, namespace, &resource),
        };
        let selector = format!("{CONFIGURATOR}={}", self.options.configurator);
        let events = match means {
            Means::Watch => watch_kind(api, watcher::Config::default().labels(&selector))
                .backoff(WatchBackoff::new(self.options.seed))
                .boxed(),
            Means::Listings => listings(api, selector, &self.options, u32::MAX).boxed(),
            Means::Refused => listings(api, selector, &self.options, LISTINGS).boxed(),
        };
        let watch = Watch {
            means,
            events,
            listing: HashSet::new(),
        };
        self.watches.insert(watched, watch);
    }

    /// Returns the next event.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<MemberEvent> {
        loop {
            let mut ended = None;
            for (watched, watch) in &mut self.watches {
                match Pin::new(&mut watch.events).poll_next(context) {
                    Poll::Ready(Some(event)) => {
                        let watched = watched.clone();
                        return Poll::Ready(MemberEvent { watched, event });
                    }
                    Poll::Ready(None) => {
                        ended = Some(watched.clone());
                        break;
                    }
                    Poll::Pending => {}
                }
            }
            match ended {
                Some(watched) => self.begin(watched, Means::Watch),
                None => return Poll::Pending,
            }
        }
    }

    /// Takes in an event, and returns the owners that need a run because of it.
    pub(crate) fn take_in(
        &mut self,
        MemberEvent { watched, event }: MemberEvent,
        sets: &Sets,
        now: Timestamp,
    ) -> Vec<ObjectRef> {
        let Some(watch) = self.watches.get_mut(&watched) else {
            return Vec::new();
        };
        match event {
            Ok(Event::Init) => {
                watch.listing.clear();
                Vec::new()
            }
            Ok(Event::InitApply(object)) => {
                watch.listing.insert(key_of(&watched, &object));
                show(&watched, object, sets, now).into_iter().collect()
            }
            Ok(Event::InitDone) => {
                let listed = std::mem::take(&mut watch.listing);
                sets.listed(&watched, listed, now)
            }
            Ok(Event::Apply(object)) => show(&watched, object, sets, now).into_iter().collect(),
            Ok(Event::Delete(object)) => {
                let key = key_of(&watched, &object);
                let id = object.label(marks::PART_OF);
                id.and_then(|id| sets.show(&id, key, Shown::Unselected, now))
                    .into_iter()
                    .collect()
            }
            Err(error) => {
                self.on_error(watched, &error);
                Vec::new()
            }
        }
    }

    /// Has a kind listed that may not be watched, or watched in each namespace.
    fn on_error(&mut self, watched: WatchedKind, error: &watcher::Error) {
        let is_refusal = matches!(watch_status(error), Some(401 | 403 | 405));
        let means = self.watches.get(&watched).map(|watch| watch.means);
        let message = objects::explained(error);
        if is_refusal && means == Some(Means::Watch) {
            let is_wide = !self.wanted.contains(&watched);
            tracing::info!(
                plural = watched.plural,
                group = watched.group,
                namespace = watched.namespace,
                is_wide,
                message,
                "members of sets may not be watched, so they are watched in each namespace, or listed"
            );
            if is_wide {
                self.narrow.insert(watched.group_kind());
                self.arrange();
            } else {
                self.begin(watched, Means::Refused);
            }
            return;
        }
        tracing::warn!(
            plural = watched.plural,
            group = watched.group,
            namespace = watched.namespace,
            message,
            "members of sets cannot be watched or listed; the host retries"
        );
    }
}

/// Lists the objects so often, and yields what a watch would when it begins anew.
fn listings(
    api: Api<Watched>,
    selector: String,
    options: &WatchOptions,
    rounds: u32,
) -> impl Stream<Item = WatchResult> + use<> {
    let (interval, clock) = (options.interval, options.clock.clone());
    let listings = stream::unfold(0, move |round| {
        let (api, selector, clock) = (api.clone(), selector.clone(), clock.clone());
        async move {
            if round == rounds {
                return None;
            }
            if round > 0 {
                clock.sleep(interval).await;
            }
            let events = match list(&api, &selector).await {
                Ok(objects) => {
                    let objects = objects
                        .into_iter()
                        .map(|object| Ok(Event::InitApply(object)));
                    let events = std::iter::once(Ok(Event::Init)).chain(objects);
                    events.chain([Ok(Event::InitDone)]).collect()
                }
                Err(error) => vec![Err(watcher::Error::InitialListFailed(error))],
            };
            Some((stream::iter(events), round.saturating_add(1)))
        }
    });
    listings.flatten()
}

/// Lists all objects that a selector selects.
async fn list(api: &Api<Watched>, selector: &str) -> Result<Vec<Watched>, kube::Error> {
    let mut params = ListParams::default().labels(selector).limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let page = api.list(&params).await?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

fn show(
    watched: &WatchedKind,
    mut object: Watched,
    sets: &Sets,
    now: Timestamp,
) -> Option<ObjectRef> {
    let key = key_of(watched, &object);
    let id = object.label(marks::PART_OF)?;
    let api_version = api_version(&watched.group, &watched.version);
    object.complete(&api_version, &watched.kind);
    sets.show(&id, key, Shown::Watched(Box::new(object)), now)
}

fn key_of(watched: &WatchedKind, object: &Watched) -> MemberKey {
    let ObjectRef { namespace, name } = object.key();
    MemberKey::Kubernetes {
        group: watched.group.clone(),
        kind: watched.kind.clone(),
        namespace,
        name,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::clock::VirtualClock;

    /// Reads of a server that lets nobody watch, and nobody list in all namespaces.
    async fn serve(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let uri = request.uri().to_string();
        let is_watch = uri.contains("watch=true");
        let status = if is_watch || !uri.contains("/namespaces/") {
            403
        } else {
            200
        };
        let body = match status {
            200 => json!({
                "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"},
                "items": [{"metadata": {"name": "a", "namespace": "shop-0", "resourceVersion": "1"}}],
            }),
            _ => {
                json!({"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": uri, "code": 403})
            }
        };
        let response = Response::builder().status(status);
        Ok(response
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap())
    }

    #[tokio::test]
    async fn what_may_not_be_watched_is_listed() {
        let client = Client::new(tower::service_fn(serve), "default");
        let clock = Arc::new(VirtualClock::starting_at(Timestamp::default()));
        let mut watches = MemberWatches::new(
            client,
            WatchOptions {
                configurator: "uid".to_owned(),
                is_wide: true,
                max_watches: 100,
                interval: Duration::from_secs(60),
                clock,
                seed: 0,
            },
        );
        let kind = |number: usize| WatchedKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespace: format!("shop-{number}"),
        };
        watches.watch((0..WIDE_FROM).map(kind).collect());
        assert_eq!(watches.watches.len(), 1);
        let mut listed = 0;
        while listed < WIDE_FROM {
            let MemberEvent { watched, event } =
                std::future::poll_fn(|context| watches.poll(context)).await;
            let means = watches.watches[&watched].means;
            match event {
                Err(error) => watches.on_error(watched, &error),
                Ok(Event::InitDone) if means == Means::Refused => listed += 1,
                Ok(_) => {}
            }
        }
        assert_eq!(watches.watches.len(), WIDE_FROM);
        let means = watches.watches.values().map(|watch| watch.means);
        assert!(means.into_iter().all(|means| means == Means::Refused));
        // With fewer namespaces, each is watched as before.
        watches.watch(HashSet::from([kind(0)]));
        assert_eq!(watches.watches.len(), 1);
    }

    #[test]
    fn there_are_no_more_watches_than_allowed() {
        let silent = tower::service_fn(async |_: Request<Body>| {
            std::future::pending::<Result<Response<Body>, Infallible>>().await
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let _entered = runtime.enter();
        let mut watches = MemberWatches::new(
            Client::new(silent, "default"),
            WatchOptions {
                configurator: "uid".to_owned(),
                is_wide: false,
                max_watches: 2,
                interval: Duration::from_secs(60),
                clock: Arc::new(VirtualClock::starting_at(Timestamp::default())),
                seed: 0,
            },
        );
        let kind = |name: &&str| WatchedKind {
            group: String::new(),
            version: "v1".to_owned(),
            kind: (*name).to_owned(),
            plural: name.to_lowercase(),
            namespace: "shop".to_owned(),
        };
        let count = |watches: &MemberWatches, means: Means| {
            let all = watches.watches.values();
            all.filter(|watch| watch.means == means).count()
        };
        watches.watch(["A", "B", "C"].iter().map(kind).collect());
        assert_eq!(count(&watches, Means::Watch), 2);
        assert_eq!(count(&watches, Means::Listings), 1);
        // The room of one that ends is used.
        let ended = watches.watches.iter();
        let ended = ended.filter(|(_, watch)| watch.means == Means::Watch);
        let ended = ended.map(|(watched, _)| watched.clone()).next().unwrap();
        let mut left = watches.wanted.clone();
        left.remove(&ended);
        watches.watch(left.clone());
        assert_eq!(count(&watches, Means::Watch), 2);
        assert_eq!(count(&watches, Means::Listings), 0);
        // A refused watch is tried again later, so nothing takes its place.
        watches.begin(left.iter().next().unwrap().clone(), Means::Refused);
        left.insert(ended);
        watches.watch(left);
        assert_eq!(count(&watches, Means::Watch), 1);
        assert_eq!(count(&watches, Means::Listings), 1);
    }
}
