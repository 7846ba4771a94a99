//! Durations as kubectl shows them.

use jiff::Timestamp;
use serde_json::Value;

/// Two or three significant figures: `5s`, `5m12s`, `2d3h`, `3y10d`.
pub(crate) fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let two = |a: i64, unit: char, b: i64, rest: char| {
        if b == 0 {
            format!("{a}{unit}")
        } else {
            format!("{a}{unit}{b}{rest}")
        }
    };
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => two(hours / 24, 'd', hours % 24, 'h'),
        () if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        () if hours < 24 * 365 * 8 => two(hours / 24 / 365, 'y', hours / 24 % 365, 'd'),
        () => format!("{}y", hours / 24 / 365),
    }
}

/// How long ago a time was; `<unknown>` if there is none.
pub(crate) fn since(time: Option<&Value>, now: Timestamp) -> String {
    match seconds_since(time, now) {
        Some(seconds) => human_duration(seconds),
        None => "<unknown>".to_owned(),
    }
}

/// Whole seconds from a time till `now`.
pub(crate) fn seconds_since(time: Option<&Value>, now: Timestamp) -> Option<i64> {
    let time: Timestamp = time?.as_str()?.parse().ok()?;
    Some((now.as_millisecond() - time.as_millisecond()) / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let (minute, hour, day) = (60, 3600, 86400);
        let table = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (5 * minute + 12, "5m12s"),
            (10 * minute + 5, "10m"),
            (179 * minute, "179m"),
            (3 * hour, "3h"),
            (3 * hour + minute, "3h1m"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (2 * day + 3 * hour, "2d3h"),
            (8 * day + hour, "8d"),
            (700 * day, "700d"),
            (730 * day, "2y"),
            (731 * day, "2y1d"),
            (9 * 365 * day, "9y"),
        ];
        for (seconds, want) in table {
            assert_eq!(human_duration(seconds), want, "{seconds}");
        }
    }
}
