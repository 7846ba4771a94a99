//! What the cloud says there is.

use serde::Deserialize;

use crate::resource::Spec;

/// Whose key it is.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Account {
    /// The account.
    pub app_id: String,
    /// The identity of who has the key.
    pub uin: String,
}

/// A private network.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Vpc {
    /// Its id.
    pub id: String,
    /// The account that it belongs to.
    pub app_id: String,
    /// Where it is.
    pub region: String,
    /// Its parts.
    pub subnets: Vec<Subnet>,
}

/// A part of a private network.
#[derive(Debug, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its addresses.
    pub cidr: String,
    /// Where it is in the region.
    pub zone: String,
}

/// The answer to a question for instances.
#[derive(Debug, Deserialize)]
pub struct Instances {
    /// Those that there are.
    pub instances: Vec<Instance>,
}

/// A machine.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    /// Its id.
    pub id: String,
    /// `RUNNING`, or something else.
    pub state: String,
    /// The network that it is in.
    pub vpc_id: String,
    /// The subnet of its first interface.
    pub subnet_id: String,
    /// Its network interfaces.
    pub interfaces: Vec<Interface>,
}

/// A network interface.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Its id.
    pub id: String,
    /// Its private address.
    pub ip: String,
    /// The subnet that it is in.
    pub subnet_id: String,
    /// Whether it came with the instance, and goes where that goes.
    pub is_first: bool,
    /// The public address that leads to it.
    pub public_address: Option<String>,
}

/// Addresses of a network that are taken.
#[derive(Debug, Deserialize)]
pub struct Addresses {
    /// The private addresses.
    pub addresses: Vec<String>,
}

impl Instance {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.state == "RUNNING"
    }

    /// The address of the interface that it came with.
    pub fn first_ip(&self) -> Option<&str> {
        let first = self.interfaces.iter().find(|interface| interface.is_first);
        first.map(|interface| interface.ip.as_str())
    }
}

/// The question for the instances that are to be moved.
pub fn instances(spec: &Spec) -> String {
    if spec.instances.is_empty() {
        format!("/instances?vpc={}", spec.src_vpc_id)
    } else {
        format!("/instances?ids={}", spec.instances.join(","))
    }
}

/// The question for a network.
pub fn vpc(id: &str) -> String {
    format!("/vpcs/{id}")
}
