//! Ages such as `5m`, as people say them.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Returns the age of a time in its largest unit, such as `5m`, or none if it is not a time.
pub(crate) fn age(time: &str, now: Timestamp) -> Option<String> {
    let time: Timestamp = time.parse().ok()?;
    // The clocks of two machines differ.
    let seconds = now.duration_since(time).as_secs().max(0);
    Some(match seconds {
        ..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..DAY => format!("{}h", seconds / HOUR),
        DAY.. => format!("{}d", seconds / DAY),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let now: Timestamp = "2026-07-03T12:00:00Z".parse().unwrap();
        let ages = [
            ("2026-07-03T12:00:01Z", "0s"),
            ("2026-07-03T11:59:01Z", "59s"),
            ("2026-07-03T11:59:00Z", "1m"),
            ("2026-07-03T10:00:01Z", "1h"),
            ("2026-07-01T11:00:00Z", "2d"),
        ];
        for (time, expected) in ages {
            assert_eq!(age(time, now).as_deref(), Some(expected), "{time}");
        }
        assert_eq!(age("", now), None);
    }
}
