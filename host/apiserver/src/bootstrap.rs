//! What a server has from the start.

use std::ops::ControlFlow;
use std::sync::Arc;

use configurator_store::Store;
use serde_json::json;

use crate::registry::Registry;
use crate::server::{Inner, OpenServerError};
use crate::status::Result;
use crate::write::{Next, Target};
use crate::{admission, crd, keys, object, update};

const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The built-in resources and those of the stored definitions.
pub(crate) fn registry(store: &Store) -> Result<Registry, OpenServerError> {
    let mut registry = Registry::builtin();
    let mut fault = None;
    store.read(|state| {
        state.scan(
            keys::resource_prefix(crd::STORAGE).as_bytes(),
            None,
            &mut |key, value| match object::parse_stored(value) {
                Ok(definition) => {
                    registry = registry.with_definition(&definition);
                    ControlFlow::Continue(())
                }
                Err(status) => {
                    fault = Some(format!(
                        "{}: {}",
                        String::from_utf8_lossy(key),
                        status.message
                    ));
                    ControlFlow::Break(())
                }
            },
        )
    })??;
    match fault {
        Some(fault) => Err(OpenServerError::Damaged(fault)),
        None => Ok(registry),
    }
}

/// Makes the namespaces that are missing.
pub(crate) async fn namespaces(server: &Arc<Inner>) -> Result<()> {
    let Some(resource) = server.registry().resource("", "v1", "namespaces") else {
        return Ok(());
    };
    for name in NAMESPACES {
        let target = Target {
            resource: Arc::clone(&resource),
            namespace: String::new(),
            name: name.to_owned(),
        };
        if server.live(&target)?.is_some() {
            continue;
        }
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": name, "uid": admission::new_uid(server), "creationTimestamp": update::timestamp(server.now()),
        }});
        admission::prepare_create(server, &resource, &mut namespace)?;
        server
            .commit(&target, false, |live| {
                Ok(if live.is_some() {
                    Next::Keep
                } else {
                    Next::Put(namespace.clone())
                })
            })
            .await?;
    }
    Ok(())
}
