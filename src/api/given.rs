//! What a request body gives: its fields, without repeated path parameters, and the Spec or module they make (D6, D62).

use std::sync::Arc;

use super::{answer::ApiError, endpoint::Endpoint};
use crate::{
    model::{
        Kind,
        code::Code,
        decode::{Decoded, list},
        fault::{Fault, Faults, Path, Segment, add_untold},
        module::{AnyModule, Slot},
        node::Node,
        resource::{AnyResource, KindInfo},
    },
    text::printable,
};

/// Returns a body that is not null.
pub(super) fn body(node: Node) -> Result<Node, ApiError> {
    if node.is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    Ok(node)
}

/// Returns the body of a PUT. Without one, a module whose defaults are harmless is configured with them (D64).
pub(super) fn module_body(slot: &Slot, node: Node) -> Result<Node, ApiError> {
    if !node.is_null() {
        return Ok(node);
    }
    if slot.empty_is_harmless {
        return Ok(Node::Map(Vec::new()));
    }
    let message = match slot.required {
        [] => format!("a request body is required: the defaults of `{}` are rarely intended", slot.name),
        required => format!("a request body is required: `{}` needs {}", slot.name, list(required)),
    };
    let help =
        if slot.required.is_empty() { "use `{}` for the module with its defaults" } else { "send a JSON object" };
    Err(ApiError::new(Fault::new(Code::Syntax, message).help(help)))
}

/// Removes the path parameters that a body repeats: some clients send their whole argument. Returns a fault for each
/// value that differs from the path.
pub(super) fn take_parameters(node: &mut Node, endpoint: &Endpoint, values: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let Node::Map(entries) = node else { return faults };
    let names = endpoint.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    // The type of an event source is also a field, and compared like any other fixed field.
    let fixed = endpoint.kind.info().fixed;
    for (name, value) in names.zip(values).filter(|(name, _)| !fixed.contains(name)) {
        entries.retain(|(key, node)| {
            if key == name && !node.is_null() && node.as_str() != Some(value.as_str()) {
                let fault = Fault::new(Code::UnknownValue, format!("`{name}` must match the path"));
                let help = format!("use `{}`, or remove `{name}`", printable(value));
                faults.push(fault.help(help).at(Path::root().join(name)));
            }
            key != name
        });
    }
    faults
}

/// The fields that a PATCH changes: set, and not blank if blank means unset (D6).
pub(super) fn patched_fields(info: &KindInfo, node: &Node) -> Vec<String> {
    let entries = node.entries().unwrap_or_default().iter();
    let blank = |key: &String, value: &Node| info.blank_is_unset.contains(&key.as_str()) && value.as_str() == Some("");
    entries.filter(|(key, value)| !value.is_null() && !blank(key, value)).map(|(key, _)| key.clone()).collect()
}

/// Removes the immutable fields from those that a PATCH changes. Returns a fault for each whose value is not the
/// present one. Without a present value, the resource does not exist, and the commit says so.
pub(super) fn take_fixed(
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
        if let Some(present) = present {
            // Specs compare secrets in constant time.
            let patched = patch.and_then(|patch| present.patched(patch, std::slice::from_ref(field)).ok());
            if !patched.is_some_and(|patched| patched.same(present)) {
                let fault = Fault::new(Code::Immutable, format!("`{field}` cannot change after creation"));
                faults.push(fault.at(Path::root().join(field.as_str())));
            }
        }
        false
    });
    faults
}

/// Decodes a body and checks the Spec's rules; for a PATCH, only those of the `given` fields.
pub(super) fn decode(kind: Kind, node: &Node, given: Option<&[String]>) -> Decoded<Arc<dyn AnyResource>> {
    let info = kind.info();
    let blank = |field: &&&str| given.is_some_and(|given| !given.iter().any(|it| it == **field));
    let blank: Vec<&str> = info.blank_is_unset.iter().filter(blank).copied().collect();
    let fixed = if given.is_some() { info.fixed } else { &[][..] };
    let (spec, mut faults) = (info.decode_request)(node, &blank, fixed);
    if let Some(spec) = &spec {
        let mut found = Faults::new();
        spec.check(&mut found);
        let checked = |fault: &Fault| match (given, fault.path.0.first()) {
            (Some(given), Some(Segment::Key(field))) => given.contains(field),
            _ => true,
        };
        add_untold(&mut faults, found.into_vec().into_iter().filter(checked));
    }
    (spec, faults)
}

/// Decodes a body and checks the module's rules.
pub(super) fn decode_module(slot: &Slot, node: &Node) -> Decoded<Arc<dyn AnyModule>> {
    let (module, mut faults) = (slot.decode_request)(node);
    if let Some(module) = &module {
        let mut found = Faults::new();
        module.check(&mut found);
        add_untold(&mut faults, found.into_vec());
    }
    (module, faults)
}

/// Returns the value, or all faults.
pub(super) fn without_faults<T>(decoded: Option<T>, faults: Vec<Fault>) -> Result<T, ApiError> {
    match decoded {
        Some(decoded) if faults.is_empty() => Ok(decoded),
        _ => Err(ApiError::from_faults(faults)),
    }
}
