//! Report formats, one file each (D30). See docs/reference/formats.md.
//!
//! A format is a function from a [`Report`] to text. All of them get the same report, whose plan has no secrets any
//! more, so that a new format cannot show one, and none reads anything else, so that a report of a server and a local
//! one look alike. What several formats say in the same words is in two files: `verdict` has the lines about a report
//! as a whole, and `diagnostics` the order and the places of findings. `overview` is the text of a large plan.

mod diagnostics;
pub(crate) mod github;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod overview;
pub(crate) mod sarif;
pub(crate) mod text;
pub(crate) mod verdict;

use super::report::Report;
use crate::model::{JsonError, names::names};

/// A report format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// For a terminal: only the plan, because diagnostics go to stderr. Of one that invariants refuse, its effect on requests.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For a comment on a pull request.
    Markdown,
    /// For the log of a GitHub workflow.
    Github,
    /// For code scanning.
    Sarif,
    /// For test reports.
    Junit,
}

names! {
    Format: Text "text", Json "json", Markdown "markdown", Github "github", Sarif "sarif", Junit "junit"
}

/// Renders the report. Text has colour codes; the caller strips them if needed.
pub fn render(format: Format, report: &Report) -> Result<String, JsonError> {
    Ok(match format {
        Format::Text => text::render(report),
        Format::Json => json::render(report)?,
        Format::Markdown => markdown::render(report),
        Format::Github => github::render(report),
        Format::Sarif => sarif::render(report),
        Format::Junit => junit::render(report)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::effect::Effect;
    use crate::plan::redacted_plan::{RedactedChange, RedactedPlan};

    #[test]
    fn text_is_the_plan_and_nothing_else() {
        let change = RedactedChange {
            effect: Effect::Create,
            kind: "HttpsEdge".into(),
            name: "shop".into(),
            id: "edghts_1".into(),
            notes: Vec::new(),
            calls: Vec::new(),
            drift: None,
        };
        let plan = Some(RedactedPlan { base: 1, unchanged: 2, changes: vec![change], ..RedactedPlan::default() });
        let report = Report { plan, ..Report::default() };
        assert_eq!(render(Format::Text, &report).ok(), report.plan.as_ref().map(text::plan_text));
    }
}
