//! The write phase.

use configurator_sdk::configstore::{AppConf, Entry, Transaction, TwoLayers};
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{HandlerError, Input, Json, Output, Request};

use crate::layers::{Effective, Layered};
use crate::owner::Workload;
use crate::pod::{Metadata, Pod};
use crate::root::results;
use crate::stored::{self, Previous, Value};
use crate::{config_map, names};

/// The most operations of one transaction that the config store takes.
const MAX_OPERATIONS: usize = 100;

/// Writes the Pod's effective configuration.
///
/// - One transaction in the config store: the Pod's entry, its app-conf (keys that are new or changed are written, keys
///   that are gone are deleted), and its leaf in the index of its workload. None when the entry says that nothing changed.
/// - The Pod's secret; one that exists is kept.
/// - The ConfigMap `<pod>-config`, owned by the Pod.
///
/// # Errors
/// When a layer could not be read, which a retry may cure; fatal when the Pod has more keys than fit a transaction.
pub fn write_config(input: &Input) -> Result<Output, HandlerError> {
    let pod: Pod<'_> = input.object()?;
    let metadata = &pod.metadata;
    let namespace = Layered::of(input.result_opt(results::NAMESPACE))?;
    let node = Layered::of(input.result_opt(results::NODE))?;
    let workload = Layered::of(input.result_opt(results::WORKLOAD))?;
    let entry = stored::Entry::of(input.result(results::ENTRY)?)?;

    let effective =
        Effective::compose(&namespace, &node, &workload, metadata.annotations.as_ref())?;
    let index = names::index(metadata, Workload::of(&pod).as_ref());
    let value = Value {
        config: effective.values(),
        from: effective.sources(),
        index: &index,
    };
    let value = Json::of(&value)?.into_string();

    let mut output = Output::new();
    let is_same = |entry: &stored::Entry<'_>| entry.is_of(&metadata.uid) && *entry.value == value;
    if !entry.as_ref().is_some_and(is_same) {
        let previous = entry.as_ref().map(|entry| entry.previous(&metadata.uid));
        let write = transaction(metadata, previous, &effective, &index, value);
        output.push(Request::new("config", write));
    }
    output.push(Request::new(
        "secret",
        Secret::new(names::secret(metadata)).create(),
    ));
    output.push(Request::new(
        "config-map",
        config_map::apply(metadata, &effective)?,
    ));
    Ok(output)
}

fn transaction(
    pod: &Metadata<'_>,
    previous: Option<Previous<'_>>,
    effective: &Effective<'_>,
    index: &str,
    value: String,
) -> Transaction {
    let (namespace, name) = (&*pod.namespace, &*pod.name);
    let entry = || Entry::pod(namespace, name).uid(&*pod.uid);
    let app_conf = |key: &str| AppConf::new(name, key).namespace(namespace);

    let previous = previous.unwrap_or_default();
    let gone = previous.config.keys().filter(|key| !effective.has(key));
    let changed = effective
        .iter()
        .filter(|(key, value, _)| previous.config.get(*key).is_none_or(|old| **old != **value));
    let moved = !previous.index.is_empty() && *previous.index != *index;

    let mut transaction = Transaction::new();
    if moved {
        transaction.push(TwoLayers::new(&*previous.index, name).delete());
    }
    if gone.clone().count() + changed.clone().count() + 3 > MAX_OPERATIONS {
        // Too much to do key by key: with the entry all keys go, and those that stay are written anew.
        transaction.push(entry().delete());
        transaction.push(entry().update(value));
        effective
            .iter()
            .for_each(|(key, value, _)| transaction.push(app_conf(key).update(value)));
    } else {
        transaction.push(entry().update(value));
        gone.for_each(|key| transaction.push(app_conf(key).delete()));
        changed.for_each(|(key, value, _)| transaction.push(app_conf(key).update(value)));
    }
    if moved || previous.index.is_empty() {
        // The leaf holds nothing that changes: its name is what is looked for.
        transaction.push(TwoLayers::new(index, name).update("{}"));
    }
    transaction
}
