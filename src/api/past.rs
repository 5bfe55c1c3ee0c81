//! Reads of earlier revisions: `?at=REVISION` or `?at=COMMIT` (D79, D93).

use std::sync::Arc;

use super::{App, answer::ApiError, query};
use crate::{
    model::{
        code::Code,
        fault::{Fault, Path},
        snapshot::Snapshot,
    },
    reconcile::cancel::Cancel,
    store::{
        PastError,
        commits::{LATEST, NamingError, RevisionName},
    },
    text::printable,
};

/// The query parameter with the revision.
pub(super) const AT: &str = "at";

/// Returns the state that a query asks for, and its revision if the query names one.
pub(super) async fn state(
    app: &Arc<App>,
    current: Arc<Snapshot>,
    query: &str,
) -> Result<(Arc<Snapshot>, Option<u64>), ApiError> {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let Some((_, value)) = parameters.find(|(name, _)| name == AT) else { return Ok((current, None)) };
    let name = RevisionName::parse(&value).ok_or_else(|| {
        let expected = "the number of a revision, at least 7 digits of a commit id, or";
        let message = format!("`{AT}` must be {expected} `{LATEST}` (found `{}`)", printable(&value));
        ApiError::new(query::at(AT, message))
    })?;
    let revision = match name {
        RevisionName::Number(revision) => revision,
        RevisionName::Latest => current.revision,
        // Decimal digits are no reason to search if the revision exists.
        RevisionName::Either(revision, _) if revision <= current.revision => revision,
        name => {
            let store = Arc::clone(&app.store);
            let applied = app.following.iter().filter_map(|following| following.status.applied());
            let in_sync: Vec<_> = applied.filter_map(|look| Some((look.commit?, look.revision))).collect();
            let search = move |cancel: Cancel| {
                let found = store.revision_named(&name, &in_sync, &|| cancel.is_cancelled());
                found.map_err(|error| unnamed(error, AT))
            };
            app.searches.place()?.run(search).await?
        }
    };
    if revision == current.revision {
        return Ok((current, Some(revision)));
    }
    let store = Arc::clone(&app.store);
    let state = tokio::task::spawn_blocking(move || store.snapshot_at(revision)).await;
    let state = state.map_err(|_| ApiError::of(Code::Internal, "internal error while handling the request"))?;
    Ok((state.map_err(|error| refused(error, AT))?, Some(revision)))
}

/// Reads the number of a revision: digits alone, so that a revision has one name.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Creates the error of a commit that is no revision.
fn unnamed(error: NamingError, field: &str) -> ApiError {
    let message = error.to_string();
    let code = match error {
        NamingError::Unknown { .. } => Code::RevisionNotFound,
        NamingError::Ambiguous { .. } => Code::Parameter,
        NamingError::Cancelled => return ApiError::of(Code::Unavailable, "the request was cancelled"),
        NamingError::Failed(error) => return error.into(),
    };
    ApiError::new(Fault::new(code, message).at(Path::root().join(field)))
}

/// Creates the error of a revision without a state.
pub(super) fn refused(error: PastError, field: &str) -> ApiError {
    let message = error.to_string();
    let code = match error {
        PastError::Future { .. } => Code::RevisionNotFound,
        PastError::Gone { .. } => Code::RevisionGone,
        PastError::Failed(error) => return error.into(),
    };
    ApiError::new(Fault::new(code, message).at(Path::root().join(field)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_digits() {
        assert_eq!((number("0"), number("12")), (Some(0), Some(12)));
        for bad in ["", "-1", "+1", " 1", "1.0", "one", "99999999999999999999"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }
}
