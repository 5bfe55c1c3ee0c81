//! Reads of earlier revisions: `?at=REVISION` (D79).

use std::sync::Arc;

use super::{App, answer::ApiError, query};
use crate::{
    model::{
        code::Code,
        fault::{Fault, Path},
        snapshot::Snapshot,
    },
    store::PastError,
    text::printable,
};

/// The query parameter with the revision.
pub(super) const AT: &str = "at";
/// The value for the current revision: a client that reads a list page by page need not know its number.
const LATEST: &str = "latest";

/// Returns the state that a query asks for, and its revision if the query names one.
pub(super) async fn state(
    app: &Arc<App>,
    current: Arc<Snapshot>,
    query: Option<&str>,
) -> Result<(Arc<Snapshot>, Option<u64>), ApiError> {
    let mut parameters = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, value)) = parameters.find(|(name, _)| name == AT) else { return Ok((current, None)) };
    if value == LATEST {
        let revision = current.revision;
        return Ok((current, Some(revision)));
    }
    let revision = number(&value).ok_or_else(|| {
        let message = format!("`{AT}` must be the number of a revision or `{LATEST}` (found `{}`)", printable(&value));
        ApiError::new(query::at(AT, message))
    })?;
    if revision == current.revision {
        return Ok((current, Some(revision)));
    }
    let store = Arc::clone(&app.store);
    let state = tokio::task::spawn_blocking(move || store.snapshot_at(revision)).await;
    let state = state.map_err(|_| ApiError::of(Code::Internal, "internal error while handling the request"))?;
    Ok((state.map_err(|error| refused(error, Code::Parameter, AT))?, Some(revision)))
}

/// Reads the number of a revision: digits alone, so that a revision has one name.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Creates the error of a revision without a state. `future` is the code for one that does not exist yet.
pub(super) fn refused(error: PastError, future: Code, field: &str) -> ApiError {
    let message = error.to_string();
    let code = match error {
        PastError::Future { .. } => future,
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
