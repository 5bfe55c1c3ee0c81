//! A rollback: first what its plan does, then the button that applies this plan and no other, and then its changes.

use axum::Router;
use axum::http::request::Parts;
use axum::routing::get;
use maud::{Markup, html};

use super::action::{ActionDone, ActionForm, DANGER, DashboardAction, form};
use crate::model::author::RejectedManifests;
use crate::plan::DeletionBudget;
use crate::reconcile::run::rollback::manifests_left;
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::reconcile::sync_loop::known_condition::synced_manifests;
use crate::server::auth::session_credentials::request_headers;
use crate::server::dashboard::elements::{field, nothing, owner, time};
use crate::server::dashboard::page::{
    DashboardPage, Here, PageContent, PageRequest, admitted, failed, reader_of_error, rendered, to_sign_in,
};
use crate::server::dashboard::plans::preview::PlanPreview;
use crate::server::handler_prelude::*;
use crate::server::operations::planned_change::ChangeRun;
use crate::server::operations::rollback::{self, RollbackRequest};
use crate::server::resources::at_revision;

const PATH: &str = "/ui/rollback";

/// Everybody who reads can plan a rollback, like over the API.
static PAGE: DashboardPage =
    DashboardPage::new(PATH, without_plan).taking(&["to", "source", "max_deletes"]).before_form(Intent::Propose);

pub(in crate::server::dashboard) static ACTION: DashboardAction =
    DashboardAction { path: PATH, intent: Intent::Propose, make: |form| Box::pin(apply(form)) };

/// The changes that are shown. The command line shows the others.
const MOST_CHANGES: usize = 50;
/// The text before a revision is entered.
const NONE: &str =
    "Enter a revision. The page then shows what going back to it would change. Nothing changes before you confirm it.";
/// How to delete more than the limit allows. The advice for the command line names an option.
const RAISE_LIMIT: &str = "check the revision; to delete the resources, raise the deletion limit above";

/// The route of the page.
pub(in crate::server::dashboard) fn routes() -> Router<AppState> {
    Router::new().route(PATH, get(show))
}

async fn show(State(app): State<AppState>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let here = Here::new(&parts);
    let shown = answer(app.clone(), &mut parts, &here).await;
    shown.unwrap_or_else(|error| failed(error, &here, reader_of_error(&app, &parts)))
}

async fn answer(app: AppState, parts: &mut Parts, here: &Here) -> ApiResult {
    let Some((request, renewed)) = admitted(&PAGE, app, parts, here).await? else { return Ok(to_sign_in(here)) };
    if request.value("to").is_empty() {
        return rendered(&PAGE, request, renewed, without_plan).await;
    }
    let wanted = wanted(|name| request.value(name), true, None)?;
    let headers = request_headers(&request.app.access.sessions, &request.session, &parts.headers)?;
    let (app, caller) = (request.app.clone(), request.caller.clone());
    let (store, to, source) = (Arc::clone(&app.served.store), wanted.to, wanted.source.clone());
    let shown = move |ChangeRun { mut report, outcome }| {
        let over_limit = Code::TooManyDeletions.to_string();
        for item in report.refusals.iter_mut().filter(|item| item.code == over_limit) {
            item.help = Some(RAISE_LIMIT.to_owned());
        }
        let plan = PlanPreview::new(report, 0, MOST_CHANGES);
        let mut preview = RollbackPreview { plan, outcome, sources: BTreeMap::new() };
        if preview.may_change() {
            preview.sources = left_sources(&store, to, &source)?;
        }
        Ok(preview)
    };
    let shown = rollback::create_and(app, caller, headers, wanted, shown).await?;
    let render = move |request: &PageRequest| Ok(content(html! { (choice(request)) (preview(request, &shown)) }));
    rendered(&PAGE, request, renewed, render).await
}

/// The preview of a rollback.
struct RollbackPreview {
    plan: PlanPreview,
    /// The digest of the plan's result, which the form carries.
    outcome: String,
    /// The sources whose state it changes, and whether it brings back what the manifests of their last sync declare.
    sources: BTreeMap<String, bool>,
}

impl RollbackPreview {
    /// Whether the rollback may change something: a plan without changes may hide those of secrets.
    fn may_change(&self) -> bool {
        let uncompared = Code::UncomparedSecrets.to_string();
        self.plan.all > 0 || self.plan.report.diagnostics.iter().any(|item| item.code == uncompared)
    }
}

/// The sources whose state a rollback changes, and whether it brings back what the manifests of their last sync declare.
fn left_sources(store: &Store, to: u64, source: &str) -> Result<BTreeMap<String, bool>, ApiError> {
    // The plan was made from this state, which may be gone since.
    let Ok(target) = store.snapshot_at(to) else { return Ok(BTreeMap::new()) };
    let source = Some(source).filter(|source| !source.is_empty());
    let left = manifests_left(store, &store.snapshot(), &target, source)?;
    let synced = synced_manifests(store);
    let mut sources = BTreeMap::new();
    for RejectedManifests { source, .. } in left {
        let declared = synced.get(&source).map(|synced| store.declared_by(&source, synced)).transpose()?.flatten();
        let is_declared = declared.is_some() && declared == Some(store.declared_digest(&source, &target)?);
        sources.insert(source, is_declared);
    }
    Ok(sources)
}

/// The request of the API for the values of a query.
fn wanted(value: impl Fn(&str) -> String, dry_run: bool, expect: Option<String>) -> Result<RollbackRequest, ApiError> {
    let fault = |field: &str, code: Code, message: String| ApiError::new(Fault::new(code, message).at(field));
    let to = at_revision::number(&value("to"))
        .ok_or_else(|| fault("to", Code::Parameter, "`to` must be the number of a revision".to_owned()))?;
    let max_deletes = DeletionBudget::try_from(value("max_deletes"))
        .map_err(|reason| fault("max_deletes", Code::InvalidFormat, format!("`max_deletes`: {reason}")))?;
    Ok(RollbackRequest { to, source: value("source"), dry_run, behaviour: dry_run, max_deletes, expect })
}

fn content(body: Markup) -> PageContent {
    PageContent { title: "Roll back".to_owned(), section: "Revisions", body }
}

fn without_plan(request: &PageRequest) -> Result<PageContent, ApiError> {
    Ok(content(html! { (choice(request)) (nothing(NONE)) }))
}

/// The form that asks for a plan. It changes nothing.
fn choice(request: &PageRequest) -> Markup {
    html! {
        form.filters aria-label="Rollback" method="get" {
            label { "To revision " input type="text" name="to" value=(request.value("to")) inputmode="numeric" required; }
            (field(request, "Only source", "source", "all"))
            (field(request, "Deletion limit", "max_deletes", &DeletionBudget::Normal.to_string()))
            button { "Show what it would change" }
        }
    }
}

fn preview(request: &PageRequest, preview: &RollbackPreview) -> Markup {
    let may_change = preview.may_change();
    let RollbackPreview { plan, outcome, sources: left } = preview;
    let hidden = plan.all.saturating_sub(plan.shown().len());
    let (to, source) = (request.value("to"), request.value("source"));
    let applying = if source.is_empty() { Intent::Change } else { Intent::Apply(&source) };
    html! {
        h2 { "What it would change" }
        p { @if source.is_empty() { "All resources" } @else { "The resources of source " b { (source) } }
            " as they were at revision " (to) @if let Some(undone) = undone(&to, request.snapshot.revision) { ", which undoes " (undone) } "; API keys and their owners stay as they are. " (plan.summary.changes()) "." }
        (plan.findings("", &ForgeLinks::default()))
        @if !may_change && plan.report.refusals.is_empty() { (nothing("There is nothing to do: this is the state already.")) }
        @if !left.is_empty() {
            h2 { "Effect on sources" }
            ul { @for (source, is_declared) in left { li { b { (source) } ": " (outlook(request, source, *is_declared)) } } }
        }
        @if may_change && plan.report.refusals.is_empty() && request.may(&applying) { (button(request, outcome)) }
        (plan.changes())
        @if hidden > 0 {
            p { "and " (hidden) " more: " code { "edgewright rollback --to " (to) " --dry-run" } " shows all." }
        }
    }
}

/// The revisions that a rollback undoes; none if it is to the current one.
fn undone(to: &str, current: u64) -> Option<String> {
    match at_revision::number(to)?.checked_add(1)? {
        first if first > current => None,
        first if first == current => Some(format!("revision {first}")),
        first => Some(format!("revisions {first} to {current}")),
    }
}

/// The next step of a source whose state a rollback changes: to what its manifests declare, or without these.
fn outlook(request: &PageRequest, source: &str, is_declared: bool) -> Markup {
    let handle = request.app.sources.registry.find(source);
    let suspension = handle.as_ref().map(|handle| handle.suspension());
    html! {
        @match &suspension {
            Some(Some(suspension)) => {
                "suspended by " (owner(request, &suspension.by)) " " (time(&suspension.since.to_string(), request.now)) ". It stays so, and is "
                @if is_declared { "in sync once it is resumed: its manifests declare this." }
                @else { "held once it is resumed, until its manifests change." }
            },
            Some(None) if is_declared => "in sync afterwards: its manifests declare this.",
            Some(None) => "held: the server does not apply these manifests again until they change.",
            None if request.app.forwarder.is_needed() => "held until its manifests change, if the server that writes follows it.",
            None => "not followed by this server: applying the same manifests again reverts this rollback.",
        }
    }
}

fn button(request: &PageRequest, outcome: &str) -> Markup {
    let fields = html! {
        input type="hidden" name="expect" value=(outcome);
        p { "This applies exactly the plan on this page as a new revision. If the store changes first, nothing is applied." }
    };
    let text = format!("Roll back to revision {}", request.value("to"));
    form(request, &fields, (DANGER, text.as_str()), "revisions")
}

async fn apply(form: ActionForm) -> Result<ActionDone, ApiError> {
    let expect = form.field("expect");
    if expect.is_empty() {
        return Err(ApiError::with_code(Code::Required, "look at the plan first, and apply it from that page"));
    }
    let wanted = wanted(|name| form.value(name), false, Some(expect))?;
    let ActionForm { app, caller, headers, .. } = form;
    let applied = rollback::create_and(app, caller, headers, wanted, |run| Ok(run.report.applied)).await?;
    let page = applied.map_or_else(|| "revisions".to_owned(), |revision| format!("revisions/{revision}"));
    Ok(ActionDone { page, note: None })
}
