//! Whether the Configurator may do everything that a set needs, before anything is written.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::entry::Provides;
use configurator_core::graph::member::MemberKey;
use configurator_core::request::{ObjectKey, SinkName};
use configurator_core::run::Run;

use super::kinds::{KindName, ServedKind};
use super::live::{Wanted, object_of};
use super::requests::MemberRequests;
use super::stores::StoreRequests;
use crate::objects::text;

/// The verbs that no rule grants, by what they are for.
type Lacking = BTreeMap<Subject, BTreeSet<&'static str>>;

/// A kind, a key or a secret that a rule is for. The namespace of a key or a secret is that of its partition, unless it is the Configurator's own.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Kind {
        group: String,
        plural: String,
        namespace: String,
    },
    Key {
        key: String,
        namespace: Option<String>,
    },
    Secret {
        name: String,
        namespace: Option<String>,
    },
}

/// Checks that rules grant everything that the entries need: to read, watch, apply and delete objects, and all verbs of keys and secrets.
///
/// # Errors
/// [`FaultKind::ResourcePermission`] with the rules that are missing. What is wrong with an entry that cannot be sent whatever the rules say.
pub(super) fn check(run: &Run, wanted: &Wanted) -> Result<(), Fault> {
    let requests = MemberRequests { run };
    let stores = StoreRequests { run };
    let mut lacking = Lacking::new();
    let mut reason = None;
    let defined = LazyCell::new(|| DefinedKinds::of(wanted));
    for (entry, key, served) in wanted.members() {
        let kind = match served {
            Some(kind) => Some(kind.clone()),
            None => KindName::of(entry).and_then(|name| defined.find(&name)),
        };
        let asked = match &kind {
            Some(kind) => vec![
                (
                    "apply",
                    requests.apply_unmarked((key, kind), entry).map(drop),
                ),
                (
                    "delete",
                    requests.delete((key, kind), "uid", None).map(drop),
                ),
                ("get", requests.get(key, kind).map(drop)),
                ("watch", run.check_watch(&object_key(key, kind))),
            ],
            None => stores.asked(key),
        };
        for (verb, asked) in asked {
            let Err(fault) = asked else { continue };
            if fault.kind != FaultKind::ResourcePermission {
                return Err(Fault {
                    message: format!("entry {:?}: {}", entry.name, fault.message),
                    ..fault
                });
            }
            let namespace = stores.partition(key);
            let subject = match (&kind, key) {
                (Some(kind), _) => Subject::Kind {
                    group: kind.group.clone(),
                    plural: kind.plural.clone(),
                    namespace: namespace_of(key),
                },
                (None, MemberKey::Config { key, .. }) => Subject::Key {
                    key: key.clone(),
                    namespace,
                },
                (None, MemberKey::Secret { name, .. } | MemberKey::Kubernetes { name, .. }) => {
                    Subject::Secret {
                        name: name.clone(),
                        namespace,
                    }
                }
            };
            lacking.entry(subject).or_default().insert(verb);
            reason.get_or_insert_with(|| format!("entry {:?}: {}", entry.name, fault.message));
        }
    }
    match reason {
        None => Ok(()),
        Some(reason) => Err(Fault::new(
            FaultKind::ResourcePermission,
            format!(
                "nothing of the set was written, because rules are missing: {reason}. The set needs:\n{}",
                rules(&lacking)
            ),
        )),
    }
}

/// The kinds that the entries of a set define themselves, with their plurals and whether they are in namespaces.
struct DefinedKinds(HashMap<(String, String), (String, bool)>);

impl DefinedKinds {
    fn of(wanted: &Wanted) -> Self {
        let mut kinds = HashMap::new();
        let entries = wanted.checked.graph.entries().iter();
        for (index, entry) in entries.enumerate() {
            let Some(Provides::Kind { group, kind }) = &entry.provides else {
                continue;
            };
            let object = wanted.entry(index).and_then(|(entry, _)| object_of(entry));
            let definition = object.map(Document::to_value).unwrap_or_default();
            let plural = text(&definition, "/spec/names/plural").to_owned();
            let is_namespaced = text(&definition, "/spec/scope") == "Namespaced";
            kinds.insert((group.clone(), kind.clone()), (plural, is_namespaced));
        }
        Self(kinds)
    }

    /// The kind as the API will serve it.
    fn find(&self, name: &KindName) -> Option<ServedKind> {
        let KindName {
            group,
            kind,
            version,
        } = name.clone();
        let (plural, is_namespaced) = self.0.get(&(group.clone(), kind.clone()))?.clone();
        Some(ServedKind {
            group,
            version: version?,
            kind,
            plural,
            is_namespaced,
        })
    }
}

fn namespace_of(key: &MemberKey) -> String {
    match key {
        MemberKey::Kubernetes { namespace, .. } => namespace.clone(),
        MemberKey::Config { .. } | MemberKey::Secret { .. } => String::new(),
    }
}

fn object_key(key: &MemberKey, kind: &ServedKind) -> ObjectKey {
    ObjectKey {
        group: kind.group.clone(),
        version: kind.version.clone(),
        plural: kind.plural.clone(),
        namespace: namespace_of(key),
        name: key.name().to_owned(),
    }
}

/// The rules as `spec.capabilities` has them.
fn rules(lacking: &Lacking) -> String {
    let mut text = String::new();
    let mut sink = "";
    for (subject, verbs) in lacking {
        if sink != subject.sink().name() {
            sink = subject.sink().name();
            let _ = writeln!(text, "{sink}:");
        }
        let verbs = verbs.iter().copied().collect::<Vec<_>>().join(", ");
        let _ = write!(text, "- {{{}, verbs: [{verbs}]", subject.selector());
        if let Some(namespace) = subject.namespace() {
            let _ = write!(text, ", namespaces: [{namespace:?}]");
        }
        text.push_str("}\n");
    }
    text.trim_end().to_owned()
}

impl Subject {
    const fn sink(&self) -> SinkName {
        match self {
            Self::Kind { .. } => SinkName::Kubernetes,
            Self::Key { .. } => SinkName::Configstore,
            Self::Secret { .. } => SinkName::Secretstore,
        }
    }

    /// The fields of a rule that select it.
    fn selector(&self) -> String {
        match self {
            Self::Kind { group, plural, .. } => {
                format!("apiGroups: [{group:?}], resources: [{plural:?}]")
            }
            Self::Key { key, .. } => format!("prefixes: [{key:?}]"),
            Self::Secret { name, .. } => format!("names: [{name:?}]"),
        }
    }

    fn namespace(&self) -> Option<&str> {
        match self {
            Self::Kind { namespace, .. } => Some(&**namespace).filter(|name| !name.is_empty()),
            Self::Key { namespace, .. } | Self::Secret { namespace, .. } => namespace.as_deref(),
        }
    }
}
