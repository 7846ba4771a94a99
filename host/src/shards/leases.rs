//! The Leases of a group of hosts: their label, their names, and what people read in them.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Preconditions};
use serde_json::Value;

use crate::clock::SharedClock;

/// Label of the Leases of a group. Its value is the name of the group.
pub(super) const GROUP_LABEL: &str = "configurator.dev/ring";

/// Returns the shard of a Lease of this group, or `None` if the Lease is not one of a shard.
pub(super) fn shard_of(group: &str, lease: &str) -> Option<u16> {
    let shard = lease.strip_prefix(group)?.strip_prefix("-shard-")?;
    shard.parse().ok()
}

/// Returns the name of the fence of a shard in the config store.
pub(super) fn fence_name(group: &str, shard: u16) -> String {
    format!("{group}/{shard}")
}

/// Returns the current time in the format of Leases. It informs people, and no decision depends on it.
pub(super) fn wall_clock(clock: &SharedClock) -> Value {
    let millis = clock.now().as_millis();
    let now = Timestamp::from_millisecond(millis).unwrap_or_default();
    format!("{now:.6}").into()
}

/// Deletes a Lease, unless it has changed since this version.
pub(super) async fn delete(
    leases: &Api<Lease>,
    name: &str,
    version: Option<String>,
) -> Result<(), kube::Error> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            resource_version: version,
            uid: None,
        }),
        ..DeleteParams::default()
    };
    leases.delete(name, &params).await.map(drop)
}
