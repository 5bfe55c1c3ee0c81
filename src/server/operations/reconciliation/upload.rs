//! The body of a reconciliation, until it runs. It comes before the place to run, so that a client that is slow to send
//! keeps nobody from one, and so that the body tells whether the request applies something (D52). A body that would find no
//! place is not received.

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};

use crate::reconcile::DEFAULT_SOURCE;
use crate::server::handler_prelude::*;
use crate::server::http::body::{self, Limits};
use crate::server::operations::checks::BodyHead;
use crate::server::operations::planned_change;

/// The largest body that is received without a place of an upload.
const SMALL: usize = 64 << 10;

/// A body that was received.
pub(super) struct Upload {
    bytes: Bytes,
    /// The place of a large body, until nothing has it any more.
    place: Option<Arc<WorkPlace>>,
}

impl Upload {
    /// Receives a body. A large one needs a place, because all that are received or wait are in memory.
    pub(super) async fn receive(
        app: &AppState,
        caller: &Caller,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Self, ApiError> {
        let length: Option<usize> =
            headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        let is_large = !matches!(length, Some(0..=SMALL));
        let limits = match is_large {
            true => Limits { has_place: true, ..Limits::MANIFESTS },
            false => Limits { bytes: SMALL, ..Limits::MANIFESTS },
        };
        let can_apply = permission::allows(caller, &Intent::Change, &app.served.store.snapshot()).is_ok();
        let mut place =
            if can_apply { None } else { enter(&app.admissions, caller, Some(SlotPool::Shared), is_large)? };
        let judge = |beginning: &[u8]| -> Result<(), ApiError> {
            if can_apply {
                let pool =
                    dry_run_in(beginning).map(|dry_run| if dry_run { SlotPool::Shared } else { SlotPool::Reserved });
                place = enter(&app.admissions, caller, pool, is_large)?;
            }
            Ok(())
        };
        let bytes = body::take_begun(headers, body, limits, judge).await?;
        metrics::counter!("edgewright_reconciliation_request_bytes_total").increment(bytes.len() as u64);
        let place = place.filter(|_| bytes.len() > SMALL).map(Arc::new);
        Ok(Self { bytes, place })
    }

    /// Reads what it says of itself.
    pub(super) async fn head(&self) -> Result<BodyHead, ApiError> {
        BodyHead::read(&self.bytes).await
    }

    /// Takes the place in which it runs.
    pub(super) fn place(&mut self, app: &AppState, caller: &Caller, head: &BodyHead) -> Result<WorkPlace, ApiError> {
        let source = head.source.as_deref().unwrap_or(DEFAULT_SOURCE);
        let pool = planned_change::pool(&app.served.store, caller, &Intent::Apply(source), head.is_dry_run());
        // What does not apply, whatever it said first, leaves the reserved places to what does.
        if pool == SlotPool::Shared && self.place.as_ref().is_some_and(|place| place.pool() == SlotPool::Reserved) {
            self.place = Some(Arc::new(app.admissions.uploads.for_owner(&caller.owner)?));
        }
        app.admissions.reconciliations.enter(Some(&caller.owner), pool)
    }

    /// The bytes, and the place of a large body, for a request to another server.
    pub(super) fn to_forward(&self) -> (Bytes, Option<Arc<WorkPlace>>) {
        (self.bytes.clone(), self.place.clone())
    }

    /// The bytes, without the place.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }
}

/// Refuses a body that would find no place to run, and takes the place of a large one. Without a pool, only the whole body
/// tells whether it applies something.
fn enter(
    admissions: &Admissions,
    caller: &Caller,
    pool: Option<SlotPool>,
    is_large: bool,
) -> Result<Option<WorkPlace>, ApiError> {
    if let Some(pool) = pool {
        admissions.reconciliations.check(&caller.owner, pool)?;
    }
    let take = || admissions.uploads.enter(Some(&caller.owner), pool.unwrap_or(SlotPool::Shared));
    is_large.then(take).transpose()
}

/// The value of `dry_run`, if it is in the beginning of a body.
fn dry_run_in(beginning: &[u8]) -> Option<bool> {
    struct Finder<'a>(&'a mut Option<bool>);

    impl<'de> Visitor<'de> for Finder<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<String>()? {
                if name == "dry_run" {
                    *self.0 = Some(map.next_value()?);
                    return Ok(());
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let mut found = None;
    // The beginning of an object is no valid JSON: it ends with an error in any case.
    let _ = serde_json::Deserializer::from_slice(beginning).deserialize_map(Finder(&mut found));
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::{Body as HttpBody, Frame};

    use super::*;
    use crate::server::App;

    #[test]
    fn only_a_valid_body_without_dry_run_applies() {
        let head = |text: &str| BodyHead::parse(text.as_bytes());
        let applies = head(r#"{"files": [{"name": "a", "text": "\"dry_run\": true"}], "source": "shop"}"#);
        assert_eq!((applies.is_dry_run(), applies.source.as_deref()), (false, Some("shop")));
        for plans in ["", "{", r#"{"dry_run": 1}"#, r#"{"dry_run": true, "files": [[[]]]}"#, "nothing"] {
            assert!(head(plans).is_dry_run(), "{plans}");
        }
    }

    #[test]
    fn the_beginning_of_a_body_may_have_dry_run() {
        for (beginning, dry_run) in [
            (r#"{"dry_run": true, "files": [{"text": "--"#, Some(true)),
            (r#" {"source": "a", "lints": {"x": [1]}, "dry_run":false,"#, Some(false)),
            (r#"{"files": [], "dry_run": true}"#, Some(true)),
            (r#"{"files": [{"dry_run": true, "text": ""#, None),
            (r#"{"dry_run": tru"#, None),
            (r#"{"dry_run": 1}"#, None),
            ("[true", None),
            ("", None),
        ] {
            assert_eq!(dry_run_in(beginning.as_bytes()), dry_run, "{beginning}");
        }
    }

    /// A body of which nothing but the beginning may be received.
    struct Beginning(Option<&'static str>);

    impl HttpBody for Beginning {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            let text = self.0.take().unwrap();
            Poll::Ready(Some(Ok(Frame::data(Bytes::from(format!("{text}{}", " ".repeat(1 << 10)))))))
        }
    }

    #[tokio::test]
    async fn a_body_that_would_be_refused_is_not_received() {
        let app = App::in_memory().0;
        let owner = Id::new("usr_a");
        let receive = async |role: Role, beginning: Option<&'static str>, length: &str| {
            let caller = Caller { key: Id::new("ak_a"), owner: owner.clone(), role, scope: None };
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_LENGTH, length.parse().unwrap());
            let body = Body::new(Beginning(beginning));
            let place = app.access.guards.in_flight.enter("/reconciliations", None).unwrap();
            let refused = place.hold(Upload::receive(&app, &caller, &headers, body)).await.err().unwrap();
            (refused.code(), refused.message().contains("limit of reconciliations (1 running, 1 waiting)"))
        };
        let plans = [
            app.admissions.reconciliations.for_owner(&owner).ok(),
            app.admissions.reconciliations.for_owner(&owner).ok(),
        ];
        let full = (Code::RateLimited, true);
        for length in ["1000", "50000000"] {
            assert_eq!(receive(Role::Viewer, None, length).await, full, "{length}");
            assert_eq!(receive(Role::Editor, Some(r#"{"dry_run": true, "files": ["#), length).await, full, "{length}");
        }
        let applies = || app.admissions.reconciliations.enter(Some(&owner), SlotPool::Reserved).ok();
        let applies = [applies(), applies()];
        assert_eq!(receive(Role::Editor, Some(r#"{"dry_run": false, "files": ["#), "50000000").await, full);
        drop((plans, applies));
        assert_eq!((app.admissions.reconciliations.running(), app.admissions.uploads.running()), (0, 0));
    }
}
