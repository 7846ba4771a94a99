//! The functions of Kubernetes' CEL libraries that CEL itself lacks: lists, regular expressions, quantities, URLs, addresses.
//!
//! A quantity is handed on as a text of nano units, so that equal quantities are equal values.

use std::{cmp::Ordering, net::IpAddr, sync::Arc};

use cel::{
    Env, ExecutionError, Value,
    common::{
        functions::Function,
        types::{DYN_TYPE, LIST_TYPE, STRING_TYPE, Type},
        value::{CowVal, Val},
    },
    extensions,
};

use crate::quantity::Quantity;

type Answer<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

/// All that rules may call.
pub(super) fn environment() -> Env {
    let mut env = Env::stdlib();
    // A name that is taken twice would be a fault of this table; what is there first stays.
    let _ = env.add_extension(extensions::strings);
    for (name, id, target, args, function) in members() {
        let _ = env.add_member_overload(name, id, target, args, function);
    }
    for (name, id, function) in globals() {
        let _ = env.add_overload(name, id, vec![STRING_TYPE], function);
    }
    env
}

type Member = (&'static str, &'static str, Type, Vec<Type>, Function);

fn members() -> Vec<Member> {
    let list = || LIST_TYPE;
    let text = || STRING_TYPE;
    vec![
        ("isSorted", "list.isSorted()", list(), vec![], is_sorted),
        ("sum", "list.sum()", list(), vec![], sum),
        ("min", "list.min()", list(), vec![], min),
        ("max", "list.max()", list(), vec![], max),
        (
            "indexOf",
            "list.indexOf(dyn)",
            list(),
            vec![DYN_TYPE],
            index_of,
        ),
        (
            "lastIndexOf",
            "list.lastIndexOf(dyn)",
            list(),
            vec![DYN_TYPE],
            last_index_of,
        ),
        ("find", "string.find(string)", text(), vec![text()], find),
        (
            "findAll",
            "string.findAll(string)",
            text(),
            vec![text()],
            find_all,
        ),
        (
            "isLessThan",
            "quantity.isLessThan(quantity)",
            text(),
            vec![text()],
            |a| compared(a, Ordering::is_lt),
        ),
        (
            "isGreaterThan",
            "quantity.isGreaterThan(quantity)",
            text(),
            vec![text()],
            |a| compared(a, Ordering::is_gt),
        ),
        (
            "compareTo",
            "quantity.compareTo(quantity)",
            text(),
            vec![text()],
            compare_to,
        ),
        ("add", "quantity.add(quantity)", text(), vec![text()], |a| {
            combined(a, Quantity::plus)
        }),
        ("sub", "quantity.sub(quantity)", text(), vec![text()], |a| {
            combined(a, Quantity::minus)
        }),
        (
            "add",
            "quantity.add(int)",
            text(),
            vec![cel::common::types::INT_TYPE],
            |a| combined(a, Quantity::plus),
        ),
        (
            "sub",
            "quantity.sub(int)",
            text(),
            vec![cel::common::types::INT_TYPE],
            |a| combined(a, Quantity::minus),
        ),
        ("sign", "quantity.sign()", text(), vec![], sign),
        ("isInteger", "quantity.isInteger()", text(), vec![], |a| {
            of_quantity(&a, |q| Value::Bool(q.as_integer().is_some()))
        }),
        (
            "asInteger",
            "quantity.asInteger()",
            text(),
            vec![],
            as_integer,
        ),
        (
            "asApproximateFloat",
            "quantity.asApproximateFloat()",
            text(),
            vec![],
            |a| of_quantity(&a, |q| Value::Float(q.approximate())),
        ),
        ("getScheme", "url.getScheme()", text(), vec![], |a| {
            url_part(&a, |u| u.scheme)
        }),
        ("getHost", "url.getHost()", text(), vec![], |a| {
            url_part(&a, |u| u.host)
        }),
        ("getHostname", "url.getHostname()", text(), vec![], |a| {
            url_part(&a, |u| u.hostname())
        }),
        ("getPort", "url.getPort()", text(), vec![], |a| {
            url_part(&a, |u| u.port())
        }),
        (
            "getEscapedPath",
            "url.getEscapedPath()",
            text(),
            vec![],
            |a| url_part(&a, |u| u.path),
        ),
        ("family", "ip.family()", text(), vec![], family),
        ("isLoopback", "ip.isLoopback()", text(), vec![], |a| {
            of_ip(&a, |ip| Value::Bool(ip.is_loopback()))
        }),
        ("isUnspecified", "ip.isUnspecified()", text(), vec![], |a| {
            of_ip(&a, |ip| Value::Bool(ip.is_unspecified()))
        }),
        (
            "containsIP",
            "cidr.containsIP(string)",
            text(),
            vec![text()],
            contains_ip,
        ),
        (
            "prefixLength",
            "cidr.prefixLength()",
            text(),
            vec![],
            prefix_length,
        ),
    ]
}

fn globals() -> Vec<(&'static str, &'static str, Function)> {
    vec![
        ("quantity", "quantity(string)", quantity),
        ("isQuantity", "isQuantity(string)", |a| {
            test(&a, |t| Quantity::parse(t).is_ok())
        }),
        ("url", "url(string)", |a| {
            checked(a, "url", |t| Url::parse(t).is_some())
        }),
        ("isURL", "isURL(string)", |a| {
            test(&a, |t| Url::parse(t).is_some())
        }),
        ("ip", "ip(string)", |a| {
            checked(a, "ip", |t| t.parse::<IpAddr>().is_ok())
        }),
        ("isIP", "isIP(string)", |a| {
            test(&a, |t| t.parse::<IpAddr>().is_ok())
        }),
        ("cidr", "cidr(string)", |a| {
            checked(a, "cidr", |t| network(t).is_some())
        }),
        ("isCIDR", "isCIDR(string)", |a| {
            test(&a, |t| network(t).is_some())
        }),
    ]
}

fn give<'b, 'v>(value: Value) -> Answer<'b, 'v> {
    let boxed: Box<dyn Val> = value
        .try_into()
        .map_err(|_| ExecutionError::function_error("value", "cannot be handed on"))?;
    Ok(CowVal::Owned(boxed))
}

fn arg(args: &[CowVal<'_, '_>], at: usize) -> Result<Value, ExecutionError> {
    let value = args
        .get(at)
        .ok_or_else(ExecutionError::missing_argument_or_target)?;
    Value::try_from(value.as_ref())
}

fn text(args: &[CowVal<'_, '_>], at: usize) -> Result<Arc<String>, ExecutionError> {
    match arg(args, at)? {
        Value::String(text) => Ok(text),
        other => Err(ExecutionError::unsupported_target_type(other)),
    }
}

fn list(args: &[CowVal<'_, '_>]) -> Result<Arc<Vec<Value>>, ExecutionError> {
    match arg(args, 0)? {
        Value::List(list) => Ok(list),
        other => Err(ExecutionError::unsupported_target_type(other)),
    }
}

fn order(a: &Value, b: &Value) -> Result<Ordering, ExecutionError> {
    a.partial_cmp(b)
        .ok_or_else(|| ExecutionError::ValuesNotComparable(a.clone(), b.clone()))
}

fn is_sorted<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let list = list(&args)?;
    for (a, b) in list.iter().zip(list.iter().skip(1)) {
        if order(a, b)?.is_gt() {
            return give(Value::Bool(false));
        }
    }
    give(Value::Bool(true))
}

fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let overflow = || ExecutionError::function_error("sum", "the sum is out of range");
    let mut total = Value::Int(0);
    for (at, item) in list(&args)?.iter().enumerate() {
        total = match (total, item) {
            (_, item) if at == 0 => item.clone(),
            (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or_else(overflow)?),
            (Value::UInt(a), Value::UInt(b)) => {
                Value::UInt(a.checked_add(*b).ok_or_else(overflow)?)
            }
            (Value::Float(a), Value::Float(b)) => Value::Float(a + b),
            (Value::Duration(a), Value::Duration(b)) => {
                Value::Duration(a.checked_add(b).ok_or_else(overflow)?)
            }
            (_, other) => return Err(ExecutionError::unsupported_target_type(other.clone())),
        };
    }
    give(total)
}

fn min<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    extreme(&args, "min", Ordering::is_lt)
}

fn max<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    extreme(&args, "max", Ordering::is_gt)
}

fn extreme<'b, 'v>(
    args: &[CowVal<'b, 'v>],
    name: &str,
    wins: fn(Ordering) -> bool,
) -> Answer<'b, 'v> {
    let list = list(args)?;
    let mut best: Option<&Value> = None;
    for item in list.iter() {
        if best.map(|b| order(item, b)).transpose()?.is_none_or(wins) {
            best = Some(item);
        }
    }
    give(
        best.cloned()
            .ok_or_else(|| ExecutionError::function_error(name, "called on empty list"))?,
    )
}

fn index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (list, item) = (list(&args)?, arg(&args, 1)?);
    give(Value::Int(
        list.iter()
            .position(|v| *v == item)
            .and_then(|i| i64::try_from(i).ok())
            .unwrap_or(-1),
    ))
}

fn last_index_of<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (list, item) = (list(&args)?, arg(&args, 1)?);
    give(Value::Int(
        list.iter()
            .rposition(|v| *v == item)
            .and_then(|i| i64::try_from(i).ok())
            .unwrap_or(-1),
    ))
}

fn pattern(source: &str) -> Result<regex::Regex, ExecutionError> {
    regex::Regex::new(source).map_err(|e| ExecutionError::function_error("find", e))
}

fn find<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (subject, source) = (text(&args, 0)?, text(&args, 1)?);
    give(Value::from(
        pattern(&source)?.find(&subject).map_or("", |m| m.as_str()),
    ))
}

fn find_all<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (subject, source) = (text(&args, 0)?, text(&args, 1)?);
    give(Value::List(Arc::new(
        pattern(&source)?
            .find_iter(&subject)
            .map(|m| Value::from(m.as_str()))
            .collect(),
    )))
}

fn parsed(args: &[CowVal<'_, '_>], at: usize) -> Result<Quantity, ExecutionError> {
    match arg(args, at)? {
        Value::String(text) => Quantity::parse(&text),
        Value::Int(int) => Quantity::parse(&int.to_string()),
        other => return Err(ExecutionError::unsupported_target_type(other)),
    }
    .map_err(|e| ExecutionError::function_error("quantity", e))
}

fn quantity<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    give(Value::from(parsed(&args, 0)?.in_nanos()))
}

fn of_quantity<'b, 'v>(args: &[CowVal<'b, 'v>], answer: fn(Quantity) -> Value) -> Answer<'b, 'v> {
    give(answer(parsed(args, 0)?))
}

fn compared<'b, 'v>(args: Vec<CowVal<'b, 'v>>, holds: fn(Ordering) -> bool) -> Answer<'b, 'v> {
    let order = parsed(&args, 0)?.partial_cmp(&parsed(&args, 1)?);
    give(Value::Bool(order.is_some_and(holds)))
}

fn compare_to<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let order = parsed(&args, 0)?
        .partial_cmp(&parsed(&args, 1)?)
        .unwrap_or(Ordering::Equal);
    give(Value::Int(order as i64))
}

fn combined<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
    join: fn(Quantity, Quantity) -> Quantity,
) -> Answer<'b, 'v> {
    give(Value::from(
        join(parsed(&args, 0)?, parsed(&args, 1)?).in_nanos(),
    ))
}

fn sign<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    of_quantity(&args, |q| {
        if q.is_negative() {
            Value::Int(-1)
        } else {
            Value::Int(i64::from(q.as_integer() != Some(0)))
        }
    })
}

fn as_integer<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let whole = parsed(&args, 0)?.as_integer();
    give(Value::Int(whole.ok_or_else(|| {
        ExecutionError::function_error("asInteger", "cannot convert value to integer")
    })?))
}

fn test<'b, 'v>(args: &[CowVal<'b, 'v>], holds: fn(&str) -> bool) -> Answer<'b, 'v> {
    give(Value::Bool(holds(&text(args, 0)?)))
}

fn checked<'b, 'v>(
    args: Vec<CowVal<'b, 'v>>,
    name: &str,
    holds: fn(&str) -> bool,
) -> Answer<'b, 'v> {
    let text = text(&args, 0)?;
    if holds(&text) {
        give(Value::String(text))
    } else {
        Err(ExecutionError::function_error(
            name,
            format!("{text:?} is malformed"),
        ))
    }
}

fn of_ip<'b, 'v>(args: &[CowVal<'b, 'v>], answer: fn(IpAddr) -> Value) -> Answer<'b, 'v> {
    let ip = text(args, 0)?
        .parse()
        .map_err(|e| ExecutionError::function_error("ip", e))?;
    give(answer(ip))
}

fn family<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    of_ip(&args, |ip| Value::Int(if ip.is_ipv4() { 4 } else { 6 }))
}

/// The address and the length of the prefix.
fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u32 = length.parse().ok()?;
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

fn contains_ip<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let malformed =
        || ExecutionError::function_error("containsIP", "the network or the address is malformed");
    let (address, length) = network(&text(&args, 0)?).ok_or_else(malformed)?;
    let ip: IpAddr = text(&args, 1)?.parse().map_err(|_| malformed())?;
    let inside = match (address, ip) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            u32::from(a).checked_shr(32 - length) == u32::from(b).checked_shr(32 - length)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            u128::from(a).checked_shr(128 - length) == u128::from(b).checked_shr(128 - length)
        }
        _ => false,
    };
    give(Value::Bool(inside))
}

fn prefix_length<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Answer<'b, 'v> {
    let (_, length) = network(&text(&args, 0)?)
        .ok_or_else(|| ExecutionError::function_error("prefixLength", "malformed"))?;
    give(Value::Int(i64::from(length)))
}

/// The parts of an absolute URL.
#[derive(Clone, Copy)]
struct Url<'a> {
    scheme: &'a str,
    host: &'a str,
    path: &'a str,
}

impl<'a> Url<'a> {
    fn parse(text: &'a str) -> Option<Url<'a>> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return None;
        }
        if text.starts_with('/') {
            return Some(Url {
                scheme: "",
                host: "",
                path: text,
            });
        }
        let (scheme, rest) = text.split_once("://")?;
        let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit('@').next().unwrap_or_default();
        named.then_some(Url { scheme, host, path })
    }

    fn hostname(self) -> &'a str {
        match self.host.strip_prefix('[').and_then(|h| h.split_once(']')) {
            Some((inner, _)) => inner,
            None => self.host.split(':').next().unwrap_or_default(),
        }
    }

    fn port(self) -> &'a str {
        let after = self.host.rsplit(']').next().unwrap_or_default();
        after.rsplit_once(':').map_or("", |(_, port)| port)
    }
}

fn url_part<'b, 'v>(args: &[CowVal<'b, 'v>], part: fn(Url<'_>) -> &str) -> Answer<'b, 'v> {
    let text = text(args, 0)?;
    let url = Url::parse(&text)
        .ok_or_else(|| ExecutionError::function_error("url", "the URL is malformed"))?;
    give(Value::from(part(url)))
}
