//! The API keys: who owns them, what they may do, and which are used.

use maud::{Markup, html};

use super::actions::revoke_key::may_revoke;
use super::elements::{self, Tone, badge, choice, field, filters, name_or, time};
use super::page::{DashboardPage, PageContent, PageRequest};
use super::scan::{SearchWords, TableScan};
use crate::model::key::segment;
use crate::model::{ApiKey, Entry, KeyScope};
use crate::server::auth::permission::Intent;
use crate::server::http::api_error::ApiError;
use crate::server::prelude::*;

pub(super) static PAGE: DashboardPage = DashboardPage::new("/ui/keys", render).taking(&["search", "use", "after"]);

/// The most keys that the overview looks at, and the most that it shows.
const MOST_COUNTED: usize = 1000;
const MOST_USED: usize = 5;
/// How many seconds ago a key was used that counts as used just now.
const RECENT: i64 = 3600;
/// The choices of the filter by use.
const USES: [(&str, &str); 3] = [("", "Any"), ("recent", "In the last hour"), ("never", "Not since the start")];

fn render(request: &PageRequest) -> Result<PageContent, ApiError> {
    let words = SearchWords::new(&request.value("search"));
    let wanted_use = request.value("use");
    let key_use = &request.app.access.key_use;
    let recent = request.now.as_second().saturating_sub(RECENT);
    let is_used = |entry: &Entry| match wanted_use.as_str() {
        "recent" => key_use.last(&entry.key.id).is_some_and(|at| at.as_second() >= recent),
        "never" => key_use.last(&entry.key.id).is_none(),
        _ => true,
    };
    let keep = |entry: &Entry| {
        let key = entry.spec_as::<ApiKey>();
        let texts = key.map(|key| [key.description.as_str(), key.owner_id.as_str()]).unwrap_or_default();
        is_used(entry) && words.are_in(texts.into_iter().chain([entry.key.id.as_str()]))
    };
    let before = request.number("after").unwrap_or(u64::MAX);
    let scan = TableScan::new(request.snapshot.newest_first(Kind::ApiKey, None, before), keep);
    let next = scan.last.as_ref().map(|last| last.order.to_string());
    // Roles are those of owners, which only some may read.
    let shows_roles = request.may(&Intent::Owners);
    let revokes = request.may(&Intent::Change);
    let columns = ["Key", "Owner"].into_iter().chain(shows_roles.then_some("Role"));
    let columns = columns.chain(["Scope", "Last use", "Created"]).chain(revokes.then_some("Actions"));
    let columns: Vec<&str> = columns.collect();
    let since = key_use.since.to_string();
    let body = html! {
        (filters("Keys", &html! {
            (field(request, "Search", "search", "description, owner or ID"))
            (choice(request, "Use", "use", &USES))
        }))
        p { "Uses are those of this server since its start " (time(&since, request.now)) "." }
        @if !shows_roles {
            p { "A key without a scope (–) may do everything that the role of its owner allows. Only admins see the roles." }
        }
        (scan.shown(request, &words, ("key", "There is no key."), next, |rows| {
            elements::table("Keys", &columns, rows.iter().filter_map(|entry| row(request, entry, shows_roles, revokes)))
        }))
    };
    Ok(PageContent { title: "Keys".to_owned(), section: "Keys", body })
}

/// The keys that were used last, and how many were not, on the overview.
pub(super) fn in_use(request: &PageRequest) -> Markup {
    let key_use = &request.app.access.key_use;
    let newest = request.snapshot.newest_first(Kind::ApiKey, None, u64::MAX).take(MOST_COUNTED);
    let (mut used, mut unused) = (Vec::new(), 0_usize);
    for entry in newest {
        match key_use.last(&entry.key.id) {
            Some(at) => used.push((at, entry)),
            None => unused += 1,
        }
    }
    used.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    html! {
        ul.brief {
            @for (at, entry) in used.iter().take(MOST_USED) {
                li {
                    @let (key, id) = (entry.spec_as::<ApiKey>(), entry.key.id.as_str());
                    b title=(id) { (name_or(key.map_or("", |key| key.description.as_str()), id)) }
                    @if let Some(key) = key { " of " (key.owner_id) }
                    ", " (time(&at.to_string(), request.now))
                }
            }
        }
        p { a href={ (request.root) "keys?use=never" } { (number_of(unused, "key")) " not used" } " since this server started "
            (time(&key_use.since.to_string(), request.now)) "." }
    }
}

fn row(request: &PageRequest, entry: &Entry, shows_role: bool, revokes: bool) -> Option<Vec<Markup>> {
    let (key, id) = (entry.spec_as::<ApiKey>()?, &entry.key.id);
    let used = request.app.access.key_use.last(id);
    let role = rules::key_role(&request.snapshot, key);
    let named = html! {
        @if !key.description.is_empty() { (key.description) " " }
        code { (id.as_str()) }
        @if *id == request.caller.key { " " (badge(Tone::Neutral, "you")) }
    };
    let scope = html! { @match (&key.scope, role.filter(|_| shows_role)) {
        (Some(scope), _) => (scope_of(request, scope)),
        (None, Some(role)) => (role.without_scope()),
        (None, None) => "–",
    } };
    let mut row = vec![named, html! { (key.owner_id) }];
    row.extend(shows_role.then(|| html! { (role.map(|role| role.as_str()).unwrap_or("–")) }));
    let used = html! { @match used { Some(at) => (time(&at.to_string(), request.now)), None => "not used", } };
    row.extend([scope, used, time(&entry.created_at.to_string(), request.now)]);
    row.extend(revokes.then(|| {
        html! { @if may_revoke(request, id).is_ok() {
            a href=(request.to(format_args!("keys/{}/revoke", segment(id.as_str())))) { "Revoke" }
        } }
    }));
    Some(row)
}

/// The rights of a scope, each on a line.
fn scope_of(request: &PageRequest, scope: &KeyScope) -> Markup {
    let rights = [("plan", &scope.plan), ("apply", &scope.apply), ("kinds", &scope.kinds), ("hosts", &scope.hosts)];
    let reads_only = !scope.secrets && !scope.global && rights.iter().all(|(_, items)| items.is_empty());
    let lists = rights.into_iter().chain([("from", &scope.addresses)]).filter(|(_, items)| !items.is_empty());
    html! {
        @if reads_only { div { "reads only" } }
        @for (name, items) in lists { div { (name) " " code { (items.join(", ")) } } }
        @if scope.secrets { div { "secrets" } }
        @if scope.global { div { "global" } }
        @if !scope.expires_at.is_empty() {
            div {
                @if scope.is_expired(request.now) { (badge(Tone::Bad, "expired")) " " } @else { "ends " }
                (time(&scope.expires_at, request.now))
            }
        }
    }
}
