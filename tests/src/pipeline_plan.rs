//! Plans of pipelines, as handlers get them.
#![allow(clippy::unwrap_used, reason = "documents of literals are valid")]

use std::time::Duration;

use configurator_core::desired::{
    ConfigContent, Content, DesiredEntry, DesiredSet, OnConflict, PipelinePlan, SecretContent,
    Termination,
};
use configurator_core::document::Document;
use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::graph::entry::{OnDelete, OnExisting, OnImmutable, Orders};
use configurator_core::request::{
    ConfigAppConf, ConfigBasic, ConfigOperation, ConfigRequest, ConfigResource, ConfigTwoLayers,
    ConfigType, ConfigVerb, ExecuteStrategy, ExtensionRequest, HttpRequest, KubernetesRequest,
    KubernetesVerb, ObjectRef, OnError, Operation, PatchType, Precondition, PropagationPolicy,
    Readiness, Request, Requests, SecretRequest, SecretVerb,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// A plan of a pipeline.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
pub enum Planned {
    /// Requests alone.
    Requests,
    /// A set with every field.
    Everything,
}

impl Planned {
    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> PipelinePlan {
        let requests = Requests {
            execute_strategy: ExecuteStrategy::Graph,
            resource_requests: requests(),
            ..Requests::default()
        };
        let desired = match self {
            Self::Requests => None,
            Self::Everything => Some(set()),
        };
        PipelinePlan { requests, desired }
    }
}

fn requests() -> Vec<Request> {
    let patch = KubernetesRequest {
        namespace: "shop".into(),
        name: "web".into(),
        subresource: Some("scale".into()),
        body: Some(document(&json!({"spec": {"replicas": 3}}))),
        patch_type: PatchType::Strategic,
        precheck_exist: false,
        force: true,
        cached: true,
        propagation_policy: PropagationPolicy::Orphan,
        precondition: Some(Precondition {
            uid: Some("u-1".into()),
            resource_version: Some("7".into()),
        }),
        ..KubernetesRequest::new(KubernetesVerb::Patch, "apps", "v1", "deployments")
    };
    let list = KubernetesRequest {
        field_selector: Some("spec.nodeName=n".into()),
        label_selector: Some("app=web".into()),
        ..KubernetesRequest::new(KubernetesVerb::List, "", "v1", "pods")
    };
    let config = |is_transaction, operations, partition: Option<&str>| {
        Operation::Config(ConfigRequest {
            is_transaction,
            operations,
            partition: partition.map(str::to_owned),
        })
    };
    let secret = Operation::Secret(SecretRequest {
        name: "db".into(),
        verb: SecretVerb::Update,
        value: Some(document(&json!("s3cret"))),
        version: Some(4),
        partition: None,
    });
    let http = Operation::Http(HttpRequest {
        method: "PUT".into(),
        url: "https://hooks.example.com/a".into(),
        headers: vec![("x-team".into(), "red".into())],
        body: Some(vec![0, 255]),
    });
    let extension = Operation::Extension(ExtensionRequest {
        extension: "dns".into(),
        verb: "upsert".into(),
        target: "example.org/www".into(),
        body: Some(document(&json!({"a": 1}))),
    });
    let get = ConfigOperation::Basic(ConfigBasic {
        verb: ConfigVerb::Get,
        key: "region".into(),
        value: None,
    });
    let patched = Request {
        group_by: Some("all".into()),
        bootstrap_dep: true,
        of: Some(ObjectRef {
            namespace: "shop".into(),
            name: "web".into(),
        }),
        on_error: Some(OnError::CatchError),
        depends_on: vec!["list".into()],
        ready_when: Some(Readiness::Healthy),
        once: true,
        timeout: Some(Duration::from_millis(1500)),
        ..Request::new("patch", Operation::Kubernetes(patch))
    };
    vec![
        patched,
        Request::new("list", Operation::Kubernetes(list)),
        Request::new("get", config(false, vec![get.clone()], Some("team-a"))),
        Request::new("old", config(false, vec![get.clone()], None)),
        Request {
            is_declarative: true,
            ..Request::new("transaction", config(true, writes(), None))
        },
        Request::new("secret", secret),
        Request::new("http", http),
        Request::new("extension", extension),
    ]
}

/// One write of every kind.
fn writes() -> Vec<ConfigOperation> {
    vec![
        ConfigOperation::Resource(ConfigResource {
            config_type: ConfigType::Workload,
            verb: ConfigVerb::Update,
            name: "web".into(),
            uid: Some("u-2".into()),
            namespace: Some("shop".into()),
            workload_kind: Some("Deployment".into()),
            value: Some("w".into()),
        }),
        ConfigOperation::AppConf(ConfigAppConf {
            verb: ConfigVerb::Update,
            pod_name: "web-1".into(),
            namespace: Some("shop".into()),
            key: "log.level".into(),
            value: Some("info".into()),
        }),
        ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Update,
            key: "region".into(),
            value: Some("north".into()),
        }),
        ConfigOperation::TwoLayers(ConfigTwoLayers {
            verb: ConfigVerb::Update,
            second_path: "teams".into(),
            third_path: "red".into(),
            value: Some("1".into()),
        }),
    ]
}

fn set() -> DesiredSet {
    let map = |name: &str| {
        Content::Kubernetes(document(&json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": "shop", "name": name},
        })))
    };
    let full = DesiredEntry {
        depends_on: vec!["secret".into()],
        ready_when: Some(Readiness::Expression("object.data.a == '1'".into())),
        failed_when: Some("object.data.a == '0'".into()),
        timeout: Some(Duration::from_secs(30)),
        on_existing: OnExisting::Adopt,
        on_conflict: OnConflict::Force,
        on_immutable: OnImmutable::Recreate,
        ignored_paths: vec![".data.b".into()],
        on_delete: OnDelete::OnlyUnderWipeOut,
        ..DesiredEntry::new("map", map("a"))
    };
    let secret = Content::Secret(SecretContent {
        name: "db".into(),
        value: Some(document(&json!({"user": "a"}))),
        partition: Some("team-a".into()),
    });
    let created = DesiredEntry {
        on_existing: OnExisting::CreateOnly,
        on_delete: OnDelete::Retain,
        ..DesiredEntry::new("secret", secret)
    };
    let mut entries = vec![full, created, DesiredEntry::new("old", map("old"))];
    for (index, write) in writes().into_iter().enumerate() {
        let content = Content::Config(ConfigContent {
            write,
            partition: (index == 0).then(|| "team-a".into()),
        });
        entries.push(DesiredEntry::new(format!("config-{index}"), content));
    }
    let group = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    DesiredSet {
        entries,
        allow_empty: true,
        termination_policy: Some(Termination::Policy(TerminationPolicy::KeepVolumes)),
        orders: Some(Orders {
            provision: vec![group(&["secret"]), group(&["map", "config-0"])],
            update: vec![group(&["map"])],
            terminate: vec![group(&["map"]), group(&["secret"])],
        }),
        pre_terminate: requests().drain(..1).collect(),
    }
}

fn document(value: &Value) -> Document {
    Document::of(value).unwrap()
}
