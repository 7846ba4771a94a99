//! What a path of the API names.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The parts of a path below a group and version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResourcePath {
    /// Empty for the core group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    /// The plural name; empty for the list of resources.
    pub(crate) resource: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The old `/watch/` prefix.
    pub(crate) watch: bool,
}

impl ResourcePath {
    /// Reads a path like `/apis/apps/v1/namespaces/default/deployments/web/scale`. None if it is no such path.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut segments = path
            .trim_start_matches('/')
            .trim_end_matches('/')
            .split('/');
        let group = match segments.next()? {
            "api" => String::new(),
            "apis" => decode(segments.next()?)?,
            _ => return None,
        };
        let version = decode(segments.next()?)?;
        let mut rest: Vec<String> = segments.map(decode).collect::<Option<_>>()?;
        if rest.iter().any(String::is_empty) || version.is_empty() {
            return None;
        }
        let mut parsed = Self {
            group,
            version,
            ..Self::default()
        };
        if rest.first().is_some_and(|first| first == "watch") {
            parsed.watch = true;
            rest.remove(0);
        }
        // `namespaces/x/status` is about the namespace; `namespaces/x/pods` about the pods in it.
        let mut rest = rest.into_iter().peekable();
        let first = rest.next();
        let Some(first) = first else {
            return Some(parsed);
        };
        if first == "namespaces" {
            let namespace = rest.next();
            match rest.next() {
                Some(next) if !matches!(next.as_str(), "status" | "finalize") => {
                    parsed.namespace = namespace;
                    parsed.resource = next;
                }
                subresource => {
                    parsed.resource = first;
                    parsed.name = namespace;
                    parsed.subresource = subresource;
                    return rest.next().is_none().then_some(parsed);
                }
            }
        } else {
            parsed.resource = first;
        }
        parsed.name = rest.next();
        parsed.subresource = rest.next();
        rest.next().is_none().then_some(parsed)
    }
}

fn decode(segment: &str) -> Option<String> {
    percent_decode_str(segment)
        .decode_utf8()
        .ok()
        .map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(path: &str, expect: Expect) {
        let shown = match ResourcePath::parse(path) {
            None => "none".to_owned(),
            Some(p) => format!(
                "{}/{} ns={:?} {} {:?} {:?}{}",
                p.group,
                p.version,
                p.namespace,
                p.resource,
                p.name,
                p.subresource,
                if p.watch { " watch" } else { "" }
            ),
        };
        expect.assert_eq(&shown);
    }

    #[test]
    fn paths_name_objects() {
        check("/api/v1", expect!["/v1 ns=None  None None"]);
        check("/api/v1/pods", expect!["/v1 ns=None pods None None"]);
        check(
            "/api/v1/namespaces",
            expect!["/v1 ns=None namespaces None None"],
        );
        check(
            "/api/v1/namespaces/a",
            expect![[r#"/v1 ns=None namespaces Some("a") None"#]],
        );
        check(
            "/api/v1/namespaces/a/status",
            expect![[r#"/v1 ns=None namespaces Some("a") Some("status")"#]],
        );
        check(
            "/api/v1/namespaces/a/pods",
            expect![[r#"/v1 ns=Some("a") pods None None"#]],
        );
        check(
            "/api/v1/namespaces/a/pods/b/status",
            expect![[r#"/v1 ns=Some("a") pods Some("b") Some("status")"#]],
        );
        check(
            "/apis/apps/v1/namespaces/a/deployments/b",
            expect![[r#"apps/v1 ns=Some("a") deployments Some("b") None"#]],
        );
        check(
            "/api/v1/watch/namespaces/a/pods",
            expect![[r#"/v1 ns=Some("a") pods None None watch"#]],
        );
        check(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            expect![[
                r#"rbac.authorization.k8s.io/v1 ns=None clusterroles Some("system:node") None"#
            ]],
        );
        check("/api/v1/namespaces/a/pods/b/c/d", expect!["none"]);
        check("/api/v1//pods", expect!["none"]);
        check("/apis", expect!["none"]);
        check("/healthz", expect!["none"]);
    }
}
