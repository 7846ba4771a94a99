//! What names, label keys and label values may look like, in the words of Kubernetes.

use crate::resource::NameRule;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an \
                     alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with \
                         an alphanumeric character (e.g. 'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
                         (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                           with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                           '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a name, if anything.
pub(crate) fn fault(rule: NameRule, name: &str) -> Option<String> {
    match rule {
        NameRule::Subdomain if name.len() > 253 => {
            Some("must be no more than 253 characters".to_owned())
        }
        NameRule::Subdomain => (!name.split('.').all(is_label)).then(|| SUBDOMAIN.to_owned()),
        NameRule::Label if name.len() > 63 => Some("must be no more than 63 characters".to_owned()),
        NameRule::Label if name.contains('.') => Some("must not contain dots".to_owned()),
        NameRule::Label => (!is_label(name)).then(|| LABEL.to_owned()),
        NameRule::PathSegment => match name {
            "." | ".." => Some(format!("may not be '{name}'")),
            _ if name.contains('/') => Some("may not contain '/'".to_owned()),
            _ if name.contains('%') => Some("may not contain '%'".to_owned()),
            _ => None,
        },
    }
}

/// What is wrong with the key of a label or an annotation, if anything.
pub(crate) fn label_key_fault(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            return Some("prefix part must be non-empty".to_owned());
        }
        if let Some(why) = fault(NameRule::Subdomain, prefix) {
            return Some(format!("prefix part {why}"));
        }
    }
    if name.contains('/') {
        return Some(format!(
            "{} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            QUALIFIED.replacen("name part", "a valid label key", 1)
        ));
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    (!is_qualified(name)).then(|| QUALIFIED.to_owned())
}

/// What is wrong with the value of a label, if anything.
pub(crate) fn label_value_fault(value: &str) -> Option<String> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes".to_owned());
    }
    (!value.is_empty() && !is_qualified(value)).then(|| LABEL_VALUE.to_owned())
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&byte| alphanumeric(byte))
        && bytes.last().is_some_and(|&byte| alphanumeric(byte))
        && bytes.iter().all(|&byte| alphanumeric(byte) || byte == b'-')
}

fn is_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes
            .iter()
            .all(|&byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rule() {
        assert_eq!(fault(NameRule::Subdomain, "a.b-c.0"), None);
        assert!(fault(NameRule::Subdomain, "A").is_some());
        assert!(fault(NameRule::Subdomain, "a..b").is_some());
        assert!(fault(NameRule::Subdomain, &"a".repeat(254)).is_some());
        assert!(fault(NameRule::Label, "a.b").is_some());
        assert_eq!(fault(NameRule::PathSegment, "system:node"), None);
        assert!(fault(NameRule::PathSegment, "a/b").is_some());
        assert_eq!(label_key_fault("app.kubernetes.io/name"), None);
        assert!(label_key_fault("/name").is_some());
        assert!(label_value_fault("-a").is_some());
        assert_eq!(label_value_fault(""), None);
    }
}
