//! What is said of a Configurator in its status: by each host for itself, and by one of them for all.

use std::sync::Arc;
use std::time::Duration;

use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use kube::{Client, ResourceExt as _};
use tokio::sync::watch;

use super::status::{self, Known, Published, transitions};
use crate::clock::SharedClock;
use crate::host::Shared;
use crate::resource::{Configurator, HostStatus};
use crate::shards::{ConfiguratorClaim, Shards};

/// At most this often something is said.
const INTERVAL: Duration = Duration::from_secs(1);
/// The wait before what could not be written is written again.
const AGAIN: Duration = Duration::from_secs(5);

/// What the hosts that share the objects say, each for itself.
pub type Said = watch::Receiver<Vec<HostStatus>>;

pub(super) struct Voice {
    client: Client,
    clock: SharedClock,
    shards: Option<Arc<Shards>>,
    claim: Option<ConfiguratorClaim>,
    key: ObjectRef,
    uid: String,
    said: Said,
    /// What was said for all.
    written: Option<Published>,
    /// What this host has said for itself.
    own: Option<Box<HostStatus>>,
    due: Option<Timestamp>,
}

impl Voice {
    pub(super) fn new(
        shared: &Shared,
        configurator: &Configurator,
        said: Said,
        claim: Option<ConfiguratorClaim>,
    ) -> Self {
        Self {
            client: shared.client.clone(),
            clock: shared.clock.clone(),
            shards: shared.shards.clone(),
            claim,
            key: configurator.key(),
            uid: configurator.uid().unwrap_or_default(),
            said,
            written: configurator.status.as_ref().map(Published::new),
            own: None,
            due: None,
        }
    }

    /// When there is something to say.
    pub(super) fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Something has changed; what comes within the interval is said with it.
    pub(super) fn speak_soon(&mut self) {
        self.due.get_or_insert(self.clock.now().after(INTERVAL));
    }

    /// Returns when a host has said something.
    pub(super) async fn hear(&mut self) {
        if self.said.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// Whether this host speaks for all: always, unless hosts share the objects; then one of the group that has claimed the Configurator does.
    pub(super) fn speaks(&self) -> bool {
        let claim = self.claim.as_ref();
        claim.is_none_or(|claim| claim.speaks_for(&self.uid))
    }

    /// What the other hosts say that live.
    pub(super) fn others(&self) -> Vec<HostStatus> {
        let Some(shards) = &self.shards else {
            return Vec::new();
        };
        let (_, others) = self.heard(shards);
        others
    }

    /// What was said by hosts that are gone, and by others that live.
    fn heard(&self, shards: &Shards) -> (Vec<HostStatus>, Vec<HostStatus>) {
        let members = shards.members();
        let said = self.said.borrow();
        said.iter()
            .filter(|host| host.name != shards.identity())
            .cloned()
            .partition(|host| !members.contains(&host.name))
    }

    /// Says what is known, where it is news; what cannot be written is tried again. The resource is the newest that is
    /// known.
    pub(super) async fn say(&mut self, configurator: &Configurator, known: &Known) {
        self.due = None;
        if self.claim.as_ref().is_some_and(|claim| !claim.is_open()) {
            return self.fall_silent().await;
        }
        if let Some(shards) = self.shards.clone() {
            self.say_own(&shards, known).await;
        }
        if !self.speaks() {
            self.written = None;
            return;
        }
        let others = self.others();
        let now = self.clock.now();
        let status = match &self.written {
            Some(written) => status::status_of(known, &others, written.transitions(), now),
            None => {
                let before = configurator.status.as_ref().map(transitions);
                status::status_of(known, &others, &before.unwrap_or_default(), now)
            }
        };
        if self
            .written
            .as_ref()
            .is_some_and(|written| written.is(&status))
        {
            return;
        }
        match status::write(&self.client, &self.key, &status).await {
            Ok(()) => self.written = Some(Published::new(&status)),
            Err(error) => self.failed(&error),
        }
    }

    /// Says what is known here, and takes away what was said by hosts that are gone.
    async fn say_own(&mut self, shards: &Shards, known: &Known) {
        let held = u16::try_from(shards.held().len()).unwrap_or(u16::MAX);
        let own = status::host_status(known, shards.identity(), held, self.others().len() + 1);
        if self.own.as_deref() != Some(&own) {
            match status::write_host(&self.client, &self.key, shards.identity(), Some(&own)).await {
                Ok(()) => self.own = Some(Box::new(own)),
                Err(error) => self.failed(&error),
            }
        }
        if !self.speaks() {
            return;
        }
        let (gone, _) = self.heard(shards);
        for host in gone {
            if let Err(error) = status::write_host(&self.client, &self.key, &host.name, None).await
            {
                self.failed(&error);
            }
        }
    }

    /// This host says nothing more for itself. Where that cannot be written, another takes it away in time.
    pub(super) async fn fall_silent(&mut self) {
        self.due = None;
        let (Some(shards), true) = (&self.shards, self.own.is_some()) else {
            return;
        };
        match status::write_host(&self.client, &self.key, shards.identity(), None).await {
            Ok(()) => self.own = None,
            Err(error) => self.failed(&error),
        }
    }

    fn failed(&mut self, error: &kube::Error) {
        tracing::warn!(configurator = %self.key, %error, "the status could not be written");
        self.due = Some(self.clock.now().after(AGAIN));
    }
}
