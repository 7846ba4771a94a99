//! Questions about rights. Whoever reaches the API may do everything, and is told so.

use http::StatusCode;
use serde_json::{Value, json};

use crate::object;
use crate::server::{Call, Reply};
use crate::status::{Result, Status};

pub(crate) fn create(call: &Call) -> Result<Reply> {
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
        "SelfSubjectReview" => {
            json!({"userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}})
        }
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
