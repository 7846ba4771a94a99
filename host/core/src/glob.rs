//! Patterns with `*`.

/// Whether `text` matches `pattern`, in which `*` stands for any run of characters, also an empty one.
/// Time is linear in the product of the lengths.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut remaining) = text.strip_prefix(head) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return remaining.ends_with(part);
        }
        match remaining.split_once(part) {
            Some((_, after)) => remaining = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("pod-*", "pod-a", true),
            ("pod-*", "pod-", true),
            ("pod-*", "pods", false),
            ("*.example.com", "hooks.example.com", true),
            ("*.example.com", "example.com", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("a*a", "a", false),
            ("a**b", "ab", true),
            ("exact", "exact", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }
}
