//! Help for modules that are written like a switch, such as `compression: yes`.

use super::slot::Slot;
use crate::model::diagnostics::{Code, Fault, Path};
use crate::syntax::yaml::{Node, NodeShape};

/// Replaces the help of each fault of a value that is a switch in the place of a module. `node` is what the faults are about.
pub(crate) fn advise(faults: Vec<Fault>, slots: &[Slot], node: Node<'_>) -> Vec<Fault> {
    let advised = |fault: Fault| {
        let names_field = |slot: &&Slot| fault.path == Path::from(slot.name);
        let help = slots.iter().find(names_field).filter(|_| fault.code == Code::WrongType).and_then(|slot| {
            let on = switch(node.get(slot.name)?)?;
            Some(switch_advice(slot, on))
        });
        match help {
            Some(help) => fault.help(help),
            None => fault,
        }
    };
    faults.into_iter().map(advised).collect()
}

/// Returns the form that enables or disables a module.
fn switch_advice(module: &Slot, on: bool) -> String {
    let name = module.name;
    match module.required {
        _ if on => module_advice(module),
        [] => format!("write `{name}: {{enabled: false}}`"),
        _ => format!("remove `{name}`"),
    }
}

/// Returns the form that enables a module, with the fields of its example if its defaults are not enough.
pub(crate) fn module_advice(module: &Slot) -> String {
    let name = module.name;
    if module.empty_is_harmless {
        return format!("write `{name}: {{}}`");
    }
    let example = (module.example)();
    let fields = example.as_object().into_iter().flatten();
    let fields: Vec<String> = fields.map(|(field, _)| format!("{field}: …")).collect();
    format!("set its fields, such as `{name}: {{{}}}`", fields.join(", "))
}

/// Whether a value turns something on or off.
fn switch(found: Node<'_>) -> Option<bool> {
    match found.shape() {
        NodeShape::Bool(on) => Some(on),
        NodeShape::String(text) => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "true" | "enabled" => Some(true),
            "no" | "off" | "false" | "disabled" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
