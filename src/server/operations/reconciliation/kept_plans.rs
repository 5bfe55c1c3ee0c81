//! The plans of dry runs that have a page in the dashboard, in memory (D116).
//!
//! A plan is kept without secrets, as the client got it. Its ID cannot be guessed, and still permits nothing: the page asks
//! whether its reader may plan the source. Nothing is on disk: a restart forgets all plans, and a new one takes the room of others.

use crate::cache::{WeightedCache, weighted};
use crate::model::{JsonError, json};
use crate::plan::format::json::ReportDocument;
use crate::server::operations::history::document::HistoryAuthor;
use crate::server::prelude::*;
use crate::store::ids;

/// The memory for all plans.
const MOST_BYTES: u64 = 16 << 20;
/// The memory for one of them. A larger one is not kept.
const MOST_OF_PLAN: usize = 4 << 20;
/// No change has fewer bytes, so that a plan of a million changes is not written to find its size.
const LEAST_OF_CHANGE: usize = 64;

/// A plan, and who made it.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptPlan {
    pub source: String,
    /// The Git commit of the manifests, or empty.
    pub commit: String,
    /// The first line of the commit's message, or empty.
    pub commit_message: String,
    /// Who planned it.
    pub by: HistoryAuthor,
    /// When it was planned.
    pub at: String,
    /// The report of the dry run.
    pub report: ReportDocument,
}

/// The plans by their IDs, as JSON.
pub(crate) struct KeptPlans(WeightedCache<String, Arc<[u8]>>);

impl Default for KeptPlans {
    fn default() -> Self {
        Self(weighted(MOST_BYTES, |id, plan| id.len() + plan.len()))
    }
}

impl KeptPlans {
    /// Keeps a plan, and returns its ID. Returns none for one that is too large.
    pub(super) fn keep(&self, plan: &KeptPlan) -> Result<Option<String>, JsonError> {
        let changes = plan.report.plan.as_ref().map_or(0, |plan| plan.changes.len());
        if changes > MOST_OF_PLAN / LEAST_OF_CHANGE {
            return Ok(None);
        }
        let bytes = json::bytes(plan, Secrets::Masked)?;
        if bytes.len() > MOST_OF_PLAN {
            return Ok(None);
        }
        let id = Id::derived("plan_", [ids::random_secret().as_slice()]).to_string();
        self.0.insert(id.clone(), bytes.into());
        Ok(Some(id))
    }

    /// Returns the plan with an ID, if it is still kept.
    pub(in crate::server) fn get(&self, id: &str) -> Option<KeptPlan> {
        let bytes = self.0.get(id)?;
        serde_json::from_slice(&bytes).ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::Diagnostic;
    use crate::plan::report::Report;

    fn plan(message: &str) -> KeptPlan {
        let diagnostics = vec![Diagnostic::warning(Code::UncomparedSecrets, message)];
        KeptPlan {
            source: "shop".to_owned(),
            commit: String::new(),
            commit_message: String::new(),
            by: HistoryAuthor::default(),
            at: String::new(),
            report: ReportDocument::from_report(&Report { diagnostics, ..Report::default() }),
        }
    }

    #[test]
    fn a_plan_is_found_by_its_id_and_all_of_them_keep_to_the_bound() {
        let plans = KeptPlans::default();
        let first = plans.keep(&plan("first")).unwrap().unwrap();
        let second = plans.keep(&plan("second")).unwrap().unwrap();
        assert_ne!(first, second);
        assert_eq!(plans.get(&first).unwrap().report, plan("first").report);
        assert!(plans.get("plan_0").is_none());
        let large = "x".repeat(MOST_OF_PLAN);
        assert_eq!(plans.keep(&plan(&large)).unwrap(), None);
        assert!(plans.get(&first).is_some() && plans.get(&second).is_some(), "one that is too large displaces nothing");
        let large = large.split_at(MOST_OF_PLAN / 2).0;
        let kept: Vec<String> = (0..20).map(|_| plans.keep(&plan(large)).unwrap().unwrap()).collect();
        assert!(plans.get(kept.last().unwrap()).is_some(), "the newest is there");
        assert!(plans.0.weight() <= MOST_BYTES);
    }
}
