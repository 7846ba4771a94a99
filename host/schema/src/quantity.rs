//! Quantities such as `500m` and `1Gi`, exactly.

use std::{cmp::Ordering, fmt};

use serde_json::Value;
use thiserror::Error;

/// A number with the kind of suffix it was written with. Exact down to 10⁻⁹; smaller parts are rounded up, away from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// In units of 10⁻⁹.
    nanos: i128,
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

/// Why a text is no quantity; the words are those of Kubernetes.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)]
pub struct QuantityError;

const NANO: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// Reads a quantity.
    ///
    /// # Errors
    /// [`QuantityError`] if it is malformed. What is beyond the largest quantity is cut to it.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, suffix) = rest.split_at_checked(end).ok_or(QuantityError)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 64
        {
            return Err(QuantityError);
        }
        let (format, exponent, factor) = suffix_of(suffix)?;
        let digits: String = format!("{whole}{fraction}");
        let mantissa: i128 = digits
            .trim_start_matches('0')
            .get(..30.min(digits.trim_start_matches('0').len()))
            .map_or(Ok(0), |d| if d.is_empty() { Ok(0) } else { d.parse() })
            .map_err(|_| QuantityError)?;
        let cut =
            i32::try_from(digits.trim_start_matches('0').len().saturating_sub(30)).unwrap_or(0);
        let scale = exponent - i32::try_from(fraction.len()).unwrap_or(i32::MAX) + cut + 9;
        let nanos = scaled(mantissa.saturating_mul(factor), scale);
        let nanos = nanos.min(i128::from(i64::MAX) * NANO);
        Ok(Quantity {
            nanos: if negative { -nanos } else { nanos },
            format,
        })
    }

    /// Reads a quantity that is written as a string or a number.
    ///
    /// # Errors
    /// [`QuantityError`] if it is neither, or malformed.
    pub fn from_json(value: &Value) -> Result<Quantity, QuantityError> {
        match value {
            Value::String(text) => Quantity::parse(text),
            Value::Number(number) => Quantity::parse(&number.to_string()),
            _ => Err(QuantityError),
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The sum; the suffix is of the kind of the first.
    #[must_use]
    pub fn plus(self, other: Quantity) -> Quantity {
        Quantity {
            nanos: self.nanos.saturating_add(other.nanos),
            format: self.format,
        }
    }

    /// The difference; the suffix is of the kind of the first.
    #[must_use]
    pub fn minus(self, other: Quantity) -> Quantity {
        Quantity {
            nanos: self.nanos.saturating_sub(other.nanos),
            format: self.format,
        }
    }

    /// The value, if it is whole and fits.
    pub fn as_integer(self) -> Option<i64> {
        (self.nanos % NANO == 0)
            .then(|| i64::try_from(self.nanos / NANO).ok())
            .flatten()
    }

    /// In units of 10⁻⁹, as a quantity: equal quantities are equal texts.
    pub(crate) fn in_nanos(self) -> String {
        format!("{}n", self.nanos)
    }

    /// The nearest floating-point number.
    #[expect(clippy::cast_precision_loss, reason = "asked for")]
    pub fn approximate(self) -> f64 {
        self.nanos as f64 / NANO as f64
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.nanos.cmp(&other.nanos))
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, the largest suffix that loses nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let whole = self.nanos / NANO;
        if self.format == Format::Binary && self.nanos % NANO == 0 && whole.unsigned_abs() >= 1024 {
            let (mut value, mut suffix) = (whole, "");
            for next in BINARY {
                if value % 1024 != 0 {
                    break;
                }
                value /= 1024;
                suffix = next;
            }
            return write!(f, "{value}{suffix}");
        }
        let (mut value, mut exponent) = (self.nanos, -9);
        while value % 1000 == 0 && exponent < 18 {
            value /= 1000;
            exponent += 3;
        }
        if self.format == Format::Exponent {
            return if exponent == 0 {
                write!(f, "{value}")
            } else {
                write!(f, "{value}e{exponent}")
            };
        }
        let suffix = DECIMAL
            .iter()
            .find(|(_, e)| *e == exponent)
            .map_or("", |(s, _)| s);
        write!(f, "{value}{suffix}")
    }
}

fn suffix_of(suffix: &str) -> Result<(Format, i32, i128), QuantityError> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(s, _)| *s == suffix) {
        return Ok((Format::Decimal, *exponent, 1));
    }
    if let Some(at) = BINARY.iter().position(|s| *s == suffix) {
        return Ok((Format::Binary, 0, 1_i128 << (10 * (at + 1))));
    }
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError)?;
    let exponent: i32 = exponent.parse().map_err(|_| QuantityError)?;
    Ok((Format::Exponent, exponent.clamp(-100, 100), 1))
}

/// `mantissa · 10^exponent`, rounded up, cut to what fits.
fn scaled(mantissa: i128, exponent: i32) -> i128 {
    let power = 10_i128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return power
            .and_then(|p| mantissa.checked_mul(p))
            .unwrap_or(if mantissa == 0 { 0 } else { i128::MAX });
    }
    match power {
        Some(power) => mantissa / power + i128::from(mantissa % power != 0),
        None => i128::from(mantissa != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_forms() {
        let table = [
            ("0", "0"),
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1.5", "1500m"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("1500", "1500"),
            ("100m", "100m"),
            ("0.1m", "100u"),
            ("+2k", "2k"),
            ("-1Ki", "-1Ki"),
            ("1e3", "1e3"),
            ("12E2", "1200"),
            ("512", "512"),
            ("0.5Ki", "512"),
            ("1Ei", "1Ei"),
            ("0.0000000001", "1n"),
            (".5", "500m"),
            ("5.", "5"),
            ("99999999999999999999", "9223372036854775807"),
            ("64Mi", "64Mi"),
            ("2000Ki", "2000Ki"),
        ];
        for (text, want) in table {
            let got = Quantity::parse(text).unwrap().to_string();
            assert_eq!(got, want, "{text}");
            assert_eq!(
                Quantity::parse(&got).unwrap().to_string(),
                want,
                "again: {text}"
            );
        }
    }

    #[test]
    fn malformed() {
        for text in [
            "", "x", "1x", ".", "1.2.3", "1 Gi", "Gi", "1e", "--1", "1KI", "1ki",
        ] {
            assert_eq!(Quantity::parse(text), Err(QuantityError), "{text}");
        }
    }

    #[test]
    fn orders_by_value() {
        assert!(Quantity::parse("1Gi").unwrap() > Quantity::parse("1G").unwrap());
        assert!(Quantity::parse("999m").unwrap() < Quantity::parse("1").unwrap());
    }
}
