//! Certificates that expire soon.

use jiff::SignedDuration;
use serde_json::json;

use super::events::EventType;
use super::message::line;
use super::transitions::{EventContent, ExpiringCertificate};
use crate::model::Entry;
use crate::server::prelude::*;
use crate::server::telemetry::metrics::inventory::expiry;

/// The days before its end at which a certificate is reported. Automatic renewal was due by then, and there is time to do
/// it by hand.
const DAYS: i64 = 21;

/// Describes the certificates that have expired or expire soon.
pub(super) fn expiring(
    snapshot: &Snapshot,
    now: Timestamp,
    base_url: &str,
) -> Vec<(ExpiringCertificate, EventContent)> {
    snapshot.iter().filter_map(|entry| describe(entry, now, base_url)).collect()
}

fn describe(entry: &Entry, now: Timestamp, base_url: &str) -> Option<(ExpiringCertificate, EventContent)> {
    let not_after = Timestamp::from_second(expiry(entry)?.second).ok()?;
    if not_after.duration_since(now) > SignedDuration::from_hours(DAYS * 24) {
        return None;
    }
    let kind = entry.key.kind;
    let id = entry.key.id.to_string();
    let days_left = not_after.duration_since(now).as_secs().div_euclid(24 * 3600);
    let claim = entry.claim.as_deref();
    let (source, name) = (claim.map(|claim| claim.source.as_str()), claim.map(|claim| claim.name.as_str()));
    let uri = format!("{base_url}{}", entry.key.path());
    let data = json!({
        "kind": kind,
        "id": id,
        "source": source,
        "name": name,
        "uri": uri,
        "not_after": not_after,
        "days_left": days_left,
    });
    let named = match (source, name) {
        (Some(source), Some(name)) => format!("{kind} `{name}` of source `{source}` ({id})"),
        _ => format!("{kind} {id}"),
    };
    let day = not_after.strftime("%Y-%m-%d");
    let text = match days_left {
        _ if not_after < now => format!("{named} expired on {day}"),
        0 => format!("{named} expires on {day}, in less than a day"),
        days => format!("{named} expires on {day}, in {}", number_of(days as usize, "day")),
    };
    let new = EventContent {
        r#type: EventType::CertificateExpiring,
        source: source.map(str::to_owned),
        kind: Some(kind),
        text: line(&text),
        data,
    };
    Some((ExpiringCertificate { id, not_after: not_after.as_second() }, new))
}
