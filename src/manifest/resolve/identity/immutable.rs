//! Immutable content, and whether a resource of the store has that of a declared one.

use super::{DeclaredResource, StoreNames};
use crate::model::secrets::unknown_value::is_unknown;
use crate::model::{AnyResource, ApiKey, Code, Diagnostic, Entry, Fault, JsonError, Secrets};
use crate::syntax::text::printable;

impl DeclaredResource<'_> {
    /// Whether an existing resource can be updated to this one in place. Unset or unknown immutable content matches any.
    /// Secrets do not decide: a plan would tell whether a guess is right. No two resources differ in them alone, because a
    /// certificate has one private key.
    pub(super) fn fits(&self, entry: &Entry) -> bool {
        if self.fixed.is_empty() {
            return true;
        }
        let stored = entry.spec();
        let worded = self.spec.as_stored(stored.as_ref());
        let wanted = worded.as_deref().unwrap_or(self.spec.as_ref());
        let shown = |spec: &dyn AnyResource| immutable_form(spec, Secrets::Masked);
        let (Ok(wanted), Ok(existing)) = (shown(wanted), shown(stored.as_ref())) else { return false };
        let matches_any = |wanted: &str| wanted == "\"\"" || is_unknown(wanted.trim_start_matches('"'));
        let mut fields = wanted.iter().zip(&existing).zip(&self.fixed);
        fields.all(|((wanted, existing), revealed)| wanted == existing || matches_any(revealed))
    }
}

/// The error of a resource that cannot be adopted, because its immutable content differs: it would be another resource, which
/// its stated ID denies.
pub(super) fn immutable_error(known: &StoreNames<'_>, it: &DeclaredResource<'_>, entry: &Entry) -> Diagnostic {
    let snapshot = known.snapshot;
    if let Some(key) = entry.spec_as::<ApiKey>() {
        let owner = printable(&key.owner_id);
        let message = format!("the owner of {} is `{owner}` and cannot change", snapshot.name_of(&entry.key));
        let fault = Fault::new(Code::Immutable, message).at("owner_id");
        let help = format!("use `{owner}`, or remove `metadata.id` to create another key");
        return it.declaration.origin.diagnostic(fault.help(help));
    }
    let shown = |spec: &dyn AnyResource| spec.to_json(Secrets::Masked).unwrap_or_default();
    let (wanted, stored) = (shown(it.spec.as_ref()), shown(entry.spec().as_ref()));
    let differs = |field: &&&str| wanted.get(**field) != stored.get(**field);
    let field = it.declaration.kind.info().fixed.iter().find(differs).copied().unwrap_or_default();
    let message = format!("cannot adopt {}: its `{field}` differs, and is immutable", snapshot.name_of(&entry.key));
    let fault = Fault::new(Code::Immutable, message).at(["metadata", "id"]);
    let help = match entry.is_owned_by(known.source) {
        true => "remove `metadata.id` to replace the resource with a new one, or keep the existing value".to_owned(),
        // No source would delete the resource.
        false => format!(
            "use its `{field}` to adopt the resource, then remove `metadata.id` in a later change to replace it; if \
             you remove `metadata.id` now, {} stays next to the new resource",
            entry.key.id
        ),
    };
    it.declaration.origin.document().diagnostic(fault.help(help))
}

/// The immutable content that is part of the id.
pub(in crate::manifest) fn immutable_content(spec: &dyn AnyResource) -> Result<Vec<String>, JsonError> {
    immutable_form(spec, Secrets::Revealed)
}

fn immutable_form(spec: &dyn AnyResource, secrets: Secrets<'_>) -> Result<Vec<String>, JsonError> {
    let fields = spec.kind().info().fixed;
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let whole = spec.to_json(secrets)?;
    Ok(fields.iter().map(|field| whole.get(*field).map(ToString::to_string).unwrap_or_default()).collect())
}
