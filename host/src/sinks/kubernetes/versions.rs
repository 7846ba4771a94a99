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
    /// Whether the version of this object differs from the one of the last answer; true when that is not remembered.
    pub(super) fn is_new(&self, request: &KubernetesRequest, body: &str) -> bool {
        let Some(version) = version_of(body) else {
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

fn version_of(body: &str) -> Option<u64> {
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
    serde_json::from_str::<Object<'_>>(body)
        .ok()?
        .metadata
        .resource_version
        .parse()
        .ok()
}
