//! A plan as a document: what was reviewed, to be compared with what would run (`--out`, `--plan`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use similar::TextDiff;

use super::Plan;
use crate::model::{
    desired::Desired,
    json::{self, JsonError},
    secret::Secrets,
};

/// The one version of the document.
const FORMAT: &str = "edgewright/plan/v1";

/// A plan that was written for review. Secrets are masked in it; that the same ones are meant is known by a digest which
/// only the store can make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedPlan {
    format: String,
    /// Which store the plan was made for; none, if there was no store yet.
    store: Option<String>,
    /// The source that it was made for.
    source: String,
    /// The revision that it was made from.
    base: u64,
    /// The commit of the manifests, where they are in git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// What the manifests ask for, secrets included.
    desired: String,
    /// How many resources stay as they are.
    unchanged: usize,
    /// The calls, in the order in which they run.
    operations: Vec<SavedOperation>,
    /// Of all of the above.
    digest: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SavedOperation {
    resource: String,
    id: String,
    call: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    body: Value,
}

/// What a plan is pinned to beside its operations.
#[derive(Debug, Clone)]
pub struct Pin<'a> {
    /// The secret of the store, which digests are keyed with; none, if there is no store yet.
    pub root_secret: Option<[u8; 32]>,
    /// The name of the source.
    pub source: &'a str,
    /// The commit of the manifests.
    pub commit: Option<String>,
}

impl SavedPlan {
    /// The document of a plan that leads to `desired`.
    pub fn new<'d>(
        plan: &Plan,
        desired: impl IntoIterator<Item = &'d Desired>,
        pin: &Pin<'_>,
    ) -> Result<Self, JsonError> {
        let key = pin.root_secret.map(|root| blake3::derive_key("edgewright 2026 saved plan", &root));
        let operations = plan.changes.iter().flat_map(|change| {
            change.operations.iter().map(|operation| -> Result<SavedOperation, JsonError> {
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
            store: pin.root_secret.map(|root| store_id(&root)),
            source: pin.source.into(),
            base: plan.base,
            commit: pin.commit.clone(),
            desired: digest_of(desired, key)?,
            unchanged: plan.unchanged,
            operations: operations.collect::<Result<Vec<SavedOperation>, JsonError>>()?,
            digest: String::new(),
        };
        saved.digest = saved.own_digest()?;
        Ok(saved)
    }

    /// Reads a document. The error is for a person.
    pub fn read(text: &str) -> Result<Self, String> {
        let saved: Self = serde_json::from_str(text).map_err(|error| format!("it is not a saved plan: {error}"))?;
        if saved.format != FORMAT {
            return Err(format!("its format is `{}`, and this edgewright knows `{FORMAT}`", saved.format));
        }
        Ok(saved)
    }

    /// The document's text.
    pub fn text(&self) -> Result<String, JsonError> {
        json::text(self, Secrets::Masked)
    }

    /// What the plan comes to, whatever else has changed in the store since it was made: the same store and source, the
    /// same desired state and the same calls have the same digest.
    pub fn outcome(&self) -> Result<String, JsonError> {
        let parts = (&self.store, &self.source, &self.desired, &self.operations);
        Ok(blake3::hash(&json::bytes(&parts, Secrets::Masked)?).to_hex().to_string())
    }

    /// Why the plan that would run now is not this one: nothing, if it is. Only the outcome counts, and not the revision:
    /// what others change in the store does not matter as long as the same calls lead to the same state.
    pub fn differences(&self, now: &SavedPlan) -> Vec<String> {
        let mut reasons = Vec::new();
        if !self.own_digest().is_ok_and(|digest| digest == self.digest) {
            reasons.push("the document was changed after it was written".to_owned());
        }
        if self.store != now.store {
            reasons.push("it was made for another store".to_owned());
        }
        if self.source != now.source {
            reasons.push(format!("it was made for the source `{}`, not `{}`", self.source, now.source));
        }
        // The digest is keyed with the store's secret, and names the source: it tells nothing where those differ.
        let comparable = self.store == now.store && self.source == now.source;
        if comparable && self.desired != now.desired {
            reasons.push("the manifests, or the secrets and files that they take values from, have changed".to_owned());
        }
        if reasons.is_empty() && self.operations != now.operations {
            reasons.push(match self.base == now.base {
                true => "this version of edgewright plans other calls".to_owned(),
                false => format!("the store has changed since revision {}, and so has the plan", self.base),
            });
        }
        reasons
    }

    /// The calls that differ between this plan and another one, as a line diff.
    pub fn diff(&self, now: &SavedPlan) -> String {
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

/// A name for a store that tells nothing of its secret.
fn store_id(root: &[u8; 32]) -> String {
    let id = blake3::derive_key("edgewright 2026 store id", root);
    blake3::hash(&id).to_hex().chars().take(32).collect()
}

/// A digest of the desired state. Without a store there is no key, and then secrets are left out: a plain digest would
/// let anybody who has the document try secrets out.
fn digest_of<'d>(desired: impl IntoIterator<Item = &'d Desired>, key: Option<[u8; 32]>) -> Result<String, JsonError> {
    let secrets = if key.is_some() { Secrets::Revealed } else { Secrets::Masked };
    let mut hasher = key.map_or_else(blake3::Hasher::new, |key| blake3::Hasher::new_keyed(&key));
    for wanted in desired {
        let (spec, claim) = (wanted.spec.to_json(secrets)?, json::value(&wanted.claim, Secrets::Masked)?);
        let line = Value::Array(vec![wanted.key.path().into(), Value::Object(spec), claim]);
        hasher.update(line.to_string().as_bytes());
        hasher.update(b"\n");
    }
    Ok(hasher.finalize().to_hex().to_string())
}
