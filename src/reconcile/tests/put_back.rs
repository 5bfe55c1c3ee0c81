//! What a run puts back although its policy leaves the changes of others: required modules, and both parts of a replacement.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::manifests;
use crate::model::{HttpsEdgeRoute, Kind};
use crate::plan::DeletionBudget;
use crate::reconcile::prelude::*;
use crate::reconcile::run::options::Options;
use crate::reconcile::run::planned_change::PlannedChange;
use crate::reconcile::run::report::RunReport;
use crate::reconcile::run::result::RunResult;
use crate::reconcile::run::rollback::Rollback;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::reconcile::{ApplyError, PlanResult};
use crate::store::Query;

const STAFF: &str = include_str!("../../../examples/storefront/certs/staff-devices.pem");
const PARTNER: &str = include_str!("../../../examples/storefront/certs/partner-devices.pem");
const WEB: &str = include_str!("../../../examples/storefront/certs/web-ca.pem");

const FIRST: &str = include_str!("../../lint/rules/examples/common_name_only.yaml");
const RENEWED: &str = include_str!("../../lint/rules/examples/wrong_certificate_purpose.yaml");

const ROUTE: &str = "apiVersion: edgewright/v1
kind: HttpsEdgeRoute
metadata: {name: admin}
spec: {edge: shop, match_type: path_prefix, match: /beta/admin/, description: a, backend: {backend_id: bkd_b}}
";

const OFFICE: &str = "---
apiVersion: edgewright/v1
kind: ModuleSet
metadata: {name: office}
spec: {ip_restriction: {ip_policy_ids: [ipp_office]}}
";

/// An edge that may require a module of its routes.
fn edge(description: &str, requires: bool) -> String {
    let (required, set) = if requires { ("  required_modules: [office]\n", OFFICE) } else { ("", "") };
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  description: {description}\n  \
         hostports: ['shop.example.com:443']\n  delegates_to: [{{source: beta, path_prefix: /beta/}}]\n{required}{set}"
    )
}

/// An edge that admits the clients of an authority.
fn edge_with_authority(pem: &str, description: &str) -> String {
    let pem: Vec<String> = pem.lines().map(|line| format!("    {line}")).collect();
    format!(
        "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {{name: staff}}\nspec:\n  ca_pem: |\n{}\n---\n\
         apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  description: {description}\n  \
         hostports: ['shop.example.com:443']\n  mutual_tls: {{certificate_authority_ids: [staff]}}\n",
        pem.join("\n")
    )
}

fn run(store: &Store, source: &str, text: &str, drift: DriftPolicy) -> RunResult {
    let budget = DeletionBudget::Percent(100.0);
    super::run(store, Options { source: source.into(), budget, ..Options::new(manifests(text)) }, drift)
}

/// Applies manifests, and returns the revision.
fn apply(store: &Store, source: &str, text: &str) -> u64 {
    let report = run(store, source, text, DriftPolicy::Enforce).report;
    assert!(matches!(report, RunReport::Applied { .. }), "{report:?}");
    store.snapshot().revision
}

fn roll_back(store: &Store, to: u64) {
    let target = store.snapshot_at(to).unwrap();
    let rollback = Rollback { target, source: None, budget: DeletionBudget::Percent(100.0) };
    let accept = |_: &Snapshot, planned: PlanResult| Ok::<_, ApplyError>(planned);
    let (_, revision) = rollback.apply(store, &Author::rollback_to(to, None), accept).unwrap();
    assert!(revision.is_some());
}

/// The plan that a run has applied.
fn applied(result: RunResult) -> Plan {
    match result.report {
        RunReport::Applied { plan, .. } | RunReport::Drifted { applied: Some((plan, _)), .. } => plan,
        report => panic!("{report:?}"),
    }
}

fn keys(store: &Store, kind: Kind) -> Vec<Key> {
    store.snapshot().iter().filter(|entry| entry.key.kind == kind).map(|entry| entry.key.clone()).collect()
}

/// The description of the route, and whether it has the module.
fn route(store: &Store) -> (String, bool) {
    let state = store.snapshot();
    let entry = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdgeRoute).unwrap();
    let route = entry.spec_as::<HttpsEdgeRoute>().unwrap();
    (route.description.clone(), route.ip_restriction.is_some())
}

/// A store in which a rollback has taken what the edge of `plat` requires away, also from the route of `beta`.
fn without_required() -> Store {
    let store = Store::open("memory:").unwrap();
    apply(&store, "plat", &edge("one", false));
    let open = apply(&store, "beta", ROUTE);
    apply(&store, "plat", &edge("one", true));
    apply(&store, "beta", ROUTE);
    assert_eq!(route(&store), ("a".to_owned(), true));
    roll_back(&store, open);
    assert_eq!(route(&store), ("a".to_owned(), false));
    store
}

#[test]
fn a_required_module_is_put_in_and_other_drift_stays() {
    for policy in [DriftPolicy::Warn, DriftPolicy::Off] {
        let store = without_required();
        let report = run(&store, "beta", ROUTE, policy).report;
        assert!(matches!(report, RunReport::InSync { .. }), "{report:?}");
        let host = keys(&store, Kind::HttpsEdgeRoute).remove(0);
        let by_hand = Arc::new(HttpsEdgeRoute { description: "by hand".into(), ..HttpsEdgeRoute::default() });
        let operations = vec![Operation::Patch { key: host, spec: by_hand, fields: vec!["description".into()] }];
        store.commit(Author::Local, operations).unwrap();
        apply(&store, "plat", &edge("two", true));

        let result = run(&store, "beta", ROUTE, policy);
        let told: Vec<String> = result.findings.drift.iter().map(ToString::to_string).collect();
        assert!(!told.iter().any(|it| it.contains("ip_restriction")), "{told:?}");
        assert_eq!((result.findings.drifted, told.len()), (1, usize::from(policy == DriftPolicy::Warn)));
        assert_eq!(applied(result).summary().drift, 1);
        assert_eq!(route(&store), ("by hand".to_owned(), true), "{policy}");
        let message = store.history(&Query::All, u64::MAX, 1).unwrap().remove(0).header.message;
        assert_eq!(message, "drift reverted: /ip_restriction of HttpsEdgeRoute shop/admin (set in revision 5)");

        let again = run(&store, "beta", ROUTE, policy);
        assert_eq!((again.findings.drifted, route(&store).1), (1, true));
    }
}

#[test]
fn a_required_module_is_put_in_although_a_rollback_left_the_manifests() {
    let store = without_required();
    // The source has not synced since the rollback.
    apply(&store, "plat", &edge("two", true));
    let result = run(&store, "beta", ROUTE, DriftPolicy::Off);
    assert_eq!((result.findings.drifted, applied(result).summary().change), (0, 1));
    assert_eq!(route(&store), ("a".to_owned(), true));
}

#[test]
fn what_an_edge_no_longer_requires_stays_away() {
    let store = without_required();
    let report = run(&store, "plat", &edge("two", true), DriftPolicy::Warn).report;
    assert!(matches!(report, RunReport::Drifted { applied: Some(_), drifted: 1, .. }), "{report:?}");
    let report = run(&store, "beta", ROUTE, DriftPolicy::Warn).report;
    assert!(matches!(report, RunReport::InSync { .. }), "{report:?}");
    assert_eq!(route(&store), ("a".to_owned(), false));
}

/// A store in which a rollback has undone the replacement of an authority, which an edge uses. Returns the old and the new one.
fn with_undone_replacement() -> (Store, Key, Key) {
    let store = Store::open("memory:").unwrap();
    let before = apply(&store, "shop", &edge_with_authority(STAFF, "one"));
    let old = keys(&store, Kind::CertificateAuthority).remove(0);
    apply(&store, "shop", &edge_with_authority(PARTNER, "one"));
    let new = keys(&store, Kind::CertificateAuthority).remove(0);
    roll_back(&store, before);
    assert_eq!(keys(&store, Kind::CertificateAuthority), std::slice::from_ref(&old));
    (store, old, new)
}

/// The authority of the edge, if it is the only one.
fn authority(store: &Store) -> Key {
    let state = store.snapshot();
    let edge = state.iter().find(|entry| entry.key.kind == Kind::HttpsEdge).unwrap();
    let (all, used) = (keys(store, Kind::CertificateAuthority), edge.lazy_spec.references());
    assert_eq!(all, used, "one authority, which the edge uses");
    all.into_iter().next().unwrap()
}

#[test]
fn an_undone_replacement_is_drift_that_is_left_or_put_back_as_a_whole() {
    for policy in [DriftPolicy::Warn, DriftPolicy::Off] {
        let (store, old, _) = with_undone_replacement();
        for description in ["two", "three"] {
            let result = run(&store, "shop", &edge_with_authority(PARTNER, description), policy);
            let left = (result.findings.drifted, result.findings.pending.change);
            assert_eq!((left, applied(result).summary().change), ((2, 0), 1), "the description");
            assert_eq!(authority(&store), old);
        }
    }
    let (store, _, new) = with_undone_replacement();
    let plan = applied(run(&store, "shop", &edge_with_authority(PARTNER, "two"), DriftPolicy::Enforce));
    let summary = plan.summary();
    assert_eq!((summary.replace, summary.drift, summary.conflict), (1, 2, 0), "the authority and the edge");
    assert_eq!(authority(&store), new);
}

/// The manifest of a certificate with a key of its own, and of an edge.
fn edge_with_certificate((certificate, key): &(String, String), description: &str) -> String {
    let indented = |pem: &str| pem.lines().map(|line| format!("    {line}\n")).collect::<String>();
    format!(
        "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {{name: shop}}\nspec:\n  certificate_pem: |\n{}  \
         private_key_pem: |\n{}---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec: \
         {{description: {description}, hostports: ['shop.example.com:443']}}\n",
        indented(certificate),
        indented(key)
    )
}

/// A certificate with its key, from a manifest.
fn certificate(manifest: &str) -> (String, String) {
    let pem = |label: &str| {
        let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
        let (_, rest) = manifest.split_once(&begin).unwrap();
        let lines = rest.split_once(&end).unwrap().0.lines().map(str::trim).filter(|line| !line.is_empty());
        format!("{begin}\n{}\n{end}", lines.collect::<Vec<_>>().join("\n"))
    };
    (pem("CERTIFICATE"), pem("PRIVATE KEY"))
}

#[test]
fn an_undone_renewal_of_a_certificate_is_left() {
    let store = Store::open("memory:").unwrap();
    let (first, renewed) = (certificate(FIRST), certificate(RENEWED));
    let before = apply(&store, "shop", &edge_with_certificate(&first, "one"));
    let old = keys(&store, Kind::TlsCertificate);
    apply(&store, "shop", &edge_with_certificate(&renewed, "one"));
    roll_back(&store, before);
    let result = run(&store, "shop", &edge_with_certificate(&renewed, "two"), DriftPolicy::Warn);
    let (drifted, pending) = (result.findings.drifted, result.findings.pending.change);
    assert_eq!((drifted, pending, applied(result).summary().change), (1, 0, 1), "the description");
    assert_eq!(keys(&store, Kind::TlsCertificate), old);
}

#[test]
fn a_replacement_that_the_manifests_have_changed_is_applied_with_what_refers_to_it() {
    for policy in [DriftPolicy::Warn, DriftPolicy::Off] {
        let (store, old, _) = with_undone_replacement();
        let result = run(&store, "shop", &edge_with_authority(WEB, "one"), policy);
        assert_eq!((result.findings.drifted, result.findings.pending.change), (0, 0));
        assert_eq!(applied(result).summary().replace, 1);
        assert_ne!(authority(&store), old);
    }
}
