//! The cloud's HTTP.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, Request, State as Shared};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::network::{Instance, Interface};
use super::{APP_ID, Refusal, SECRET_ID, SECRET_KEY, State, UIN};

type Cloud = Arc<Mutex<State>>;
type Answer = Result<(u16, Value), Refusal>;

/// Shown each request, before it has taken effect (`true`) and after. Where it says no, there is no answer.
pub(super) type Passes = Arc<dyn Fn(&str, bool) -> bool + Send + Sync>;

pub(super) async fn serve(listener: TcpListener, cloud: Cloud, passes: Passes) {
    let router = Router::new()
        .route("/account", get(account))
        .route("/vpcs/{id}", get(vpc))
        .route("/vpcs/{id}/addresses", get(taken))
        .route("/instances", get(instances))
        .route("/instances/{id}/migrate", post(migrate))
        .route("/interfaces", post(make_interface))
        .route("/interfaces/{id}/detach", post(detach))
        .route("/attachments", post(attach))
        .route("/addresses/{id}/unbind", post(unbind))
        .route("/addresses/{id}/bind", post(bind))
        .route("/quotas", post(quota))
        .route("/operations/{id}", get(operation))
        .with_state(cloud)
        .layer(from_fn_with_state(passes, guard));
    // It ends with the test.
    let _ = axum::serve(listener, router).await;
}

async fn guard(Shared(passes): Shared<Passes>, request: Request, next: Next) -> Response {
    let key = request.headers().get("idempotency-key");
    let key = key.and_then(|key| key.to_str().ok()).unwrap_or_default();
    let point = match request.method() == Method::GET {
        true => format!("GET {}", request.uri()),
        false => format!("{} {} {key}", request.method(), request.uri()),
    };
    if !passes(&point, true) {
        return broken_off();
    }
    let response = next.run(request).await;
    match passes(&point, false) {
        true => response,
        false => broken_off(),
    }
}

/// The client finds its connection closed in the middle of the body.
fn broken_off() -> Response {
    let error = std::io::Error::other("broken off");
    let body = futures::stream::iter([Err::<Bytes, _>(error)]);
    Response::new(axum::body::Body::from_stream(body))
}

/// Answers a request of who has the key, unless it is one too many.
fn answer(cloud: &Cloud, headers: &HeaderMap, act: impl FnOnce(&mut State) -> Answer) -> Response {
    let mut state = cloud.lock().unwrap_or_else(PoisonError::into_inner);
    state.requests += 1;
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if (header("x-secret-id"), header("x-secret-key")) != (Some(SECRET_ID), Some(SECRET_KEY)) {
        return refuse(&Refusal::new(401, "AuthFailure", "the key is not accepted"));
    }
    let every = state.manners.throttle_every;
    if every > 0 && state.requests.is_multiple_of(every) {
        let mut response = refuse(&Refusal::new(
            429,
            "RequestLimitExceeded",
            "too many requests",
        ));
        response.headers_mut().insert("retry-after", 1.into());
        return response;
    }
    match act(&mut state) {
        Ok((status, body)) => respond(status, &body),
        Err(refusal) => refuse(&refusal),
    }
}

/// As [`answer`]; what was asked for under this key before is not done again.
fn once(cloud: &Cloud, headers: &HeaderMap, act: impl FnOnce(&mut State) -> Answer) -> Response {
    let key = headers.get("idempotency-key");
    let key = key.and_then(|key| key.to_str().ok()).map(str::to_owned);
    answer(cloud, headers, |state| {
        let known = key.as_ref().and_then(|key| state.answered.get(key));
        if let Some((status, body)) = known {
            return Ok((*status, body.clone()));
        }
        let answer = act(state)?;
        state.answered.extend(key.map(|key| (key, answer.clone())));
        Ok(answer)
    })
}

fn respond(status: u16, body: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or_default();
    let json = [("content-type", "application/json")];
    (status, json, body.to_string()).into_response()
}

fn refuse(refusal: &Refusal) -> Response {
    respond(refusal.status, &refusal.body())
}

fn read<T: for<'de> Deserialize<'de>>(body: &Bytes) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::new(400, "InvalidParameter", error.to_string()))
}

fn not_found(what: &str, id: &str) -> Refusal {
    Refusal::new(404, "ResourceNotFound", format!("there is no {what} {id}"))
}

async fn account(Shared(cloud): Shared<Cloud>, headers: HeaderMap) -> Response {
    answer(&cloud, &headers, |_| {
        Ok((200, json!({"appId": APP_ID, "uin": UIN})))
    })
}

async fn vpc(Shared(cloud): Shared<Cloud>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    answer(&cloud, &headers, |state| {
        let network = state.vpcs.get(&id).ok_or_else(|| not_found("VPC", &id))?;
        let subnets = network
            .subnets
            .iter()
            .map(|subnet| json!({"id": subnet.id, "cidr": subnet.cidr, "zone": subnet.zone}));
        let subnets: Vec<Value> = subnets.collect();
        let body = json!({
            "id": network.id, "appId": network.app_id, "region": network.region, "subnets": subnets,
        });
        Ok((200, body))
    })
}

async fn taken(
    Shared(cloud): Shared<Cloud>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    answer(&cloud, &headers, |state| {
        Ok((200, json!({"addresses": state.taken(&id)})))
    })
}

#[derive(Deserialize)]
struct Which {
    vpc: Option<String>,
    ids: Option<String>,
}

async fn instances(
    Shared(cloud): Shared<Cloud>,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Response {
    answer(&cloud, &headers, |state| {
        let is_meant = |instance: &&Instance| match (&which.ids, &which.vpc) {
            (Some(ids), _) => ids.split(',').any(|id| id == instance.id),
            (None, Some(vpc)) => *vpc == instance.vpc,
            (None, None) => true,
        };
        let found = state.instances.values().filter(is_meant);
        let found: Vec<Value> = found.map(|instance| shown(state, instance)).collect();
        Ok((200, json!({"instances": found})))
    })
}

fn shown(state: &State, instance: &Instance) -> Value {
    let public = |interface: &Interface| {
        let mut addresses = state.addresses.values();
        let address = addresses.find(|address| address.interface.as_deref() == Some(&interface.id));
        address.map(|address| address.id.clone())
    };
    let own = state.interfaces.values();
    let own = own.filter(|interface| interface.instance.as_deref() == Some(&instance.id));
    let interfaces: Vec<Value> = own
        .map(|interface| {
            json!({
                "id": interface.id, "ip": interface.ip, "subnetId": interface.subnet,
                "isFirst": interface.is_first, "publicAddress": public(interface),
            })
        })
        .collect();
    json!({
        "id": instance.id,
        "state": if instance.is_running { "RUNNING" } else { "STOPPED" },
        "vpcId": instance.vpc,
        "subnetId": instance.subnet,
        "interfaces": interfaces,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewInterface {
    subnet_id: String,
    ip: Option<String>,
}

async fn make_interface(Shared(cloud): Shared<Cloud>, headers: HeaderMap, body: Bytes) -> Response {
    once(&cloud, &headers, |state| {
        let wanted: NewInterface = read(&body)?;
        let beside = state.interfaces.values();
        if beside.filter(|interface| !interface.is_first).count() >= state.manners.quota {
            let message = "there may be no more network interfaces";
            return Err(Refusal::new(409, "QuotaExceeded", message));
        }
        let vpc = vpc_of(state, &wanted.subnet_id)?;
        let ip = match wanted.ip {
            Some(ip) if state.taken(&vpc).contains(&ip) => {
                let message = format!("{ip} is taken in {vpc}");
                return Err(Refusal::new(409, "AddressInUse", message));
            }
            Some(ip) => ip,
            None => free(state, &vpc, &wanted.subnet_id),
        };
        let id = format!("eni-{}", ip.replace('.', "-"));
        state.effects.push(format!("make interface {ip} in {vpc}"));
        let interface = Interface {
            id: id.clone(),
            vpc,
            subnet: wanted.subnet_id,
            ip: ip.clone(),
            instance: None,
            is_first: false,
        };
        state.interfaces.insert(id.clone(), interface);
        Ok((202, state.operate(Ok(json!({"id": id, "ip": ip})))))
    })
}

/// An address of the subnet that nobody has.
fn free(state: &State, vpc: &str, subnet: &str) -> String {
    let taken = state.taken(vpc);
    let net = if subnet.ends_with('a') { 1 } else { 2 };
    let mut candidates = (100..250).map(|last| format!("10.0.{net}.{last}"));
    candidates
        .find(|ip| !taken.contains(ip))
        .unwrap_or_default()
}

fn vpc_of(state: &State, subnet: &str) -> Result<String, Refusal> {
    let mut networks = state.vpcs.values();
    let network = networks.find(|network| network.subnets.iter().any(|own| own.id == subnet));
    let network = network.ok_or_else(|| not_found("subnet", subnet))?;
    Ok(network.id.clone())
}

async fn detach(
    Shared(cloud): Shared<Cloud>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    once(&cloud, &headers, |state| {
        let interface = state.interfaces.get_mut(&id);
        let interface = interface.ok_or_else(|| not_found("interface", &id))?;
        let Some(instance) = interface.instance.take() else {
            return Ok((202, state.operate(Ok(json!({})))));
        };
        state.effects.push(format!("detach {id} from {instance}"));
        Ok((202, state.operate(Ok(json!({})))))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Migration {
    vpc_id: String,
    subnet_id: String,
    ip: Option<String>,
}

async fn migrate(
    Shared(cloud): Shared<Cloud>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    once(&cloud, &headers, |state| {
        let to: Migration = read(&body)?;
        let has_more = state
            .interfaces
            .values()
            .any(|interface| interface.instance.as_deref() == Some(&id) && !interface.is_first);
        if has_more {
            let message = format!("{id} has interfaces beside its first");
            return Err(Refusal::new(409, "HasSecondaryInterfaces", message));
        }
        let free = free(state, &to.vpc_id, &to.subnet_id);
        let instance = state.instances.get_mut(&id);
        let instance = instance.ok_or_else(|| not_found("instance", &id))?;
        if instance.vpc != to.vpc_id {
            state.effects.push(format!("migrate {id} to {}", to.vpc_id));
        }
        instance.vpc.clone_from(&to.vpc_id);
        instance.subnet.clone_from(&to.subnet_id);
        let mut interfaces = state.interfaces.values_mut();
        let first = interfaces
            .find(|interface| interface.instance.as_deref() == Some(&id) && interface.is_first);
        let ip = to.ip.unwrap_or(free);
        if let Some(first) = first {
            first.vpc = to.vpc_id;
            first.subnet = to.subnet_id;
            first.ip.clone_from(&ip);
        }
        Ok((202, state.operate(Ok(json!({"ip": ip})))))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attachments {
    instance_id: String,
    interface_ids: Vec<String>,
}

async fn attach(Shared(cloud): Shared<Cloud>, headers: HeaderMap, body: Bytes) -> Response {
    once(&cloud, &headers, |state| {
        let Attachments {
            instance_id,
            interface_ids,
        } = read(&body)?;
        let instance = state.instances.get(&instance_id);
        let vpc = instance.map(|instance| instance.vpc.clone());
        let vpc = vpc.ok_or_else(|| not_found("instance", &instance_id))?;
        let stops = state.manners.partial_attachments > 0;
        let mut attached = Vec::new();
        for (number, id) in interface_ids.iter().enumerate() {
            let half = interface_ids.len() / 2;
            if stops && number >= half {
                state.manners.partial_attachments -= 1;
                let message = format!("{id} is busy; attached: {attached:?}");
                let refusal = Refusal::new(409, "EniBusy", message);
                return Ok((202, state.operate(Err(refusal))));
            }
            let interface = state.interfaces.get_mut(id);
            let interface = interface.ok_or_else(|| not_found("interface", id))?;
            if interface.vpc != vpc {
                let message = format!("{id} is in {}, {instance_id} in {vpc}", interface.vpc);
                return Err(Refusal::new(409, "VpcMismatch", message));
            }
            if interface.instance.is_none() {
                interface.instance = Some(instance_id.clone());
                let ip = interface.ip.clone();
                state.effects.push(format!("attach {ip} to {instance_id}"));
            }
            attached.push(id.clone());
        }
        Ok((202, state.operate(Ok(json!({"attached": attached})))))
    })
}

async fn unbind(
    Shared(cloud): Shared<Cloud>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    answer(&cloud, &headers, |state| {
        let address = state.addresses.get_mut(&id);
        let address = address.ok_or_else(|| not_found("address", &id))?;
        if address.interface.take().is_some() {
            state.effects.push(format!("unbind {id}"));
        }
        Ok((200, json!({})))
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Binding {
    interface_id: String,
}

async fn bind(
    Shared(cloud): Shared<Cloud>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    answer(&cloud, &headers, |state| {
        let Binding { interface_id } = read(&body)?;
        // Each order counts, also a second one for the same.
        state.effects.push(format!("bind {id}"));
        let address = state.addresses.get_mut(&id);
        let address = address.ok_or_else(|| not_found("address", &id))?;
        if let Some(bound) = &address.interface {
            let message = format!("{id} leads to {bound}");
            return Err(Refusal::new(409, "AddressBound", message));
        }
        address.interface = Some(interface_id);
        Ok((200, json!({})))
    })
}

#[derive(Deserialize)]
struct Quota {
    interfaces: usize,
}

async fn quota(Shared(cloud): Shared<Cloud>, headers: HeaderMap, body: Bytes) -> Response {
    once(&cloud, &headers, |state| {
        let Quota { interfaces } = read(&body)?;
        state.manners.quota = interfaces;
        state.effects.push(format!("raise quota to {interfaces}"));
        Ok((200, json!({})))
    })
}

async fn operation(
    Shared(cloud): Shared<Cloud>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    answer(&cloud, &headers, |state| {
        let operation = state.operations.get(&id);
        let operation = operation.ok_or_else(|| not_found("operation", &id))?;
        let left = operation.due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            let done = operation.took.saturating_sub(left).as_millis() * 100;
            let percent = done / operation.took.as_millis().max(1);
            return Ok((200, json!({"state": "RUNNING", "percent": percent})));
        }
        let body = match &operation.result {
            Ok(result) => json!({"state": "SUCCEEDED", "result": result}),
            Err(refusal) => {
                json!({"state": "FAILED", "code": refusal.code, "message": refusal.message})
            }
        };
        Ok((200, body))
    })
}
