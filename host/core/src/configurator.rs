//! A Configurator whose declaration has been checked: what the decisions of this crate are made from.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::RetryPolicy;
use crate::capability::Capabilities;
use crate::document::Document;
use crate::glob;
use crate::handler::{CallLimits, WatchEvent};
use crate::machine::phase::Machine;
use crate::partition::Partition;
use crate::projection::Projection;
use crate::request::ObjectRef;
use crate::service_account::ServiceAccount;
use crate::time::Timestamp;

/// A checked declaration. Cannot be invalid: phases are not empty and no two share a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Configurator {
    /// Its namespace and name. A ClusterConfigurator has no namespace.
    pub key: ObjectRef,
    /// The part of the stores that it reaches.
    pub partition: Partition,
    /// As whom it reads and writes objects. `None`: as the host.
    pub service_account: Option<ServiceAccount>,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`.
    pub generation: i64,
    /// Whether no new runs begin.
    pub suspend: bool,
    /// Whether its runs are kept; `None`: as the host does.
    pub record: Option<bool>,
    /// What is watched.
    pub watch: Watch,
    /// Whether handlers get a list; `None`: one object.
    pub batch: Option<BatchOptions>,
    /// Handed to every call.
    pub parameters: Document,
    /// Those of the parameters that are secret, in the form in which the secret store answers.
    pub secrets: Vec<Document>,
    /// The chain of phases; the first is the root phase. Empty if it has a machine, and only then.
    pub phases: Vec<Phase>,
    /// The machine. `None` if it has a chain.
    pub machine: Option<MachineMode>,
    /// What happens when an object goes.
    pub deletion: Deletion,
    /// The limits of desired sets. `None`: its handlers may not return one.
    pub sets: Option<Box<SetOptions>>,
    /// What its requests may do.
    pub capabilities: Capabilities,
    /// Limits of one call.
    pub limits: CallLimits,
    /// The most requests of one output.
    pub max_requests: usize,
    /// The most runs at one time, and the most requests of one run side by side.
    pub concurrency: usize,
    /// How failures are retried.
    pub retry: RetryPolicy,
}

/// What a Configurator watches.
#[derive(Debug, Clone, PartialEq)]
pub struct Watch {
    /// Empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Empty for all.
    pub namespaces: Vec<String>,
    /// Namespaces whose objects are not selected; `*` stands for any number of characters.
    pub exclude_namespaces: Vec<String>,
    /// Selects namespaces by their labels, as in `kubectl -l`. Empty for all.
    pub namespace_selector: String,
    /// As in `kubectl -l`.
    pub label_selector: String,
    /// As in `kubectl --field-selector`.
    pub field_selector: String,
    /// Which events start runs.
    pub events: Vec<WatchEvent>,
    /// How long an object may be left alone; `None`: for ever.
    pub resync_period: Option<Duration>,
    /// Which parts of each object are kept.
    pub fields: Projection,
}

impl Watch {
    /// Whether objects of this namespace are not selected.
    #[must_use]
    pub fn excludes(&self, namespace: &str) -> bool {
        self.exclude_namespaces
            .iter()
            .any(|pattern| glob::matches(pattern, namespace))
    }

    /// Whether this event starts a run. A resync always does; a deletion never does by itself, see [`Deletion`].
    #[must_use]
    pub fn starts_run(&self, event: WatchEvent) -> bool {
        event == WatchEvent::Resync || self.events.contains(&event)
    }
}

/// How batches are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// The most objects of one batch.
    pub max_size: usize,
    /// The longest that an object waits for others.
    pub max_delay: Duration,
}

/// The options of desired sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetOptions {
    /// The largest share of the members, in percent, that one change of a set may prune.
    pub max_prune_percent: u8,
    /// Fewer members than this may always be pruned.
    pub prune_from: usize,
    /// The most entries of a set.
    pub max_entries: usize,
    /// The time between two reads of members that no watch reports.
    pub poll_interval: Duration,
    /// The most watches of members.
    pub max_watches: usize,
    /// The time without events after which the host keeps only a summary of a complete set in memory.
    pub idle_after: Duration,
    /// The field managers whose fields are taken over when an object is adopted, with `*` for any number of characters.
    pub adopted_managers: Arc<[String]>,
    /// `Some`: the Configurator is being deleted, and its sets end although their owners stay.
    pub ending: Option<Ending>,
}

/// How the sets end of a Configurator that is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    /// When its deletion began.
    pub since: Timestamp,
    /// Whether the members stay, and lose the marks of their sets. Otherwise they are deleted.
    pub keeps_members: bool,
}

/// One stage of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Unique among the phases of its chain.
    pub name: String,
    /// The handler's name.
    pub handler: String,
}

/// A machine, and how its objects are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineMode {
    /// The phases, and which follows which.
    pub machine: Arc<Machine>,
    /// Where the state of an object is kept.
    pub place: StatePlace,
    /// Whether the entries of a phase stay on the module that it began with, whatever is swapped meanwhile.
    pub pins_modules: bool,
}

/// Where the state of an object is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatePlace {
    /// In the object's status.
    Status {
        /// Names of the fields that lead to the phase, from the object: `status`, `phase`.
        phase: Vec<String>,
        /// To what the nodes have come to.
        state: Vec<String>,
        /// To what only the engine reads.
        memento: Vec<String>,
    },
    /// In a ConfigMap beside the object, which goes with it.
    ConfigMap,
    /// In the config store.
    ConfigStore,
}

impl Configurator {
    /// Whether the deletion of an object starts a run: for the phases of `deletion`, or for the object's set.
    #[must_use]
    pub fn handles_deletion(&self) -> bool {
        self.deletion.is_handled() || self.sets.is_some()
    }

    /// How the sets end, because the Configurator is being deleted. `None`: they do not.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.sets.as_ref()?.ending
    }
}

/// What happens when an object goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// How a deletion is noticed.
    pub by: DeletionBy,
    /// The chain that is run; empty: nothing is done.
    pub phases: Vec<Phase>,
    /// How long a finalizer may hold an object.
    pub timeout: Duration,
}

/// How a deletion is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionBy {
    /// The objects handled are recorded in the config store; what is missing is found at start and at a new listing.
    Ledger,
    /// A finalizer holds the object until the phases are done.
    Finalizer,
}

impl Deletion {
    /// Whether there are phases.
    #[must_use]
    pub fn is_handled(&self) -> bool {
        !self.phases.is_empty()
    }
}
