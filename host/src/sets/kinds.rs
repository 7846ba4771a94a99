//! The kinds that the API serves.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use configurator_core::desired::DesiredEntry;
use configurator_core::fault::Fault;
use configurator_core::graph::member::MemberKey;
use kube::Client;
use kube::api::ApiResource;
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{self, ApiCapabilities, Scope};

use super::live::object_of;
use crate::kubernetes_faults::fault_of;
use crate::objects;

/// A kind as the API serves it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ServedKind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) is_namespaced: bool,
}

/// Finds out which kinds the API serves, and remembers those that it does. A kind that is missing is asked for each time.
pub(crate) struct ServedKinds {
    client: Client,
    known: Mutex<HashMap<KindName, ServedKind>>,
}

/// A group, a kind, and a version where one is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KindName {
    pub(crate) group: String,
    pub(crate) kind: String,
    /// `None`: the version that the API prefers.
    pub(crate) version: Option<String>,
}

impl KindName {
    /// Returns the kind that an entry names. `None` if it names none, which the check of the set reports.
    pub(crate) fn of(entry: &DesiredEntry) -> Option<Self> {
        let object: TypeMeta = object_of(entry)?.read().ok()?;
        let (api_version, kind) = (object.api_version.as_str(), object.kind.as_str());
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        (!kind.is_empty() && !version.is_empty()).then(|| Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            version: Some(version.to_owned()),
        })
    }
}

impl ServedKinds {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            known: Mutex::default(),
        }
    }

    /// Returns the kind as the API serves it. `None`: the API does not serve it.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn find(&self, name: &KindName) -> Result<Option<ServedKind>, Fault> {
        if let Some(known) = self.known().get(name) {
            return Ok(Some(known.clone()));
        }
        let found = match self.ask(name).await {
            Ok(found) => found,
            Err(error) if objects::is_missing(&error) => None,
            Err(error) => {
                let what = format!("the kind {} in the group {:?}", name.kind, name.group);
                return Err(fault_of(&what, false, &error));
            }
        };
        if let Some(found) = &found {
            self.known().insert(name.clone(), found.clone());
        }
        Ok(found)
    }

    /// Returns the kind of a member in the version that the API prefers.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn preferred(&self, key: &MemberKey) -> Result<Option<ServedKind>, Fault> {
        let MemberKey::Kubernetes { group, kind, .. } = key else {
            return Ok(None);
        };
        let name = KindName {
            group: group.clone(),
            kind: kind.clone(),
            version: None,
        };
        self.find(&name).await
    }

    /// Forgets a kind: the API answered that it does not serve it any more.
    pub(crate) fn forget(&self, group: &str, kind: &str) {
        self.known()
            .retain(|name, _| name.group != group || name.kind != kind);
    }

    async fn ask(&self, name: &KindName) -> Result<Option<ServedKind>, kube::Error> {
        let KindName {
            group,
            kind,
            version,
        } = name;
        let found = match version {
            Some(version) => {
                let kind = GroupVersionKind::gvk(group, version, kind);
                Some(discovery::pinned_kind(&self.client, &kind).await?)
            }
            None => {
                let found = discovery::group(&self.client, group).await?;
                found.recommended_kind(kind)
            }
        };
        Ok(found.map(|(resource, capabilities)| served(&resource, &capabilities)))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<KindName, ServedKind>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn served(resource: &ApiResource, capabilities: &ApiCapabilities) -> ServedKind {
    ServedKind {
        group: resource.group.clone(),
        version: resource.version.clone(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
        is_namespaced: capabilities.scope == Scope::Namespaced,
    }
}
