//! The table of docs/explanation/tenancy.md, row by row: a team with a key for its own source changes nothing that the requests of other
//! sources meet, unless these consent or an admin says so (D112).

pub(super) mod gateway;
mod hosts;
mod ids;
mod kinds;
mod ownership;
mod traffic;

use gateway::Gateway;

use crate::support::program::Folder;

/// Tries what a row of the table is about.
type Case = fn(&Gateway);

/// A case for each row.
const CASES: [(&str, Case); 27] = [
    ("hostport", traffic::hostport),
    ("hostport-without-source", traffic::hostport_without_source),
    ("new-host", traffic::new_host),
    ("route-without-source", traffic::route_without_source),
    ("route", traffic::route),
    ("longer-prefix", traffic::longer_prefix),
    ("required-module", traffic::required_module),
    ("certificate", traffic::certificate),
    ("shared-certificate", traffic::shared_certificate),
    ("certificate-without-source", traffic::certificate_without_source),
    ("name", ownership::name),
    ("id", ownership::id),
    ("transfer", ownership::transfer),
    ("adoption", ownership::adoption),
    ("release", ownership::release),
    ("global-kind", kinds::global_kind),
    ("api-key", kinds::api_key),
    ("event-source", kinds::event_source),
    ("event-subscription", kinds::event_subscription),
    ("tls-edge", kinds::tls_edge),
    ("module-set", kinds::module_set),
    ("deletion", ownership::deletion),
    ("tls-termination", ownership::tls_termination),
    ("route-test", traffic::route_test),
    ("invariant", traffic::invariant),
    ("rollback", ownership::rollback),
    ("history", ownership::history),
];

#[test]
fn each_row_of_the_table_has_a_case() {
    let table = Folder::new().ok("explain tenancy").out;
    let rows: Vec<&str> =
        table.lines().skip(2).map(|row| row.trim_start_matches("| `").split('`').next().unwrap()).collect();
    assert_eq!(rows, CASES.map(|(name, _)| name));
}

#[test]
fn no_source_changes_what_the_requests_of_another_one_meet() {
    for (name, case) in CASES {
        println!("{name}");
        case(&Gateway::new());
    }
}
