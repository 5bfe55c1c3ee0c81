//! Values that are unset and assumed, for a review without secrets (D106).
//!
//! # The problem
//!
//! A review of a pull request from a fork has no secrets. A review that fails for each fork is switched off, and one
//! that runs with secrets in a fork gives them away.
//!
//! # The idea
//!
//! An unset value is decoded to a text that stands for it ([`unknown`](crate::model::secrets::unknown_value::unknown)), with
//! the name of the variable or file. Once the resource is resolved, the text is replaced by the value that the store
//! has at the same place of the same resource. Otherwise it stays, and whatever needs the value is skipped and listed:
//! [`SKIPPED`] is the table of that.
//!
//! For example, `private_key_pem: {from_env: KEY}` of a certificate in the store keeps its key. For a new certificate
//! it is `(unknown)`, and whether the key belongs to the certificate is not checked.
//!
//! # What it never does
//!
//! Such a plan is never saved or applied. Its stored secrets are those of the same resource, and nothing compares them with those
//! of another one (`routing::behaviour`). A comparison of two sets of manifests takes nothing from the store: a
//! difference between a guess and the stored value would confirm the guess. Nobody can pass a text off as unknown: the
//! decoder rejects it in manifests, values and requests, because rules do not check it.
//!
//! Values of surrounding manifests (D107) that are unset, or that the source cannot read, are always assumed, because most of
//! them belong to resources of others. One that the source takes from a module set is an error, unless the review assumes
//! values.

use zeroize::Zeroizing;

use super::{origin::ManifestFile, resolution::Resolution};
use crate::manifest::load::values::ExternalValue;
use crate::manifest::prelude::*;
use crate::model::secrets::redact::{quotable_path, quotable_variable};
use crate::model::secrets::unknown_value::{is_unknown, unknown_source};
use crate::model::{Path, Secrets, Segment};
use crate::syntax::text::{first_of, number_of};

/// The most values that a report names.
const MOST_NAMES: usize = 100;
/// The most places of unknown values that a report lists.
const MOST_PLACES: usize = 10;

/// The checks that an unknown value skips, by its field: what the rules check, and lints.
const SKIPPED: [(&str, &str, &[&str]); 6] = [
    (
        "certificate_pem",
        "whether the certificate is valid and belongs to its key",
        &[
            "certificate-does-not-cover-hostport",
            "common-name-only",
            "expired-certificate",
            "expiring-certificate",
            "incomplete-chain",
            "leaf-is-authority",
            "not-a-certificate-authority",
            "not-yet-valid-certificate",
            "unusable-certificate-name",
            "weak-key",
            "wrong-certificate-purpose",
        ],
    ),
    ("private_key_pem", "whether the private key is valid and belongs to its certificate", &[]),
    (
        "ca_pem",
        "whether the authority is valid",
        &[
            "expired-certificate",
            "expiring-certificate",
            "not-a-certificate-authority",
            "not-yet-valid-certificate",
            "weak-key",
            "wrong-certificate-purpose",
        ],
    ),
    (
        "idp_metadata",
        "whether the SAML metadata is valid",
        &["expired-saml-metadata", "plain-http-saml", "saml-metadata"],
    ),
    ("client_secret", "", &[WHITE_SPACE]),
    ("secret", "", &[WHITE_SPACE, "webhook-secret"]),
];
/// The lint that judges the text of a secret. It says nothing about one that is in the store only.
const WHITE_SPACE: &str = "secret-with-white-space";

/// `from_env` or `from_file`, and its argument.
type ValueName = (String, String);

/// The values that were assumed while manifests were read.
#[derive(Debug, Default)]
pub(crate) struct UnknownValues {
    /// Whether the source may have unset values.
    is_review: bool,
    /// Whether a field stays unknown that has a value in the store.
    pub(in crate::manifest) ignores_store: bool,
    /// The values of the source.
    own: BTreeSet<ValueName>,
    /// Whether a value of the source or of its surrounding manifests is unset.
    any: bool,
}

/// A field with an unknown value.
struct UnknownField {
    path: Path,
    name: ValueName,
    /// Whether the store has a value.
    is_kept: bool,
}

impl UnknownValues {
    /// None yet.
    pub(crate) fn new(is_review: bool) -> Self {
        Self { is_review, ..Self::default() }
    }

    /// Adds the values of a file.
    pub(crate) fn note(&mut self, file: &ManifestFile, taken: &[ExternalValue]) {
        for taken in taken {
            let ExternalValue::Value { source, argument, digest: None } = taken else { continue };
            self.any = true;
            if !file.is_surrounding {
                self.own.insert((source.clone(), argument.clone()));
            }
        }
    }
}

/// Takes assumed values from the store, and reports what was assumed and what is not checked.
pub(super) fn fill_from_store(assumed: &UnknownValues, snapshot: &Snapshot, resolved: &mut Resolution) {
    if !assumed.any {
        return;
    }
    let (mut names, mut kept) = (assumed.own.clone(), 0);
    let mut unknown: Vec<(Key, UnknownField)> = Vec::new();
    for (key, desired) in &mut resolved.desired {
        let Ok(bytes) = desired.spec.to_bytes(Secrets::Revealed).map(Zeroizing::new) else { continue };
        if !std::str::from_utf8(&bytes).is_ok_and(|text| text.split('"').any(is_unknown)) {
            continue;
        }
        let Ok(mut spec) = desired.spec.to_json(Secrets::Revealed).map(Value::Object) else { continue };
        let stored = snapshot.get(key).filter(|_| assumed.is_review && !assumed.ignores_store);
        let stored = stored.and_then(|entry| entry.spec().to_json(Secrets::Revealed).ok()).map(Value::Object);
        let mut found = Vec::new();
        fill(&mut spec, stored.as_ref(), &Path::root(), &mut found);
        names.extend(found.iter().map(|field| field.name.clone()));
        let count = found.iter().filter(|field| field.is_kept).count();
        if count > 0 {
            kept += count;
            let text = Zeroizing::new(spec.to_string());
            match (key.kind.info().restore)(&text) {
                Ok(spec) => desired.spec = spec,
                // The reason could quote the value.
                Err(_) => resolved.diagnostics.push(JsonError::new("the stored value does not fit the field").into()),
            }
        }
        let is_judged = |field: &UnknownField| {
            SKIPPED.iter().any(|(name, _, lints)| last(&field.path) == Some(*name) && lints.contains(&WHITE_SPACE))
        };
        for field in found {
            match field.is_kept {
                false => unknown.push((key.clone(), field)),
                true if is_judged(&field) => {
                    resolved.stored_secrets.insert((key.clone(), field.path));
                }
                true => {}
            }
        }
    }
    if !assumed.is_review {
        return refuse(unknown, resolved);
    }
    if names.is_empty() {
        return;
    }
    resolved.diagnostics.push(assumed_warning(&names, kept, unknown.len()));
    resolved.diagnostics.extend(unchecked(&unknown, resolved));
}

/// Returns the warning about assumed values; some fields keep the stored value.
fn assumed_warning(names: &BTreeSet<ValueName>, kept: usize, unknown: usize) -> Diagnostic {
    let message = format!(
        "{} {} assumed: {} ({} unchanged, {unknown} unknown)",
        number_of(names.len(), "unset value"),
        if names.len() == 1 { "is" } else { "are" },
        first_of(names.iter().map(shown), MOST_NAMES),
        number_of(kept, "field"),
    );
    warning(message).help("to check them, set the values and omit --secrets=assume")
}

/// Replaces the unknown values in a spec by those that the store has, and adds their fields to `found`.
fn fill(value: &mut Value, stored: Option<&Value>, path: &Path, found: &mut Vec<UnknownField>) {
    match value {
        Value::String(text) => {
            let Some((source, argument)) = unknown_source(text) else { return };
            let name = (source.to_owned(), argument.to_owned());
            let stored = stored.and_then(Value::as_str).filter(|stored| !stored.is_empty() && !is_unknown(stored));
            found.push(UnknownField { path: path.clone(), name, is_kept: stored.is_some() });
            if let Some(stored) = stored {
                *text = stored.to_owned();
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let stored = stored.and_then(|stored| stored.get(name.as_str()));
                fill(value, stored, &path.join(name.as_str()), found);
            }
        }
        // No list contains a value from a file or a variable.
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Reports values of surrounding manifests that the source needs, each once.
fn refuse(unknown: Vec<(Key, UnknownField)>, resolved: &mut Resolution) {
    let mut seen = BTreeSet::new();
    for (key, UnknownField { path, name, .. }) in unknown {
        resolved.faulty.insert(key.clone());
        let (code, reason, set) = match name.0.as_str() {
            "from_env" => (
                Code::EnvUnset,
                "is not set, or the source cannot read it",
                "set it in edgewright's environment, and for a source that a server follows, list it in `variables`;",
            ),
            _ => (Code::FileUnreadable, "is not set", "set it,"),
        };
        let message = format!("in the surrounding manifests: {} {reason}", shown(&name));
        if seen.insert(name) {
            let help = format!("{set} or use --secrets=assume with `validate`, `diff` or `plan`");
            let fault = Fault::new(code, message).at(path).help(help);
            resolved.diagnostics.extend(resolved.diagnostic(&Subject::Resource(key), fault));
        }
    }
}

impl Resolution {
    /// Whether a lint does not judge a field: the manifests have no value, and the one in the store is not theirs.
    pub(crate) fn skips_lint(&self, lint: &str, subject: &Subject, path: &Path) -> bool {
        let Subject::Resource(key) = subject else { return false };
        lint == WHITE_SPACE
            && !self.stored_secrets.is_empty()
            && self.stored_secrets.contains(&(key.clone(), path.clone()))
    }
}

/// Returns the warning about checks that unset values skip, with the places of the fields.
fn unchecked(unknown: &[(Key, UnknownField)], resolved: &Resolution) -> Option<Diagnostic> {
    let kept = &resolved.stored_secrets;
    if unknown.is_empty() && kept.is_empty() {
        return None;
    }
    let fields: BTreeSet<&str> = unknown.iter().filter_map(|(_, field)| last(&field.path)).collect();
    let count = match kept.len() {
        0 => number_of(unknown.len(), "unknown field"),
        kept => number_of(unknown.len() + kept, "unset field"),
    };
    let mut diagnostic = warning(format!("not checked because of {count}: {}", skipped(&fields, !kept.is_empty())));
    let unknown = unknown.iter().map(|(key, field)| (key, &field.path, "unknown"));
    let all = unknown.chain(kept.iter().map(|(key, path)| (key, path, "unset")));
    let places = all.filter_map(|(key, path, label)| {
        Some((resolved.place(&Subject::Resource(key.clone()), path, FaultTarget::Value)?, label.to_owned()))
    });
    diagnostic.relate(places.take(MOST_PLACES));
    Some(diagnostic.help("set the values to run these checks"))
}

/// The checks that fields with unknown values skip, and secrets that are in the store only. Several fields can have the same
/// lint.
fn skipped(fields: &BTreeSet<&str>, has_assumed_secrets: bool) -> String {
    let of_fields = || SKIPPED.iter().filter(|(field, ..)| fields.contains(field));
    let mut checks: Vec<String> =
        of_fields().filter(|(_, check, _)| !check.is_empty()).map(|(_, check, _)| (*check).to_owned()).collect();
    let mut lints: BTreeSet<&str> = of_fields().flat_map(|(.., lints)| lints.iter().copied()).collect();
    if has_assumed_secrets {
        lints.insert(WHITE_SPACE);
    }
    let names: Vec<String> = lints.iter().map(|lint| format!("`{lint}`")).collect();
    match names.as_slice() {
        [] => {}
        [one] => checks.push(format!("the lint {one}")),
        [others @ .., last] => checks.push(format!("the lints {} and {last}", others.join(", "))),
    }
    checks.join("; ")
}

fn last(path: &Path) -> Option<&str> {
    match path.0.last()? {
        Segment::Key(name) => Some(name.as_str()),
        Segment::Index(_) => None,
    }
}

fn warning(message: String) -> Diagnostic {
    Diagnostic::warning(Code::AssumedValues, message)
}

fn shown((source, argument): &ValueName) -> String {
    match source.as_str() {
        "from_env" => format!("variable `{}`", printable(quotable_variable(argument))),
        _ => format!("file `{}`", printable_path(quotable_path(argument))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::secrets::unknown_value::unknown;

    #[test]
    fn a_value_is_taken_from_the_same_field_of_the_store_unless_that_is_unknown_too() {
        let (one, other) = (unknown("from_env", "ONE"), unknown("from_env", "OTHER"));
        let wanted = || json!({"oidc": {"client_id": "a", "client_secret": one}});
        for (stored, expected) in [
            (Some(json!({"oidc": {"client_secret": "s"}})), Some("s")),
            (Some(json!({"oidc": {"client_secret": ""}})), None),
            (Some(json!({"oidc": {"client_secret": other}})), None),
            (Some(json!({"oauth": {"client_secret": "s"}})), None),
            (None, None),
        ] {
            let (mut spec, mut found) = (wanted(), Vec::new());
            fill(&mut spec, stored.as_ref(), &Path::root(), &mut found);
            let fields: Vec<(String, bool)> = found.iter().map(|it| (it.path.to_string(), it.is_kept)).collect();
            assert_eq!(fields, [(Path::root().join("oidc").join("client_secret").to_string(), expected.is_some())]);
            let value = spec.pointer("/oidc/client_secret").and_then(Value::as_str);
            assert_eq!(value, expected.or(Some(one.as_str())));
        }
    }

    #[test]
    fn the_checks_of_every_field_with_a_value_source_are_known() {
        let named: Vec<&str> = SKIPPED.iter().flat_map(|(.., lints)| lints.iter().copied()).collect();
        assert!(named.iter().all(|lint| crate::lint::find(lint).is_some()), "{named:?}");
    }
    #[test]
    fn a_lint_of_several_fields_is_named_once() {
        let fields = BTreeSet::from(["client_secret", "secret", "ca_pem"]);
        let text = skipped(&fields, false);
        assert!(text.starts_with("whether the authority is valid; the lints `expired-certificate`, "), "{text}");
        assert_eq!(text.matches("`secret-with-white-space`").count(), 1, "{text}");
        assert_eq!(skipped(&BTreeSet::from(["client_secret"]), false), "the lint `secret-with-white-space`");
        assert_eq!(skipped(&BTreeSet::new(), true), "the lint `secret-with-white-space`");
    }
}
