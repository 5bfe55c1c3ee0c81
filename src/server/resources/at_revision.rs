//! Reads of earlier revisions: `?at=REVISION` or `?at=COMMIT` (D79, D93).

use crate::server::handler_prelude::*;
use crate::server::http::page::AT;
use crate::store::RevisionError;
use crate::store::history::commits::{LATEST, NamingError, RevisionName};

/// Returns the state that a query asks for, and its revision if the query names one. An earlier state takes memory of its
/// own: hold its place as long as the state.
pub(crate) async fn state(
    app: &AppState,
    owner: &Id,
    current: Arc<Snapshot>,
    query: &str,
) -> Result<(Arc<Snapshot>, Option<u64>, Option<WorkPlace>), ApiError> {
    let message = |value: &str| {
        let expected = "the number of a revision, at least 7 digits of a commit ID, or";
        format!("`{AT}` must be {expected} `{LATEST}` (found `{}`)", printable(value))
    };
    let name = query::parsed(Some(query), AT, RevisionName::parse, message)?;
    let Some(name) = name else { return Ok((current, None, None)) };
    let revision = match name {
        RevisionName::Number(revision) => revision,
        RevisionName::Latest => current.revision,
        // Decimal digits are no reason to search if the revision exists.
        RevisionName::Either(revision, _) if revision <= current.revision => revision,
        name => {
            let store = Arc::clone(&app.served.store);
            let applied = app.sources.registry.iter().filter_map(|handle| handle.status.applied());
            let in_sync: Vec<_> = applied.filter_map(|sync| Some((sync.commit?, sync.revision))).collect();
            let search = move |cancel: Cancel| {
                let found = store.revision_named(&name, None, &in_sync, &|| cancel.is_cancelled());
                found.map_err(|error| unnamed(error, AT))
            };
            app.admissions.searches.for_owner(owner)?.run(search).await?
        }
    };
    if revision == current.revision {
        return Ok((current, Some(revision), None));
    }
    drop(current);
    let mut place = app.admissions.earlier.for_owner(owner)?;
    place.wait_for_turn().await;
    let store = Arc::clone(&app.served.store);
    // The place is held until the state is restored, even if the client disconnects.
    let restore = move || Ok((store.snapshot_at(revision).map_err(|error| refused(error, AT))?, place));
    let (state, place) = blocking(restore).await?;
    Ok((state, Some(revision), Some(place)))
}

/// Reads the number of a revision: digits alone, so that a revision has one name.
pub(crate) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Creates the error of a commit that is no revision.
fn unnamed(error: NamingError, field: &str) -> ApiError {
    let message = error.to_string();
    let code = match error {
        NamingError::Unknown { .. } => Code::RevisionNotFound,
        NamingError::Ambiguous { .. } => Code::Parameter,
        NamingError::Cancelled => return ApiError::with_code(Code::Unavailable, "the request was cancelled"),
        NamingError::Failed(error) => return error.into(),
    };
    ApiError::new(Fault::new(code, message).at(field))
}

/// Creates the error of a revision without a state.
pub(crate) fn refused(error: RevisionError, field: &str) -> ApiError {
    let message = error.to_string();
    let code = match error {
        RevisionError::Future { .. } => Code::RevisionNotFound,
        RevisionError::Gone { .. } => Code::RevisionGone,
        RevisionError::Failed(error) => return error.into(),
    };
    ApiError::new(Fault::new(code, message).at(field))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::model::kind::ip_restriction::{IpRestriction, Traffic};
    use crate::server::App;
    use crate::store::ids;

    /// The API of a store with so many revisions.
    fn app(revisions: usize) -> AppState {
        let app = App::in_memory().0;
        for _ in 0..revisions {
            let spec = Arc::new(IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() });
            let key = Key::new(Kind::IpRestriction, ids::fresh_id(Kind::IpRestriction));
            let operations = vec![Operation::create(key, spec)];
            app.served.store.commit(Author::Local, operations).unwrap();
        }
        app
    }

    #[tokio::test]
    async fn an_owner_has_one_earlier_state_in_memory_until_its_response_is_made() {
        let (app, owner) = (app(3), Id::new("usr_a"));
        let read = |query: &'static str| Box::pin(state(&app, &owner, app.served.store.snapshot(), query));
        let (first, at, place) = read("at=1").await.ok().unwrap();
        assert_eq!((first.revision, at, app.admissions.earlier.running()), (1, Some(1), 1));
        let mut second = read("at=2");
        assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let current = read("at=3").await.ok().unwrap();
        assert!(current.2.is_none(), "the current state takes no place");
        drop(place);
        assert_eq!(second.await.ok().unwrap().0.revision, 2);
        assert_eq!((app.admissions.earlier.running(), app.admissions.earlier.waiting()), (0, 0));
        let waiting: Vec<_> = (0..100).map_while(|_| app.admissions.earlier.for_owner(&owner).ok()).collect();
        assert_eq!(waiting.len(), 9, "one runs, and eight wait");
        let refused = read("at=1").await.err().map(|error| error.code());
        assert_eq!(refused, Some(Code::RateLimited));
    }

    #[test]
    fn a_revision_is_digits() {
        assert_eq!((number("0"), number("12")), (Some(0), Some(12)));
        for bad in ["", "-1", "+1", " 1", "1.0", "one", "99999999999999999999"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
