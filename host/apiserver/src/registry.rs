//! Which resources are served now: the built-in ones, and those of the established definitions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;

use crate::resource::Resource;
use crate::{builtin, crd, object};

/// An immutable set of resources. A change of the definitions makes a new one.
#[derive(Debug)]
pub(crate) struct Registry {
    builtin: Arc<[Arc<Resource>]>,
    /// By the name of the definition.
    custom: BTreeMap<String, Vec<Arc<Resource>>>,
    /// Group and version, then plural name.
    served: HashMap<(String, String), HashMap<String, Arc<Resource>>>,
}

impl Registry {
    pub(crate) fn builtin() -> Self {
        Self::assemble(builtin::resources().into(), BTreeMap::new())
    }

    fn assemble(
        builtin: Arc<[Arc<Resource>]>,
        custom: BTreeMap<String, Vec<Arc<Resource>>>,
    ) -> Self {
        let mut served: HashMap<_, HashMap<_, _>> = HashMap::new();
        for resource in builtin.iter().chain(custom.values().flatten()) {
            served
                .entry((resource.group.clone(), resource.version.clone()))
                .or_default()
                .insert(resource.plural.clone(), Arc::clone(resource));
        }
        Self {
            builtin,
            custom,
            served,
        }
    }

    /// The set after a definition was written.
    pub(crate) fn with_definition(&self, definition: &Value) -> Self {
        let mut custom = self.custom.clone();
        let name = object::name(definition).to_owned();
        let resources = crd::served_resources(definition);
        if resources.is_empty() {
            custom.remove(&name);
        } else {
            custom.insert(name, resources);
        }
        Self::assemble(Arc::clone(&self.builtin), custom)
    }

    /// The set after a definition was removed.
    pub(crate) fn without_definition(&self, name: &str) -> Self {
        let mut custom = self.custom.clone();
        custom.remove(name);
        Self::assemble(Arc::clone(&self.builtin), custom)
    }

    pub(crate) fn resource(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<Arc<Resource>> {
        // The tuple of owned strings keeps the map simple; this is the only look-up of a request.
        self.served
            .get(&(group.to_owned(), version.to_owned()))?
            .get(plural)
            .cloned()
    }

    /// The resource of an `apiVersion` and a `kind`.
    pub(crate) fn by_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Resource>> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.served
            .get(&(group.to_owned(), version.to_owned()))?
            .values()
            .find(|resource| resource.kind == kind)
            .cloned()
    }

    /// Any served version of what is stored at `storage`.
    pub(crate) fn by_storage(&self, storage: &str) -> Option<Arc<Resource>> {
        self.all()
            .find(|resource| &*resource.storage == storage)
            .cloned()
    }

    pub(crate) fn has_version(&self, group: &str, version: &str) -> bool {
        self.served
            .contains_key(&(group.to_owned(), version.to_owned()))
    }

    /// All resources in the order of discovery.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.builtin.iter().chain(self.custom.values().flatten())
    }

    /// Groups in the order of discovery, each with its versions, the preferred one first.
    pub(crate) fn groups(&self) -> Vec<(String, Vec<String>)> {
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        for resource in self.all() {
            match groups
                .iter_mut()
                .find(|(group, _)| *group == resource.group)
            {
                Some((_, versions)) if versions.contains(&resource.version) => {}
                Some((_, versions)) => versions.push(resource.version.clone()),
                None => groups.push((resource.group.clone(), vec![resource.version.clone()])),
            }
        }
        for (_, versions) in &mut groups {
            versions.sort_by_key(|version| std::cmp::Reverse(crd::version_priority(version)));
        }
        groups
    }

    /// The resources of one group and version, by name.
    pub(crate) fn of_version(&self, group: &str, version: &str) -> Vec<&Arc<Resource>> {
        let mut resources: Vec<_> = self
            .all()
            .filter(|resource| resource.group == group && resource.version == version)
            .collect();
        resources.sort_by(|a, b| a.plural.cmp(&b.plural));
        resources
    }

    /// Whether a name is taken in a group by another definition than `except`.
    pub(crate) fn custom_in_group<'a>(
        &'a self,
        group: &'a str,
        except: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Resource>> {
        self.custom
            .iter()
            .filter(move |(name, _)| *name != except)
            .flat_map(|(_, resources)| resources)
            .filter(move |r| r.group == group)
    }
}
