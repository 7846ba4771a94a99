//! What is stored of a Deployment.

use std::collections::BTreeMap;

use configurator_sdk::Text;
use serde::Serialize;

use crate::deployment::{Container, Deployment};

/// What the key of an annotation begins with, to be configuration.
pub const PREFIX: &str = "config.configurator.dev/";

/// The value of a Deployment's entry. The same Deployment and Namespace give the same text.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary<'a> {
    /// How many Pods.
    pub replicas: u32,
    /// The account that the Pods act as.
    pub service_account: &'a str,
    /// What each Pod runs, in the order of the template.
    pub containers: Vec<ContainerSummary<'a>>,
    /// The effective configuration.
    pub config: BTreeMap<&'a str, &'a str>,
}

/// Of a container.
#[derive(Debug, Serialize)]
pub struct ContainerSummary<'a> {
    /// The name.
    pub name: &'a str,
    /// The image; empty where the template has none.
    pub image: &'a str,
    /// The ports that it declares.
    pub ports: Vec<u16>,
    /// The names of its environment variables.
    pub env: Vec<&'a str>,
}

impl<'a> Summary<'a> {
    /// Of a Deployment and the annotations of its Namespace.
    pub fn of(
        deployment: &'a Deployment<'_>,
        namespace: Option<&'a BTreeMap<Text<'_>, Text<'_>>>,
    ) -> Summary<'a> {
        let pod = &deployment.spec.template.spec;
        let layers = [namespace, deployment.metadata.annotations.as_ref()];
        let annotations = layers.into_iter().flatten().flatten();
        let config = annotations
            .filter_map(|(key, value)| Some((key.as_str().strip_prefix(PREFIX)?, value.as_str())));
        Summary {
            replicas: deployment.spec.replicas.unwrap_or(1),
            service_account: pod.service_account_name.as_deref().unwrap_or("default"),
            containers: pod.containers.iter().map(ContainerSummary::of).collect(),
            config: config.collect(),
        }
    }
}

impl<'a> ContainerSummary<'a> {
    fn of(container: &'a Container<'_>) -> ContainerSummary<'a> {
        let ports = container.ports.iter().flatten();
        let env = container.env.iter().flatten();
        ContainerSummary {
            name: &container.name,
            image: container.image.as_deref().unwrap_or_default(),
            ports: ports.map(|port| port.container_port).collect(),
            env: env.map(|variable| variable.name.as_str()).collect(),
        }
    }
}
