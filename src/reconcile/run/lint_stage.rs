//! Runs the lints, and places their findings. One in a module of a module set is reported once, at its line in the set,
//! and not for every route that uses the set.

use std::collections::HashSet;

use super::options::LintLevels;
use super::plan_result::exposures;
use crate::lint::{self, Finding, JudgedParts, Level, Subject, World};
use crate::manifest::Origins;
use crate::manifest::resolve::Resolution;
use crate::model::{FaultTarget, Name, Path, Place};
use crate::reconcile::prelude::*;

/// The most routes that a finding in a module set lists.
const MOST_USES: usize = 10;

/// The identity of a finding in a module set: the lint, the set, the field and the message.
type SetFinding = (&'static str, String, Path, FaultTarget, String);

/// A field of a subject.
type FieldOf = (Subject, Path);

/// Runs the lints on the resources that are not faulty, as they are judged `now`. Levels come from the manifests, the
/// configuration or the defaults, in this order; some document sets each of the lints `raised` to `warn` or `deny`. `is_whole`
/// says whether the resources of the source are all there are. `memo` has the parts that the last run of a server on the same
/// source has judged. Also returns the resources with findings at level `deny`.
pub(super) fn findings(
    resolved: &Resolution,
    raised: &BTreeSet<&'static str>,
    is_whole: bool,
    now: Timestamp,
    lints: &LintLevels,
    memo: Option<&mut JudgedParts>,
) -> (Vec<Diagnostic>, Vec<Key>) {
    let judged = resolved.sound_resources();
    let world = World {
        judged: &judged,
        is_whole,
        others: &resolved.others,
        manifests: &resolved.facts,
        now,
        expiry_days: lints.expiry_days(),
        allowed_labels: lints.allowed_labels.as_ref(),
    };
    let (mut shown, mut denied) = (Vec::new(), Vec::new());
    let mut of_sets: BTreeMap<SetFinding, Vec<&Finding>> = BTreeMap::new();
    let all = lint::run(&world, &allowed_everywhere(raised, lints), memo);
    let mut found = all.in_order();
    found.retain(|finding| !resolved.skips_lint(finding.lint, &finding.subject, &finding.path));
    drop_redundant(resolved, lints, &mut found);
    for finding in found {
        if let Some(set) = causing_set(resolved, finding) {
            if resolved.is_surrounding(&set) {
                continue;
            }
            let key = (finding.lint, set, finding.path.clone(), finding.target, finding.message.clone());
            of_sets.entry(key).or_default().push(finding);
            continue;
        }
        let Some(severity) = severity(resolved, lints, &finding.subject, finding.lint) else { continue };
        if let (Severity::Error, Subject::Resource(key)) = (severity, &finding.subject) {
            denied.push(key.clone());
        }
        shown.extend(resource_diagnostic(resolved, finding, severity));
    }
    for ((lint, set, ..), found) in of_sets {
        let Some(severity) = severity(resolved, lints, &Subject::ModuleSet(set.clone()), lint) else { continue };
        if severity == Severity::Error {
            denied.extend(found.iter().filter_map(|finding| match &finding.subject {
                Subject::Resource(key) => Some(key.clone()),
                Subject::ModuleSet(_) => None,
            }));
        }
        shown.extend(set_diagnostic(resolved, &set, &found, severity));
    }
    (shown, denied)
}

/// The lints whose findings are allowed in every resource: some of them find something in most.
fn allowed_everywhere(raised: &BTreeSet<&'static str>, lints: &LintLevels) -> Vec<&'static str> {
    let names = lint::LINTS.iter().map(|lint| lint.name).filter(|name| !raised.contains(name));
    names.filter(|name| level_of(None, lints, name) == Level::Allow).collect()
}

/// Drops each finding that has one cause with a more helpful one, unless that is of a lower level. The two are about the
/// same place, or each is related to the place of the other.
fn drop_redundant(resolved: &Resolution, lints: &LintLevels, found: &mut Vec<&Finding>) {
    let level = |finding: &Finding| severity(resolved, lints, &finding.subject, finding.lint);
    let place = |finding: &Finding| (finding.subject.clone(), finding.path.clone());
    let related =
        |finding: &Finding| finding.related.as_ref().map(|(subject, path, _)| (subject.clone(), path.clone()));
    let yielding: HashSet<&'static str> = found.iter().filter_map(|finding| finding.yields_to).collect();
    let mut better: HashMap<(&'static str, FieldOf, Option<FieldOf>), Severity> = HashMap::new();
    for finding in found.iter().filter(|finding| yielding.contains(finding.lint)) {
        let Some(severity) = level(finding) else { continue };
        better.insert((finding.lint, place(finding), None), severity);
        if let Some(other) = related(finding) {
            better.insert((finding.lint, other, Some(place(finding))), severity);
        }
    }
    found.retain(|finding| {
        let Some(lint) = finding.yields_to else { return true };
        let better = better.get(&(lint, place(finding), related(finding)));
        better.is_none_or(|better| level(finding).is_some_and(|own| *better > own))
    });
}

/// The module set that alone causes a finding.
fn causing_set(resolved: &Resolution, finding: &Finding) -> Option<String> {
    if finding.of_whole || finding.in_document {
        return None;
    }
    let set = resolved.set_module(&finding.subject, &finding.path)?.set;
    let is_inside = finding.related.as_ref().is_none_or(|(subject, path, _)| {
        *subject == finding.subject && resolved.set_module(subject, path).is_some_and(|other| other.set == set)
    });
    is_inside.then_some(set)
}

/// The severity of a lint's findings about a subject; `None` if they are allowed.
fn severity(resolved: &Resolution, lints: &LintLevels, subject: &Subject, lint: &str) -> Option<Severity> {
    let own = resolved.levels(subject).and_then(|levels| levels.get(lint)).copied();
    level_of(own, lints, lint).severity()
}

/// The level of a lint where manifests set this one, if any.
fn level_of(own: Option<Level>, lints: &LintLevels, lint: &str) -> Level {
    let default = || lint::find(lint).map_or(Level::Warn, |lint| lint.default);
    own.or_else(|| lints.levels.get(lint).copied()).unwrap_or_else(default)
}

/// Judges what a plan opens and weakens by the levels of the lints. What is denied is refused.
pub(super) fn judge_exposure(origins: &Origins, lints: &LintLevels, plan: &mut Plan) {
    for warning in &mut plan.effects.warnings {
        let own = origins.get(&warning.key).and_then(|it| it.facts.levels.get(warning.lint)).copied();
        warning.level = level_of(own, lints, warning.lint);
    }
    let denied = exposures(plan, origins, Severity::Error);
    plan.refusals.extend(denied);
}

fn resource_diagnostic(resolved: &Resolution, finding: &Finding, severity: Severity) -> Option<Diagnostic> {
    let (place, field) = match finding.in_document {
        true => (resolved.origin(&finding.subject)?.document().place(&finding.path, finding.target), None),
        false => resolved.place_inside(&finding.subject, &finding.path, finding.target)?,
    };
    let related = related(resolved, finding).into_iter().chain(field).collect();
    Some(diagnostic(finding, finding.message.clone(), severity, place, related))
}

/// The findings of the routes that use a set, as one at its line in the set.
fn set_diagnostic(resolved: &Resolution, set: &str, found: &[&Finding], severity: Severity) -> Option<Diagnostic> {
    let first = found.first()?;
    let place = resolved.place(&first.subject, &first.path, first.target)?;
    let mut routes: Vec<&Subject> = found.iter().map(|finding| &finding.subject).collect();
    routes.sort_unstable();
    routes.dedup();
    let uses = routes.iter().filter_map(|route| {
        let module = resolved.set_module(route, &first.path)?;
        resolved.place_of_use(route, &module)
    });
    let mut uses: Vec<Place> = uses.collect();
    uses.sort_by(|a, b| (&a.file.name, a.span.start).cmp(&(&b.file.name, b.span.start)));
    let uses = uses.into_iter().take(MOST_USES).map(|place| (place, "used here".to_owned()));
    let related = related(resolved, first).into_iter().chain(uses).collect();
    let users = number_of(routes.len(), "route");
    let message = format!("{} (in ModuleSet `{set}`, used by {users})", first.message);
    Some(diagnostic(first, message, severity, place, related))
}

fn related(resolved: &Resolution, finding: &Finding) -> Option<(Place, String)> {
    let (subject, path, label) = finding.related.as_ref()?;
    Some((resolved.place(subject, path, FaultTarget::Value)?, (*label).to_owned()))
}

fn diagnostic(
    finding: &Finding,
    message: String,
    severity: Severity,
    place: Place,
    related: Box<[(Place, String)]>,
) -> Diagnostic {
    let cure = || lint::find(finding.lint).map(|lint| lint.cure).unwrap_or_default();
    let help = finding.help.unwrap_or_else(cure);
    Diagnostic { severity, related, ..Diagnostic::error(Name::Lint(finding.lint), message).help(help).at(place) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::load;
    use crate::manifest::tree::{Sent, SentFile};

    #[test]
    fn lints_run_if_their_findings_are_seen_anywhere() {
        let skipped = |annotation: &str, lints: &LintLevels| {
            let annotation = format!("{{edgewright/lint.{annotation}}}");
            let metadata = format!("{{name: a, annotations: {annotation}}}");
            let text = format!(
                "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {metadata}\nspec: {{hostports: ['a.example.com:443']}}\n"
            );
            let tree = Sent::new(vec![SentFile::new("a.yaml", text)], None);
            allowed_everywhere(&load(&tree).raised_lints, lints)
        };
        let default = LintLevels::default();
        let weak_key = skipped("weak-key: deny", &default);
        assert!(weak_key.contains(&"unprotected-route") && !weak_key.contains(&"weak-key"), "{weak_key:?}");
        assert_eq!(skipped("unprotected-route: allow", &default), weak_key);
        assert!(!skipped("unprotected-route: warn", &default).contains(&"unprotected-route"));
        let levels = [("unprotected-route", Level::Deny), ("weak-key", Level::Allow)];
        let levels = levels.into_iter().map(|(name, level)| (name.to_owned(), level)).collect();
        let configured = LintLevels { levels, ..LintLevels::default() };
        assert!(skipped("open-login: allow", &configured).contains(&"weak-key"));
        assert!(!skipped("weak-key: warn", &configured).contains(&"weak-key"));
        assert!(!skipped("weak-key: warn", &configured).contains(&"unprotected-route"));
    }
}
