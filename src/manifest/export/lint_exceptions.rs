//! Annotations for resources that the API accepts and a lint denies: an export must plan without changes, so it lowers
//! the level of the lint there.

use std::collections::HashMap;

use crate::lint::{self, World};
use crate::manifest::load::reader::LINT_ANNOTATION;
use crate::manifest::prelude::*;
use crate::model::Entry;

/// The field of the metadata.
const ANNOTATIONS: &str = "annotations";
/// The comment above it.
const COMMENT: &str =
    "  # The API accepts this, but edgewright denies it by default. Fix it, then remove the annotation.\n";

/// The lints by the resources that they refuse.
pub(super) type LintExceptions = HashMap<Key, BTreeSet<&'static str>>;

/// Finds the exported resources that lints deny by default, next to the resources of other sources.
pub(super) fn find_lint_exceptions(exported: &[&Arc<Entry>], others: &[Arc<Entry>], now: Timestamp) -> LintExceptions {
    let desired = |entry: &Entry| {
        let claim = entry.claim.clone().unwrap_or_default();
        let (key, spec) = (entry.key.clone(), Arc::clone(entry.spec()));
        (key.clone(), Desired::new(key, spec, claim))
    };
    let desired: BTreeMap<Key, Desired> = exported.iter().map(|entry| desired(entry)).collect();
    let judged: Vec<&Desired> = desired.values().collect();
    let world = World {
        judged: &judged,
        is_whole: true,
        others,
        manifests: &ManifestFacts::default(),
        now,
        expiry_days: lint::EXPIRY_DAYS,
        allowed_labels: None,
    };
    let skipped = lint::LINTS.iter().filter(|lint| lint.default != Level::Deny).map(|lint| lint.name);
    let skipped: Vec<&'static str> = skipped.collect();
    let mut found = LintExceptions::new();
    for finding in lint::run(&world, &skipped, None).in_order() {
        // Which of two duplicates is reported depends on the order in the files.
        let related = finding.related.as_ref().map(|(subject, ..)| subject);
        for subject in std::iter::once(&finding.subject).chain(related) {
            if let Subject::Resource(key) = subject {
                found.entry(key.clone()).or_default().insert(finding.lint);
            }
        }
    }
    found
}

/// Adds the annotations of a document to its metadata.
pub(super) fn annotate(metadata: &mut Map<String, Value>, lints: &BTreeSet<&'static str>) {
    if lints.is_empty() {
        return;
    }
    let levels = lints.iter().map(|lint| (format!("{LINT_ANNOTATION}{lint}"), Value::from(Level::Warn.as_str())));
    metadata.insert(ANNOTATIONS.into(), Value::Object(levels.collect()));
}

/// The text of a document with a comment above its annotations. Exports have no others.
pub(super) fn with_comment(text: String) -> String {
    let line = format!("\n  {ANNOTATIONS}:\n    {LINT_ANNOTATION}");
    match text.find(&line) {
        Some(at) => {
            let (head, rest) = text.split_at(at + 1);
            format!("{head}{COMMENT}{rest}")
        }
        None => text,
    }
}
