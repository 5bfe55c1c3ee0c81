//! Reading the history while others change its files.

use super::error::StoreError;
use crate::model::Code;

/// The most attempts to read the history.
const ATTEMPTS: usize = 3;

/// Reads the history, and again if that fails: a checkpoint can move its files meanwhile, and retention remove its beginning, which
/// can look like damage. Only the last attempt says what is wrong.
pub(super) fn read_again<T>(read: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let may_pass = |error: &StoreError| matches!(error.code, Code::StoreFailed | Code::StoreCorrupt);
    let is_settled = |it: &Result<T, StoreError>| !it.as_ref().is_err_and(may_pass);
    (1..ATTEMPTS).map(|_| read()).find(is_settled).unwrap_or_else(&read)
}
