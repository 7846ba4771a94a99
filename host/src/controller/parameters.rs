//! Parameters from ConfigMaps and Secrets.

use std::collections::BTreeMap;

use configurator_core::ceiling::Ceiling;
use configurator_core::document::Document;
use configurator_core::request::ObjectRef;
use futures::StreamExt as _;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PartialObjectMeta, Resource};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_kind};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::status::Refusal;
use crate::cluster::WatchBackoff;
use crate::objects;
use crate::resource::{ParametersReference, ParametersSourceSpec};

/// A ConfigMap or a Secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Source {
    is_secret: bool,
    key: ObjectRef,
}

impl Source {
    fn of(spec: &ParametersSourceSpec) -> Option<(Self, &ParametersReference)> {
        let (is_secret, reference) = match (&spec.config_map, &spec.secret) {
            (Some(map), None) => (false, map),
            (None, Some(secret)) => (true, secret),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        let key = ObjectRef {
            namespace: reference.namespace.clone(),
            name: reference.name.clone(),
        };
        Some((Self { is_secret, key }, reference))
    }

    const fn kind(&self) -> &'static str {
        match self.is_secret {
            true => "Secret",
            false => "ConfigMap",
        }
    }

    const fn plural(&self) -> &'static str {
        match self.is_secret {
            true => "secrets",
            false => "configmaps",
        }
    }

    /// Reads the resource version and the data.
    async fn read(&self, client: &Client) -> Result<Option<Found>, kube::Error> {
        let ObjectRef { namespace, name } = &self.key;
        if self.is_secret {
            let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
            let found = api.get_opt(name).await?;
            return Ok(found.map(|secret| {
                let data = secret.data.unwrap_or_default().into_iter();
                let data = data.map(|(key, value)| (key, String::from_utf8(value.0).ok()));
                (secret.metadata.resource_version, data.collect())
            }));
        }
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let found = api.get_opt(name).await?;
        Ok(found.map(|map| {
            let data = map.data.unwrap_or_default().into_iter();
            let data = data.map(|(key, value)| (key, Some(value)));
            let binary = map.binary_data.unwrap_or_default().into_keys();
            let binary = binary.map(|key| (key, None));
            (map.metadata.resource_version, data.chain(binary).collect())
        }))
    }

    /// Watches the resource version. `None`: the object does not exist.
    fn watch(self, client: &Client, seed: u64) -> BoxStream<'static, (Self, Option<String>)> {
        match self.is_secret {
            true => self.watch_as::<Secret>(client, seed),
            false => self.watch_as::<ConfigMap>(client, seed),
        }
    }

    fn watch_as<K>(self, client: &Client, seed: u64) -> BoxStream<'static, (Self, Option<String>)>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug
            + Send
            + 'static,
    {
        let ObjectRef { namespace, name } = &self.key;
        let api: Api<PartialObjectMeta<K>> = Api::namespaced(client.clone(), namespace);
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let events = watch_kind(api, config).backoff(WatchBackoff::new(seed));
        let mut is_there = false;
        let versions = events.filter_map(move |event| {
            let version = match event {
                Ok(Event::Init) => {
                    is_there = false;
                    None
                }
                Ok(Event::InitApply(object) | Event::Apply(object)) => {
                    is_there = true;
                    Some(object.metadata.resource_version)
                }
                Ok(Event::InitDone) if is_there => None,
                Ok(Event::InitDone | Event::Delete(_)) => Some(None),
                Err(error) => {
                    let error = objects::explained(&error);
                    tracing::debug!(source = %self.key, error, "parameters cannot be watched; the host retries");
                    None
                }
            };
            std::future::ready(version.map(|version| (self.clone(), version)))
        });
        versions.boxed()
    }
}

/// The resource version of an object, and its values. A value is `None` if it is not UTF-8.
type Found = (Option<String>, BTreeMap<String, Option<String>>);

/// Parameters from ConfigMaps and Secrets, with the resource versions of their sources.
#[derive(Default)]
pub(crate) struct SourcedParameters {
    parameters: Map<String, Value>,
    secrets: Map<String, Value>,
    versions: BTreeMap<Source, Option<String>>,
}

impl SourcedParameters {
    /// Reads the parameters. A later source overrides an earlier one.
    ///
    /// # Errors
    /// When a policy does not allow it, or when an object or key is missing that is not optional.
    pub(crate) async fn read(
        client: &Client,
        ceiling: &Ceiling,
        specs: &[ParametersSourceSpec],
    ) -> Result<Self, Refusal> {
        let mut sourced = Self::default();
        for (index, spec) in specs.iter().enumerate() {
            let Some((source, reference)) = Source::of(spec) else {
                continue;
            };
            let path = format!("spec.parametersFrom[{index}]");
            ceiling
                .check(|rules| rules.check_reference(source.plural(), &source.key))
                .map_err(|fault| missing(format!("{path}: {}", fault.message)))?;
            let named = format!("{path}: the {} {}", source.kind(), source.key);
            let found = source.read(client).await.map_err(|error| {
                let error = objects::explained(&error);
                missing(format!("{named} cannot be read; the host retries: {error}"))
            })?;
            let version = found.as_ref().and_then(|(version, _)| version.clone());
            sourced.versions.insert(source.clone(), version);
            match found {
                Some((_, data)) => sourced.take(&source, reference, data, &named)?,
                None if reference.optional => {}
                None => return Err(missing(format!("{named} does not exist"))),
            }
        }
        Ok(sourced)
    }

    fn take(
        &mut self,
        source: &Source,
        reference: &ParametersReference,
        mut data: BTreeMap<String, Option<String>>,
        named: &str,
    ) -> Result<(), Refusal> {
        if let Some(key) = &reference.key {
            let name = reference.parameter.as_ref().unwrap_or(key);
            data = match data.remove(key) {
                Some(value) => BTreeMap::from([(name.clone(), value)]),
                None if reference.optional => BTreeMap::new(),
                None => return Err(missing(format!("{named} has no key {key:?}"))),
            };
        }
        for (name, value) in data {
            let value = value
                .ok_or_else(|| missing(format!("{named}: the value of {name:?} is not UTF-8")))?;
            if source.is_secret {
                self.secrets
                    .insert(format!("{}/{name}", source.key), value.clone().into());
            }
            self.parameters.insert(name, value.into());
        }
        Ok(())
    }

    /// Merges the parameters with `spec.parameters`, which override them.
    pub(crate) fn merged_under(&self, own: &BTreeMap<String, Value>) -> Value {
        let mut all = self.parameters.clone();
        all.extend(own.clone());
        all.into()
    }

    /// Returns the values from Secrets, in the form of answers of the secret store.
    pub(crate) fn secrets(&self) -> Vec<Document> {
        if self.secrets.is_empty() {
            return Vec::new();
        }
        let answer = Document::of(&json!({"value": self.secrets}));
        answer.into_iter().collect()
    }

    /// Watches the sources.
    pub(crate) fn watch(self, client: &Client, seed: u64) -> ParameterSources {
        let sources = self.versions.keys().cloned();
        ParameterSources {
            streams: sources.map(|source| source.watch(client, seed)).collect(),
            versions: self.versions,
        }
    }
}

fn missing(message: String) -> Refusal {
    Refusal::for_now("ParametersMissing", message)
}

/// Watches the sources of the parameters of a Configurator.
pub(crate) struct ParameterSources {
    streams: SelectAll<BoxStream<'static, (Source, Option<String>)>>,
    /// The resource versions that were read.
    versions: BTreeMap<Source, Option<String>>,
}

impl ParameterSources {
    /// Waits until a source differs from what was read.
    pub(crate) async fn changed(&mut self) {
        while let Some((source, version)) = self.streams.next().await {
            let read = self.versions.insert(source, version.clone());
            if read != Some(version) {
                return;
            }
        }
        std::future::pending().await
    }
}
