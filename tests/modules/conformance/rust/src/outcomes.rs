//! How a call ends, and what it says beside its requests.

use std::time::Duration;

use configurator_sdk::configstore::Basic;
use configurator_sdk::kubernetes::{CONFIG_MAP, POD};
use configurator_sdk::log::{self, Level};
use configurator_sdk::{EventType, HandlerError, Input, Output, Request, Wake};
use serde_json::{Value, json};

use crate::parameter;

pub fn statuses(_: &Input) -> Result<Output, HandlerError> {
    Ok(Output::new()
        .status(json!({"ready": true}))
        .status(json!({"count": 3}))
        .event(EventType::Normal, "Configured", "all is well")
        .event(EventType::Warning, "Slow", "it took long"))
}

pub fn error(input: &Input) -> Result<Output, HandlerError> {
    let error = HandlerError::retry("no quota");
    Err(match parameter(input, "error")?.as_str() {
        "after" => error.after(Duration::from_secs(30)),
        "code" => error.code("QUOTA"),
        "fatal" => HandlerError::fatal("no such class"),
        _ => error,
    })
}

pub fn panic(_: &Input) -> Result<Output, HandlerError> {
    panic!("the sky is falling")
}

pub fn outcome(input: &Input) -> Result<Output, HandlerError> {
    let output = Output::new();
    Ok(match parameter(input, "outcome")?.as_str() {
        "again" => output.again(),
        "again-after" => output.again_after(Duration::from_secs(5)),
        "wait" => output.wait(
            Wake::new()
                .after(Duration::from_secs(60))
                .signal("go")
                .signal("stop")
                .object(POD.key(("shop", "web")))
                .object(CONFIG_MAP.key(("shop", "a"))),
        ),
        "wait-forever" => output.wait(Wake::new()),
        "failed" => output
            .status(json!({"ready": false}))
            .event(EventType::Warning, "Failed", "no quota")
            .data(json!([1]))
            .progress(10, "begun")
            .failed(HandlerError::retry("no quota").code("QUOTA")),
        "next" => output.next_phase("Running"),
        "stop" => output
            .request(Request::new("one", Basic::new("key").get()))
            .stop(),
        _ => output,
    })
}

pub fn log(_: &Input) -> Result<Output, HandlerError> {
    log::trace("one");
    log::debug("two");
    log::info("three");
    log::warn("four");
    log::error("fünf");
    log::line(Level::Info, "six", &[("b", "2"), ("a", "1")]);
    Ok(Output::new())
}

/// Milliseconds since 1970 by the clock of the language; where it has none, by the input.
pub fn clock(input: &Input) -> Result<Output, HandlerError> {
    Output::new().pass("milliseconds", &milliseconds(&input.context.now)?)
}

/// Of a time such as `2026-01-31T08:00:00.000Z`.
fn milliseconds(time: &str) -> Result<i64, HandlerError> {
    let wrong = || HandlerError::fatal(format!("{time} is no time"));
    let digits: Vec<i64> = time
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    let [year, month, day, hour, minute, second, ..] = digits[..] else {
        return Err(wrong());
    };
    let fraction = digits.get(6).copied().unwrap_or_default();
    // Days since 1970 in the Gregorian calendar; the year begins in March.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468;
    Ok((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + fraction)
}

/// Three numbers that splitmix64 makes of the seed, as texts.
pub fn chance(input: &Input) -> Result<Output, HandlerError> {
    let mut next = splitmix(input.context.seed);
    let numbers: Vec<Value> = (0..3).map(|_| next().to_string().into()).collect();
    Output::new().pass("numbers", &numbers)
}

/// A number by the generator of the language; where it has none, of the seed.
pub fn random(input: &Input) -> Result<Output, HandlerError> {
    Output::new().pass("number", &splitmix(input.context.seed)().to_string())
}

fn splitmix(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
