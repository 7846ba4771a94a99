//! Where a secret lies under its mount.

use std::fmt::Write as _;

/// Characters of a path that a URL shows as they are.
const UNRESERVED: &[u8] = b"-._~";

/// The path of a secret under the mount, for a URL.
///
/// A name that Vault can hold is its path. What Vault refuses or folds together is percent-encoded, and so is `%`, so that
/// two names never share a path and none leaves the prefix: empty segments, `.` and `..`, and what is no printable ASCII.
pub fn path_of(prefix: &str, name: &str) -> String {
    let mut path = plain(prefix);
    for segment in name.split('/') {
        if !path.is_empty() {
            path.push('/');
        }
        path += &escaped(&held(segment));
    }
    path
}

/// A path that the operator gave, for a URL.
pub fn plain(path: &str) -> String {
    let segments: Vec<String> = path.split('/').map(escaped).collect();
    segments.join("/")
}

/// Whether a path that the operator gave can be one in Vault.
pub fn is_path(path: &str) -> bool {
    path.split('/')
        .all(|segment| !segment.is_empty() && held(segment) == segment)
}

/// A segment as Vault holds it.
fn held(segment: &str) -> String {
    if segment.is_empty() {
        // Nothing else becomes this: a `%` always has two digits after it.
        return "%".into();
    }
    let has_dots = segment == "." || segment.contains("..");
    encoded(segment, |byte| match byte {
        b'%' => false,
        b'.' => !has_dots,
        _ => byte.is_ascii_graphic(),
    })
}

fn escaped(segment: &str) -> String {
    encoded(segment, |byte| {
        byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte)
    })
}

fn encoded(text: &str, is_kept: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_kept(byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;

    use super::*;

    const NAMES: [&str; 22] = [
        "db",
        "shop/db",
        "Shop/DB",
        "a b",
        "a%20b",
        "a+b",
        "a*b@c:d=e",
        "a?b#c",
        "a\\b",
        "ü",
        "u\u{308}",
        "\u{1}",
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        ".",
        "..",
        "../../sys",
        "a..b",
        "a.b",
    ];

    #[test]
    fn a_name_is_its_path_unless_vault_cannot_hold_it() {
        let table: String = NAMES
            .into_iter()
            .map(|name| format!("{name:?}: {}\n", path_of("p", name)))
            .collect();
        expect![[r#"
            "db": p/db
            "shop/db": p/shop/db
            "Shop/DB": p/Shop/DB
            "a b": p/a%2520b
            "a%20b": p/a%252520b
            "a+b": p/a%2Bb
            "a*b@c:d=e": p/a%2Ab%40c%3Ad%3De
            "a?b#c": p/a%3Fb%23c
            "a\\b": p/a%5Cb
            "ü": p/%25C3%25BC
            "u\u{308}": p/u%25CC%2588
            "\u{1}": p/%2501
            "": p/%25
            "/": p/%25/%25
            "a/": p/a/%25
            "/a": p/%25/a
            "a//b": p/a/%25/b
            ".": p/%252E
            "..": p/%252E%252E
            "../../sys": p/%252E%252E/%252E%252E/sys
            "a..b": p/a%252E%252Eb
            "a.b": p/a.b
        "#]]
        .assert_eq(&table);
        expect!["a/b"].assert_eq(&path_of("", "a/b"));
        expect!["clusters/one/a"].assert_eq(&path_of("clusters/one", "a"));
    }

    #[test]
    fn two_names_never_share_a_path_and_none_is_changed_on_the_way() {
        let mut paths = BTreeMap::new();
        for name in NAMES.into_iter().chain(["%", "%2E%2E", "a%2Fb"]) {
            let path = path_of("p", name);
            let url: reqwest::Url = format!("https://a/v1/{path}").parse().unwrap();
            assert_eq!(url.path(), format!("/v1/{path}"), "{name:?}");
            assert_eq!(paths.insert(path, name), None, "{name:?}");
        }
    }

    #[test]
    fn a_mount_is_a_path() {
        for path in ["secret", "teams/a/kv", "kv-v2"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["", "/secret", "secret/", "a//b", "../sys", "ü", "a b"] {
            assert!(!is_path(path), "{path}");
        }
    }
}
