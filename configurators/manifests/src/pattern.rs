//! Patterns of names, in which `*` stands for any number of characters.

/// Returns whether the name matches the pattern. The time is at most the product of both lengths.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("*_ADDR", "CART_ADDR", true),
            ("*_ADDR", "_ADDR", true),
            ("*_ADDR", "CART_ADDRESS", false),
            ("CART_ADDR", "CART_ADDR", true),
            ("CART_ADDR", "CART_ADDR2", false),
            ("*", "", true),
            ("A*B*C", "AxByC", true),
            ("A*B*C", "ABC", true),
            ("A*B*C", "AC", false),
            ("AB*BC", "ABC", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
