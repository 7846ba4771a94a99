//! Questions about users and rights. Whoever reaches the API may do everything, and is told so.

use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use crate::object;
use crate::server::{Call, Reply};
use crate::status::{Result, Status};

pub(crate) fn create(call: &Call, headers: &HeaderMap) -> Result<Reply> {
    let resource = &call.resource;
    let (mut review, _) = call.document()?;
    let kind = review
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or(&resource.kind);
    if kind != resource.kind {
        return Err(Status::bad_request(format!(
            "{kind} cannot be handled as a {}",
            resource.kind
        )));
    }
    let status = match resource.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": user(headers)}),
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => {
            json!({"allowed": true, "reason": "the embedded API allows everything to whoever has its token"})
        }
    };
    object::set_field(&mut review, "kind", Some(json!(resource.kind)));
    object::set_field(
        &mut review,
        "apiVersion",
        Some(json!(resource.api_version())),
    );
    object::metadata_mut(&mut review);
    object::set_field(&mut review, "status", Some(status));
    Ok(Reply {
        code: StatusCode::CREATED,
        ..Reply::value(&review)?
    })
}

/// Who asks, or is impersonated by who asks.
fn user(headers: &HeaderMap) -> Value {
    const AUTHENTICATED: &str = "system:authenticated";
    let text = |value: &http::HeaderValue| value.to_str().map(str::to_owned).ok();
    let Some(user) = headers.get("impersonate-user").and_then(text) else {
        return json!({"username": "kubernetes-admin", "groups": ["system:masters", AUTHENTICATED]});
    };
    let given = headers.get_all("impersonate-group").iter();
    let mut groups: Vec<String> = given.filter_map(text).collect();
    let account = user.strip_prefix("system:serviceaccount:");
    if let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
        && groups.is_empty()
    {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups.push(AUTHENTICATED.to_owned());
    json!({"username": user, "groups": groups})
}
