//! The request of a `/watch` client.

use crate::server::handler_prelude::*;
use crate::server::resources::change::{ChangeFilter, kind_named};

/// The header with which a client resumes.
const LAST_EVENT_ID: &str = "last-event-id";

/// Reads the last revision that the client knows, none for the current one, and what it wants to see. The parameters have
/// been checked. `Last-Event-ID` takes precedence over `since`: a client that reconnects repeats its first query.
pub(super) fn read(query: Option<&str>, headers: &HeaderMap) -> Result<(Option<u64>, ChangeFilter), ApiError> {
    let (mut known, mut filter, mut faults) = (None::<u64>, ChangeFilter::default(), Vec::new());
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
        match &*name {
            "since" => match value.parse() {
                Ok(revision) => known = Some(revision),
                Err(_) => faults.push(query::at("since", "`since` must be a revision, such as `17`".into())),
            },
            "kind" => {
                for part in parts {
                    match kind_named(part, Code::Parameter) {
                        Ok(kind) => filter.kinds.extend([kind]),
                        Err(fault) => faults.push(fault.at("kind")),
                    }
                }
            }
            _ => filter.sources.extend(parts.map(str::to_owned)),
        }
    }
    // A browser sends an empty one after a stream without ids.
    let resumed = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    if let Some(resumed) = resumed {
        match resumed.to_str().ok().and_then(|text| text.trim().parse().ok()) {
            Some(revision) => known = Some(revision),
            None => faults.push(Fault::new(Code::Parameter, "`Last-Event-ID` must be the ID of an event")),
        }
    }
    ApiError::check(faults)?;
    Ok((known, filter))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::model::Kind;

    #[test]
    fn the_last_event_wins_over_the_query() {
        let mut headers = HeaderMap::new();
        let (known, filter) = read(Some("since=3&kind=TlsEdge,HttpsEdge&source=a,b"), &headers).ok().unwrap();
        assert_eq!(known, Some(3));
        assert_eq!(filter.kinds, [Kind::HttpsEdge, Kind::TlsEdge].into());
        assert_eq!(filter.sources, ["a".to_owned(), "b".to_owned()].into());
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static("5"));
        assert_eq!(read(Some("since=3"), &headers).ok().unwrap().0, Some(5));
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static(""));
        assert_eq!(read(None, &headers).ok().unwrap().0, None);
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static("five"));
        assert!(read(None, &headers).is_err());
        for query in ["since=-1", "since=", "kind=HttpEdge"] {
            assert!(read(Some(query), &HeaderMap::new()).is_err(), "{query}");
        }
    }
}
