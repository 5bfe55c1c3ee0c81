//! The content of a request body: its fields, without repeated path parameters, and the Spec or module they make (D6,
//! D62).
//!
//! In a PATCH, a blank may be meant or come from a client that writes one for everything that it was not given (D65). A kind
//! lists the fields of which known clients do so, and the other fields that show it (`KindInfo::unmeant_blanks`).
//!
//! If every blank were ignored, no text or list could be cleared. If every blank were obeyed, changing a description with
//! such a client would take the IP policies from an enforced restriction. Repeated path parameters do not tell such
//! clients: some of them send only what they were given.

use super::api_error::ApiError;
use crate::model::decode::{Decoded, list};
use crate::model::diagnostics::fault::add_new_faults;
use crate::model::resource::any_resource::AccessList;
use crate::model::resource::kind_info::BlankContext;
use crate::model::{AnyModule, AnyResource, Faults, Segment, Slot};
use crate::server::prelude::*;
use crate::server::resources::endpoint::Endpoint;
use crate::syntax::yaml::{Node, Tape};

/// Returns a body that is not null.
pub(crate) fn body(content: Tape) -> Result<Tape, ApiError> {
    if content.root().is_null() {
        return Err(ApiError::with_code(Code::Syntax, "the request body must be a JSON object"));
    }
    Ok(content)
}

/// Returns the body of a PUT. Without one, a module whose defaults are harmless is configured with them (D64).
pub(crate) fn module_body(slot: &Slot, content: Tape) -> Result<Tape, ApiError> {
    if !content.root().is_null() {
        return Ok(content);
    }
    if slot.empty_is_harmless {
        return Ok(Tape::empty_mapping());
    }
    let message = match slot.required {
        [] => format!("a request body is required: the defaults of `{}` are rarely intended", slot.name),
        required => format!("a request body is required: `{}` needs {}", slot.name, list(required)),
    };
    let help =
        if slot.required.is_empty() { "use `{}` for the module with its defaults" } else { "send a JSON object" };
    Err(ApiError::new(Fault::new(Code::Syntax, message).help(help)))
}

/// Removes the path parameters that a body repeats: some clients send their whole argument. Returns the faults of those
/// with another value.
pub(crate) fn take_parameters(content: &mut Tape, endpoint: &Endpoint, values: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let names = endpoint.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    // The type of an event source is also a field, and compared like any other fixed field.
    let fixed = endpoint.kind.info().fixed;
    for (name, value) in names.zip(values).filter(|(name, _)| !fixed.contains(name)) {
        let Some(node) = content.root().get(name) else { continue };
        if !node.is_null() && node.as_str() != Some(value.as_str()) {
            let fault = Fault::new(Code::UnknownValue, format!("`{name}` must match the path"));
            let help = format!("use `{}`, or remove `{name}`", printable(value));
            faults.push(fault.help(help).at(name));
        }
        content.remove(name);
    }
    faults
}

/// The fields of a PATCH that are not null.
#[derive(Default)]
pub(crate) struct PatchFields {
    /// The fields that it changes.
    pub changed: Vec<String>,
    /// The fields of `changed` that it clears beside other fields, which its client may not have meant.
    pub cleared: Vec<String>,
    /// The fields that are blank because their client writes a blank for a field that it was not given. They do not change.
    pub unchanged: Vec<String>,
}

/// Returns the fields of a PATCH, with each blank where D65 puts it. With `blanks_count`, each blank is meant.
pub(crate) fn patch_fields(info: &KindInfo, node: Node<'_>, blanks_count: bool) -> PatchFields {
    let entries = node.entries().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let entries: Vec<(&str, Node<'_>)> = entries.collect();
    let mut fields = PatchFields::default();
    for (name, value) in entries.iter().copied() {
        let others = || entries.iter().filter(move |(other, _)| *other != name);
        let unmeant = match info.unmeant_blanks.iter().find(|(field, _)| *field == name) {
            _ if !is_blank(value) => false,
            _ if blanks_count => false,
            Some((_, BlankContext::Anything)) => others().next().is_some(),
            Some((_, BlankContext::BlankOf(these))) => {
                others().any(|(other, value)| these.contains(other) && is_blank(*value))
            }
            None => info.blank_is_unset.contains(&name) && value.as_str().is_some(),
        };
        if unmeant {
            fields.unchanged.push(name.to_owned());
            continue;
        }
        fields.changed.push(name.to_owned());
        if is_blank(value) && others().next().is_some() {
            fields.cleared.push(name.to_owned());
        }
    }
    fields
}

/// Whether a value is an empty text or list.
fn is_blank(value: Node<'_>) -> bool {
    value.as_str() == Some("") || value.items().is_some_and(|mut items| items.next().is_none())
}

/// Warns of blank fields that had a value, whether they were left unchanged or cleared, and of enforced lists that are empty
/// now. Each field is warned of once.
pub(crate) fn blank_fields(
    info: &KindInfo,
    fields: &PatchFields,
    before: &dyn AnyResource,
    patch: &dyn AnyResource,
    after: &dyn AnyResource,
) -> Vec<String> {
    let had_value = |field: &&String| {
        let cleared = before.patched(patch, std::slice::from_ref(*field));
        cleared.is_ok_and(|cleared| !cleared.same(before))
    };
    // Many clients show only the first header of a name, so the fields that can be cleared come first.
    let (never_blank, clearable): (Vec<&String>, Vec<&String>) =
        fields.unchanged.iter().filter(had_value).partition(|field| info.blank_is_unset.contains(&field.as_str()));
    let unchanged = clearable.into_iter().chain(never_blank).map(|field| {
        let advice = match info.unmeant_blanks.iter().find(|(name, _)| name == field) {
            Some((_, BlankContext::Anything)) => "; to clear it, send only this field".to_owned(),
            Some((_, BlankContext::BlankOf(others))) => format!("; to clear it, omit a blank {}", list(others)),
            None => String::new(),
        };
        format!("`{field}` is blank and was left unchanged{advice}")
    });
    let emptied = emptied_lists(&fields.changed, before, after);
    let is_emptied = |field: &str| emptied.iter().any(|list| list.field == field);
    let cleared = fields.cleared.iter().filter(had_value).filter(|field| !is_emptied(field));
    let cleared = cleared.map(|field| format!("`{field}` is empty now"));
    let emptied = emptied.iter().map(|list| format!("`{}` is empty now, and the restriction is enforced", list.field));
    unchanged.chain(cleared).chain(emptied).collect()
}

/// Returns the lists in the changed fields that decide who has access, are enforced, and are empty now.
fn emptied_lists(changed: &[String], before: &dyn AnyResource, after: &dyn AnyResource) -> Vec<AccessList> {
    let (had, has) = (before.access_lists(), after.access_lists());
    let is_changed = |list: &AccessList| changed.iter().any(|field| top_field(list) == field.as_str());
    let is_empty_now = |list: &AccessList| match has.iter().find(|it| it.field == list.field) {
        Some(now) => now.enforced && now.length == 0,
        // The lists of a login go with its provider. Those of the next one decide instead.
        None => {
            let mut others = has.iter().filter(|it| top_field(it) == top_field(list)).peekable();
            others.peek().is_some_and(|it| it.enforced) && others.all(|it| it.length == 0)
        }
    };
    had.into_iter().filter(|list| list.length > 0 && is_changed(list) && is_empty_now(list)).collect()
}

/// The field or module that a list is in.
fn top_field(list: &AccessList) -> &str {
    list.field.split('.').next().unwrap_or_default()
}

/// Removes the immutable fields from those that a PATCH changes. Returns a fault for each whose value is not the
/// present one. Without a present value, the resource does not exist or cannot be read, and the commit says so. A secret is
/// always refused, because the answer would tell a right guess.
pub(crate) fn take_fixed(
    fields: &mut Vec<String>,
    info: &KindInfo,
    present: Option<&dyn AnyResource>,
    patch: Option<&dyn AnyResource>,
) -> Vec<Fault> {
    let mut faults = Vec::new();
    fields.retain(|field| {
        if !info.fixed.contains(&field.as_str()) {
            return true;
        }
        let unchangeable = || {
            let fault = Fault::new(Code::Immutable, format!("`{field}` cannot change after creation"));
            fault.at(field.as_str())
        };
        if present.is_some_and(|present| is_secret(present, field)) {
            faults.push(unchangeable().help(format!("omit `{field}`: it is never compared")));
            return false;
        }
        // Specs compare secrets in constant time.
        let patched = present.zip(patch).map(|(present, patch)| present.patched(patch, std::slice::from_ref(field)));
        if let (Some(Ok(patched)), Some(present)) = (patched, present)
            && !is_unchanged(patched.as_ref(), present)
        {
            faults.push(unchangeable());
        }
        false
    });
    faults
}

/// Whether a resource says the same as the present one, be it in other words (D28).
fn is_unchanged(patched: &dyn AnyResource, present: &dyn AnyResource) -> bool {
    patched.same(present) || patched.as_stored(present).is_some_and(|worded| worded.same(present))
}

/// Whether a field has a secret. A resource that cannot be written counts as secret.
fn is_secret(resource: &dyn AnyResource, field: &str) -> bool {
    match (resource.to_json(Secrets::Revealed), resource.to_json(Secrets::Masked)) {
        (Ok(revealed), Ok(masked)) => revealed.get(field) != masked.get(field),
        _ => true,
    }
}

/// Decodes a body and checks the Spec's rules; for a PATCH, only those of the `given` fields.
pub(crate) fn decode(kind: Kind, node: Node<'_>, given: Option<&[String]>) -> Decoded<Arc<dyn AnyResource>> {
    let info = kind.info();
    // A blank that is not given need not be a valid value.
    let blank = |field: &&&str| {
        given.is_some_and(|given| !given.iter().any(|it| it == **field)) && node.get(field).is_some_and(is_blank)
    };
    let blank: Vec<&str> = info.blank_is_unset.iter().filter(blank).chain(info.hidden).copied().collect();
    let fixed = if given.is_some() { info.fixed } else { &[][..] };
    let (spec, mut faults) = (info.decode_request)(node, &blank, &[fixed, info.hidden].concat());
    // As for other unknown fields, null stands for nothing.
    for field in info.hidden.iter().filter(|field| node.get(field).is_some_and(|value| !value.is_null())) {
        let fault = Fault::new(Code::UnknownField, format!("unknown field `{field}`")).of_key();
        faults.push(fault.at(*field).help("remove it; only manifests can set it"));
    }
    if let Some(spec) = &spec {
        let mut found = Faults::new();
        spec.check(&mut found);
        let checked = |fault: &Fault| match (given, fault.path.0.first()) {
            (Some(given), Some(Segment::Key(field))) => given.contains(field),
            // What fields must be together is checked once the others are known.
            (Some(_), _) => false,
            (None, _) => true,
        };
        add_new_faults(&mut faults, found.into_vec().into_iter().filter(checked));
    }
    (spec, faults)
}

/// Decodes a body and checks the module's rules.
pub(crate) fn decode_module(slot: &Slot, node: Node<'_>) -> Decoded<Arc<dyn AnyModule>> {
    let (module, mut faults) = (slot.decode_request)(node);
    if let Some(module) = &module {
        let mut found = Faults::new();
        module.check(&mut found);
        add_new_faults(&mut faults, found.into_vec());
    }
    (module, faults)
}

/// Returns the value, or all faults.
pub(crate) fn without_faults<T>(decoded: Option<T>, faults: Vec<Fault>) -> Result<T, ApiError> {
    match decoded {
        Some(decoded) if faults.is_empty() => Ok(decoded),
        _ => Err(ApiError::from_faults(faults)),
    }
}
