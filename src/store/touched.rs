//! What a commit did to each resource, for the history.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::history::{Places, RevertedDrift, Touched};
use crate::model::{
    json::{self, JsonError},
    key::Key,
    lazy_spec::SpecForm,
    module::{SharedModule, Slot},
    resource::AnyResource,
    secret::Secrets,
    snapshot::{Entry, Snapshot},
};

/// The field with the claim of a source.
pub(crate) const OWNED_BY: &str = "(owned by)";

/// Describes resources that differ between two revisions, each as the JSON of a [`Touched`].
pub(super) struct Describer<'c> {
    pub(super) before: &'c Snapshot,
    pub(super) after: &'c Snapshot,
    /// The file of each resource.
    pub(super) places: &'c Places,
    /// The fields whose drift the change puts back.
    pub(super) reverted_drift: &'c RevertedDrift,
    /// Secrets are digests with this key.
    pub(super) digest_key: &'c [u8; 32],
}

impl Describer<'_> {
    /// Appends the description of a resource. `form` is the one of its Spec after the change, if it exists then.
    pub(super) fn describe(&self, key: &Key, form: Option<&SpecForm<'_>>, out: &mut Vec<u8>) -> Result<(), JsonError> {
        let (old, new) = (self.before.get(key), self.after.get(key));
        let claim = new.or(old).and_then(|entry| entry.claim.as_deref());
        let mut touched = Touched {
            kind: key.kind,
            path: key.path(),
            name: claim.map(|claim| claim.name.clone()),
            source: claim.map(|claim| claim.source.clone()),
            declared_at: self.places.get(key).cloned(),
            reverted_drift: self.reverted_drift.get(key).cloned().unwrap_or_default(),
            before: None,
            after: None,
        };
        match (old, new) {
            (Some(old), None) => self.with_state(&touched, "before", old, None, out),
            (None, Some(new)) => self.with_state(&touched, "after", new, form, out),
            (None, None) => json::append(&touched, Secrets::Masked, out),
            (Some(old), Some(new)) => {
                let (was, is) = differing_fields(old, new, self.digest_key)?;
                (touched.before, touched.after) = (Some(Value::Object(was)), Some(Value::Object(is)));
                json::append(&touched, Secrets::Masked, out)
            }
        }
    }

    /// Appends the description with the whole state of a resource that was created or deleted. Its fields are written
    /// straight to JSON: a first commit has more of them than should be in memory as values.
    fn with_state(
        &self,
        touched: &Touched,
        side: &str,
        entry: &Entry,
        form: Option<&SpecForm<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<(), JsonError> {
        json::append(touched, Secrets::Masked, out)?;
        out.pop();
        out.extend_from_slice(format!(",\"{side}\":").as_bytes());
        let start = out.len();
        match form.and_then(SpecForm::public_text) {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => out.extend_from_slice(&entry.spec().to_bytes(Secrets::Digested(self.digest_key))?),
        }
        if let Some(claim) = &entry.claim {
            let is_empty = out.get(start..) == Some(b"{}".as_slice());
            out.pop();
            out.extend_from_slice(if is_empty { b"" } else { b"," });
            out.extend_from_slice(format!("\"{OWNED_BY}\":").as_bytes());
            json::append(claim, Secrets::Masked, out)?;
            out.push(b'}');
        }
        out.push(b'}');
        Ok(())
    }
}

/// The fields of a resource by their names.
type SpecFields = Map<String, Value>;

/// The fields of two states of a resource that differ. Modules that both share are the same, and are usually most of a Spec.
fn differing_fields(old: &Entry, new: &Entry, digest_key: &[u8; 32]) -> Result<(SpecFields, SpecFields), JsonError> {
    let shared = shared_modules(old.spec().as_ref(), new.spec().as_ref());
    if !shared.is_empty() {
        let others = |entry: &Entry| own_fields(entry, entry.spec().with_modules(&shared).as_ref(), digest_key);
        let (was, is) = without_same(others(old)?, others(new)?);
        // The order of more fields than one depends on all that were left out: records have always had that order.
        if was.len() <= 1 && is.len() <= 1 {
            return Ok((was, is));
        }
    }
    Ok(without_same(fields(old, digest_key)?, fields(new, digest_key)?))
}

/// The slots that have the same module in memory, each with nothing in its place.
fn shared_modules(one: &dyn AnyResource, other: &dyn AnyResource) -> Vec<(&'static Slot, Option<SharedModule>)> {
    let is_shared = |slot: &&'static Slot| match (one.shared_module(slot), other.shared_module(slot)) {
        (Some(one), Some(other)) => Arc::ptr_eq(&one, &other),
        _ => false,
    };
    one.slots().iter().filter(is_shared).map(|slot| (slot, None)).collect()
}

/// Removes the fields that two objects have with the same value.
fn without_same(mut was: SpecFields, mut is: SpecFields) -> (SpecFields, SpecFields) {
    let same: Vec<String> = was.keys().filter(|field| was.get(*field) == is.get(*field)).cloned().collect();
    for field in same {
        was.remove(&field);
        is.remove(&field);
    }
    (was, is)
}

/// The fields of a resource, with its ownership.
pub(super) fn fields(entry: &Entry, digest_key: &[u8; 32]) -> Result<SpecFields, JsonError> {
    own_fields(entry, entry.spec().as_ref(), digest_key)
}

/// The same of another Spec.
fn own_fields(entry: &Entry, spec: &dyn AnyResource, digest_key: &[u8; 32]) -> Result<SpecFields, JsonError> {
    let mut fields = spec.to_json(Secrets::Digested(digest_key))?;
    if let Some(claim) = &entry.claim {
        fields.insert(OWNED_BY.into(), json::value(claim, Secrets::Masked)?);
    }
    Ok(fields)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::model::{
        Kind,
        id::Id,
        kind::{
            https_edge::HttpsEdge,
            https_edge_route::{HttpsEdgeRoute, MatchType},
        },
        lazy_spec::LazySpec,
        operation::{Claim, Operation},
    };

    #[test]
    fn what_differs_does_not_depend_on_the_modules_that_are_shared() {
        let key = Key::child(Kind::HttpsEdgeRoute, Id::new("edghts_1"), Id::new("edghtsrt_1"));
        let route = HttpsEdgeRoute {
            match_type: Some(MatchType::ExactPath),
            r#match: "/a".into(),
            compression: Some(Arc::default()),
            request_headers: Some(Arc::default()),
            ..HttpsEdgeRoute::default()
        };
        let (description, r#match): (String, String) = ("b".into(), "/b".into());
        let entry = |spec: &HttpsEdgeRoute, source: &str| Entry {
            key: key.clone(),
            lazy_spec: LazySpec::new(Arc::new(spec.clone())),
            created_at: Timestamp::UNIX_EPOCH,
            order: 1,
            claim: Some(Arc::new(Claim { source: source.into(), ..Claim::default() })),
            token: None,
            rendered: Arc::default(),
        };
        for (changed, source) in [
            (route.clone(), "shop"),
            (route.clone(), "docs"),
            (HttpsEdgeRoute { description: description.clone(), ..route.clone() }, "shop"),
            (HttpsEdgeRoute { description: description.clone(), ..route.clone() }, "docs"),
            (HttpsEdgeRoute { description: description.clone(), r#match, ..route.clone() }, "shop"),
            (HttpsEdgeRoute { compression: None, ..route.clone() }, "shop"),
            (HttpsEdgeRoute { compression: Some(Arc::default()), description, ..route.clone() }, "shop"),
        ] {
            let (old, new) = (entry(&route, "shop"), entry(&changed, source));
            let text = |(was, is)| format!("{} {}", Value::Object(was), Value::Object(is));
            let whole = |entry: &Entry| fields(entry, &[1; 32]).unwrap();
            let expected = text(without_same(whole(&old), whole(&new)));
            assert_eq!(text(differing_fields(&old, &new, &[1; 32]).unwrap()), expected);
        }
    }

    #[test]
    fn a_whole_state_is_written_as_its_values_are() {
        let (source, name) = ("shop".into(), "\"one\"".into());
        let claims = [None, Some(Arc::new(Claim { source, name, ..Claim::default() }))];
        let specs = [HttpsEdge::default(), HttpsEdge { description: "}é".into(), ..HttpsEdge::default() }];
        for (claim, spec) in claims.iter().flat_map(|claim| specs.iter().map(move |spec| (claim, spec))) {
            let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
            let (spec, claim) = (Arc::new(spec.clone()), claim.clone());
            let create = Operation::Create { key: key.clone(), spec, claim: claim.clone(), token: None };
            let before = Snapshot::default();
            let (after, _) = before.apply(&[create], Timestamp::UNIX_EPOCH).unwrap();
            let state = Value::Object(fields(after.get(&key).unwrap(), &[1; 32]).unwrap());
            let expected = |created: bool| Touched {
                kind: key.kind,
                path: key.path(),
                name: claim.as_deref().map(|claim| claim.name.clone()),
                source: claim.as_deref().map(|claim| claim.source.clone()),
                declared_at: None,
                reverted_drift: created.then(String::new).into_iter().collect(),
                before: (!created).then(|| state.clone()),
                after: created.then(|| state.clone()),
            };
            let (whole, none) = (RevertedDrift::from([(key.clone(), vec![String::new()])]), RevertedDrift::new());
            for (created, from, to) in [(true, &before, &after), (false, &after, &before)] {
                let expected = json::bytes(&expected(created), Secrets::Masked).unwrap();
                let reverted_drift = if created { &whole } else { &none };
                let places = &Places::new();
                let describer = Describer { before: from, after: to, places, reverted_drift, digest_key: &[1; 32] };
                let form = to.get(&key).map(|entry| entry.lazy_spec.form_once().unwrap());
                for form in [None, form.as_ref()] {
                    let mut written = Vec::new();
                    describer.describe(&key, form, &mut written).unwrap();
                    assert_eq!(written, expected);
                }
            }
        }
    }
}
