//! Files of other programs in a folder of manifests: one finding for each, rather than one for every field.

use super::origin::ManifestFile;
use crate::manifest::load::envelope::{API_VERSION, ENVELOPE};
use crate::manifest::load::kinds;
use crate::model::{Code, Diagnostic, Fault, nearest};
use crate::syntax::yaml::Node;

/// The start of the format of a saved plan.
const PLAN_FORMAT: &str = "edgewright/plan/";

/// The most fields of a document that may be misspelt ones of a manifest.
const MOST_MISSPELT: usize = 16;

/// How to keep a file from being read as a manifest.
const LEAVE_OUT: &str = "move the file out of the folder, or list it in the folder's `.edgewrightignore`";

/// The error for a file in which no document is meant to be a manifest.
pub(crate) fn foreign_file_error<'d>(
    file: &ManifestFile,
    mut documents: impl Iterator<Item = Node<'d>> + Clone,
) -> Option<Diagnostic> {
    let first = documents.clone().next()?;
    let is_foreign = |document: Node<'_>| match document.entries() {
        Some(_) => is_foreign(document),
        None => !has_name(&file.source.text),
    };
    if !documents.all(is_foreign) {
        return None;
    }
    let (reason, help) = match text(first, "format").starts_with(PLAN_FORMAT) {
        true => {
            ("a plan saved by `plan --out`".to_owned(), "apply it with `edgewright reconcile PATH --plan FILE`, or ")
        }
        false => (format!("no `apiVersion: {API_VERSION}`"), ""),
    };
    let error = Diagnostic::error(Code::ApiVersion, format!("not a manifest: {reason}")).at(file.place(0..0));
    Some(error.help(format!("{help}{LEAVE_OUT}")))
}

/// The fault of a document that has nothing of a manifest, not even misspelt, in a file with manifests.
pub(crate) fn foreign_document_fault(document: Node<'_>) -> Option<Fault> {
    let mut fields = document.entries()?.map(|(field, _)| field).take(MOST_MISSPELT);
    let is_near = |field: &str| nearest(field, ENVELOPE).is_some();
    if ENVELOPE.iter().any(|field| document.get(field).is_some()) || fields.any(is_near) {
        return None;
    }
    let message = "not an edgewright manifest: it has no `apiVersion` and no `kind`";
    let help = format!("remove the document, or begin it with `apiVersion: {API_VERSION}` and a `kind`");
    Some(Fault::new(Code::ApiVersion, message).at("apiVersion").of_key().help(help))
}

/// Whether a text has the start of a version of this program, or one of its kinds.
fn has_name(text: &str) -> bool {
    text.contains("edgewright/") || kinds::KINDS.iter().any(|kind| text.contains(kind.name))
}

/// Whether a mapping is not meant to be a manifest: it has nothing of one, or the version of another program.
fn is_foreign(document: Node<'_>) -> bool {
    let version = text(document, "apiVersion");
    !version.starts_with("edgewright")
        && kinds::find(text(document, "kind")).is_none()
        && (!version.is_empty() || document.get("spec").is_none())
}

/// Adds to the help of a syntax error how to leave the file out, if nothing in it is meant for this program.
pub(crate) fn with_ignore_help(help: &str, text: &str) -> String {
    match has_name(text) {
        true => help.to_owned(),
        false => format!("{help}; if the file is not a manifest, {LEAVE_OUT}"),
    }
}

/// Whether a diagnostic says that its file may not be a manifest.
pub(crate) fn is_about_foreign_file(diagnostic: &Diagnostic) -> bool {
    diagnostic.help.as_deref().is_some_and(|help| help.ends_with(LEAVE_OUT))
}

fn text<'a>(document: Node<'a>, field: &str) -> &'a str {
    document.get(field).and_then(Node::as_str).unwrap_or_default()
}
