//! `unknown-label`: a label key that the configuration file does not allow.

use super::prelude::*;

pub(crate) static LINT: Lint = Lint {
    name: "unknown-label",
    default: Level::Allow,
    summary: "A label key is not in the configuration file's list of allowed keys.",
    why: "Labels are searched by key, so nobody finds a resource with a misspelt one. Without a list in the \
          configuration file, every key is allowed.",
    cure: "Use an allowed key, or add the key to the list in the configuration file.",
    check: LintCheck::Manifests(check),
};

fn check(world: &World<'_>, findings: &mut Findings) {
    let Some(allowed) = world.allowed_labels else { return };
    let mut unknown: Vec<_> = world.manifests.labels.iter().filter(|(label, _)| !allowed.contains(*label)).collect();
    unknown.sort_unstable_by_key(|(label, _)| *label);
    for (label, subjects) in unknown {
        let near = findings.suggestions.nearest(label, allowed.iter().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        let message = format!("label `{}` is not allowed{hint}", printable(label));
        let path = Path::from(["metadata", "labels", label.as_str()]);
        let mut subjects: Vec<&Subject> = subjects.iter().collect();
        subjects.sort_unstable();
        for subject in subjects {
            let finding = findings.about(subject.clone(), path.clone(), message.clone());
            (finding.in_document, finding.target) = (true, FaultTarget::Key);
        }
    }
}
