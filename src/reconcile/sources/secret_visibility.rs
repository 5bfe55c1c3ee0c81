//! Plans for readers who do not see all secrets (D101).
//!
//! # The problem
//!
//! A plan compares the manifests with the store. Whoever may plan but not see a secret could send guesses: the one that
//! changes nothing is right. To refuse plans with secrets would refuse the reviews that need them most.
//!
//! # The idea
//!
//! The plan of such a reader is made on another state: the secrets that the reader does not see are replaced by those
//! of the manifests ([`hide_unseen_secrets`]). So the plan shows all other changes and none of a secret, and everything
//! after it, drift and digests included, needs no rule of its own. A warning lists what was not compared, by what the
//! manifests declare and never by values. For a rollback, the state gets the secrets of the earlier one.
//!
//! Resources that the manifests do not declare keep their secrets in that state, and a value that is unset and assumed is the
//! stored one. Neither is compared with a guess, because nothing compares the secrets of different resources
//! (`routing::behaviour`).
//!
//! For example, a planner's manifest has `client_secret: guess`. Whether the store has that value or another one, the
//! plan says `No changes`, and that one secret field was not compared.
//!
//! Whoever may apply the source gets the plan that is applied, which compares the secrets of the source: a rotated secret that is
//! not in the plan would never be applied. That tells nothing of the secrets that an edge requires, because one is compared only
//! with another one of the same origin (D103).
//!
//! # What it never does
//!
//! It is not used to apply: a run that applies compares the real secrets. When what was reviewed is applied with
//! another key, both plans are made, and the masked one is compared with the review.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
use zeroize::Zeroizing;

use crate::model::{
    AnyResource, Code, Desired, Diagnostic, Entry, JsonError, Key, Kind, LazySpec, MASK, Secrets, Snapshot,
};
use crate::plan::full_name;
use crate::syntax::text::{number_of, printable};

/// Whether the reader of a plan sees the secrets of a resource.
pub(crate) type SecretFilter = Arc<dyn Fn(&Entry) -> bool + Send + Sync>;

/// Returns a state in which the secrets that the reader does not see are those of the manifests, so that a plan does not
/// change them. A secret that the manifests do not have is a mask, which no value of the manifests is.
pub(crate) fn hide_unseen_secrets(
    snapshot: &Snapshot,
    desired: &BTreeMap<Key, Desired>,
    sees: &SecretFilter,
) -> Result<Snapshot, JsonError> {
    let wanted = desired.values().map(|wanted| (&wanted.key, wanted.spec.as_ref()));
    with_secrets(snapshot, wanted, |entry| !sees(entry))
}

/// How many resources a warning names.
const NAMED: usize = 5;

/// The warning that a plan does not compare secrets that its reader does not see, if there are any.
pub(crate) fn uncompared_warning(
    snapshot: &Snapshot,
    desired: &BTreeMap<Key, Desired>,
    sees: &SecretFilter,
) -> Option<Diagnostic> {
    let mutable = desired.values().filter(|wanted| is_compared(&wanted.key));
    let unseen: Vec<(&Desired, usize)> = mutable
        .filter_map(|wanted| Some((wanted, snapshot.get(&wanted.key)?)))
        .filter(|(_, entry)| !sees(entry))
        .map(|(wanted, entry)| (wanted, entry.lazy_spec.secret_count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let name = |wanted: &&Desired| {
        format!("{} {}", wanted.key.kind, printable(&full_name(snapshot, desired, &wanted.key, &wanted.claim)))
    };
    let help = "to compare them, plan with an API key that may apply the source, or whose scope has `secrets`";
    warning(&unseen, name, help)
}

/// Returns this warning for a rollback to an earlier state, of the resources of a source or of all. The resources may be the same in
/// both states: whether they are is not told.
pub(crate) fn uncompared_by_rollback(
    snapshot: &Snapshot,
    earlier: &Snapshot,
    source: Option<&str>,
) -> Option<Diagnostic> {
    let is_owned = |entry: &Entry| source.is_none_or(|source| entry.is_owned_by(source));
    let mutable = earlier.iter().filter(|then| then.key.kind != Kind::ApiKey && is_compared(&then.key));
    let unseen: Vec<(&Arc<Entry>, usize)> = mutable
        .filter_map(|then| Some((then, snapshot.get(&then.key)?)))
        .filter(|(then, now)| !Arc::ptr_eq(then, now) && (is_owned(then) || is_owned(now)))
        .map(|(_, now)| (now, now.lazy_spec.secret_count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let name = |now: &&Arc<Entry>| format!("{} {}", now.key.kind, printable(&snapshot.full_name(now)));
    warning(&unseen, name, "to compare them, plan with an API key whose scope has `secrets`, or that has no scope")
}

/// Whether plans compare the secrets of a resource. An immutable secret goes with its resource.
fn is_compared(key: &Key) -> bool {
    key.kind.info().fixed.is_empty()
}

/// The warning about resources with numbers of secret fields that are not compared, if there are any.
fn warning<T>(unseen: &[(T, usize)], name: impl Fn(&T) -> String, help: &str) -> Option<Diagnostic> {
    if unseen.is_empty() {
        return None;
    }
    let named = unseen.iter().take(NAMED);
    let named = named.map(|(it, count)| format!("{} of {}", number_of(*count, "secret field"), name(it)));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = unseen.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and those of {more} more resources") } else { String::new() };
    let warning = Diagnostic::warning(Code::UncomparedSecrets, format!("values not compared: {named}{more}"));
    Some(warning.help(help))
}

/// Returns a state that has the secrets of an earlier one, so that a rollback to it changes none.
pub(crate) fn with_secrets_of_state(snapshot: &Snapshot, earlier: &Snapshot) -> Result<Snapshot, JsonError> {
    let differs = |then: &&Arc<Entry>| snapshot.get(&then.key).is_some_and(|now| !Arc::ptr_eq(now, then));
    let kept = earlier.iter().filter(differs).filter(|then| !then.lazy_spec.has_lost_secrets());
    with_secrets(snapshot, kept.map(|then| (&then.key, then.spec().as_ref())), |_| true)
}

/// Returns a state in which some resources have the secrets of others.
fn with_secrets<'s>(
    snapshot: &Snapshot,
    wanted: impl Iterator<Item = (&'s Key, &'s (dyn AnyResource + 'static))>,
    is_replaced: impl Fn(&Entry) -> bool,
) -> Result<Snapshot, JsonError> {
    let mut changed = Vec::new();
    for (key, spec) in wanted {
        let Some(entry) = snapshot.get(key).filter(|entry| entry.lazy_spec.secret_count() > 0 && is_replaced(entry))
        else {
            continue;
        };
        let lazy_spec = LazySpec::new(with_secrets_of(entry.spec().as_ref(), spec)?);
        changed.push((entry.key.clone(), Ok(Entry { lazy_spec, rendered: Arc::default(), ..Entry::clone(entry) })));
    }
    Ok(snapshot.advance(snapshot.revision, snapshot.next_order(), changed))
}

/// Returns a Spec with the secrets of another one of its kind.
fn with_secrets_of(spec: &dyn AnyResource, other: &dyn AnyResource) -> Result<Arc<dyn AnyResource>, JsonError> {
    let forms = |spec: &dyn AnyResource| -> Result<(Value, Value), JsonError> {
        Ok((spec.to_json(Secrets::Revealed)?.into(), spec.to_json(Secrets::Masked)?.into()))
    };
    let (mut whole, masked) = forms(spec)?;
    let (other, other_masked) = forms(other)?;
    replace(&mut whole, &masked, &other, &other_masked);
    let text = Zeroizing::new(whole.to_string());
    // The error could quote a secret.
    (spec.kind().info().restore)(&text).map_err(|_| JsonError::new("the secrets of a resource cannot be left out"))
}

/// Replaces the secrets of a value. What differs from the masked form is secret.
fn replace(value: &mut Value, masked: &Value, other: &Value, other_masked: &Value) {
    match (value, masked) {
        (Value::Object(fields), Value::Object(masked)) => {
            for (name, field) in fields.iter_mut() {
                let at = |fields: &Value| fields.get(name).cloned().unwrap_or_default();
                replace(field, masked.get(name).unwrap_or(&Value::Null), &at(other), &at(other_masked));
            }
        }
        (Value::Array(items), Value::Array(masked)) => {
            for (index, item) in items.iter_mut().enumerate() {
                let at = |items: &Value| items.get(index).cloned().unwrap_or_default();
                replace(item, masked.get(index).unwrap_or(&Value::Null), &at(other), &at(other_masked));
            }
        }
        (value, masked) if value != masked => {
            let is_secret = other.is_string() && other != other_masked;
            *value = if is_secret { other.clone() } else { Value::from(MASK) };
        }
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::tree::{Sent, SentFile};
    use crate::plan::format::{Format, render};
    use crate::reconcile::{Options, PlanResult, Prepared, apply};
    use crate::store::{MEMORY, Store};

    fn options(secret: &str, description: &str) -> Options {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  hostports: ['a.example.com:443']\n  \
             routes:\n    - name: hook\n      match_type: path_prefix\n      match: /\n      description: {description}\n      \
             backend: {{backend_id: bkd_1}}\n      webhook_verification: {{provider: github, secret: {secret}}}\n"
        );
        let file = SentFile::new("shop.yaml", text);
        Options { source: "shop".into(), ..Options::new(Sent::new(vec![file], None)) }
    }

    fn store() -> Store {
        let store = Store::open(MEMORY).unwrap();
        let options = options("right-one", "first");
        apply(&store, &options, &crate::reconcile::plan(&options, &store.snapshot())).unwrap();
        store
    }

    fn planned(store: &Store, options: Options, sees: bool) -> PlanResult {
        Prepared::load(options).seen_by(Arc::new(move |_: &Entry| sees)).plan(&store.snapshot())
    }

    fn shown(planned: &PlanResult) -> String {
        let calls: Vec<String> =
            planned.plan.as_ref().unwrap().each_operation().iter().map(ToString::to_string).collect();
        let report = render(Format::Markdown, &planned.report("plan")).unwrap();
        format!("{calls:?} {report}")
    }

    #[test]
    fn a_plan_confirms_no_guess_of_a_secret() {
        let store = store();
        for description in ["first", "second"] {
            let right = shown(&planned(&store, options("right-one", description), false));
            for guess in ["wrong-one", "other-one", MASK] {
                let wrong = planned(&store, options(guess, description), false);
                if wrong.plan.is_some() {
                    assert_eq!(shown(&wrong), right, "{guess} {description}");
                }
            }
        }
        let empty = |secret: &str, sees: bool| planned(&store, options(secret, "first"), sees).plan.unwrap().is_empty();
        assert!(empty("right-one", false) && empty("wrong-one", false));
        assert!(empty("right-one", true) && !empty("wrong-one", true));
    }

    #[test]
    fn all_but_secrets_is_compared() {
        let store = store();
        let changed = planned(&store, options("wrong-one", "second"), false);
        let plan = changed.plan.as_ref().unwrap();
        assert_eq!((plan.changes.len(), plan.refusals.len()), (1, 0), "{:?}", plan.changes);
        assert!(!shown(&changed).contains("changed)"), "{}", shown(&changed));
    }
}
