//! Null modules, lists and entries of maps, which look as if they configured something (D38).

use super::Reader;
use crate::manifest::prelude::*;
use crate::manifest::resolve::origin::DocumentPart;
use crate::model::module::switch::module_advice;
use crate::model::secrets::redact::quotable_key;
use crate::model::{MOST_FAULTS, Path, Segment, Slot};
use crate::syntax::yaml::Node;
use serde::de::DeserializeOwned;

impl Reader<'_> {
    /// Warns about `compression:` without a value. If fields of the module are beside it instead of below it, the help of their
    /// faults says so, and there is no warning: it is one mistake.
    pub(super) fn warn_of_null_modules(
        &mut self,
        kind: Kind,
        node: Node<'_>,
        part: DocumentPart,
        faults: &mut [Fault],
    ) {
        // Hardly any value is null, so the slots need not be looked up one by one.
        if node.entries().into_iter().flatten().all(|(_, value)| !value.is_null()) {
            return;
        }
        for slot in kind.info().slots.iter().filter(|slot| node.get(slot.name).is_some_and(Node::is_null)) {
            // Further errors of the file are only counted, and reading the mapping again takes time.
            if self.findings.errors < MOST_FAULTS && has_fields_beside(slot, node, faults) {
                continue;
            }
            let message = format!("`{}` is null, so it configures nothing", slot.name);
            let fault = Fault::new(Code::NullModule, message).at(slot.name).of_key();
            let fault = fault.help(format!("{}, or remove the key", module_advice(slot)));
            self.findings.warning(|| self.origin.part(part).warning(fault));
        }
    }

    /// Warns about null entries of the maps that were decoded last, such as a header without a value, which is not added. Their
    /// paths are below a path of a part.
    pub(super) fn warn_of_null_entries(&mut self, part: DocumentPart, path: &Path) {
        for entry in self.values.take_null_entries() {
            let Some(Segment::Key(key)) = entry.0.last() else { continue };
            let message = format!("`{}` is null, so it is left out", printable(&quotable_key(key)));
            let fault = Fault::new(Code::NullModule, message).at(entry).of_key().under(path);
            let fault = fault.help("write `\"\"` for an empty value, or remove the key");
            self.findings.warning(|| self.origin.part(part).warning(fault));
        }
    }

    /// Decodes a list that only manifests have.
    pub(super) fn list<T>(&mut self, node: Node<'_>, part: DocumentPart, name: &str) -> Vec<T>
    where
        T: DeserializeOwned + Serialize,
    {
        self.warn_of_null_list(node, part, name);
        self.field(node, part, name)
    }

    /// Warns about `routes:` without a value, which may be a truncated file.
    pub(super) fn warn_of_null_list(&mut self, node: Node<'_>, part: DocumentPart, name: &str) {
        if node.get(name).is_some_and(Node::is_null) {
            let fault = Fault::new(Code::NullModule, format!("`{name}` is null, so the list is empty"));
            let fault = fault.at(name).of_key();
            let fault = fault.help(format!("use `{name}: []` if that is intended, or remove the key"));
            self.findings.warning(|| self.origin.part(part).warning(fault));
        }
    }
}

/// Whether unknown fields beside a null module are fields of that module. Their faults get the help to indent them.
fn has_fields_beside(slot: &Slot, node: Node<'_>, faults: &mut [Fault]) -> bool {
    let is_unknown = |fault: &&mut Fault| fault.code == Code::UnknownField && fault.path.0.len() == 1;
    if !faults.iter_mut().any(|fault| is_unknown(&fault)) {
        return false;
    }
    // The mapping, read as if it were the module: what that knows belongs to it.
    let (_, foreign) = (slot.decode)(node, None);
    let mut found = false;
    for fault in faults.iter_mut().filter(is_unknown) {
        if foreign.iter().all(|it| it.code != Code::UnknownField || it.path != fault.path) {
            fault.help = Some(format!("indent it further than `{}:`, to which it belongs", slot.name));
            fault.meant = None;
            found = true;
        }
    }
    found
}
