//! The report of a plan on a page: what it opens and closes, what stands in its way, and its changes.

use maud::{Markup, html};

use crate::model::Drift;
use crate::plan::behaviour;
use crate::plan::exposure::ACCESS_OPENED;
use crate::plan::format::json::{Item, ReportDocument};
use crate::plan::redacted_plan::RedactedChange;
use crate::plan::{Effect, Summary};
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::server::dashboard::diff;
use crate::server::dashboard::elements::{Tone, badge};
use crate::server::dashboard::layout::prose;
use crate::server::dashboard::sources::finding;

/// A plan, of which a page shows some changes.
pub(in crate::server::dashboard) struct PlanPreview {
    /// The report, without the changes that are not shown.
    pub report: ReportDocument,
    /// The number of all changes.
    pub all: usize,
    /// What they are.
    pub summary: Summary,
    /// How requests are treated differently: the sentence about all of it, and the lines.
    behaviour: Option<(String, Vec<String>)>,
    /// The lines that say what closes.
    closed: Vec<String>,
    /// The lines that say what nothing handles any longer.
    stopped: Vec<String>,
}

impl PlanPreview {
    /// Keeps so many changes from a position on. A plan can have a million: most are gone before the page has a place.
    pub(in crate::server::dashboard) fn new(mut report: ReportDocument, from: usize, most: usize) -> Self {
        let (mut all, mut behaviour) = (0, None);
        let (mut closed, mut stopped) = (Vec::new(), Vec::new());
        let mut summary = Summary::default();
        if let Some(plan) = &mut report.plan {
            (all, summary) = (plan.changes.len(), plan.summary());
            behaviour = plan.behaviour.take().map(|diff| {
                closed = behaviour::closing_lines(&diff);
                stopped = behaviour::stopping_lines(&diff);
                let lines = behaviour::lines(&diff).into_iter().map(|(_, line)| line);
                let lines = lines.filter(|line| !closed.contains(line) && !stopped.contains(line));
                (behaviour::summary(&diff, plan.is_empty(), &plan.uncompared()), lines.collect())
            });
            plan.changes.drain(..from.min(all));
            plan.changes.truncate(most);
            plan.changes.shrink_to_fit();
        }
        Self { report, all, summary, behaviour, closed, stopped }
    }

    /// The changes that are shown.
    pub(in crate::server::dashboard) fn shown(&self) -> &[RedactedChange] {
        self.report.plan.as_ref().map(|plan| plan.changes.as_slice()).unwrap_or_default()
    }

    /// What the plan opens, closes and stops serving, what stands in its way, and which requests it treats differently. The
    /// manifests are at a commit; empty if that is not known.
    pub(in crate::server::dashboard) fn findings(&self, commit: &str, forge: &ForgeLinks) -> Markup {
        let Self { report, behaviour, closed, stopped, .. } = self;
        let above = closed.len() + stopped.len();
        let opened: Vec<&Item> = report.diagnostics.iter().filter(|item| item.code == ACCESS_OPENED).collect();
        html! {
            @if !opened.is_empty() { h2 { "It opens access" } }
            @for item in &opened { (finding(item, commit, forge)) }
            @if !closed.is_empty() { h2 { "It closes access" } ul { @for line in closed { li { (prose(line)) } } } }
            @if !stopped.is_empty() { h2 { "It stops serving" } ul { @for line in stopped { li { (prose(line)) } } } }
            @if !report.refusals.is_empty() { h2 { "It cannot be applied" } }
            @for item in &report.refusals { (finding(item, commit, forge)) }
            @for item in report.diagnostics.iter().filter(|item| item.code != ACCESS_OPENED) { (finding(item, commit, forge)) }
            @if let Some((summary, lines)) = behaviour {
                p { (prose(summary)) @if above > 0 { " " (above) " of them " (if above == 1 { "is" } else { "are" }) " listed above." } }
                @if !lines.is_empty() { ul { @for line in lines { li { (prose(line)) } } } }
            }
        }
    }

    /// The changes that are shown, below a headline.
    pub(in crate::server::dashboard) fn changes(&self) -> Markup {
        html! {
            @if !self.shown().is_empty() { h2 { "Changes" } }
            @for change in self.shown() { (planned(change)) }
        }
    }
}

fn planned(change: &RedactedChange) -> Markup {
    let (tone, text) = match change.effect {
        Effect::Create => (Tone::Good, "create"),
        Effect::Replace => (Tone::Warning, "replace"),
        Effect::Change => (Tone::Neutral, "change"),
        Effect::Adopt => (Tone::Neutral, "adopt"),
        Effect::Rename => (Tone::Neutral, "rename"),
        Effect::Protect => (Tone::Neutral, "change protection"),
        Effect::Delete => (Tone::Bad, "delete"),
        Effect::Replaced => (Tone::Bad, "delete the replaced"),
    };
    let shows_id = |text: &str| text.contains(&change.id);
    let is_shown = shows_id(&change.name) || change.calls.iter().any(|call| shows_id(&call.path));
    html! {
        article.change {
            h3 { (badge(tone, text)) " " (change.kind) " " (change.name) }
            @if !is_shown { p { code { (change.id) } } }
            @for note in &change.notes { p { (prose(note)) } }
            @for field in change.drift.iter().flat_map(Drift::changed) { p { (prose(&field.to_string())) } }
            @for call in &change.calls {
                @let is_resource = call.path.ends_with(&change.id);
                // The headline of an unnamed resource has all that its path has.
                @if !is_resource || !shows_id(&change.name) { p { code { (call.method) " " (call.path) } } }
                @let what = if is_resource { "resource" } else { "module" };
                @match call.lines.as_slice() {
                    [] => {},
                    [line] if line == "- {}" => p { "The " (what) " is removed. It had no settings." },
                    [line] if line == "+ {}" => p { "The " (what) " is added without settings." },
                    lines => (diff::signed(lines)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::plan::redacted_plan::Call;

    #[test]
    fn what_has_no_settings_is_removed_in_words() {
        let (kind, name, id) = ("HttpsEdge".to_owned(), "shop".to_owned(), "edghts_1".to_owned());
        let call = |path: &str, lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Call { method: "DELETE".to_owned(), path: path.to_owned(), body: Value::Null, lines }
        };
        let calls = vec![
            call("/edges/https/edghts_1/compression", &["- {}"]),
            call("/edges/https/edghts_1/tls_termination", &["- min_version: '1.2'"]),
            call("/edges/https/edghts_1", &["- {}"]),
        ];
        let change = RedactedChange { effect: Effect::Change, kind, name, id, notes: vec![], calls, drift: None };
        let shown = planned(&change).into_string();
        assert!(shown.contains("/compression</code></p><p>The module is removed. It had no settings.</p>"), "{shown}");
        assert!(shown.contains("<span class=\"removed\">- min_version: '1.2'\n</span>"), "{shown}");
        assert!(shown.contains("/edghts_1</code></p><p>The resource is removed. It had no settings.</p>"), "{shown}");
        assert!(!shown.contains("<code>edghts_1</code>"), "the paths have the ID: {shown}");
    }
}
