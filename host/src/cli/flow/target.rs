//! The object that a person speaks of, its machine, and what is stored of it.

use std::fmt::Debug;

use anyhow::{Context as _, bail, ensure};
use configurator_core::configurator::{Configurator, MachineMode, StatePlace};
use configurator_core::machine::state::State;
use configurator_core::request::{ObjectRef, api_version};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::cli::key_of;
use crate::controller::{commands, state_store};
use crate::declaration::{self, FlowSet};
use crate::resource;
use crate::resource::flow::{ClusterFlow, Flow};

/// A Configurator with a machine, and how its objects are served.
pub(super) struct Target {
    pub(super) configurator: Configurator,
    pub(super) mode: MachineMode,
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
    client: Client,
}

impl Target {
    /// Every Configurator with a machine, or the one of this name.
    pub(super) async fn all(client: &Client, name: Option<&str>) -> anyhow::Result<Vec<Self>> {
        let found = match name {
            Some(name) => {
                let key = key_of(name)?;
                let found = resource::get(client, &key).await;
                let found = found.context("cannot read the Configurators")?;
                let kind = resource::kind_of(&key).kind;
                vec![found.with_context(|| format!("there is no {kind} {name:?}"))?]
            }
            None => resource::list(client)
                .await
                .context("cannot read the Configurators")?,
        };
        let flows = flows(client).await?;
        let mut targets = Vec::new();
        for resource in found {
            let checked = declaration::check(&resource, &flows)
                .with_context(|| format!("the Configurator {}", resource.key()));
            let configurator = match checked {
                Ok(configurator) => configurator,
                Err(error) if name.is_some() => return Err(error),
                Err(_) => continue,
            };
            let Some(mode) = configurator.machine.clone() else {
                ensure!(
                    name.is_none(),
                    "the Configurator {} has a chain, which keeps nothing",
                    configurator.key
                );
                continue;
            };
            let watch = &configurator.watch;
            let kind = GroupVersionKind::gvk(&watch.group, &watch.version, &watch.kind);
            let (resource, capabilities) = discovery::pinned_kind(client, &kind)
                .await
                .with_context(|| {
                    let api_version = api_version(&watch.group, &watch.version);
                    format!("the API has no kind {} in {api_version}", watch.kind)
                })?;
            targets.push(Self {
                configurator,
                mode,
                resource,
                is_namespaced: capabilities.scope == Scope::Namespaced,
                client: client.clone(),
            });
        }
        Ok(targets)
    }

    /// The Configurator of this name.
    pub(super) async fn named(client: &Client, name: &str) -> anyhow::Result<Self> {
        let all = Self::all(client, Some(name)).await?;
        all.into_iter()
            .next()
            .with_context(|| format!("there is no Configurator {name:?}"))
    }

    /// What a person writes as `NAMESPACE/NAME`, or as `NAME`.
    pub(super) fn key(&self, text: &str) -> anyhow::Result<ObjectRef> {
        let (namespace, name) = match text.split_once('/') {
            Some(parts) => parts,
            None if self.is_namespaced => ("default", text),
            None => ("", text),
        };
        if name.is_empty() || !self.is_namespaced && !namespace.is_empty() {
            bail!(
                "{text:?} names no {}: write NAMESPACE/NAME, or NAME",
                self.resource.kind
            );
        }
        Ok(ObjectRef {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }

    pub(super) fn api(&self, namespace: &str) -> Api<DynamicObject> {
        crate::objects::of(self.client.clone(), &self.resource, namespace)
    }

    pub(super) async fn get(&self, key: &ObjectRef) -> anyhow::Result<DynamicObject> {
        let found = self.api(&key.namespace).get_opt(&key.name).await?;
        found.with_context(|| format!("there is no {} {key}", self.resource.kind))
    }

    /// Every object, of all namespaces.
    pub(super) async fn list(&self) -> anyhow::Result<Vec<DynamicObject>> {
        let params = ListParams::default();
        let list = self.api("").list(&params).await;
        Ok(list
            .with_context(|| format!("cannot list {}", self.resource.plural))?
            .items)
    }

    /// What is stored of an object. It is shown whoever wrote it: only the host can tell.
    pub(super) async fn state(&self, object: &DynamicObject) -> anyhow::Result<State> {
        let carrier = match self.mode.place {
            StatePlace::Status { .. } => serde_json::to_value(object)?,
            StatePlace::ConfigMap => {
                let namespace = object.namespace().unwrap_or_default();
                let namespace = commands::namespace_beside(&namespace);
                let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
                let uid = object.uid().unwrap_or_default();
                let name = state_store::config_map_name(&self.configurator.key, &uid);
                match maps.get_opt(&name).await? {
                    Some(map) => serde_json::to_value(map)?,
                    None => return Ok(State::default()),
                }
            }
            StatePlace::ConfigStore => {
                bail!(
                    "the states of {} are in the config store, which only the host can read",
                    self.configurator.key
                )
            }
        };
        let state = state_store::read_unverified(&self.mode.place, &carrier);
        state.map_err(|why| anyhow::anyhow!("the state of {}: {why}", object.name_any()))
    }
}

async fn flows(client: &Client) -> anyhow::Result<FlowSet> {
    let cluster = listed::<ClusterFlow>(client).await?;
    let namespaced = listed::<Flow>(client).await?;
    let cluster = cluster.into_iter().map(Flow::from);
    Ok(cluster.chain(namespaced).collect())
}

/// Flows of one kind. A cluster without the kind has none.
async fn listed<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    match api.list(&ListParams::default()).await {
        Ok(flows) => Ok(flows.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error).context("cannot read the Flows"),
    }
}
