//! Requests to the config store.
//!
//! A request names only the leaf: the host keeps the layers above it. Deleting what is absent is success.
//!
//! ```
//! use configurator_sdk::Request;
//! use configurator_sdk::configstore::{AppConf, Entry, Transaction, TwoLayers};
//!
//! let pod = Entry::pod("shop", "web-1").uid("6e2d");
//! let write = Transaction::new()
//!     .and(pod.clone().update(r#"{"tier": "gold"}"#))
//!     .and(AppConf::new("web-1", "tier").namespace("shop").update("gold"))
//!     .and(TwoLayers::new("shop/web", "web-1").create("6e2d"));
//! let request = Request::new("write", write);
//! let read = Request::new("read", pod.get()).catch_error();
//! # let _ = (request, read);
//! ```

use crate::bindings::configurator::handler::desired::{
    ConfigAppConfKey, ConfigContent, ConfigKey, ConfigResourceKey, ConfigTwoLayersKey,
};
use crate::bindings::configurator::handler::requests::{
    ConfigAppConfRequest, ConfigAppConfVerb, ConfigBasicRequest, ConfigBasicVerb, ConfigOperation,
    ConfigResourceRequest, ConfigTransaction, ConfigTwoLayersRequest, ConfigTwoLayersVerb,
    ConfigType, ConfigVerb, Operation,
};

/// The configuration of one cluster resource.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Entry {
    config_type: ConfigType,
    namespace: Option<String>,
    workload_kind: Option<String>,
    name: String,
    uid: Option<String>,
}

impl Entry {
    /// Of a Pod.
    pub fn pod(namespace: impl Into<String>, name: impl Into<String>) -> Entry {
        Entry {
            namespace: Some(namespace.into()),
            ..Entry::new(ConfigType::Pod, name)
        }
    }

    /// Of a Node.
    pub fn node(name: impl Into<String>) -> Entry {
        Entry::new(ConfigType::Node, name)
    }

    /// Of a Namespace.
    pub fn namespace(name: impl Into<String>) -> Entry {
        Entry::new(ConfigType::Namespace, name)
    }

    /// Of a workload of this kind: `Deployment`, `StatefulSet` and the like.
    pub fn workload(
        namespace: impl Into<String>,
        kind: impl Into<String>,
        name: impl Into<String>,
    ) -> Entry {
        Entry {
            namespace: Some(namespace.into()),
            workload_kind: Some(kind.into()),
            ..Entry::new(ConfigType::Workload, name)
        }
    }

    fn new(config_type: ConfigType, name: impl Into<String>) -> Entry {
        Entry {
            config_type,
            namespace: None,
            workload_kind: None,
            name: name.into(),
            uid: None,
        }
    }

    /// The resource's uid. A write then replaces the entry of an older uid and what hangs on it; a `get` finds only
    /// this uid.
    pub fn uid(mut self, uid: impl Into<String>) -> Entry {
        self.uid = Some(uid.into());
        self
    }

    /// Reads the entry: `{"key", "uid"?, "value"}`.
    pub fn get(self) -> ConfigOperation {
        self.operation(ConfigVerb::Get, None)
    }

    /// Writes the entry unless it exists; one that exists is success.
    pub fn create(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigVerb::Create, Some(value.into()))
    }

    /// Writes the entry.
    pub fn update(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigVerb::Update, Some(value.into()))
    }

    /// Deletes the entry and what hangs on it.
    pub fn delete(self) -> ConfigOperation {
        self.operation(ConfigVerb::Delete, None)
    }

    /// As an entry of a set, with this value.
    pub fn content(self, value: impl Into<String>) -> ConfigContent {
        let key = ConfigKey::Resource(ConfigResourceKey {
            config_type: self.config_type,
            resource_name: self.name,
            resource_uid: self.uid,
            namespace: self.namespace,
            workload_kind: self.workload_kind,
        });
        content(key, value)
    }

    fn operation(self, config_verb: ConfigVerb, value: Option<String>) -> ConfigOperation {
        ConfigOperation::Resource(ConfigResourceRequest {
            config_type: self.config_type,
            config_verb,
            resource_name: self.name,
            resource_uid: self.uid,
            namespace: self.namespace,
            workload_kind: self.workload_kind,
            value,
        })
    }
}

/// One key of the application configuration that belongs to a Pod and is deleted with its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct AppConf {
    pod: String,
    namespace: Option<String>,
    key: String,
}

impl AppConf {
    /// A key of this Pod, in the namespace of the object being handled.
    pub fn new(pod: impl Into<String>, key: impl Into<String>) -> AppConf {
        AppConf {
            pod: pod.into(),
            namespace: None,
            key: key.into(),
        }
    }

    /// The Pod's namespace, where it is not that of the object being handled.
    pub fn namespace(mut self, namespace: impl Into<String>) -> AppConf {
        self.namespace = Some(namespace.into());
        self
    }

    /// Writes the key unless it exists; one that exists is success.
    pub fn create(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigAppConfVerb::Create, Some(value.into()))
    }

    /// Writes the key.
    pub fn update(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigAppConfVerb::Update, Some(value.into()))
    }

    /// Deletes the key.
    pub fn delete(self) -> ConfigOperation {
        self.operation(ConfigAppConfVerb::Delete, None)
    }

    /// As an entry of a set, with this value.
    pub fn content(self, value: impl Into<String>) -> ConfigContent {
        let key = ConfigKey::AppConf(ConfigAppConfKey {
            pod_name: self.pod,
            namespace: self.namespace,
            key: self.key,
        });
        content(key, value)
    }

    fn operation(self, verb: ConfigAppConfVerb, value: Option<String>) -> ConfigOperation {
        ConfigOperation::AppConf(ConfigAppConfRequest {
            verb,
            pod_name: self.pod,
            namespace: self.namespace,
            key: self.key,
            value,
        })
    }
}

/// A key by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Basic {
    key: String,
}

impl Basic {
    /// This key.
    pub fn new(key: impl Into<String>) -> Basic {
        Basic { key: key.into() }
    }

    /// Reads the key: `{"key", "value"}`.
    pub fn get(self) -> ConfigOperation {
        self.operation(ConfigBasicVerb::Get, None)
    }

    /// Writes the key.
    pub fn put(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigBasicVerb::Put, Some(value.into()))
    }

    /// Deletes the key.
    pub fn delete(self) -> ConfigOperation {
        self.operation(ConfigBasicVerb::Delete, None)
    }

    /// As an entry of a set, with this value.
    pub fn content(self, value: impl Into<String>) -> ConfigContent {
        content(ConfigKey::Basic(self.key), value)
    }

    fn operation(self, verb: ConfigBasicVerb, value: Option<String>) -> ConfigOperation {
        ConfigOperation::Basic(ConfigBasicRequest {
            verb,
            key: self.key,
            value,
        })
    }
}

/// A leaf under two levels of path. The host creates and removes the levels.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct TwoLayers {
    second: String,
    third: String,
}

impl TwoLayers {
    /// The leaf `third` under `second`.
    pub fn new(second: impl Into<String>, third: impl Into<String>) -> TwoLayers {
        TwoLayers {
            second: second.into(),
            third: third.into(),
        }
    }

    /// Reads the leaf: `{"key", "value"}`.
    pub fn get(self) -> ConfigOperation {
        self.operation(ConfigTwoLayersVerb::Get, None)
    }

    /// Writes the leaf unless it exists; one that exists is success.
    pub fn create(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigTwoLayersVerb::Create, Some(value.into()))
    }

    /// Writes the leaf.
    pub fn update(self, value: impl Into<String>) -> ConfigOperation {
        self.operation(ConfigTwoLayersVerb::Update, Some(value.into()))
    }

    /// Deletes the leaf.
    pub fn delete(self) -> ConfigOperation {
        self.operation(ConfigTwoLayersVerb::Delete, None)
    }

    /// As an entry of a set, with this value.
    pub fn content(self, value: impl Into<String>) -> ConfigContent {
        let key = ConfigKey::TwoLayers(ConfigTwoLayersKey {
            second_path: self.second,
            third_path: self.third,
        });
        content(key, value)
    }

    fn operation(self, verb: ConfigTwoLayersVerb, value: Option<String>) -> ConfigOperation {
        ConfigOperation::TwoLayers(ConfigTwoLayersRequest {
            verb,
            second_path: self.second,
            third_path: self.third,
            value,
        })
    }
}

fn content(key: ConfigKey, value: impl Into<String>) -> ConfigContent {
    ConfigContent {
        key,
        value: value.into(),
        partition: None,
    }
}

/// Operations of which all happen, or none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Transaction {
    operations: Vec<ConfigOperation>,
}

impl Transaction {
    /// No operations yet.
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// Adds an operation.
    pub fn and(mut self, operation: ConfigOperation) -> Transaction {
        self.push(operation);
        self
    }

    /// Adds an operation, inside a loop.
    pub fn push(&mut self, operation: ConfigOperation) {
        self.operations.push(operation);
    }
}

impl From<Transaction> for Operation {
    fn from(transaction: Transaction) -> Operation {
        Operation::ConfigTransaction(ConfigTransaction {
            operations: transaction.operations,
        })
    }
}

/// An operation by itself is a request.
impl From<ConfigOperation> for Operation {
    fn from(operation: ConfigOperation) -> Operation {
        match operation {
            ConfigOperation::Resource(request) => Operation::ConfigResource(request),
            ConfigOperation::AppConf(request) => Operation::ConfigAppConf(request),
            ConfigOperation::Basic(request) => Operation::ConfigBasic(request),
            ConfigOperation::TwoLayers(request) => Operation::ConfigTwoLayers(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::Request;

    fn check(operation: impl Into<Operation>, line: Expect) {
        line.assert_eq(&Request::new("r", operation).to_string());
    }

    #[test]
    fn each_type_has_its_place() {
        check(
            Entry::pod("shop", "web-1").uid("u").get(),
            expect!["r: config get pod shop/web-1 (u)"],
        );
        check(
            Entry::node("n-1").create("1"),
            expect!["r: config create node n-1 = 1"],
        );
        check(
            Entry::namespace("shop").update("1"),
            expect!["r: config update namespace shop = 1"],
        );
        check(
            Entry::workload("shop", "Deployment", "web").delete(),
            expect!["r: config delete workload shop/Deployment/web"],
        );
        check(
            AppConf::new("web-1", "tier").create("gold"),
            expect!["r: config create app-conf web-1 tier = gold"],
        );
        check(
            Basic::new("motd").put("hello"),
            expect!["r: config put basic motd = hello"],
        );
        check(
            TwoLayers::new("a", "b").delete(),
            expect!["r: config delete two-layers a b"],
        );
    }

    #[test]
    fn a_transaction_keeps_the_order() {
        check(
            Transaction::new()
                .and(Basic::new("b").put("1"))
                .and(Basic::new("a").delete()),
            expect![[r#"
                r: config transaction
                  config put basic b = 1
                  config delete basic a"#]],
        );
    }
}
