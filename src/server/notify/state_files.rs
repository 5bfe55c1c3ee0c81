//! The files beside the store with the progress of notifications. A damaged one is moved aside: the API must start without
//! it.

use serde::de::DeserializeOwned;

use crate::store::{OnDisk, read_beside, set_aside};
use crate::syntax::text::escaped;

/// Reads a file of at most `most` bytes. Without a readable one, starts anew; the log then says what `follows`.
pub(super) fn read<T: DeserializeOwned + Default>(on_disk: &OnDisk, name: &str, most: u64, follows: &str) -> T {
    let path = on_disk.folder.join(name);
    if path.symlink_metadata().is_err() {
        return T::default();
    }
    let parsed = read_beside(on_disk, name, most).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    parsed.unwrap_or_else(|| {
        let path = path.display().to_string();
        let path = escaped(&path);
        match set_aside(on_disk, name) {
            Ok(aside) => {
                let aside = aside.display().to_string();
                tracing::warn!("{path} is damaged and was renamed to {}; {follows}", escaped(&aside));
            }
            Err(error) => {
                tracing::warn!("{path} is damaged; {follows}: {}", escaped(&error.to_string()));
            }
        }
        T::default()
    })
}
