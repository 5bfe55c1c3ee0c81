//! The plan that deletes everything that a source owns (D108).
//!
//! It refuses more than a plan of manifests, which keeps resources in use: everything is deleted or nothing is. The
//! default limit of deletions does not apply, because the user has confirmed the name of the source. Deletions go
//! backward through the kinds, so that every prefix of the plan keeps references valid.

use std::{cmp::Reverse, sync::Arc};

use super::change::{Plan, named};
use super::deletion_budget::{BudgetSetting, DeletionBudget};
use super::near_source::near_source;
use crate::model::{Code, Diagnostic, Entry, Key, Snapshot};
use crate::syntax::text::printable;

/// Computes the plan that deletes all resources of a source. The user confirms the name of the source, so the default
/// limit, which never allows all of them, does not apply; an explicit limit does.
pub(crate) fn destroy(current: &Snapshot, source: &str, budget: DeletionBudget) -> Plan {
    let mut plan = Plan { base: current.revision, ..Plan::default() };
    let mut owned: Vec<&Arc<Entry>> = current.iter().filter(|entry| entry.is_owned_by(source)).collect();
    if owned.is_empty() {
        plan.refusals.push(owns_nothing(current, source));
        return plan;
    }
    // Backward through the kinds, so that every prefix of the plan keeps references valid.
    owned.sort_by_cached_key(|entry| (Reverse(entry.key.kind), current.full_name(entry)));
    for entry in &owned {
        let name = current.full_name(entry);
        let named = named(&entry.key, &name);
        plan.delete(entry, name, "remove `prevent_destroy` from its manifest, and reconcile the source first");
        let others = others_that_need(current, entry, source);
        if !others.is_empty() {
            let message = format!("{named} is in use by {}", current.names_of(&others));
            plan.refuse(Code::InUse, message, Code::InUse.info().cure);
        }
    }
    if budget != DeletionBudget::Normal {
        let check = "check the name of the source";
        plan.limit_deletions(|| owned.len(), budget, "the source", check, BudgetSetting::OfRun);
    }
    plan
}

/// The resources that reference a resource or are inside it, and that the source does not own.
fn others_that_need(current: &Snapshot, entry: &Entry, source: &str) -> Vec<Key> {
    let is_of_others = |key: &&Key| current.get(key).is_some_and(|entry| !entry.is_owned_by(source));
    let mut others: Vec<Key> = current.dependents(&entry.key).filter(is_of_others).cloned().collect();
    others.sort();
    others.dedup();
    others
}

/// The error of a name that no resource has: it is a mistake, or the source was destroyed before.
fn owns_nothing(current: &Snapshot, source: &str) -> Diagnostic {
    let message = format!("source `{}` owns nothing", printable(source));
    let otherwise = "check the name; `edgewright history --source NAME` shows whether it was destroyed before";
    Diagnostic::error(Code::NotFound, message).help(near_source(&[current], source, otherwise))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::plan::tests::{after, calls, claim, create_edge, create_route, protected, state};

    fn refusals(plan: &Plan) -> Vec<(String, &str)> {
        plan.refusals.iter().map(|refusal| (refusal.code.to_string(), refusal.message.as_str())).collect()
    }

    #[test]
    fn all_that_a_source_owns_is_deleted_and_nothing_else() {
        let state = state(&[
            create_edge("a", claim("shop", "a")),
            create_edge("b", claim("shop", "b")),
            create_route("a", "r", claim("shop", "r")),
            create_edge("other", claim("docs", "a")),
            create_edge("free", None),
        ]);
        let plan = destroy(&state, "shop", DeletionBudget::Normal);
        let expected = [
            "DELETE /edges/https/edghts_a/routes/edghtsrt_r",
            "DELETE /edges/https/edghts_a",
            "DELETE /edges/https/edghts_b",
        ];
        assert_eq!(calls(&plan), expected);
        assert_eq!(after(&state, &plan.operations()).len(), 2);
    }

    #[test]
    fn what_is_protected_or_used_by_others_is_named() {
        let state = state(&[
            create_edge("a", claim("shop", "a")),
            create_edge("b", protected("shop", "b")),
            create_route("a", "r", claim("team", "cart")),
            create_route("a", "s", None),
        ]);
        let plan = destroy(&state, "shop", DeletionBudget::Normal);
        let used = "HttpsEdge a (edghts_a) is in use by HttpsEdgeRoute a/cart of source `team` (edghtsrt_r), \
                    HttpsEdgeRoute edghtsrt_s";
        let expected = [
            ("ERR_EDGEWRIGHT_IN_USE".to_owned(), used),
            (
                "ERR_EDGEWRIGHT_PREVENT_DESTROY".to_owned(),
                "HttpsEdge b (edghts_b) has `prevent_destroy` and would be deleted",
            ),
        ];
        assert_eq!(refusals(&plan), expected);
    }

    #[test]
    fn a_limit_that_is_set_counts_and_an_unknown_name_is_an_error() {
        let state = state(&[create_edge("a", claim("shop", "a")), create_edge("b", claim("shop", "b"))]);
        let over = destroy(&state, "shop", DeletionBudget::Count(1));
        assert_eq!(refusals(&over).first().unwrap().0, "ERR_EDGEWRIGHT_TOO_MANY_DELETIONS");
        assert!(destroy(&state, "shop", DeletionBudget::Count(2)).refusals.is_empty());
        let unknown = destroy(&state, "shpo", DeletionBudget::Normal);
        assert_eq!(refusals(&unknown), [("ERR_EDGEWRIGHT_NOT_FOUND".to_owned(), "source `shpo` owns nothing")]);
        assert_eq!(unknown.refusals.first().unwrap().help.as_deref(), Some("did you mean `shop`?"));
    }
}
