//! A plan without the drift is judged by the state that it leaves, not by the one of the whole plan.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::manifests;
use crate::lint::Level;
use crate::model::{HttpsEdgeRoute, Kind, Name};
use crate::plan::DeletionBudget;
use crate::reconcile::prelude::*;
use crate::reconcile::run::options::{LintLevels, Options};
use crate::reconcile::run::report::RunReport;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;

const RESTRICTED: &str = ", ip_restriction: {ip_policy_ids: [ipp_office]}";

const TEST: &str = "---
apiVersion: edgewright/v1
kind: RouteTest
metadata: {name: office}
spec:
  requests:
    - {url: 'https://one.example.com/admin/a', expect: {modules_include: [ip_restriction]}}
";

/// Applies an edge with routes that are restricted, but for what others have changed.
fn run(store: &Store, routes: &[(&str, &str)], test: &str, lints: &LintLevels) -> RunReport {
    let routes: Vec<String> = routes
        .iter()
        .map(|(name, path)| {
            format!(
                "{{name: {name}, match_type: path_prefix, match: {path}, backend: {{backend_id: bkd_1}}{RESTRICTED}}}"
            )
        })
        .collect();
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: one}}\n\
         spec: {{hostports: ['one.example.com:443'], routes: [{}]}}\n{test}",
        routes.join(", ")
    );
    let budget = DeletionBudget::Percent(100.0);
    let options = Options { source: "shop".into(), lints: lints.clone(), budget, ..Options::new(manifests(text)) };
    super::run(store, options, DriftPolicy::Warn).report
}

/// A store where somebody has taken the restriction from the route `all`, beside the route `admin`.
fn drifted(test: &str, lints: &LintLevels) -> Store {
    let store = Store::open("memory:").unwrap();
    let report = run(&store, &[("all", "/"), ("admin", "/admin/")], test, lints);
    assert!(matches!(report, RunReport::Applied { revision: 1, .. }), "{report:?}");
    let state = store.snapshot();
    let host = state.iter().find(|it| it.name() == Some("all")).unwrap().key.clone();
    let slot = HttpsEdgeRoute::SLOTS.iter().find(|slot| slot.name == "ip_restriction").unwrap();
    store.commit(Author::Local, vec![Operation::DeleteModule { host, slot }]).unwrap();
    store
}

fn routes(store: &Store) -> usize {
    store.snapshot().iter().filter(|it| it.key.kind == Kind::HttpsEdgeRoute).count()
}

#[test]
fn what_the_rest_of_a_plan_opens_is_refused() {
    let levels = [("access-opened".to_owned(), Level::Deny)].into();
    let denied = LintLevels { levels, ..LintLevels::default() };
    let store = drifted("", &denied);
    let report = run(&store, &[("all", "/")], "", &denied);
    let RunReport::Failed(found) = &report else { panic!("{report:?}") };
    assert!(found.iter().any(|it| it.code == Name::Lint("access-opened")), "{found:?}");
    assert_eq!(routes(&store), 2, "nothing is applied");
    let report = run(&drifted("", &LintLevels::default()), &[("all", "/")], "", &LintLevels::default());
    assert!(matches!(report, RunReport::Drifted { applied: Some(_), drifted: 1, .. }), "{report:?}");
}

#[test]
fn tests_that_fail_on_the_rest_of_a_plan_prevent_it() {
    let lints = LintLevels::default();
    let store = drifted(TEST, &lints);
    let report = run(&store, &[("all", "/"), ("admin", "/admin/")], TEST, &lints);
    assert!(matches!(report, RunReport::Drifted { applied: None, drifted: 1, .. }), "{report:?}");
    let report = run(&store, &[("all", "/")], TEST, &lints);
    let RunReport::Invalid(planned) = &report else { panic!("{report:?}") };
    let is_of_test = |it: &Diagnostic| it.is_one_of(&[Code::RouteTestFailed]);
    assert!(planned.plan.is_none() && planned.diagnostics.iter().any(is_of_test), "{planned:?}");
    assert_eq!(routes(&store), 2, "nothing is applied");
}
