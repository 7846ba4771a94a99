//! What there is in a cloud.

use std::collections::BTreeSet;

/// A private network.
#[derive(Debug, Clone)]
pub struct Network {
    /// Its id.
    pub id: String,
    /// The account that it belongs to.
    pub app_id: String,
    /// Where it is.
    pub region: String,
    /// Its parts.
    pub subnets: Vec<Subnet>,
    /// Addresses that others have taken.
    pub occupied: BTreeSet<String>,
}

/// A part of a network.
#[derive(Debug, Clone)]
pub struct Subnet {
    /// Its id.
    pub id: String,
    /// Its addresses.
    pub cidr: String,
    /// Where it is in the region.
    pub zone: String,
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Its id.
    pub id: String,
    /// The network that it is in.
    pub vpc: String,
    /// The subnet of its first interface.
    pub subnet: String,
    /// Whether it runs.
    pub is_running: bool,
}

/// A network interface.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Its id.
    pub id: String,
    /// The network that it is in.
    pub vpc: String,
    /// The subnet that it is in.
    pub subnet: String,
    /// Its private address.
    pub ip: String,
    /// The instance that has it.
    pub instance: Option<String>,
    /// Whether it came with the instance, and goes where that goes.
    pub is_first: bool,
}

/// A public address.
#[derive(Debug, Clone)]
pub struct Address {
    /// Its id.
    pub id: String,
    /// The interface that it leads to.
    pub interface: Option<String>,
}

impl Network {
    /// `vpc-NAME` with the subnets `NAME-a` and `NAME-b`. All of them have the same addresses.
    pub(super) fn of_two_subnets(name: &str) -> Self {
        let subnet = |letter: char, net: u8| Subnet {
            id: format!("{name}-{letter}"),
            cidr: format!("10.0.{net}.0/24"),
            zone: "north-1".into(),
        };
        Self {
            id: format!("vpc-{name}"),
            app_id: super::APP_ID.into(),
            region: "north".into(),
            subnets: vec![subnet('a', 1), subnet('b', 2)],
            occupied: BTreeSet::new(),
        }
    }
}
