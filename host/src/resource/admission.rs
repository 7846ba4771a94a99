//! The admission policy that makes the API server check who creates a Command.

use serde_json::{Value, json};

/// What a ValidatingAdmissionPolicy for Commands specifies. A Command needs the user who creates it as `spec.requestedBy`, and the right to create the
/// subresource with the name of its verb: `commands/approve`, for example.
#[must_use]
pub fn commands_policy() -> Value {
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["configurator.dev"],
            "apiVersions": ["*"],
            "operations": ["CREATE"],
            "resources": ["commands"],
        }]},
        "validations": [
            {
                "expression": "object.spec.requestedBy == request.userInfo.username",
                "messageExpression": "'spec.requestedBy must be the user who creates the Command: ' + request.userInfo.username",
                "reason": "Forbidden",
            },
            {
                "expression": "authorizer.group('configurator.dev').resource('commands').subresource(object.spec.verb.lowerAscii()).namespace(request.namespace).check('create').allowed()",
                "messageExpression": "'the verb ' + object.spec.verb + ' needs the right to create commands.configurator.dev/' + object.spec.verb.lowerAscii()",
                "reason": "Forbidden",
            },
        ],
    })
}

/// What the binding of the policy with this name specifies.
#[must_use]
pub fn commands_binding(policy: &str) -> Value {
    json!({"policyName": policy, "validationActions": ["Deny"]})
}
