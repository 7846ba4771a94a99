//! Addresses of Services in environment variables.

use serde_json::Value;

use super::pod_spec::{containers, items};
use crate::pattern;

/// An address that may be a Service's.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address<'a> {
    /// The host as it was written.
    pub(super) host: &'a str,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    /// Whether the host can only be a Service. Otherwise it may also be outside of the cluster.
    pub(super) is_in_cluster: bool,
}

impl<'a> Address<'a> {
    /// Parses addresses such as `web:80` and `http://web.shop.svc.cluster.local:80/path`. `None` if there is no host, or if it is an IP address or
    /// `localhost`.
    pub(super) fn parse(text: &'a str, namespace: &'a str) -> Option<Self> {
        let text = text.split_once("://").map_or(text, |(_, text)| text);
        let text = text.split(['/', '?']).next()?;
        let text = text.rsplit_once('@').map_or(text, |(_, text)| text);
        let host = text.split(':').next()?;
        if host.is_empty() || host.starts_with('[') || host == "localhost" {
            return None;
        }
        let mut labels = host.split('.');
        let name = labels.next()?;
        let second = labels.next();
        let third = labels.next();
        if host.split('.').all(|label| label.parse::<u8>().is_ok()) {
            return None;
        }
        Some(Address {
            host,
            name,
            namespace: second.unwrap_or(namespace),
            is_in_cluster: second.is_none() || third == Some("svc"),
        })
    }
}

/// Returns the names and values of the environment variables that match one of the patterns.
pub(super) fn variables<'a>(pod_spec: &'a Value, patterns: &[String]) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for container in containers(pod_spec) {
        for variable in items(container, "/env") {
            let text = |field: &str| variable.get(field).and_then(Value::as_str);
            if let (Some(name), Some(value)) = (text("name"), text("value"))
                && patterns.iter().any(|of| pattern::matches(of, name))
            {
                found.push((name, value));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::Address;

    fn check(text: &str, expected: Expect) {
        let found = Address::parse(text, "here").map_or("none".to_owned(), |address| {
            let Address {
                name,
                namespace,
                is_in_cluster,
                ..
            } = address;
            format!("{namespace}/{name} {is_in_cluster}")
        });
        expected.assert_eq(&found);
    }

    #[test]
    fn addresses_name_services() {
        check("cart:7070", expect!["here/cart true"]);
        check("cart", expect!["here/cart true"]);
        check("http://cart:80/path?of=x:y", expect!["here/cart true"]);
        check("redis://user:word@cart:6379", expect!["here/cart true"]);
        check("cart.shop:7070", expect!["shop/cart false"]);
        check("cart.shop.svc:7070", expect!["shop/cart true"]);
        check("cart.shop.svc.cluster.local", expect!["shop/cart true"]);
        check("db.example.com:5432", expect!["example/db false"]);
    }

    #[test]
    fn other_addresses_name_none() {
        for text in [
            "",
            ":80",
            "10.0.0.1:80",
            "[::1]:80",
            "localhost:80",
            "http://",
        ] {
            check(text, expect!["none"]);
        }
    }
}
