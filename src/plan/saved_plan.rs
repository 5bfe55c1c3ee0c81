//! A saved plan: the document that `--out` writes for a review, and that `--plan` compares with the current plan.
//!
//! # The problem
//!
//! What is applied must be what was reviewed. But between a review and the merge, others commit, so the store has
//! another revision; and a secret can be replaced, which a document without secrets does not show.
//!
//! # The idea
//!
//! A plan is its outcome (D59): the store, the source, the desired state and the calls. The revision is information,
//! not a condition: with it, a large reconcile beside a few unrelated writes per second would never succeed.
//!
//! The desired state, secrets included, is a digest (D60). With a store it is keyed with the store's root secret, so it
//! tells a reader of the document nothing. Without a store there is no key, and a key in the document would be none.
//! Then the digest has a salt and is as slow to compute as that of a password; all secrets go into this one digest, so
//! a guess of one needs all others.
//!
//! For example, another team's commit leaves the outcome as it is, and a rotated webhook secret changes the digest: the
//! plan is stale, and [`SavedPlan`] has the difference between the two documents.
//!
//! # What it never does
//!
//! It contains no secret. It permits nothing: what is applied is the plan that the run computes itself, if its outcome
//! is equal. A plan without secrets (`masked:`) is for a review whose secrets come from elsewhere (D101).
//!
//! The alternatives were to leave secrets out of the digest, so that one could be replaced after the review, and to
//! save no plan without a store, so that a first rollout could not be reviewed.

use std::num::NonZeroU32;

use ring::pbkdf2;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

use super::change::Plan;
use crate::model::{Desired, JsonError, Secrets, json};

/// The format that this version writes and reads.
const FORMAT: &str = "edgewright/plan/v1";
/// The start of the digests of a plan for a caller who does not see the secrets of the source (D101).
const MASKED: &str = "masked:";
/// The number of times that the digest of a plan without a store is hashed, so that guessing secrets from it is slow
/// (D60). OWASP recommends this number for passwords.
const ROUNDS: NonZeroU32 = match NonZeroU32::new(600_000) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};

/// A plan saved for review, with masked secrets. A digest detects changed secrets: it is keyed with the store's secret,
/// or salted and slow to compute if there is no store yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedPlan {
    /// `edgewright/plan/v1`.
    format: String,
    /// The store that the plan was computed for; null if there was no store yet.
    store: Option<String>,
    /// The salt of the digest if there was no store. A server always has a store, so it sends none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    salt: Option<String>,
    /// The source.
    source: String,
    /// The revision that the plan was computed from.
    base: u64,
    /// The Git commit of the manifests, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// The digest of the desired state, including secrets; after `masked:`, the digest without them, for a caller who does
    /// not see them.
    desired: String,
    /// The number of unchanged resources.
    unchanged: usize,
    /// The calls, in execution order.
    operations: Vec<SavedOperation>,
    /// The digest of all other fields.
    digest: String,
}

/// An operation of a saved plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SavedOperation {
    /// The kind and name of the resource.
    resource: String,
    /// The id of the resource.
    id: String,
    /// The API call as `METHOD path`, or the operation in parentheses if it has no call.
    call: String,
    /// The request body with secrets masked; absent if there is none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    body: Value,
}

/// The conditions of a plan in addition to its operations.
#[derive(Debug, Clone)]
pub(crate) struct PlanConditions<'a> {
    /// The protection of secrets in the digest of the desired state.
    pub protection: DigestProtection,
    /// The name of the source.
    pub source: &'a str,
    /// The commit of the manifests.
    pub commit: Option<String>,
    /// Whether the plan is for a caller who does not see the secrets of the source: it covers everything else.
    pub is_masked: bool,
}

/// The protection against guessing secrets from the digest of the desired state (D60).
#[derive(Debug, Clone)]
pub(crate) enum DigestProtection {
    /// The digest is keyed with the store's root secret.
    Store([u8; 32]),
    /// There is no store yet: the digest has this salt, and is slow to compute.
    Salt(String),
}

impl SavedPlan {
    /// Creates the document of a plan with the desired state.
    pub(crate) fn new<'d>(
        plan: &Plan,
        desired: impl IntoIterator<Item = &'d Desired>,
        conditions: &PlanConditions<'_>,
    ) -> Result<Self, JsonError> {
        let (prefix, secrets) = if conditions.is_masked { (MASKED, Secrets::Masked) } else { ("", Secrets::Revealed) };
        let desired = format!("{prefix}{}", digest_of(desired, &conditions.protection, secrets)?);
        let (store, salt) = match &conditions.protection {
            DigestProtection::Store(root) => (Some(store_id(root)), None),
            DigestProtection::Salt(salt) => (None, Some(salt.clone())),
        };
        let operations = plan.changes.iter().flat_map(|change| {
            change.operations.iter().map(move |operation| -> Result<SavedOperation, JsonError> {
                let operation = plan.reviewed(operation);
                Ok(SavedOperation {
                    resource: format!("{} {}", change.key.kind, change.name),
                    id: operation.key().id.to_string(),
                    call: operation.to_string(),
                    body: operation.body(Secrets::Planned)?,
                })
            })
        });
        let mut saved = Self {
            format: FORMAT.into(),
            store,
            salt,
            source: conditions.source.into(),
            base: plan.base,
            commit: conditions.commit.clone(),
            desired,
            unchanged: plan.unchanged,
            operations: operations.collect::<Result<Vec<SavedOperation>, JsonError>>()?,
            digest: String::new(),
        };
        saved.digest = saved.own_digest()?;
        Ok(saved)
    }

    /// Parses a document; the error explains what is wrong.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let saved: Self = serde_json::from_str(text).map_err(|error| format!("not a saved plan: {error}"))?;
        if saved.format != FORMAT {
            return Err(format!("unsupported format `{}` (expected `{FORMAT}`)", saved.format));
        }
        Ok(saved)
    }

    /// Returns the salt of a plan without a store, to compare another plan with it.
    pub(crate) fn salt(&self) -> Option<&str> {
        self.salt.as_deref()
    }

    /// Returns the document's text.
    pub(crate) fn text(&self) -> Result<String, JsonError> {
        json::text(self, Secrets::Masked)
    }

    /// Returns the digest of the plan's outcome: store, source, desired state and calls, but not the revision, so that
    /// unrelated changes to the store do not matter (D59).
    pub(crate) fn outcome(&self) -> Result<String, JsonError> {
        let parts = (&self.store, &self.source, &self.desired, &self.operations);
        let digest = blake3::hash(&json::bytes(&parts, Secrets::Masked)?).to_hex();
        Ok(if self.is_masked() { format!("{MASKED}{digest}") } else { digest.to_string() })
    }

    /// Whether the plan was made for a caller who does not see the secrets of the source.
    pub(crate) fn is_masked(&self) -> bool {
        is_masked(&self.desired)
    }

    /// Returns the reasons why the current plan is not this one; empty if it is. Only the outcome counts, not the
    /// revision: unrelated changes to the store do not matter (D59).
    pub(crate) fn differences(&self, now: &SavedPlan) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.own_digest().is_ok_and(|digest| digest == self.digest) {
            reasons.push("the saved plan was edited".to_owned());
        }
        if self.store != now.store {
            reasons.push("the saved plan is for another store".to_owned());
        }
        if self.source != now.source {
            reasons.push(format!("the saved plan is for source `{}`, not `{}`", self.source, now.source));
        }
        match (self.is_masked(), now.is_masked()) {
            (true, false) => reasons.push("the saved plan has no secrets; apply it through its server".to_owned()),
            (false, true) => reasons.push("the saved plan has secrets that this API key cannot read".to_owned()),
            _ => {}
        }
        // The digest depends on the store's secret and the source, so it is comparable only if both are the same.
        let comparable = self.store == now.store && self.source == now.source && self.is_masked() == now.is_masked();
        if comparable && self.desired != now.desired {
            reasons.push("the manifests, or the values they take from files or variables, have changed".to_owned());
        }
        if reasons.is_empty() && self.operations != now.operations {
            reasons.push(match self.base == now.base {
                true => "this version of edgewright plans different operations".to_owned(),
                false => format!("the store changed (now revision {}), so the plan would do something else", now.base),
            });
        }
        reasons
    }

    /// Returns the difference between the calls of two plans, as a line diff.
    pub(crate) fn diff(&self, now: &SavedPlan) -> String {
        let text = |plan: &SavedPlan| match plan.operations.as_slice() {
            [] => "nothing to do\n".to_owned(),
            operations => {
                serde_yaml::to_string(operations).unwrap_or_else(|error| format!("cannot be shown: {error}\n"))
            }
        };
        let (reviewed, current) = (text(self), text(now));
        TextDiff::from_lines(&reviewed, &current).unified_diff().header("reviewed", "now").to_string()
    }

    fn own_digest(&self) -> Result<String, JsonError> {
        let plain = Self { digest: String::new(), ..self.clone() };
        Ok(blake3::hash(&json::bytes(&plain, Secrets::Masked)?).to_hex().to_string())
    }
}

/// Returns an id of a store, derived from its secret without revealing it.
fn store_id(root: &[u8; 32]) -> String {
    let id = blake3::derive_key("edgewright 2026 store id", root);
    blake3::hash(&id).to_hex().chars().take(32).collect()
}

/// Whether a digest or an outcome is that of a plan without secrets.
pub(crate) fn is_masked(digest: &str) -> bool {
    digest.starts_with(MASKED)
}

/// Returns the digest of the desired state.
fn digest_of<'d>(
    desired: impl IntoIterator<Item = &'d Desired>,
    protection: &DigestProtection,
    secrets: Secrets<'_>,
) -> Result<String, JsonError> {
    let mut hasher = match protection {
        DigestProtection::Store(root) => {
            blake3::Hasher::new_keyed(&blake3::derive_key("edgewright 2026 saved plan", root.as_slice()))
        }
        DigestProtection::Salt(_) => blake3::Hasher::new(),
    };
    for wanted in desired {
        let (spec, claim) = (wanted.spec.to_json(secrets)?, json::value(&wanted.claim, Secrets::Masked)?);
        let line = Value::Array(vec![wanted.key.path().into(), Value::Object(spec), claim]);
        hasher.update(line.to_string().as_bytes());
        hasher.update(b"\n");
    }
    let digest = hasher.finalize();
    Ok(match protection {
        DigestProtection::Store(_) => digest.to_hex().to_string(),
        DigestProtection::Salt(salt) => slow(digest.as_bytes(), salt),
    })
}

/// Hashes a digest slowly, so that guessing its input is slow as well.
fn slow(digest: &[u8; 32], salt: &str) -> String {
    let mut out = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, salt.as_bytes(), digest, &mut out);
    blake3::Hash::from(out).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_plan_without_a_store_depends_on_the_state_and_the_salt() {
        let digest = |state: u8, salt: &str| slow(&[state; 32], salt);
        let first = digest(1, "one");
        assert_ne!(first, digest(2, "one"));
        assert_ne!(first, digest(1, "two"));
        assert!(ROUNDS.get() >= 600_000);
    }
}
