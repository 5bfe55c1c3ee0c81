//! The deletion limit: a plan that deletes more must be confirmed (D41).
//!
//! # The problem
//!
//! A partial checkout, a wrong folder or an unmounted volume looks like manifests that declare less. The plan for it is
//! valid, and empties the gateway.
//!
//! # The idea
//!
//! A [`DeletionBudget`] compares what a plan deletes with what the source owns. The default lets ordinary changes through in
//! sources of any size: a few, or a share with a cap, but never everything.
//!
//! For example, 5 of 20 resources pass and 4 of 8 do not; 100 of 10,000 pass and 101 do not.
//!
//! # What it never does
//!
//! It does not count what is kept because another source uses it (`kept_resources.rs`). It is no protection of a single
//! resource: that is `prevent_destroy`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{change::Plan, effect::Effect};
use crate::model::Code;

/// The deletion limit of one plan. A replaced resource counts as deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeletionBudget {
    /// The default: three resources, or a quarter of the source's resources up to a hundred, but never all of them.
    #[default]
    Normal,
    /// A number of resources.
    Count(usize),
    /// A share of the source's resources.
    Percent(f64),
}

/// The default number of deletions allowed for a source of any size.
const FEW: usize = 3;
/// The default share of resources that may be deleted.
const PERCENT: f64 = 25.0;
/// The cap on the default share.
const MANY: usize = 100;
/// The number of deletions that a refusal names.
const NAMED: usize = 10;

impl DeletionBudget {
    fn allows(self, deleted: usize, owned: usize) -> bool {
        let percent = deleted as f64 * 100.0 / owned.max(1) as f64;
        match self {
            DeletionBudget::Count(most) => deleted <= most,
            DeletionBudget::Percent(most) => percent <= most,
            DeletionBudget::Normal => {
                let all = deleted == owned && owned > 1;
                !all && (deleted <= FEW || (percent <= PERCENT && deleted <= MANY))
            }
        }
    }
}

impl FromStr for DeletionBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number));
        let parsed = match text.strip_suffix('%') {
            Some(percent) => number(percent).map(DeletionBudget::Percent),
            None => text.parse().ok().map(DeletionBudget::Count),
        };
        parsed.ok_or_else(|| "expected a number such as 20, or a share of the source's resources such as 50%".into())
    }
}

/// The form in documents: empty for the default.
impl From<DeletionBudget> for String {
    fn from(budget: DeletionBudget) -> Self {
        match budget {
            DeletionBudget::Normal => String::new(),
            set => set.to_string(),
        }
    }
}

impl TryFrom<String> for DeletionBudget {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() { Ok(DeletionBudget::Normal) } else { text.parse() }
    }
}

impl fmt::Display for DeletionBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeletionBudget::Normal => write!(f, "{FEW}, or {PERCENT}% up to {MANY}"),
            DeletionBudget::Count(most) => write!(f, "{most}"),
            DeletionBudget::Percent(most) => write!(f, "{most}%"),
        }
    }
}

/// What sets the budget of a plan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BudgetSetting {
    /// An option of the run.
    OfRun,
    /// An option of the run, or a key of the source if a server makes the plan itself: then nobody runs it with an option.
    OfRunOrSource,
}

impl Plan {
    /// Refuses the plan if it deletes more of the `owned` resources of `owner` than the budget allows. The help says what to
    /// check first, and what sets the budget.
    pub(super) fn limit_deletions(
        &mut self,
        owned: impl FnOnce() -> usize,
        budget: DeletionBudget,
        owner: &str,
        check: &str,
        setting: BudgetSetting,
    ) {
        let deleted: Vec<_> =
            self.changes.iter().filter(|change| matches!(change.effect, Effect::Delete | Effect::Replaced)).collect();
        if deleted.is_empty() {
            return;
        }
        let owned = owned();
        if budget.allows(deleted.len(), owned) {
            return;
        }
        let mut names: Vec<String> =
            deleted.iter().take(NAMED).map(|change| format!("{} {}", change.key.kind, change.name)).collect();
        if deleted.len() > NAMED {
            names.push(format!("and {} more", deleted.len() - NAMED));
        }
        let all = deleted.len() == owned && owned > 1 && budget == DeletionBudget::Normal;
        let how_many = match all {
            true => format!("all {owned} resources of {owner}"),
            false => format!("{} of {owner}'s {owned} resources (limit: {budget})", deleted.len()),
        };
        let message = format!("the plan would delete {how_many}: {}", names.join(", "));
        let limit = deleted.len();
        let mut help = format!("{check}; to delete the resources, run again with --max-deletes {limit}");
        if setting == BudgetSetting::OfRunOrSource {
            help += &format!(", or set `max_deletes: {limit}` for a source that a server follows");
        }
        self.refuse(Code::TooManyDeletions, message, help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_deletions_pass_and_many_do_not() {
        for (deleted, owned) in [(1, 1), (1, 2), (2, 3), (3, 4), (3, 24), (5, 20), (100, 10_000)] {
            assert!(DeletionBudget::Normal.allows(deleted, owned), "{deleted} of {owned}");
        }
        for (deleted, owned) in [(2, 2), (3, 3), (4, 8), (12, 24), (24, 24), (101, 10_000)] {
            assert!(!DeletionBudget::Normal.allows(deleted, owned), "{deleted} of {owned}");
        }
    }

    #[test]
    fn a_budget_is_a_number_or_a_share() {
        assert_eq!("20".parse(), Ok(DeletionBudget::Count(20)));
        assert_eq!("12.5%".parse(), Ok(DeletionBudget::Percent(12.5)));
        for bad in ["", "-1", "101%", "many", "%"] {
            assert!(bad.parse::<DeletionBudget>().is_err(), "{bad}");
        }
    }
}
