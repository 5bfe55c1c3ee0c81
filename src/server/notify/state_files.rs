//! The files beside the store with the progress of notifications. A damaged one is moved aside: the API must start without
//! it.

use serde::de::DeserializeOwned;

use crate::store::{SidecarFiles, StoreError};
use crate::syntax::text::escaped;

/// Reads a file of at most `most` bytes; a store in memory has none. Without a readable one, starts anew; the log then says
/// what `follows`. Fails if a database does not answer: what it has is not lost, and must not be replaced.
pub(super) fn read<T: DeserializeOwned + Default>(
    files: Option<&dyn SidecarFiles>,
    name: &str,
    most: u64,
    follows: &str,
) -> Result<T, StoreError> {
    let Some(files) = files.filter(|files| files.has(name)) else { return Ok(T::default()) };
    let bytes = files.read(name, most)?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_else(|| {
        let path = files.place(name);
        let path = escaped(&path);
        match files.set_aside(name) {
            Ok(aside) => tracing::warn!("{path} is damaged and was renamed to {}; {follows}", escaped(&aside)),
            Err(error) => tracing::warn!("{path} is damaged; {follows}: {}", escaped(&error.to_string())),
        }
        T::default()
    }))
}
