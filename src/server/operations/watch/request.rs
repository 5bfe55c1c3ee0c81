//! The request of a `/watch` client.

use crate::server::prelude::*;
use crate::server::resources::change::{ChangeFilter, kind_named};

/// The header with which a client resumes.
const LAST_EVENT_ID: &str = "last-event-id";

/// A valid request.
pub(super) struct WatchRequest {
    /// The last revision that the client knows; none for the current one.
    pub(super) known: Option<u64>,
    pub(super) filter: ChangeFilter,
}

impl WatchRequest {
    /// Reads a request, whose parameters have been checked. `Last-Event-ID` takes precedence over `since`: a client that reconnects repeats its first query.
    pub(super) fn new(query: Option<&str>, headers: &HeaderMap) -> Result<Self, ApiError> {
        let mut wanted = Self { known: None, filter: ChangeFilter::default() };
        let mut faults: Vec<Fault> = Vec::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
            match &*name {
                "since" => match value.parse() {
                    Ok(revision) => wanted.known = Some(revision),
                    Err(_) => faults.push(query::at("since", "`since` must be a revision, such as `17`".into())),
                },
                "kind" => {
                    for part in parts {
                        match kind_named(part, Code::Parameter) {
                            Ok(kind) => {
                                wanted.filter.kinds.insert(kind);
                            }
                            Err(fault) => faults.push(fault.at("kind")),
                        }
                    }
                }
                _ => wanted.filter.sources.extend(parts.map(str::to_owned)),
            }
        }
        // A browser sends an empty one after a stream without ids.
        let resumed = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
        if let Some(resumed) = resumed {
            match resumed.to_str().ok().and_then(|text| text.trim().parse().ok()) {
                Some(revision) => wanted.known = Some(revision),
                None => faults.push(Fault::new(Code::Parameter, "`Last-Event-ID` must be the ID of an event")),
            }
        }
        ApiError::check(faults)?;
        Ok(wanted)
    }
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
        let wanted = WatchRequest::new(Some("since=3&kind=TlsEdge,HttpsEdge&source=a,b"), &headers).ok().unwrap();
        assert_eq!(wanted.known, Some(3));
        assert_eq!(wanted.filter.kinds, [Kind::HttpsEdge, Kind::TlsEdge].into());
        assert_eq!(wanted.filter.sources, ["a".to_owned(), "b".to_owned()].into());
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static("5"));
        assert_eq!(WatchRequest::new(Some("since=3"), &headers).ok().unwrap().known, Some(5));
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static(""));
        assert_eq!(WatchRequest::new(None, &headers).ok().unwrap().known, None);
        headers.insert(LAST_EVENT_ID, HeaderValue::from_static("five"));
        assert!(WatchRequest::new(None, &headers).is_err());
        for query in ["since=-1", "since=", "kind=HttpEdge"] {
            assert!(WatchRequest::new(Some(query), &HeaderMap::new()).is_err(), "{query}");
        }
    }
}
