//! The string formats that schemas may name.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Whether `text` is of the format. A format that is not known holds always, as in Kubernetes.
pub(crate) fn is_valid(format: &str, text: &str) -> bool {
    match format {
        "date-time" | "datetime" => is_date_time(text),
        "date" => text.parse::<jiff::civil::Date>().is_ok() && text.len() == 10,
        "duration" => is_duration(text),
        "uuid" | "uuid3" | "uuid4" | "uuid5" => is_uuid(format, text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "mac" => is_mac(text),
        "email" => is_email(text),
        "hostname" => is_hostname(text),
        "uri" => is_uri(text),
        "byte" => is_base64(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
        }
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
        "ssn" => digits_in(text, &['-', ' ']) == Some(9),
        "creditcard" => digits_in(text, &['-', ' ']).is_some_and(|n| (13..=16).contains(&n)),
        "isbn" | "isbn10" | "isbn13" => is_isbn(format, text),
        "k8s-short-name" => is_dns_label(text),
        "k8s-long-name" => is_dns_name(text),
        _ => true,
    }
}

/// RFC 1123 label: at most 63 of a-z, 0-9 and '-', which is not first or last.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// RFC 1123 subdomain: labels with dots between, at most 253 in all. A label may be longer than 63, as in Kubernetes.
pub(crate) fn is_dns_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    (1..=253).contains(&text.len())
        && text.split('.').all(|l| {
            !l.is_empty() && l.bytes().all(inner) && !l.starts_with('-') && !l.ends_with('-')
        })
}

fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't', ' ']) else {
        return false;
    };
    date.len() == 10
        && rest.len() >= 8
        && text
            .replacen(' ', "T", 1)
            .parse::<jiff::Timestamp>()
            .is_ok()
}

fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 27] = [
        "ns",
        "us",
        "µs",
        "μs",
        "ms",
        "s",
        "m",
        "h",
        "d",
        "w",
        "nanosecond",
        "nanoseconds",
        "microsecond",
        "microseconds",
        "millisecond",
        "milliseconds",
        "second",
        "seconds",
        "sec",
        "minute",
        "minutes",
        "min",
        "hour",
        "hours",
        "day",
        "days",
        "weeks",
    ];
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        if number.parse::<f64>().is_err() {
            return false;
        }
        let tail = tail.trim_start();
        let end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.' || c == ' ')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        if !UNITS.contains(&unit) {
            return false;
        }
        rest = tail.trim_start();
    }
    true
}

fn is_uuid(format: &str, text: &str) -> bool {
    let hex: String = text.chars().filter(|c| *c != '-').collect();
    let version = match format {
        "uuid3" => Some('3'),
        "uuid4" => Some('4'),
        "uuid5" => Some('5'),
        _ => None,
    };
    let parts: Vec<usize> = text.split('-').map(str::len).collect();
    (parts == [8, 4, 4, 4, 12] || parts == [32])
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
        && version.is_none_or(|v| hex.chars().nth(12) == Some(v))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let Ok(bits) = bits.parse::<u8>() else {
        return false;
    };
    (address.parse::<Ipv4Addr>().is_ok() && bits <= 32)
        || (address.parse::<Ipv6Addr>().is_ok() && bits <= 128)
}

fn is_mac(text: &str) -> bool {
    let separator = if text.contains('-') { '-' } else { ':' };
    let parts: Vec<&str> = text.split(separator).collect();
    matches!(parts.len(), 6 | 8 | 20)
        && parts
            .iter()
            .all(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()))
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !local.chars().any(char::is_whitespace)
            && !local.contains('@')
            && is_hostname(domain)
    })
}

fn is_hostname(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    (1..=255).contains(&text.len())
        && text.split('.').all(|l| {
            (1..=63).contains(&l.len())
                && l.bytes().all(inner)
                && !l.starts_with('-')
                && !l.ends_with('-')
        })
}

fn is_uri(text: &str) -> bool {
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return false;
    }
    match text.split_once(':') {
        Some((scheme, rest)) => {
            !rest.is_empty()
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        }
        None => text.starts_with('/'),
    }
}

fn is_base64(text: &str) -> bool {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

/// How many digits there are, if there is nothing but digits and separators.
fn digits_in(text: &str, separators: &[char]) -> Option<usize> {
    text.chars()
        .all(|c| c.is_ascii_digit() || separators.contains(&c))
        .then(|| text.chars().filter(char::is_ascii_digit).count())
}

fn is_isbn(format: &str, text: &str) -> bool {
    let digits: Vec<u32> = text
        .chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| if c == 'X' { Some(10) } else { c.to_digit(10) })
        .collect::<Option<_>>()
        .unwrap_or_default();
    let ten = digits.len() == 10
        && digits
            .iter()
            .zip((1..=10).rev())
            .map(|(d, w)| d * w)
            .sum::<u32>()
            % 11
            == 0;
    let thirteen = digits.len() == 13
        && digits
            .iter()
            .zip([1, 3].into_iter().cycle())
            .map(|(d, w)| d * w)
            .sum::<u32>()
            % 10
            == 0;
    match format {
        "isbn10" => ten,
        "isbn13" => thirteen,
        _ => ten || thirteen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let table = [
            ("date-time", "2026-01-02T03:04:05Z", "2026-01-02"),
            ("date", "2026-01-02", "2026-1-2"),
            ("duration", "1h30m", "1 fortnight"),
            ("duration", "0", ""),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
            ("ipv4", "10.0.0.1", "10.0.0.256"),
            ("ipv6", "fe80::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("mac", "00:11:22:aa:bb:cc", "00:11"),
            ("email", "a@b.example", "a.b"),
            ("hostname", "a-b.example", "a_b"),
            ("uri", "https://a.example/x?y", "a b"),
            ("byte", "aGk=", "a"),
            ("isbn", "978-3-16-148410-0", "978-3-16-148410-1"),
            ("k8s-short-name", "a-1", "A"),
            ("k8s-long-name", "a.b", "a..b"),
            ("unheard-of", "", "\0"),
        ];
        for (format, good, bad) in table {
            assert!(is_valid(format, good), "{format}: {good}");
            assert_eq!(
                is_valid(format, bad),
                format == "unheard-of",
                "{format}: {bad}"
            );
        }
    }
}
