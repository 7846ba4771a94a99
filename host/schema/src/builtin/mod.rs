//! The built-in kinds.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use serde_json::{Map, Value};

use crate::Schema;

mod api_service_rules;
mod convert;
mod defaults;
mod definition_rules;
pub(crate) mod kinds;
mod lists;
mod pod_defaults;
mod pod_rules;
mod rules;
mod workload_rules;

pub use defaults::builtin_defaults;
pub use rules::builtin_validate;

/// The schema of a built-in kind, or nothing if there is none of that name.
///
/// Built at the first call and kept; parts that several kinds share are built once.
pub fn builtin(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    static SCHEMAS: OnceLock<Mutex<HashMap<usize, Arc<Schema>>>> = OnceLock::new();
    let (at, known) = kinds::find(group, version, kind)?;
    let schemas = SCHEMAS.get_or_init(Mutex::default);
    let mut schemas = schemas.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = schemas.get(&at) {
        return Some(schema.clone());
    }
    let definitions = known.definitions();
    let schema = Arc::new(Schema {
        root: convert::node(known.definition, &definitions),
        builtin: true,
    });
    schemas.insert(at, schema.clone());
    Some(schema)
}

/// The schema of `metadata`, which all kinds share.
pub(crate) fn object_meta() -> Arc<crate::schema::Node> {
    static META: OnceLock<Arc<crate::schema::Node>> = OnceLock::new();
    META.get_or_init(|| {
        let definitions =
            kinds::definitions_of::<k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta>();
        convert::node(kinds::OBJECT_META, &definitions)
    })
    .clone()
}

/// Adds what the generated definitions lack: how lists and maps merge.
pub(crate) fn annotate(definitions: &mut Map<String, Value>) {
    convert::annotate(definitions);
}
