//! The endpoints of resources and their modules.

mod api_keys;
mod bad_input;
mod certificates;
mod clients;
mod conditions;
mod edges;
mod filters;
mod implicit;
mod invariants;
mod ip_restrictions;
mod limits;
mod lists;
mod login;
mod modules;
mod queries;
mod round_trip;
mod routes;
mod saml;
mod traffic;

use super::support::row::Row;

/// All rows.
pub(super) fn rows() -> Vec<Row> {
    [
        api_keys::rows(),
        bad_input::rows(),
        certificates::rows(),
        clients::rows(),
        conditions::rows(),
        edges::rows(),
        filters::rows(),
        implicit::rows(),
        invariants::rows(),
        ip_restrictions::rows(),
        limits::rows(),
        lists::rows(),
        login::rows(),
        modules::rows(),
        queries::rows(),
        routes::rows(),
        saml::rows(),
        traffic::rows(),
    ]
    .concat()
}
