//! The dashboard: pages for people at `/ui/`, rendered on the server (D116).
//!
//! # The problem
//!
//! Who asks at three in the morning whether a route is live, from which commit, and who opened it, does not want to write
//! queries. A page that loads everything into a browser answers late for a gateway with a million routes, and a page with
//! rules of its own about who may see what forgets one of them.
//!
//! # The idea
//!
//! A page is a [`DashboardPage`]: its path, the intent that the corresponding request of the API has,
//! and a function from a request to markup. [`page`] checks the session and the permission of every page, in the one place
//! that decides for the API too, and renders outside the threads that serve requests. A page reads one snapshot and a
//! bounded part of it: tables have pages and cursors, and a search ends after a fixed time and can be continued.
//!
//! A browser without scripts can use everything. The script only fetches a page again after a change ([`live`]) and
//! replaces the parts that differ.
//!
//! For example, `GET /ui/edges/edghts_1` with the cookie of a viewer's session: the session is opened and its key looked
//! up, `Intent::Read` is allowed, and the edge is drawn from the current snapshot, with every secret masked.
//!
//! # What it never does
//!
//! No page has a secret, whoever reads it. No text of others becomes markup: the templates escape all of it, and the
//! policy of the pages forbids code and styles that are not files of this server. None changes how a page is displayed: [`layout`]
//! escapes direction marks in whole pages. A page changes nothing. What people may change here is a short list ([`ACTIONS`]),
//! everything else has Git; each has a page that shows what it will do, and a form that does it as a request of the API does
//! ([`actions`]).

mod access;
pub(in crate::server) mod access_effect;
mod actions;
mod assets;
mod certificates;
mod diff;
mod drift;
mod edge;
mod edges;
mod elements;
mod health;
mod keys;
mod layout;
mod live;
mod overview;
mod page;
mod plans;
mod revision;
mod revisions;
mod route;
mod routes;
mod scan;
mod session;
mod source;
mod sources;
#[cfg(test)]
mod tests;
mod trace;

use axum::Router;
use axum::response::Redirect;
use axum::routing::{get, post};

use crate::server::auth::oidc::connector::CALLBACK;
use crate::server::state::AppState;
use actions::action::{self, DashboardAction};
use actions::{revoke_key, rollback, source_actions};
use health::server_health;
use page::DashboardPage;
use plans::kept_plan;
use session::{provider_sign_in, sign_in};

pub(in crate::server) use page::no_page;

/// All pages that need a session.
static PAGES: [&DashboardPage; 18] = [
    &overview::PAGE,
    &sources::PAGE,
    &source::PAGE,
    &source_actions::SUSPEND_PAGE,
    &source_actions::RESUME_PAGE,
    &source_actions::SYNC_PAGE,
    &kept_plan::PAGE,
    &edges::PAGE,
    &edge::PAGE,
    &routes::PAGE,
    &route::PAGE,
    &revisions::PAGE,
    &revision::PAGE,
    &certificates::PAGE,
    &trace::PAGE,
    &keys::PAGE,
    &revoke_key::PAGE,
    &server_health::PAGE,
];

/// All forms that change something.
static ACTIONS: [&DashboardAction; 5] =
    [&source_actions::SUSPEND, &source_actions::RESUME, &source_actions::SYNC, &rollback::ACTION, &revoke_key::ACTION];

/// The routes of the dashboard.
pub(in crate::server) fn routes() -> Router<AppState> {
    let mut router = Router::new()
        .route("/ui", get(Redirect::to("ui/")))
        .route("/ui/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route("/ui/sign-out", post(sign_in::sign_out))
        .route("/ui/login/oidc", get(provider_sign_in::begin))
        .route(CALLBACK, get(provider_sign_in::finish))
        .route("/ui/live", get(live::stream))
        .merge(assets::routes());
    for page in PAGES {
        router = router.route(page.path, page::serve(page));
    }
    router = router.merge(rollback::routes());
    for action in ACTIONS {
        router = router.route(action.path, action::serve(action));
    }
    router
}
