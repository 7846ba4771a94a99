//! What the API itself adds to objects and demands of them, beyond their schema.

use std::net::Ipv4Addr;

use configurator_schema::FieldError;
use serde_json::{Value, json};

use crate::names::{self, fault};
use crate::object;
use crate::resource::{NameRule, Resource};
use crate::server::Inner;
use crate::status::{Result, Status};

/// Something that only one object may have: an address or a port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) key: String,
    field: &'static str,
    value: String,
    message: String,
}

impl Claim {
    fn cluster_ip(address: &str) -> Self {
        Self {
            key: crate::keys::claim("clusterip", address),
            field: "spec.clusterIPs",
            value: address.to_owned(),
            message: format!("failed to allocate IP {address}: provided IP is already allocated"),
        }
    }

    fn node_port(port: u64, protocol: &str) -> Self {
        Self {
            key: crate::keys::claim("nodeport", &format!("{protocol}/{port}")),
            field: "spec.ports[0].nodePort",
            value: port.to_string(),
            message: "provided port is already allocated".to_owned(),
        }
    }

    pub(crate) fn refusal(&self, resource: &Resource, name: &str) -> Status {
        Status::invalid(
            resource,
            name,
            &[FieldError::invalid(
                self.field,
                &json!(self.value),
                &self.message,
            )],
        )
    }
}

/// What an object holds that no other may have.
pub(crate) fn claims(resource: &Resource, object: &Value) -> Vec<Claim> {
    if !resource.is("", "services") {
        return Vec::new();
    }
    let mut claims = Vec::new();
    if let Some(address) = object.pointer("/spec/clusterIP").and_then(Value::as_str)
        && !matches!(address, "" | "None")
    {
        claims.push(Claim::cluster_ip(address));
    }
    for port in object
        .pointer("/spec/ports")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if let Some(number) = port
            .get("nodePort")
            .and_then(Value::as_u64)
            .filter(|&number| number != 0)
        {
            claims.push(Claim::node_port(
                number,
                port.get("protocol")
                    .and_then(Value::as_str)
                    .unwrap_or("TCP"),
            ));
        }
    }
    claims
}

/// What the metadata of any object may not be.
pub(crate) fn metadata_errors(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::name(object);
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else if let Some(why) = fault(resource.rules.names, name) {
        errors.push(FieldError::invalid("metadata.name", &json!(name), why));
    }
    let namespace = object::meta(object, "namespace");
    if resource.namespaced && fault(NameRule::Label, namespace).is_some() {
        errors.push(FieldError::invalid(
            "metadata.namespace",
            &json!(namespace),
            fault(NameRule::Label, namespace).unwrap_or_default(),
        ));
    }
    errors.extend(
        configurator_schema::validate_metadata(object)
            .into_iter()
            // Only finalizers of built-in kinds are held to standard names.
            .filter(|error| {
                let is_builtin =
                    resource.custom.is_none() && &*resource.storage != crate::crd::STORAGE;
                is_builtin || !error.path.starts_with("metadata.finalizers[")
            }),
    );
    errors
}

/// Takes out owners that are there twice, and says so.
pub(crate) fn drop_repeated_owners(object: &mut Value) -> Option<String> {
    let owners = object
        .pointer_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut)?;
    let mut seen: Vec<Value> = Vec::with_capacity(owners.len());
    let mut repeated = Vec::new();
    for owner in owners.drain(..) {
        if seen.contains(&owner) {
            repeated.push(
                owner
                    .get("uid")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            );
        } else {
            seen.push(owner);
        }
    }
    *owners = seen;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests \
             as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// What a new object of a built-in kind gets: its first status, and what a cluster would allocate.
pub(crate) fn prepare_create(
    server: &Inner,
    resource: &Resource,
    object: &mut Value,
) -> Result<()> {
    if resource.custom.is_some() {
        return Ok(());
    }
    if resource.status
        && object.get("status").is_none()
        && &*resource.storage != crate::crd::STORAGE
    {
        object::set_field(object, "status", Some(json!({})));
    }
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => admit_pod(object),
        ("", "nodes") => {
            let spec = object::child_mut(object, "spec");
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            let taints = spec.entry("taints").or_insert_with(|| json!([]));
            if let Value::Array(taints) = taints
                && !taints
                    .iter()
                    .any(|have| have.get("key") == taint.get("key"))
            {
                taints.push(taint);
            }
        }
        ("batch", "jobs") => select_own_pods(object),
        _ => {}
    }
    if resource.is("", "services") {
        allocate_service(server, object, None)?;
    }
    Ok(())
}

/// What a Pod gets from the plugins that every cluster has: its priority, and that it outlives short failures of its node.
fn admit_pod(pod: &mut Value) {
    let spec = object::child_mut(pod, "spec");
    if !spec.contains_key("priorityClassName") {
        spec.entry("priority").or_insert_with(|| json!(0));
        spec.entry("preemptionPolicy")
            .or_insert_with(|| json!("PreemptLowerPriority"));
    }
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Value::Array(tolerations) = tolerations else {
        return;
    };
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            let is = |field: &str, wanted: &str| {
                matches!(
                    toleration.get(field).and_then(Value::as_str),
                    None | Some("")
                ) || toleration.get(field) == Some(&json!(wanted))
            };
            is("key", key) && is("effect", "NoExecute")
        });
        if !is_tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300
            }));
        }
    }
}

/// A Job that brings no selector owns the Pods with its uid.
fn select_own_pods(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (name, uid) = (object::name(job).to_owned(), object::uid(job).to_owned());
    let labels = [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ];
    let spec = object::child_mut(job, "spec");
    spec.insert(
        "selector".to_owned(),
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
    );
    if let Some(template) = spec.get_mut("template") {
        object::child_mut(template, "metadata");
        if let Some(metadata) = template.get_mut("metadata") {
            let own = object::child_mut(metadata, "labels");
            for (key, value) in labels {
                own.insert(key.to_owned(), json!(value));
            }
        }
    }
    if let Some(metadata) = job.get_mut("metadata") {
        let own = object::child_mut(metadata, "labels");
        for (key, value) in labels {
            own.entry(key).or_insert_with(|| json!(value));
        }
    }
}

/// What an update of a built-in kind keeps or gets.
pub(crate) fn prepare_update(
    server: &Inner,
    resource: &Resource,
    old: &Value,
    object: &mut Value,
) -> Result<()> {
    if resource.is("", "namespaces") {
        let finalizers = old.pointer("/spec/finalizers").cloned();
        if let Some(finalizers) = finalizers {
            object::child_mut(object, "spec").insert("finalizers".to_owned(), finalizers);
        }
    }
    if resource.is("", "services") {
        allocate_service(server, object, Some(old))?;
    }
    take_string_data(resource, object);
    Ok(())
}

/// Moves the texts of a Secret to its data.
pub(crate) fn take_string_data(resource: &Resource, object: &mut Value) {
    if resource.is("", "secrets")
        && let Some(plain) = object.get("stringData").and_then(Value::as_object).cloned()
    {
        merge_string_data(object, &plain);
    }
}

/// `stringData` is for writing only: it ends in `data`.
fn merge_string_data(object: &mut Value, plain: &serde_json::Map<String, Value>) {
    use base64::Engine;
    let data = object::child_mut(object, "data");
    for (key, value) in plain {
        if let Some(text) = value.as_str() {
            data.insert(
                key.clone(),
                Value::from(base64::engine::general_purpose::STANDARD.encode(text)),
            );
        }
    }
    object::set_field(object, "stringData", None);
}

/// Gives a Service its address and its ports, from 10.96.0.0/12 and 30000 to 32767, and keeps those it has.
fn allocate_service(server: &Inner, service: &mut Value, old: Option<&Value>) -> Result<()> {
    let text = |value: &Value, pointer: &str| {
        value
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let kind = match text(service, "/spec/type") {
        kind if kind.is_empty() => "ClusterIP".to_owned(),
        kind => kind,
    };
    let spec = object::child_mut(service, "spec");
    if kind == "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(field);
        }
        return Ok(());
    }
    let mut address = spec
        .get("clusterIP")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if address.is_empty() {
        address = spec
            .get("clusterIPs")
            .and_then(|list| list.get(0))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
    }
    if address.is_empty()
        && let Some(old) = old
    {
        address = text(old, "/spec/clusterIP");
    }
    if address.is_empty() {
        address = free_address(server)?;
    }
    spec.insert("clusterIP".to_owned(), json!(address));
    spec.insert("clusterIPs".to_owned(), json!([address]));
    // Without an address and without Pods of its own a Service may be of any family.
    let anything = address == "None"
        && spec
            .get("selector")
            .and_then(Value::as_object)
            .is_none_or(serde_json::Map::is_empty);
    let (families, policy) = if anything && old.is_none() {
        (json!(["IPv4", "IPv6"]), "RequireDualStack")
    } else {
        (json!(["IPv4"]), "SingleStack")
    };
    spec.entry("ipFamilies").or_insert(families);
    spec.entry("ipFamilyPolicy")
        .or_insert_with(|| json!(policy));
    let wants_ports = matches!(kind.as_str(), "NodePort" | "LoadBalancer")
        && spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false));
    let old_ports = old
        .and_then(|old| old.pointer("/spec/ports"))
        .and_then(Value::as_array);
    let mut taken = Vec::new();
    for port in spec
        .get_mut("ports")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        let had = port.get("nodePort").and_then(Value::as_u64).unwrap_or(0);
        if wants_ports && had == 0 {
            let same = |old: &&Value| {
                old.get("port") == port.get("port") && old.get("name") == port.get("name")
            };
            let kept = old_ports
                .and_then(|ports| ports.iter().find(same))
                .and_then(|old| old.get("nodePort"))
                .and_then(Value::as_u64);
            let protocol = port
                .get("protocol")
                .and_then(Value::as_str)
                .unwrap_or("TCP")
                .to_owned();
            let number = match kept {
                Some(number) => number,
                None => free_port(server, &protocol, &taken)?,
            };
            taken.push(number);
            object::set_field(port, "nodePort", Some(json!(number)));
        } else if !wants_ports && kind == "ClusterIP" {
            // A port that was allocated for another type goes with it, as in a cluster.
            object::set_field(port, "nodePort", None);
        }
    }
    Ok(())
}

/// How many random places are tried before an allocation gives up.
const TRIES: usize = 200;

fn free_address(server: &Inner) -> Result<String> {
    for _ in 0..TRIES {
        let host = random(server) & 0x000f_ffff;
        let address = Ipv4Addr::from(0x0a60_0000 | host);
        // The first ten are for the cluster itself, and neither the network's nor the broadcast address is given away.
        if host > 10 && host < 0x000f_ffff {
            let address = address.to_string();
            if server
                .store
                .get(Claim::cluster_ip(&address).key.as_bytes())?
                .is_none()
            {
                return Ok(address);
            }
        }
    }
    Err(Status::internal(
        "failed to allocate a serviceIP: range is full",
    ))
}

fn free_port(server: &Inner, protocol: &str, taken: &[u64]) -> Result<u64> {
    for _ in 0..TRIES {
        let port = 30_000 + u64::from(random(server)) % 2_768;
        if !taken.contains(&port)
            && server
                .store
                .get(Claim::node_port(port, protocol).key.as_bytes())?
                .is_none()
        {
            return Ok(port);
        }
    }
    Err(Status::internal(
        "failed to allocate a nodePort: range is full",
    ))
}

fn random(server: &Inner) -> u32 {
    let mut bytes = [0; 4];
    (server.options.random)(&mut bytes);
    u32::from_le_bytes(bytes)
}

/// A uid: a random UUID of version 4.
pub(crate) fn new_uid(server: &Inner) -> String {
    let mut bytes = [0u8; 16];
    (server.options.random)(&mut bytes);
    let number =
        u128::from_be_bytes(bytes) & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{number:032x}");
    let part = |range| hex.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}-{}-{}",
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32)
    )
}

/// A generated name: the prefix, cut if need be, and five characters that make no words.
pub(crate) fn generated_name(server: &Inner, prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut bytes = [0u8; 5];
    (server.options.random)(&mut bytes);
    let suffix = bytes
        .iter()
        .filter_map(|byte| LETTERS.get(usize::from(*byte) % LETTERS.len()));
    let mut name: String = prefix.chars().take(58).collect();
    name.extend(suffix.map(|&byte| char::from(byte)));
    name
}

/// Whether a manager's or a prefix's name is fit for use; names with a trailing dash are made complete by the generated part.
pub(crate) fn generate_name_errors(resource: &Resource, prefix: &str) -> Vec<FieldError> {
    let probe = format!("{prefix}x");
    match names::fault(resource.rules.names, &probe) {
        Some(why) => vec![FieldError::invalid(
            "metadata.generateName",
            &json!(prefix),
            why,
        )],
        None => Vec::new(),
    }
}
