//! Hosts at inner addresses that an operator permits.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use configurator_core::glob;
use ipnet::IpNet;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::address::AddressClass;

/// A host, or a pattern of hosts, that may have inner addresses, and which ones: `HOST` or `HOST = ADDRESS…`.
///
/// `HOST` is a name or an address as a URL has it, with `:port` unless it is the default port of the scheme. `*` stands
/// for any run of characters. Each `ADDRESS` is the class `private` or `shared`, a network such as `10.0.0.0/8`, or an
/// exact address. Without `=`, a host that is an address stands for this address, and any other for `private`.
///
/// A class or a network never includes an address that [needs to be listed itself](AddressClass::needs_exact_address),
/// such as a loopback, link-local or metadata address.
///
/// ```
/// # use configurator_host::network::InnerHost;
/// # fn main() -> Result<(), configurator_host::network::InnerHostError> {
/// let hooks: InnerHost = "hooks.shop.svc:8443 = 10.96.0.0/12".parse()?;
/// assert!(hooks.permits("hooks.shop.svc:8443", "10.96.0.7".parse().unwrap()));
/// assert!(!hooks.permits("hooks.shop.svc:8443", "10.0.0.7".parse().unwrap()));
/// assert!(!hooks.permits("hooks.shop.svc", "10.96.0.7".parse().unwrap()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InnerHost {
    pattern: String,
    addresses: Vec<Addresses>,
}

/// A text that is not an [`InnerHost`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: {reason}")]
pub struct InnerHostError {
    text: String,
    reason: String,
}

/// Some addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Addresses {
    Class(AddressClass),
    Network(IpNet),
    Exact(IpAddr),
}

impl InnerHost {
    /// Whether this host may have this address. `host` is written as in [`InnerHost`], in lower case.
    #[must_use]
    pub fn permits(&self, host: &str, address: IpAddr) -> bool {
        let class = AddressClass::of(address);
        glob::matches(&self.pattern, host)
            && self
                .addresses
                .iter()
                .any(|addresses| addresses.include(address.to_canonical(), class))
    }
}

impl Addresses {
    fn include(&self, address: IpAddr, class: AddressClass) -> bool {
        match self {
            Self::Class(included) => *included == class,
            Self::Network(network) => !class.needs_exact_address() && network.contains(&address),
            Self::Exact(exact) => *exact == address,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        for class in [AddressClass::Private, AddressClass::Shared] {
            if text == class.name() {
                return Ok(Self::Class(class));
            }
        }
        let exact = |address: IpAddr| Self::Exact(address.to_canonical());
        if let Ok(address) = text.parse() {
            return Ok(exact(address));
        }
        let network: IpNet = text.parse().map_err(|_| {
            format!(
                "{text:?} is not an address, a network such as 10.0.0.0/8, or one of the classes private and shared; \
                 loopback, link-local and metadata addresses must be listed one by one"
            )
        })?;
        if network.prefix_len() == network.max_prefix_len() {
            return Ok(exact(network.addr()));
        }
        let (first, last) = (network.network(), network.broadcast());
        let class = AddressClass::of(first);
        // The networks of these classes do not overlap with those of others.
        if class.needs_exact_address() && class == AddressClass::of(last) {
            return Err(format!(
                "{text} has {class} addresses, which must be listed one by one"
            ));
        }
        Ok(Self::Network(network.trunc()))
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(f, "{class}"),
            Self::Network(network) => write!(f, "{network}"),
            Self::Exact(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for InnerHost {
    type Err = InnerHostError;

    fn from_str(text: &str) -> Result<Self, InnerHostError> {
        let wrong = |reason: String| InnerHostError {
            text: text.to_owned(),
            reason,
        };
        let (host, addresses) = match text.split_once('=') {
            Some((host, addresses)) => (host, Some(addresses)),
            None => (text, None),
        };
        let (pattern, own) = pattern(host.trim()).map_err(wrong)?;
        let addresses = match addresses {
            None => vec![own.map_or(Addresses::Class(AddressClass::Private), |own| {
                Addresses::Exact(own.to_canonical())
            })],
            Some(addresses) => addresses
                .split_whitespace()
                .map(Addresses::parse)
                .collect::<Result<_, _>>()
                .map_err(wrong)?,
        };
        if addresses.is_empty() {
            return Err(wrong("no addresses follow `=`".to_owned()));
        }
        Ok(Self { pattern, addresses })
    }
}

/// The host as URLs have it, and its address if it is one.
fn pattern(text: &str) -> Result<(String, Option<IpAddr>), String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._*:[]".contains(letter);
    if text.is_empty() || !text.chars().all(is_plain) {
        return Err(
            "write a host as NAME or NAME:PORT, in ASCII, without a scheme or a path".to_owned(),
        );
    }
    let text = text.to_ascii_lowercase();
    let end = text.find(']').unwrap_or_default();
    let port = text.get(end..).and_then(|rest| rest.find(':'));
    let (host, port) = text.split_at(port.map_or(text.len(), |port| end + port));
    let is_port = |port: &str| port == "*" || port.parse::<u16>().is_ok();
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return Err(format!(
            "{port:?} is not a port: write :NUMBER or :*, and an IPv6 address in brackets"
        ));
    }
    if host.contains('*') {
        return Ok((text, None));
    }
    let url = Url::parse(&format!("http://{host}/"));
    let url = url.map_err(|error| format!("{host} cannot be the host of a URL: {error}"))?;
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    Ok((format!("{host}{port}"), address.parse().ok()))
}

impl fmt::Display for InnerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} =", self.pattern)?;
        self.addresses
            .iter()
            .try_for_each(|addresses| write!(f, " {addresses}"))
    }
}

impl TryFrom<String> for InnerHost {
    type Error = InnerHostError;

    fn try_from(text: String) -> Result<Self, InnerHostError> {
        text.parse()
    }
}

impl From<InnerHost> for String {
    fn from(host: InnerHost) -> Self {
        host.to_string()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let shown = match text.parse::<InnerHost>() {
            Ok(host) => {
                assert_eq!(host.to_string().parse().as_ref(), Ok(&host));
                host.to_string()
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_host_has_the_addresses_that_are_listed() {
        check("hooks.shop.svc", expect!["hooks.shop.svc = private"]);
        check("*", expect!["* = private"]);
        check(
            "Hooks.Shop.SVC:8443",
            expect!["hooks.shop.svc:8443 = private"],
        );
        check("10.0.0.7:8443", expect!["10.0.0.7:8443 = 10.0.0.7"]);
        check("[0:0:0:0:0:0:0:1]:80", expect!["[::1]:80 = ::1"]);
        check("[::ffff:10.0.0.7]", expect!["[::ffff:a00:7] = 10.0.0.7"]);
        check("127.*:*", expect!["127.*:* = private"]);
        check("a=private", expect!["a = private"]);
        check(
            "*.corp:* =  private shared 198.18.0.0/15 fd12::7/48 127.0.0.1 169.254.169.254/32",
            expect!["*.corp:* = private shared 198.18.0.0/15 fd12::/48 127.0.0.1 169.254.169.254"],
        );
        check("a = 0.0.0.0/0 ::/0", expect!["a = 0.0.0.0/0 ::/0"]);
    }

    #[test]
    fn an_entry_that_permits_nothing_is_refused_with_the_reason() {
        check(
            "",
            expect![[
                r#""": write a host as NAME or NAME:PORT, in ASCII, without a scheme or a path"#
            ]],
        );
        check("a =", expect![[r#""a =": no addresses follow `=`"#]]);
        check(
            "http://a/",
            expect![[
                r#""http://a/": write a host as NAME or NAME:PORT, in ASCII, without a scheme or a path"#
            ]],
        );
        check(
            "a b",
            expect![[
                r#""a b": write a host as NAME or NAME:PORT, in ASCII, without a scheme or a path"#
            ]],
        );
        check(
            "lőcalhost",
            expect![[
                r#""lőcalhost": write a host as NAME or NAME:PORT, in ASCII, without a scheme or a path"#
            ]],
        );
        check(
            "[::1",
            expect![[
                r#""[::1": "::1" is not a port: write :NUMBER or :*, and an IPv6 address in brackets"#
            ]],
        );
        check(
            "::1",
            expect![[
                r#""::1": "::1" is not a port: write :NUMBER or :*, and an IPv6 address in brackets"#
            ]],
        );
        check(
            "a:b",
            expect![[
                r#""a:b": ":b" is not a port: write :NUMBER or :*, and an IPv6 address in brackets"#
            ]],
        );
        check(
            "a = loopback",
            expect![[
                r#""a = loopback": "loopback" is not an address, a network such as 10.0.0.0/8, or one of the classes private and shared; loopback, link-local and metadata addresses must be listed one by one"#
            ]],
        );
        check(
            "a = public",
            expect![[
                r#""a = public": "public" is not an address, a network such as 10.0.0.0/8, or one of the classes private and shared; loopback, link-local and metadata addresses must be listed one by one"#
            ]],
        );
        check(
            "a = 10.0.0.0/33",
            expect![[
                r#""a = 10.0.0.0/33": "10.0.0.0/33" is not an address, a network such as 10.0.0.0/8, or one of the classes private and shared; loopback, link-local and metadata addresses must be listed one by one"#
            ]],
        );
        check(
            "a = 127.0.0.0/8",
            expect![[
                r#""a = 127.0.0.0/8": 127.0.0.0/8 has loopback addresses, which must be listed one by one"#
            ]],
        );
        check(
            "a = 169.254.0.0/16",
            expect![[
                r#""a = 169.254.0.0/16": 169.254.0.0/16 has link-local addresses, which must be listed one by one"#
            ]],
        );
        check(
            "a = fe80::/10",
            expect![[
                r#""a = fe80::/10": fe80::/10 has link-local addresses, which must be listed one by one"#
            ]],
        );
        check(
            "a = 2001::/32",
            expect![[
                r#""a = 2001::/32": 2001::/32 has tunnel addresses, which must be listed one by one"#
            ]],
        );
    }

    #[test]
    fn classes_and_networks_leave_out_addresses_that_need_to_be_exact() {
        let permits = |listed: &str, address: &str| {
            let host: InnerHost = format!("a = {listed}").parse().unwrap();
            host.permits("a", address.parse().unwrap())
        };
        for (listed, address) in [
            ("private", "10.1.2.3"),
            ("private", "::ffff:10.1.2.3"),
            ("private", "fd12::1"),
            ("shared", "100.64.0.1"),
            ("0.0.0.0/0", "198.18.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3"),
            ("::/0", "fd12::1"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1", "::ffff:127.0.0.1"),
            ("169.254.169.254/32", "169.254.169.254"),
            ("fd00:ec2::254", "fd00:ec2::254"),
        ] {
            assert!(permits(listed, address), "{listed} {address}");
        }
        for (listed, address) in [
            ("private", "127.0.0.1"),
            ("private", "169.254.169.254"),
            ("private", "fd00:ec2::254"),
            ("private", "100.64.0.1"),
            ("shared", "100.100.100.200"),
            ("0.0.0.0/0", "127.0.0.1"),
            ("0.0.0.0/0", "169.254.169.254"),
            ("0.0.0.0/0", "168.63.129.16"),
            ("0.0.0.0/0", "0.0.0.0"),
            ("0.0.0.0/0", "224.0.0.1"),
            ("0.0.0.0/0", "255.255.255.255"),
            ("::/0", "::1"),
            ("::/0", "fe80::1"),
            ("::/0", "2002:7f00:1::"),
            ("::/0", "2001:0:7f00:1::"),
            ("::/0", "::ffff:127.0.0.1"),
            ("fd00::/8", "fd00:ec2::254"),
            ("127.0.0.1", "127.0.0.2"),
        ] {
            assert!(!permits(listed, address), "{listed} {address}");
        }
    }
}
