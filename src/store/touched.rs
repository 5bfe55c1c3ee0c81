//! What a commit did to each resource, for the history.

use std::{collections::BTreeSet, sync::Arc};

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use serde_json::{Map, Value};

use super::history::{Places, Touched};
use crate::model::{
    json::{self, JsonError},
    key::Key,
    secret::Secrets,
    snapshot::{Entry, Snapshot},
};

/// Describes the resources that differ between two revisions, each as the JSON of a [`Touched`]. Secrets are digests with
/// the given key.
pub(super) fn touched(
    before: &Snapshot,
    after: &Snapshot,
    changed: &BTreeSet<Key>,
    places: &Places,
    digest_key: &[u8; 32],
) -> Result<Vec<Vec<u8>>, JsonError> {
    let describe = |key: &Key| {
        let (old, new) = (before.get(key), after.get(key));
        let masked = |entry: Option<&Arc<Entry>>| entry.map(|entry| fields(entry, digest_key)).transpose();
        let (mut was, mut is) = (masked(old)?, masked(new)?);
        if let (Some(was), Some(is)) = (&mut was, &mut is) {
            let same: Vec<String> = was.keys().filter(|field| was.get(*field) == is.get(*field)).cloned().collect();
            for field in same {
                was.remove(&field);
                is.remove(&field);
            }
        }
        let claim = new.or(old).and_then(|entry| entry.claim.as_ref());
        let touched = Touched {
            kind: key.kind,
            path: key.path(),
            name: claim.map(|claim| claim.name.clone()),
            declared_at: places.get(key).cloned(),
            before: was.map(Value::Object),
            after: is.map(Value::Object),
        };
        // A large commit has more of them than should be in memory as values.
        json::bytes(&touched, Secrets::Masked)
    };
    let keys: Vec<&Key> = changed.iter().collect();
    keys.into_par_iter().with_min_len(256).map(describe).collect()
}

/// The fields of a resource, with its ownership.
fn fields(entry: &Entry, digest_key: &[u8; 32]) -> Result<Map<String, Value>, JsonError> {
    let mut fields = entry.spec().to_json(Secrets::Digested(digest_key))?;
    if let Some(claim) = &entry.claim {
        fields.insert("(owned by)".into(), json::value(claim, Secrets::Masked)?);
    }
    Ok(fields)
}
