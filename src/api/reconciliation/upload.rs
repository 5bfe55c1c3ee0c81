//! The body of a reconciliation, until it runs. It comes before the place to run, so that a client that is slow to send
//! keeps nobody from one, and so that the body tells whether the request applies something (D52).

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use serde::Deserialize;

use super::super::{
    App,
    admission::{Lane, WorkPlace},
    answer::ApiError,
    auth::Caller,
    body::{self, Limits},
    permission::{self, Intent},
    planned_change,
    work::with_body,
};
use crate::reconcile::DEFAULT_SOURCE;

/// The largest body that is received without a place of an upload: that of any other request.
const SMALL: usize = Limits::RESOURCE.bytes;

/// A body that was received.
pub(super) struct Upload {
    bytes: Bytes,
    /// The place of a large body.
    _place: Option<WorkPlace>,
}

impl Upload {
    /// Receives a body. A large one needs a place, because all that are received or wait are in memory.
    pub(super) async fn receive(app: &App, caller: &Caller, headers: &HeaderMap, body: Body) -> Result<Self, ApiError> {
        let length: Option<usize> =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let (place, limits) = match length {
            Some(0..=SMALL) => (None, Limits { bytes: SMALL, ..Limits::MANIFESTS }),
            // The body tells only later whether it applies something.
            _ => {
                let can_apply = permission::allows(caller, &Intent::Change, &app.store.snapshot()).is_ok();
                let lane = if can_apply { Lane::Reserved } else { Lane::Shared };
                (Some(app.uploads.enter(Some(&caller.owner), lane)?), Limits { has_place: true, ..Limits::MANIFESTS })
            }
        };
        let bytes = body::take(headers, body, limits).await?;
        metrics::counter!("edgewright_reconciliation_request_bytes_total").increment(bytes.len() as u64);
        let place = place.filter(|_| bytes.len() > SMALL);
        Ok(Self { bytes, _place: place })
    }

    /// Takes the place in which it runs.
    pub(super) async fn place(&self, app: &App, caller: &Caller) -> Result<WorkPlace, ApiError> {
        let bytes = self.bytes.clone();
        let head = with_body(bytes.len(), move || UploadHead::of(&bytes)).await?;
        let source = head.source.as_deref().unwrap_or(DEFAULT_SOURCE);
        planned_change::place(app, caller, &Intent::Apply(source), head.dry_run)
    }

    /// The bytes of a body that runs: from then on, the number of runs limits the memory for it.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

/// The fields of a request that decide about its place. All others are skipped.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct UploadHead {
    dry_run: bool,
    source: Option<String>,
}

impl UploadHead {
    /// Reads the fields. An invalid body applies nothing.
    fn of(bytes: &[u8]) -> Self {
        serde_json::from_slice(bytes).unwrap_or(Self { dry_run: true, source: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_valid_body_without_dry_run_applies() {
        let head = |text: &str| UploadHead::of(text.as_bytes());
        let applies = head(r#"{"files": [{"name": "a", "text": "\"dry_run\": true"}], "source": "shop"}"#);
        assert_eq!(applies, UploadHead { dry_run: false, source: Some("shop".into()) });
        for plans in ["", "{", r#"{"dry_run": 1}"#, r#"{"dry_run": true, "files": [[[]]]}"#, "nothing"] {
            assert!(head(plans).dry_run, "{plans}");
        }
    }
}
