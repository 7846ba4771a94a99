//! The layout of the config store: its keys, and the layers, cascades and uid rules above the leaves that requests name.
//!
//! A store reads the keys of [`reads`], hands what it found to [`plan`], and writes the answer's changes in one
//! transaction that holds only if none of those keys has changed meanwhile.
//!
//! | key | value |
//! |---|---|
//! | `basic/{key}` | the value |
//! | `resources/{type}/[{namespace}/][{workloadKind}/]{name}` | `{"uid"?, "value"?}`; without a value the entry only carries app-conf |
//! | `appconf/{namespace}/{pod}/{key}` | the value; goes with the pod's entry |
//! | `two/{second}` | `{}`, while there is a leaf |
//! | `two/{second}/{third}` | the value |

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::document::Document;
use crate::fault::{Fault, FaultKind};
use crate::request::{
    ConfigAppConf, ConfigBasic, ConfigOperation, ConfigResource, ConfigTwoLayers, ConfigType,
    ConfigVerb,
};

/// The most operations of one transaction.
pub const MAX_OPERATIONS: usize = 100;
/// The most keys and layers that one transaction looks at, so that it fits etcd's default of 128 operations
/// with the fences that a host adds.
pub const MAX_READS: usize = 124;
/// The most bytes of all keys and values that one transaction writes, so that it fits etcd's default of 1.5 MiB.
pub const MAX_TRANSACTION: usize = 5 << 18;
/// The longest key, in bytes after encoding.
pub const MAX_KEY: usize = 1024;
/// The longest value, in bytes.
pub const MAX_VALUE: usize = 1 << 20;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An operation that names no key of the layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A part of the key is missing or empty.
    #[error("a config request for a {what} needs {field}")]
    Missing {
        /// What the operation is about.
        what: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The key passes [`MAX_KEY`].
    #[error("the key {key:.80}… has {size} bytes; {MAX_KEY} are allowed")]
    TooLong {
        /// The key.
        key: String,
        /// Its bytes.
        size: usize,
    },
}

/// The leaf that an operation names. `default_namespace` is that of the object being handled.
///
/// # Errors
/// When a part of the key is missing, empty, or the key is too long.
pub fn key_of(operation: &ConfigOperation, default_namespace: &str) -> Result<String, KeyError> {
    let key = match operation {
        ConfigOperation::Resource(resource) => resource_key(resource)?,
        ConfigOperation::AppConf(app_conf) => {
            let namespace = app_conf.namespace.as_deref().unwrap_or(default_namespace);
            join(
                "appconf",
                &[
                    need("app-conf", "namespace", namespace)?,
                    need("app-conf", "pod-name", &app_conf.pod_name)?,
                    need("app-conf", "key", &app_conf.key)?,
                ],
            )
        }
        ConfigOperation::Basic(basic) => join("basic", &[need("basic key", "key", &basic.key)?]),
        ConfigOperation::TwoLayers(two) => join(
            "two",
            &[
                need("two-layers leaf", "second-path", &two.second_path)?,
                need("two-layers leaf", "third-path", &two.third_path)?,
            ],
        ),
    };
    if key.len() > MAX_KEY {
        return Err(KeyError::TooLong {
            size: key.len(),
            key,
        });
    }
    Ok(key)
}

/// Returns the operation with this verb and value on the leaf that a key of the layout names: the inverse of [`key_of`]. `None`: no request can
/// name that key.
#[must_use]
pub fn operation_at(key: &str, verb: ConfigVerb, value: Option<String>) -> Option<ConfigOperation> {
    let (layer, segments) = key.split_once('/')?;
    let decoded =
        |segment: &str| Some(percent_decode_str(segment).decode_utf8().ok()?.into_owned());
    let segments = segments.split('/').map(decoded);
    let segments = segments.collect::<Option<Vec<String>>>()?;
    Some(match (layer, segments.as_slice()) {
        ("basic", [key]) => ConfigOperation::Basic(ConfigBasic {
            verb,
            key: key.clone(),
            value,
        }),
        ("two", [second, third]) => ConfigOperation::TwoLayers(ConfigTwoLayers {
            verb,
            second_path: second.clone(),
            third_path: third.clone(),
            value,
        }),
        ("appconf", [namespace, pod, key]) => ConfigOperation::AppConf(ConfigAppConf {
            verb,
            pod_name: pod.clone(),
            namespace: Some(namespace.clone()),
            key: key.clone(),
            value,
        }),
        ("resources", [what, place @ .., name]) => {
            let mut types = ConfigType::ALL.into_iter();
            let config_type = types.find(|config_type| config_type.name() == what)?;
            let (namespace, workload_kind) = match (config_type, place) {
                (ConfigType::Pod, [namespace]) => (Some(namespace), None),
                (ConfigType::Workload, [namespace, kind]) => (Some(namespace), Some(kind)),
                (ConfigType::Node | ConfigType::Namespace, []) => (None, None),
                _ => return None,
            };
            ConfigOperation::Resource(ConfigResource {
                config_type,
                verb,
                name: name.clone(),
                uid: None,
                namespace: namespace.cloned(),
                workload_kind: workload_kind.cloned(),
                value,
            })
        }
        _ => return None,
    })
}

fn resource_key(resource: &ConfigResource) -> Result<String, KeyError> {
    let what = resource.config_type.name();
    let name = need(what, "resource-name", &resource.name)?;
    let mut segments = vec![what];
    if resource.config_type.is_namespaced() {
        segments.push(need(
            what,
            "namespace",
            resource.namespace.as_deref().unwrap_or_default(),
        )?);
    }
    if resource.config_type == ConfigType::Workload {
        segments.push(need(
            what,
            "workload-kind",
            resource.workload_kind.as_deref().unwrap_or_default(),
        )?);
    }
    segments.push(name);
    Ok(join("resources", &segments))
}

fn need<'a>(what: &'static str, field: &'static str, value: &'a str) -> Result<&'a str, KeyError> {
    if value.is_empty() {
        Err(KeyError::Missing { what, field })
    } else {
        Ok(value)
    }
}

fn join(layer: &str, segments: &[&str]) -> String {
    // Most segments are encoded as they are.
    let size = segments
        .iter()
        .map(|segment| 1 + segment.len())
        .sum::<usize>();
    let mut key = String::with_capacity(layer.len() + size);
    key.push_str(layer);
    for segment in segments {
        key.push('/');
        key.extend(utf8_percent_encode(segment, ENCODED));
    }
    key
}

/// What a store must read before [`plan`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// One key.
    Key(String),
    /// The first keys that begin with `prefix`, in order, at most `limit` of them: enough to see whether one is left
    /// when those are gone that the operations remove.
    First {
        /// How they begin.
        prefix: String,
        /// How many are enough.
        limit: usize,
    },
}

/// What a store must write: all of it, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Sets a key.
    Put(String, String),
    /// Removes a key.
    Delete(String),
    /// Removes every key that begins so, also those that were not read.
    DeletePrefix(String),
}

impl Write {
    /// Bytes of its key and value.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Put(key, value) => key.len() + value.len(),
            Self::Delete(key) | Self::DeletePrefix(key) => key.len(),
        }
    }
}

/// What the operations come to.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigPlan {
    /// One document for each operation, in order: `{"key", "uid"?, "value"?}`; a `delete` has the key alone.
    pub answers: Vec<Document>,
    /// What changes; empty when everything is as it should be.
    pub writes: Vec<Write>,
}

/// The keys that [`plan`] needs to see.
///
/// # Errors
/// [`FaultKind::ResourceGeneric`] when an operation names no key.
pub fn reads(operations: &[ConfigOperation], default_namespace: &str) -> Result<Vec<Read>, Fault> {
    let mut reads = std::collections::BTreeSet::new();
    let first = |prefix: String| Read::First {
        prefix,
        limit: operations.len().saturating_add(1),
    };
    for operation in operations {
        let key = key_of(operation, default_namespace).map_err(invalid)?;
        match operation {
            ConfigOperation::Resource(resource) if resource.verb.is_mutating() => {
                if let Some(prefix) = app_conf_prefix(&key) {
                    reads.insert(first(prefix));
                }
            }
            ConfigOperation::AppConf(app_conf) => {
                let pod = pod_of_app_conf(&key);
                reads.insert(Read::Key(entry_of_pod(pod)));
                if app_conf.verb == ConfigVerb::Delete {
                    reads.insert(first(app_conf_of_pod(pod)));
                }
            }
            ConfigOperation::TwoLayers(two) if two.verb.is_mutating() => {
                let index = index_of(&key);
                if two.verb == ConfigVerb::Delete {
                    reads.insert(first(format!("{index}/")));
                }
                reads.insert(Read::Key(index));
            }
            ConfigOperation::Resource(_)
            | ConfigOperation::TwoLayers(_)
            | ConfigOperation::Basic(_) => {}
        }
        reads.insert(Read::Key(key));
    }
    if reads.len() > MAX_READS {
        return Err(generic(format!(
            "a config transaction looks at {} keys; {MAX_READS} are allowed",
            reads.len()
        )));
    }
    Ok(reads.into_iter().collect())
}

/// Decides what the operations come to, given everything that is stored under their [`reads`].
///
/// Later operations see what earlier ones wrote. A value that is already there is not written again.
///
/// # Errors
/// [`FaultKind::ResourceNotFound`] for a `get` that finds nothing; [`FaultKind::ResourceGeneric`] for an operation
/// that is not well formed. Then nothing must be written.
pub fn plan(
    operations: &[ConfigOperation],
    default_namespace: &str,
    stored: &BTreeMap<String, String>,
) -> Result<ConfigPlan, Fault> {
    if operations.len() > MAX_OPERATIONS {
        return Err(generic(format!(
            "a config transaction has {} operations; {MAX_OPERATIONS} are allowed",
            operations.len()
        )));
    }
    let mut view = View {
        stored,
        changed: BTreeMap::new(),
        dropped: Vec::new(),
    };
    let mut answers = Vec::with_capacity(operations.len());
    for operation in operations {
        let key = key_of(operation, default_namespace).map_err(invalid)?;
        if let Some(value) = operation.value()
            && value.len() > MAX_VALUE
        {
            return Err(generic(format!(
                "the value of {key} has {} bytes; {MAX_VALUE} are allowed",
                value.len()
            )));
        }
        answers.push(match operation {
            ConfigOperation::Resource(resource) => view.resource(&key, resource)?,
            ConfigOperation::AppConf(app_conf) => view.app_conf(&key, app_conf)?,
            ConfigOperation::Basic(basic) => view.basic(&key, basic)?,
            ConfigOperation::TwoLayers(two) => view.two_layers(&key, two)?,
        });
    }
    let writes = view.into_writes();
    let size: usize = writes.iter().map(Write::size).sum();
    if size > MAX_TRANSACTION {
        return Err(generic(format!(
            "a config transaction writes {size} bytes; {MAX_TRANSACTION} are allowed"
        )));
    }
    Ok(ConfigPlan { answers, writes })
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

#[derive(Serialize)]
struct AnswerDocument<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
}

struct View<'a> {
    stored: &'a BTreeMap<String, String>,
    changed: BTreeMap<String, Option<String>>,
    dropped: Vec<String>,
}

impl View<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match self.changed.get(key) {
            Some(changed) => changed.as_deref(),
            None if self
                .dropped
                .iter()
                .any(|prefix| key.starts_with(prefix.as_str())) =>
            {
                None
            }
            None => self.stored.get(key).map(String::as_str),
        }
    }

    fn put(&mut self, key: &str, value: String) {
        if self.get(key) != Some(value.as_str()) {
            self.changed.insert(key.to_owned(), Some(value));
        }
    }

    fn delete(&mut self, key: &str) {
        if self.get(key).is_some() {
            self.changed.insert(key.to_owned(), None);
        }
    }

    fn has_prefix(&self, prefix: &str) -> bool {
        let begins = |key: &&String| key.starts_with(prefix);
        self.changed
            .iter()
            .any(|(key, value)| value.is_some() && begins(&key))
            || self
                .stored
                .range(prefix.to_owned()..)
                .map(|(key, _)| key)
                .take_while(begins)
                .any(|key| self.get(key).is_some())
    }

    fn delete_prefix(&mut self, prefix: String) {
        self.changed.retain(|key, _| !key.starts_with(&prefix));
        if self
            .stored
            .range(prefix.clone()..)
            .next()
            .is_some_and(|(key, _)| key.starts_with(&prefix))
        {
            self.dropped.push(prefix);
        }
    }

    fn into_writes(self) -> Vec<Write> {
        let Self {
            stored,
            changed,
            dropped,
        } = self;
        let drops = dropped.into_iter().map(Write::DeletePrefix);
        let puts = changed.into_iter().filter_map(|(key, value)| match value {
            Some(value) => Some(Write::Put(key, value)),
            None if stored.contains_key(&key) => Some(Write::Delete(key)),
            None => None,
        });
        drops.chain(puts).collect()
    }

    fn entry(&self, key: &str) -> Result<Option<Entry>, Fault> {
        self.get(key)
            .map(|text| {
                serde_json::from_str(text).map_err(|error| {
                    generic(format!("the stored entry {key} cannot be read: {error}"))
                })
            })
            .transpose()
    }

    fn put_entry(&mut self, key: &str, entry: &Entry) -> Result<(), Fault> {
        let text = serde_json::to_string(entry).map_err(|error| generic(error.to_string()))?;
        self.put(key, text);
        Ok(())
    }

    fn resource(&mut self, key: &str, resource: &ConfigResource) -> Result<Document, Fault> {
        let entry = self.entry(key)?;
        let is_other = |entry: &Entry| match (&entry.uid, &resource.uid) {
            (Some(stored), Some(wanted)) => stored != wanted,
            _ => false,
        };
        match resource.verb {
            ConfigVerb::Get => {
                let found = entry.filter(|entry| !is_other(entry) && entry.value.is_some());
                let entry = found.ok_or_else(|| not_found(key))?;
                answer(key, entry.uid.as_deref(), entry.value.as_deref())
            }
            ConfigVerb::Delete => {
                if entry.is_some_and(|entry| !is_other(&entry)) {
                    self.delete(key);
                    if let Some(prefix) = app_conf_prefix(key) {
                        self.delete_prefix(prefix);
                    }
                }
                answer(key, None, None)
            }
            ConfigVerb::Create | ConfigVerb::Update => {
                let value = needed_value(key, resource.value.as_deref())?;
                let entry = match entry {
                    Some(other) if is_other(&other) => {
                        if let Some(prefix) = app_conf_prefix(key) {
                            self.delete_prefix(prefix);
                        }
                        None
                    }
                    entry => entry,
                };
                let uid = resource
                    .uid
                    .clone()
                    .or_else(|| entry.as_ref().and_then(|e| e.uid.clone()));
                let kept = entry
                    .and_then(|e| e.value)
                    .filter(|_| resource.verb == ConfigVerb::Create);
                let entry = Entry {
                    uid,
                    value: kept.or_else(|| Some(value.to_owned())),
                };
                self.put_entry(key, &entry)?;
                answer(key, entry.uid.as_deref(), entry.value.as_deref())
            }
        }
    }

    fn app_conf(&mut self, key: &str, app_conf: &ConfigAppConf) -> Result<Document, Fault> {
        let pod = pod_of_app_conf(key);
        let parent = entry_of_pod(pod);
        match app_conf.verb {
            ConfigVerb::Get => self.leaf_get(key),
            ConfigVerb::Delete => {
                self.delete(key);
                let carries_nothing = self
                    .entry(&parent)?
                    .is_some_and(|entry| entry == Entry::default());
                if carries_nothing && !self.has_prefix(&app_conf_of_pod(pod)) {
                    self.delete(&parent);
                }
                answer(key, None, None)
            }
            ConfigVerb::Create | ConfigVerb::Update => {
                if self.get(&parent).is_none() {
                    self.put_entry(&parent, &Entry::default())?;
                }
                self.leaf_put(key, app_conf.verb, app_conf.value.as_deref())
            }
        }
    }

    fn basic(&mut self, key: &str, basic: &ConfigBasic) -> Result<Document, Fault> {
        match basic.verb {
            ConfigVerb::Get => self.leaf_get(key),
            ConfigVerb::Delete => {
                self.delete(key);
                answer(key, None, None)
            }
            ConfigVerb::Create | ConfigVerb::Update => {
                self.leaf_put(key, basic.verb, basic.value.as_deref())
            }
        }
    }

    fn two_layers(&mut self, key: &str, two: &ConfigTwoLayers) -> Result<Document, Fault> {
        let index = index_of(key);
        match two.verb {
            ConfigVerb::Get => self.leaf_get(key),
            ConfigVerb::Delete => {
                self.delete(key);
                if !self.has_prefix(&format!("{index}/")) {
                    self.delete(&index);
                }
                answer(key, None, None)
            }
            ConfigVerb::Create | ConfigVerb::Update => {
                if self.get(&index).is_none() {
                    self.put(&index, "{}".to_owned());
                }
                self.leaf_put(key, two.verb, two.value.as_deref())
            }
        }
    }

    fn leaf_get(&self, key: &str) -> Result<Document, Fault> {
        let value = self.get(key).ok_or_else(|| not_found(key))?;
        answer(key, None, Some(value))
    }

    fn leaf_put(
        &mut self,
        key: &str,
        verb: ConfigVerb,
        value: Option<&str>,
    ) -> Result<Document, Fault> {
        let value = needed_value(key, value)?;
        if verb == ConfigVerb::Update || self.get(key).is_none() {
            self.put(key, value.to_owned());
        }
        answer(key, None, self.get(key))
    }
}

/// The app-conf below a pod's entry; `None` for the entry of anything else.
fn app_conf_prefix(resource_key: &str) -> Option<String> {
    resource_key
        .strip_prefix("resources/pod/")
        .map(app_conf_of_pod)
}

/// `{namespace}/{pod}` of an app-conf key.
fn pod_of_app_conf(key: &str) -> &str {
    key.strip_prefix("appconf/")
        .and_then(|rest| rest.rsplit_once('/'))
        .map(|(pod, _)| pod)
        .unwrap_or_default()
}

fn entry_of_pod(pod: &str) -> String {
    ["resources/pod/", pod].concat()
}

/// What all app-conf keys of a pod begin with.
fn app_conf_of_pod(pod: &str) -> String {
    ["appconf/", pod, "/"].concat()
}

fn index_of(leaf: &str) -> String {
    leaf.rsplit_once('/')
        .map_or_else(|| leaf.to_owned(), |(index, _)| index.to_owned())
}

fn answer(key: &str, uid: Option<&str>, value: Option<&str>) -> Result<Document, Fault> {
    Document::of(&AnswerDocument { key, uid, value }).map_err(|error| generic(error.to_string()))
}

fn needed_value<'a>(key: &str, value: Option<&'a str>) -> Result<&'a str, Fault> {
    value.ok_or_else(|| generic(format!("writing {key} needs a value")))
}

fn not_found(key: &str) -> Fault {
    Fault::new(
        FaultKind::ResourceNotFound,
        format!("the config store has no {key}"),
    )
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the shape that map_err wants"
)]
fn invalid(error: KeyError) -> Fault {
    generic(error.to_string())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn pod(verb: ConfigVerb, uid: Option<&str>, value: Option<&str>) -> ConfigOperation {
        ConfigOperation::Resource(ConfigResource {
            config_type: ConfigType::Pod,
            verb,
            name: "a".into(),
            uid: uid.map(Into::into),
            namespace: Some("shop".into()),
            workload_kind: None,
            value: value.map(Into::into),
        })
    }

    fn conf(verb: ConfigVerb, key: &str, value: Option<&str>) -> ConfigOperation {
        ConfigOperation::AppConf(ConfigAppConf {
            verb,
            pod_name: "a".into(),
            namespace: None,
            key: key.into(),
            value: value.map(Into::into),
        })
    }

    fn two(verb: ConfigVerb, third: &str, value: Option<&str>) -> ConfigOperation {
        ConfigOperation::TwoLayers(ConfigTwoLayers {
            verb,
            second_path: "shop/web".into(),
            third_path: third.into(),
            value: value.map(Into::into),
        })
    }

    /// Runs the transactions one after another on an empty store, as a store would.
    fn run(store: &mut BTreeMap<String, String>, operations: &[ConfigOperation]) -> String {
        let visible = visible(store, &reads(operations, "shop").unwrap());
        match plan(operations, "shop", &visible) {
            Ok(plan) => {
                for write in &plan.writes {
                    match write {
                        Write::Put(key, value) => {
                            store.insert(key.clone(), value.clone());
                        }
                        Write::Delete(key) => {
                            store.remove(key);
                        }
                        Write::DeletePrefix(prefix) => {
                            store.retain(|key, _| !key.starts_with(prefix))
                        }
                    }
                }
                let answers: Vec<_> = plan.answers.iter().map(Document::as_str).collect();
                format!("{} [{} writes]", answers.join(" "), plan.writes.len())
            }
            Err(fault) => fault.to_string(),
        }
    }

    fn visible(store: &BTreeMap<String, String>, reads: &[Read]) -> BTreeMap<String, String> {
        store
            .iter()
            .filter(|(key, _)| {
                reads.iter().any(|read| match read {
                    Read::Key(wanted) => *key == wanted,
                    Read::First { prefix, limit } => store
                        .range(prefix.clone()..)
                        .take(*limit)
                        .any(|(first, _)| first == *key && key.starts_with(prefix)),
                })
            })
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    #[track_caller]
    fn check(transactions: &[&[ConfigOperation]], expected: Expect) {
        let mut store = BTreeMap::new();
        let mut text = String::new();
        for operations in transactions {
            text += &format!("> {}\n", run(&mut store, operations));
        }
        for (key, value) in &store {
            text += &format!("{key} = {value}\n");
        }
        expected.assert_eq(&text);
    }

    use ConfigVerb::{Create, Delete, Get, Update};

    #[test]
    fn keys_are_encoded_by_segment() {
        let workload = ConfigOperation::Resource(ConfigResource {
            config_type: ConfigType::Workload,
            verb: Get,
            name: "a/b %".into(),
            uid: None,
            namespace: Some("日".into()),
            workload_kind: Some("Deployment".into()),
            value: None,
        });
        assert_eq!(
            key_of(&workload, "").unwrap(),
            "resources/workload/%E6%97%A5/Deployment/a%2Fb%20%25"
        );
        let nameless = ConfigOperation::Basic(ConfigBasic {
            verb: Get,
            key: String::new(),
            value: None,
        });
        assert_eq!(
            key_of(&nameless, "").unwrap_err().to_string(),
            "a config request for a basic key needs key"
        );
        let nowhere = conf(Get, "k", None);
        assert_eq!(
            key_of(&nowhere, "").unwrap_err().to_string(),
            "a config request for a app-conf needs namespace"
        );
        let long = ConfigOperation::Basic(ConfigBasic {
            verb: Get,
            key: "x".repeat(2000),
            value: None,
        });
        assert!(matches!(
            key_of(&long, ""),
            Err(KeyError::TooLong { size: 2006, .. })
        ));
    }

    #[test]
    fn create_keeps_what_is_there_and_update_replaces_it() {
        check(
            &[
                &[pod(Create, Some("u1"), Some("x"))],
                &[pod(Create, Some("u1"), Some("y"))],
                &[pod(Update, None, Some("z"))],
                &[pod(Update, Some("u1"), Some("z"))],
                &[pod(Get, Some("u1"), None)],
            ],
            expect![[r#"
                > {"key":"resources/pod/shop/a","uid":"u1","value":"x"} [1 writes]
                > {"key":"resources/pod/shop/a","uid":"u1","value":"x"} [0 writes]
                > {"key":"resources/pod/shop/a","uid":"u1","value":"z"} [1 writes]
                > {"key":"resources/pod/shop/a","uid":"u1","value":"z"} [0 writes]
                > {"key":"resources/pod/shop/a","uid":"u1","value":"z"} [0 writes]
                resources/pod/shop/a = {"uid":"u1","value":"z"}
            "#]],
        );
    }

    #[test]
    fn a_new_uid_replaces_the_old_entry_and_its_app_conf() {
        check(
            &[
                &[
                    pod(Update, Some("u1"), Some("x")),
                    conf(Update, "k1", Some("1")),
                    conf(Update, "k2", Some("2")),
                ],
                &[pod(Get, Some("u2"), None)],
                &[pod(Delete, Some("u2"), None)],
                &[
                    conf(Update, "k1", Some("1b")),
                    pod(Update, Some("u2"), Some("y")),
                    conf(Update, "k3", Some("3")),
                ],
            ],
            expect![[r#"
                > {"key":"resources/pod/shop/a","uid":"u1","value":"x"} {"key":"appconf/shop/a/k1","value":"1"} {"key":"appconf/shop/a/k2","value":"2"} [3 writes]
                > ResourceNotFound: the config store has no resources/pod/shop/a
                > {"key":"resources/pod/shop/a"} [0 writes]
                > {"key":"appconf/shop/a/k1","value":"1b"} {"key":"resources/pod/shop/a","uid":"u2","value":"y"} {"key":"appconf/shop/a/k3","value":"3"} [3 writes]
                appconf/shop/a/k3 = 3
                resources/pod/shop/a = {"uid":"u2","value":"y"}
            "#]],
        );
    }

    #[test]
    fn a_layer_made_for_app_conf_goes_with_the_last_of_it() {
        check(
            &[
                &[conf(Create, "k1", Some("1")), conf(Create, "k2", Some("2"))],
                &[pod(Get, None, None)],
                &[conf(Delete, "k1", None)],
                &[conf(Delete, "k2", None)],
                &[conf(Delete, "k2", None)],
            ],
            expect![[r#"
                > {"key":"appconf/shop/a/k1","value":"1"} {"key":"appconf/shop/a/k2","value":"2"} [3 writes]
                > ResourceNotFound: the config store has no resources/pod/shop/a
                > {"key":"appconf/shop/a/k1"} [1 writes]
                > {"key":"appconf/shop/a/k2"} [2 writes]
                > {"key":"appconf/shop/a/k2"} [0 writes]
            "#]],
        );
    }

    #[test]
    fn deleting_a_pod_deletes_its_app_conf() {
        check(
            &[
                &[
                    pod(Update, Some("u1"), Some("x")),
                    conf(Update, "k", Some("1")),
                ],
                &[pod(Delete, Some("u1"), None)],
            ],
            expect![[r#"
                > {"key":"resources/pod/shop/a","uid":"u1","value":"x"} {"key":"appconf/shop/a/k","value":"1"} [2 writes]
                > {"key":"resources/pod/shop/a"} [2 writes]
            "#]],
        );
    }

    #[test]
    fn the_index_appears_with_the_first_leaf_and_goes_with_the_last() {
        check(
            &[
                &[two(Create, "a", Some("1"))],
                &[two(Create, "b", Some("2")), two(Delete, "a", None)],
                &[two(Delete, "b", None), two(Create, "c", Some("3"))],
                &[two(Get, "c", None)],
                &[two(Delete, "c", None)],
            ],
            expect![[r#"
                > {"key":"two/shop%2Fweb/a","value":"1"} [2 writes]
                > {"key":"two/shop%2Fweb/b","value":"2"} {"key":"two/shop%2Fweb/a"} [2 writes]
                > {"key":"two/shop%2Fweb/b"} {"key":"two/shop%2Fweb/c","value":"3"} [3 writes]
                > {"key":"two/shop%2Fweb/c","value":"3"} [0 writes]
                > {"key":"two/shop%2Fweb/c"} [2 writes]
            "#]],
        );
    }

    #[test]
    fn a_write_without_a_value_writes_nothing() {
        check(
            &[&[conf(Create, "k", Some("1")), pod(Update, None, None)]],
            expect![[r#"
                > ResourceGeneric: writing resources/pod/shop/a needs a value
            "#]],
        );
    }

    fn any_operation() -> impl Strategy<Value = ConfigOperation> {
        let verb = prop::sample::select(vec![Get, Create, Update, Delete]);
        let uid = prop::option::of(prop::sample::select(vec!["u1", "u2"]));
        let name = prop::sample::select(vec!["k1", "k2"]);
        let value = prop::sample::select(vec!["x", "y"]);
        (0..3, verb, uid, name, value).prop_map(|(kind, verb, uid, name, value)| match kind {
            0 => pod(verb, uid, Some(value)),
            1 => conf(verb, name, Some(value)),
            _ => two(verb, name, Some(value)),
        })
    }

    #[test]
    fn keys_outside_the_layout_name_no_leaf() {
        for key in [
            "",
            "basic",
            "basic/a/b",
            "two/a",
            "resources/pod/a",
            "resources/node/a/b",
            "resources/secret/a",
            "appconf/a/b",
            "sets/a",
            "basic/%FF",
        ] {
            assert_eq!(operation_at(key, ConfigVerb::Get, None), None, "{key}");
        }
    }

    proptest! {
        #[test]
        fn layers_always_match_their_leaves(
            transactions in prop::collection::vec(prop::collection::vec(any_operation(), 1..6), 1..12)
        ) {
            let mut store = BTreeMap::new();
            for operations in &transactions {
                run(&mut store, operations);
                let has = |prefix: &str| store.keys().any(|key| key.starts_with(prefix));
                prop_assert_eq!(has("two/shop%2Fweb/"), store.contains_key("two/shop%2Fweb"));
                if has("appconf/shop/a/") {
                    prop_assert!(store.contains_key("resources/pod/shop/a"));
                }
            }
        }

        #[test]
        fn a_key_names_the_leaf_that_it_was_made_of(operation in any_operation()) {
            let key = key_of(&operation, "shop").unwrap();
            let found = operation_at(&key, ConfigVerb::Get, None).unwrap();
            prop_assert_eq!(key_of(&found, "").unwrap(), key);
        }

        #[test]
        fn a_transaction_without_get_writes_nothing_the_second_time(
            operations in prop::collection::vec(any_operation(), 1..2)
        ) {
            prop_assume!(operations[0].is_mutating());
            let mut store = BTreeMap::new();
            run(&mut store, &operations);
            let before = store.clone();
            let again = run(&mut store, &operations);
            prop_assert_eq!(&store, &before);
            prop_assert!(again.ends_with("[0 writes]"), "{}", again);
        }
    }
}
