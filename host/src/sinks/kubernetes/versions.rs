//! Tells a write that changed something from one that did not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use configurator_core::request::KubernetesRequest;
use serde::Deserialize;

/// Objects whose last version is remembered.
const REMEMBERED: usize = 65_536;

/// The versions of objects in the last answers about them.
#[derive(Default)]
pub(super) struct Versions(Mutex<HashMap<u64, u64>>);

impl Versions {
    /// Whether this version of an object differs from the one of the last answer; true when one of them is not known.
    pub(super) fn is_new(&self, request: &KubernetesRequest, version: Option<u64>) -> bool {
        let Some(version) = version else {
            return true;
        };
        let mut hasher = DefaultHasher::new();
        request.object_key().hash(&mut hasher);
        let key = hasher.finish();
        let Ok(mut versions) = self.0.lock() else {
            return true;
        };
        if versions.len() >= REMEMBERED {
            versions.clear();
        }
        versions.insert(key, version) != Some(version)
    }
}

/// Returns the version of an object.
pub(super) fn version_of(object: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata<'a> {
        resource_version: &'a str,
    }
    serde_json::from_str::<Object<'_>>(object)
        .ok()?
        .metadata
        .resource_version
        .parse()
        .ok()
}
