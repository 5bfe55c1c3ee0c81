//! Suspending, resuming and syncing a source: what each will do, and the form that does it.

use maud::{Markup, html};

use super::action::{ActionDone, ActionForm, DashboardAction, PRIMARY, form};
use crate::model::key::segment;
use crate::server::dashboard::elements::{commit, counted, due, owner, time};
use crate::server::dashboard::page::{DashboardPage, PageContent, PageRequest};
use crate::server::handler_prelude::*;
use crate::server::operations::checks::RequestBody;
use crate::server::operations::sources::drift_view::DriftRepair;
use crate::server::operations::sources::view::{SourceSuspend, SourceView};
use crate::server::operations::sources::{self, SourceInPath, view};

const APPLY: Intent<'static> = Intent::Apply("");
const SUSPEND_PATH: &str = "/ui/sources/{p0}/suspend";
const RESUME_PATH: &str = "/ui/sources/{p0}/resume";
const SYNC_PATH: &str = "/ui/sources/{p0}/sync";

pub(in crate::server::dashboard) static SUSPEND_PAGE: DashboardPage =
    DashboardPage::new(SUSPEND_PATH, before_suspend).before_form(APPLY).of_writer();
pub(in crate::server::dashboard) static RESUME_PAGE: DashboardPage =
    DashboardPage::new(RESUME_PATH, before_resume).before_form(APPLY).of_writer();
pub(in crate::server::dashboard) static SYNC_PAGE: DashboardPage =
    DashboardPage::new(SYNC_PATH, before_sync).before_form(APPLY).of_writer();

pub(in crate::server::dashboard) static SUSPEND: DashboardAction =
    DashboardAction { path: SUSPEND_PATH, intent: APPLY, make: |form| Box::pin(suspend(form)) };
pub(in crate::server::dashboard) static RESUME: DashboardAction =
    DashboardAction { path: RESUME_PATH, intent: APPLY, make: |form| Box::pin(resume(form)) };
pub(in crate::server::dashboard) static SYNC: DashboardAction =
    DashboardAction { path: SYNC_PATH, intent: APPLY, make: |form| Box::pin(sync(form)) };

/// How long a suspension lasts, in seconds: the value in the form, and its words.
const SPANS: [(&str, &str); 6] = [
    ("3600", "for 1 hour"),
    ("14400", "for 4 hours"),
    ("86400", "for 1 day"),
    ("259200", "for 3 days"),
    ("604800", "for 1 week"),
    ("", "until it is resumed"),
];
/// The most resources that were changed by hand and are named.
const MOST_DRIFTED: usize = 5;
/// The message on the page of a source after a form, by the value of `done`.
const DONE: [(&str, &str); 3] = [
    ("suspend", "The source is suspended: its manifests are not applied."),
    ("resume", "The source is resumed. The page shows what its sync finds."),
    ("sync", "A sync was requested. The page shows what it finds."),
];

/// The links to the forms of a source, for those who may send them.
pub(in crate::server::dashboard) fn links(request: &PageRequest, source: &SourceView) -> Markup {
    let name = source.name.as_str();
    let to = |form: &str| request.to(format_args!("sources/{}/{form}", segment(name)));
    html! {
        @for (done, text) in DONE { @if request.value("done") == done { p.done role="status" { (text) } } }
        @if source.is_followed() && request.may(&Intent::Apply(name)) {
            p.actions {
                a.button href=(to("sync")) { "Sync now" } " "
                @if source.suspension.is_none() { a.button href=(to("suspend")) { "Suspend" } }
                @else { a.button href=(to("resume")) { "Resume" } }
            }
        }
    }
}

fn before_suspend(request: &PageRequest) -> Result<PageContent, ApiError> {
    let source = followed(request)?;
    let fields = html! {
        p { label for="reason" { "Reason" }
            input id="reason" type="text" name="reason" required maxlength="1000" placeholder="shown to everybody who asks why"; }
        p { label for="for" { "Duration" }
            select id="for" name="for" { @for (value, text) in SPANS { option value=(value) { (text) } } } }
    };
    let body = html! {
        @if let Some(suspension) = &source.suspension {
            p { "It is suspended already by " (owner(request, &suspension.by)) ": " q { (suspension.reason) } ". This replaces it." }
        }
        h2 { "What this does" }
        ul {
            li { "Nothing of the source is applied until it is resumed, or until the time is over. What is in effect stays"
                @if let Some(applied) = &source.last_applied {
                    @if applied.commit.is_empty() { ": that of revision " (applied.revision) }
                    @else { ": " (commit(&applied.commit, &request.forge(&source.name))) }
                    ", last in sync " (time(&applied.at, request.now))
                }
                "." }
            li { "A run that is under way does not apply its plan." }
            li { "New commits are still planned, and the page of the source shows what they would change." }
            li { "The history records who suspended it, and the reason." }
        }
        (form(request, &fields, (PRIMARY, "Suspend"), &page_of(&source.name)))
    };
    Ok(content(format!("Suspend {}", source.name), body))
}

fn before_resume(request: &PageRequest) -> Result<PageContent, ApiError> {
    let source = followed(request)?;
    let body = html! {
        @match &source.suspension {
            None => p { "The source is not suspended." },
            Some(suspension) => {
                p { "Suspended by " (owner(request, &suspension.by)) " " (time(&suspension.since, request.now)) ": " q { (suspension.reason) } }
                h2 { "What this does" }
                ul {
                    li { "The source is synced at once, and then as before." }
                    li { (waiting(&source)) }
                    li { "The history records who resumed it." }
                }
                (form(request, &html! {}, (PRIMARY, "Resume"), &page_of(&source.name)))
            }
        }
    };
    Ok(content(format!("Resume {}", source.name), body))
}

fn before_sync(request: &PageRequest) -> Result<PageContent, ApiError> {
    let source = followed(request)?;
    let body = html! {
        h2 { "What this does" }
        ul {
            li { @if source.repository.is_empty() { "All manifests are read again now." }
                @else { "The repository is fetched now, and its manifests are read." } }
            @if source.suspension.is_some() { li { "The source is suspended: its manifests are planned, and nothing is applied." } }
            @else { li { "If they have no errors, what has changed is applied. " (waiting(&source)) } }
            li { "Without this, the next sync is " @if source.next_sync_at.is_empty() { "under way" } @else { (due(&source.next_sync_at, request.now)) } "." }
        }
        (form(request, &html! {}, (PRIMARY, "Sync now"), &page_of(&source.name)))
    };
    Ok(content(format!("Sync {}", source.name), body))
}

/// What waits to be applied as of the last sync, and the changes by hand, which are put back with it or stay.
fn waiting(source: &SourceView) -> Markup {
    let pending = counted(&source.counts.pending());
    let by_hand = source.counts.drifted;
    let listed = source.drifted.iter().take(MOST_DRIFTED);
    html! {
        @if !pending.is_empty() { "Waiting since the last sync: " (pending) "." }
        @else if by_hand == 0 { "At the last sync, nothing waited to be applied." }
        @if by_hand > 0 {
            @if puts_back(source) { " This puts back what was changed by hand: " } @else { " What was changed by hand stays: " }
            (number_of(by_hand, "resource"))
            @for (place, drifted) in listed.enumerate() {
                (if place == 0 { ": " } else { ", " }) (drifted.name)
                @for field in &drifted.fields { " " code { (if field.field.is_empty() { "the whole resource" } else { field.field.as_str() }) } }
            }
            @if !source.drifted.is_empty() && by_hand > MOST_DRIFTED { " and " (by_hand - MOST_DRIFTED) " more" }
            "."
        }
    }
}

/// Whether a source puts back what was changed by hand, once it is synced and valid.
fn puts_back(source: &SourceView) -> bool {
    let repair = source.drift_repair();
    let stays = matches!(repair, DriftRepair::Reported | DriftRepair::Never);
    !stays && !matches!(repair, DriftRepair::ManifestsChanged | DriftRepair::Unblocked(_))
}

/// The source in the path, which the server must follow.
fn followed(request: &PageRequest) -> Result<SourceView, ApiError> {
    let source = view(&request.app, &request.snapshot, request.parameter(0))?;
    let unknown =
        || ApiError::with_code(Code::NotFound, format!("this server does not follow `{}`", printable(&source.name)));
    if source.is_followed() { Ok(source) } else { Err(unknown()) }
}

fn content(title: String, body: Markup) -> PageContent {
    PageContent { title, section: "Sources", body }
}

fn page_of(source: &str) -> String {
    format!("sources/{}", segment(source))
}

/// Leads to the page of the source, which says what was done.
fn done(source: &str, what: &str, made: Response) -> ActionDone {
    ActionDone::new(format!("{}?done={what}", page_of(source)), made)
}

async fn suspend(form: ActionForm) -> Result<ActionDone, ApiError> {
    let (reason, span) = (form.field("reason"), form.field("for"));
    let unknown = || ApiError::with_code(Code::Parameter, "`for` must be one of the durations of the form");
    let for_seconds = match span.as_str() {
        "" => None,
        span if SPANS.iter().any(|(known, _)| *known == span) => Some(span.parse::<u32>().map_err(|_| unknown())?),
        _ => return Err(unknown()),
    };
    let source = SourceInPath::new(&form.app, &form.parameter)?;
    let suspension = SourceSuspend { reason, until: String::new(), for_seconds };
    let made = sources::suspend(source, form.caller, JsonBody(suspension)).await?;
    Ok(done(&form.parameter, "suspend", made))
}

async fn resume(form: ActionForm) -> Result<ActionDone, ApiError> {
    let source = SourceInPath::new(&form.app, &form.parameter)?;
    let made = sources::resume(source, form.caller, RequestBody::default()).await?;
    Ok(done(&form.parameter, "resume", made))
}

async fn sync(form: ActionForm) -> Result<ActionDone, ApiError> {
    let made = sources::sync(SourceInPath::new(&form.app, &form.parameter)?).await?;
    Ok(done(&form.parameter, "sync", made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::operations::sources::view::SourceCounts;

    #[test]
    fn what_was_changed_by_hand_is_told_whether_it_stays_or_not() {
        let told = |drift: &str, drifted: usize| {
            let counts = SourceCounts { drifted, ..SourceCounts::default() };
            waiting(&SourceView { drift: drift.to_owned(), counts, ..SourceView::default() }).into_string()
        };
        assert_eq!(told("warn", 0), "At the last sync, nothing waited to be applied.");
        assert_eq!(told("warn", 1), " What was changed by hand stays: 1 resource.");
        assert_eq!(told("enforce", 1), " This puts back what was changed by hand: 1 resource.");
    }
}
