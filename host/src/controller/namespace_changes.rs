//! Notifies Configurators of changes in their namespace.

use std::sync::Arc;

use tokio::sync::broadcast;

/// The capacity for a slow receiver. A receiver that misses a change assumes that everything has changed.
const CAPACITY: usize = 64;

/// Broadcasts the namespaces in which something changes. Clones share the channel.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceChanges(broadcast::Sender<Arc<str>>);

impl Default for NamespaceChanges {
    fn default() -> Self {
        Self(broadcast::channel(CAPACITY).0)
    }
}

impl NamespaceChanges {
    /// Notifies the receivers of a namespace. An empty namespace stands for all.
    pub(crate) fn notify(&self, namespace: &str) {
        // An error means that there are no receivers.
        let _ = self.0.send(namespace.into());
    }

    /// Subscribes to changes in this namespace.
    pub(crate) fn subscribe(&self, namespace: &str) -> NamespaceReceiver {
        NamespaceReceiver {
            namespace: namespace.to_owned(),
            changes: self.0.subscribe(),
        }
    }
}

/// Receives changes in one namespace.
#[derive(Debug)]
pub(crate) struct NamespaceReceiver {
    namespace: String,
    changes: broadcast::Receiver<Arc<str>>,
}

impl NamespaceReceiver {
    /// Waits until something in the namespace may have changed.
    pub(crate) async fn changed(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(changed) if !changed.is_empty() && *changed != *self.namespace => {}
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
