//! The parameters of a request.

use configurator_schema::{FieldError, Reason};
use http::Method;

use crate::status::{Result, Status};

/// The query of a request, with the parts that the API knows. Others are ignored, as Kubernetes does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pub(crate) watch: bool,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) resource_version: String,
    pub(crate) resource_version_match: String,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) allow_watch_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) dry_run: bool,
    pub(crate) field_manager: Option<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: Option<bool>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) orphan_dependents: Option<bool>,
    /// Of a table: `None`, `Metadata` or `Object`.
    pub(crate) include_object: String,
}

/// What becomes of unknown fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl Query {
    pub(crate) fn parse(query: &str, method: &Method) -> Result<Self> {
        let mut parsed = Self::default();
        let mut errors = Vec::new();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            match key.as_ref() {
                "watch" => parsed.watch = boolean(&key, &value)?,
                "labelSelector" => parsed.label_selector = value.into_owned(),
                "fieldSelector" => parsed.field_selector = value.into_owned(),
                "resourceVersion" => parsed.resource_version = value.into_owned(),
                "resourceVersionMatch" => parsed.resource_version_match = value.into_owned(),
                "limit" => parsed.limit = number::<i64>(&value)?.max(0).try_into().unwrap_or(0),
                "continue" => parsed.continue_token = value.into_owned(),
                "timeoutSeconds" => {
                    parsed.timeout_seconds =
                        (!value.is_empty()).then(|| number(&value)).transpose()?
                }
                "allowWatchBookmarks" => parsed.allow_watch_bookmarks = boolean(&key, &value)?,
                "sendInitialEvents" => parsed.send_initial_events = Some(boolean(&key, &value)?),
                "dryRun" => match value.as_ref() {
                    "" => {}
                    "All" => parsed.dry_run = true,
                    other => {
                        let given = serde_json::Value::from(vec![other]);
                        errors.push(FieldError::not_supported("dryRun", &given, ["All"]));
                    }
                },
                "fieldManager" => {
                    if value.chars().count() > 128 {
                        errors.push(FieldError::new(
                            "fieldManager",
                            Reason::TooLong,
                            "Too long: may not be more than 128 bytes",
                        ));
                    }
                    parsed.field_manager = (!value.is_empty()).then(|| value.into_owned());
                }
                "fieldValidation" => {
                    parsed.field_validation = match value.as_ref() {
                        "" | "Warn" => FieldValidation::Warn,
                        "Ignore" => FieldValidation::Ignore,
                        "Strict" => FieldValidation::Strict,
                        other => {
                            errors.push(FieldError::not_supported(
                                "fieldValidation",
                                &serde_json::Value::from(other),
                                ["", "Ignore", "Strict", "Warn"],
                            ));
                            FieldValidation::Warn
                        }
                    }
                }
                "force" => parsed.force = Some(boolean(&key, &value)?),
                "gracePeriodSeconds" => parsed.grace_period_seconds = Some(number(&value)?),
                "propagationPolicy" => parsed.propagation_policy = Some(value.into_owned()),
                "orphanDependents" => parsed.orphan_dependents = Some(boolean(&key, &value)?),
                "includeObject" => parsed.include_object = value.into_owned(),
                _ => {}
            }
        }
        let options = match method.as_str() {
            "POST" => "CreateOptions",
            "PUT" => "UpdateOptions",
            "PATCH" => "PatchOptions",
            "DELETE" => "DeleteOptions",
            _ => return Ok(parsed),
        };
        if !errors.is_empty() {
            return Err(Status::invalid_kind("meta.k8s.io", options, "", &errors));
        }
        Ok(parsed)
    }
}

fn boolean(key: &str, value: &str) -> Result<bool> {
    // An empty value means true for a boolean parameter of the API, as in `?watch`.
    match value {
        "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(Status::bad_request(format!(
            "invalid value {other:?} for {key}: must be true or false"
        ))),
    }
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T> {
    value.parse().map_err(|_| {
        Status::bad_request(format!(
            "strconv.ParseInt: parsing {value:?}: invalid syntax"
        ))
    })
}
