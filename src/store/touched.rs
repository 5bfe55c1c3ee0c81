//! What a commit did to each resource, for the history.

use std::collections::BTreeSet;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use serde_json::{Map, Value};

use super::history::{Places, Touched};
use crate::model::{
    json::{self, JsonError},
    key::Key,
    secret::Secrets,
    snapshot::{Entry, Snapshot},
};

/// The field with the claim of a source.
pub(super) const OWNED_BY: &str = "(owned by)";

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
        let claim = new.or(old).and_then(|entry| entry.claim.as_ref());
        let mut touched = Touched {
            kind: key.kind,
            path: key.path(),
            name: claim.map(|claim| claim.name.clone()),
            source: claim.map(|claim| claim.source.clone()),
            declared_at: places.get(key).cloned(),
            before: None,
            after: None,
        };
        match (old, new) {
            (Some(old), None) => with_state(&touched, "before", old, digest_key),
            (None, Some(new)) => with_state(&touched, "after", new, digest_key),
            (None, None) => json::bytes(&touched, Secrets::Masked),
            (Some(old), Some(new)) => {
                let (mut was, mut is) = (fields(old, digest_key)?, fields(new, digest_key)?);
                let same: Vec<String> = was.keys().filter(|field| was.get(*field) == is.get(*field)).cloned().collect();
                for field in same {
                    was.remove(&field);
                    is.remove(&field);
                }
                (touched.before, touched.after) = (Some(Value::Object(was)), Some(Value::Object(is)));
                json::bytes(&touched, Secrets::Masked)
            }
        }
    };
    let keys: Vec<&Key> = changed.iter().collect();
    keys.into_par_iter().with_min_len(256).map(describe).collect()
}

/// Adds the whole state of a resource that was created or deleted. Its fields are written straight to JSON: a first
/// commit has more of them than should be in memory as values.
fn with_state(touched: &Touched, side: &str, entry: &Entry, digest_key: &[u8; 32]) -> Result<Vec<u8>, JsonError> {
    let mut bytes = json::bytes(touched, Secrets::Masked)?;
    let state = entry.spec().to_bytes(Secrets::Digested(digest_key))?;
    bytes.pop();
    bytes.extend_from_slice(format!(",\"{side}\":").as_bytes());
    bytes.extend_from_slice(&state);
    if let Some(claim) = &entry.claim {
        bytes.pop();
        bytes.extend_from_slice(if state == b"{}" { b"" } else { b"," });
        bytes.extend_from_slice(format!("\"{OWNED_BY}\":").as_bytes());
        bytes.extend_from_slice(&json::bytes(claim, Secrets::Masked)?);
        bytes.push(b'}');
    }
    bytes.push(b'}');
    Ok(bytes)
}

/// The fields of a resource, with its ownership.
pub(super) fn fields(entry: &Entry, digest_key: &[u8; 32]) -> Result<Map<String, Value>, JsonError> {
    let mut fields = entry.spec().to_json(Secrets::Digested(digest_key))?;
    if let Some(claim) = &entry.claim {
        fields.insert(OWNED_BY.into(), json::value(claim, Secrets::Masked)?);
    }
    Ok(fields)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::{
        Kind,
        id::Id,
        kind::https_edge::HttpsEdge,
        operation::{Claim, Operation},
    };

    #[test]
    fn a_whole_state_is_written_as_its_values_are() {
        let (source, name) = ("shop".into(), "\"one\"".into());
        let claims = [None, Some(Claim { source, name, ..Claim::default() })];
        let specs = [HttpsEdge::default(), HttpsEdge { description: "}é".into(), ..HttpsEdge::default() }];
        for (claim, spec) in claims.iter().flat_map(|claim| specs.iter().map(move |spec| (claim, spec))) {
            let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
            let (spec, claim) = (Arc::new(spec.clone()), claim.clone());
            let create = Operation::Create { key: key.clone(), spec, claim: claim.clone(), token: None };
            let before = Snapshot::default();
            let (after, changed) = before.apply(&[create], Timestamp::UNIX_EPOCH).unwrap();
            let state = Value::Object(fields(after.get(&key).unwrap(), &[1; 32]).unwrap());
            let expected = |created: bool| Touched {
                kind: key.kind,
                path: key.path(),
                name: claim.as_ref().map(|claim| claim.name.clone()),
                source: claim.as_ref().map(|claim| claim.source.clone()),
                declared_at: None,
                before: (!created).then(|| state.clone()),
                after: created.then(|| state.clone()),
            };
            for (created, from, to) in [(true, &before, &after), (false, &after, &before)] {
                let written = touched(from, to, &changed, &Places::new(), &[1; 32]).unwrap();
                assert_eq!(written, [json::bytes(&expected(created), Secrets::Masked).unwrap()]);
            }
        }
    }
}
