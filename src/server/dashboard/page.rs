//! What all pages have in common: the session, the permission, and the request as pages see it.

use axum::http::request::Parts;
use axum::routing::{MethodRouter, get};
use maud::{Markup, html};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

use super::access_effect::AccessEffect;
use super::layout::{self, PageReader, prose};
use super::session::cookie;
use crate::model::key::segment;
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::server::auth::session::DashboardSession;
use crate::server::handler_prelude::*;
use crate::server::http::page::AT;
use crate::server::operations::checks::path_parameters;
use crate::server::replicas::forwarder::OutgoingRequest;
use crate::server::resources::at_revision;
use crate::store::history::if_available;

pub(super) use super::layout::PageContent;

/// The prefix of all paths of the dashboard.
const PREFIX: &str = "/ui/";
/// The header of a request that a script makes on its own: it keeps no session alive.
const BY_SCRIPT: &str = "x-dashboard-live";
/// How long the server that writes may take for a page that this server can show, too.
const WRITER: Duration = Duration::from_secs(2);
/// How long a page waits for what revisions did to access. Later it says that this is not known.
const EFFECTS: Duration = Duration::from_secs(2);
/// The parameters with which a page searches, filters, sorts or traces: it has the place of a search, too.
const SEARCHING: [&str; 6] = ["search", "sort", "source", "access", "use", "url"];
/// The rows of a page of a table.
pub(super) const ROWS: usize = 50;

/// Renders a page.
type PageRenderer = fn(&PageRequest) -> Result<PageContent, ApiError>;

/// A page.
pub(super) struct DashboardPage {
    /// The path.
    pub path: &'static str,
    /// The intent of the corresponding request of the API. `Apply` is about the source that the path names.
    intent: Intent<'static>,
    /// The query parameters. `at` asks for an earlier revision.
    parameters: &'static [&'static str],
    /// Whether the page reads the history. Its requests have the place of a search then, until their client goes (D52).
    is_of_history: bool,
    /// Whether only the server that writes knows what it shows (D115).
    is_of_writer: bool,
    /// Whether the page stays as it is until it is loaded again.
    is_still: bool,
    render: PageRenderer,
}

impl DashboardPage {
    /// A page for everybody who reads.
    pub(super) const fn new(path: &'static str, render: PageRenderer) -> Self {
        let (is_of_history, is_of_writer, is_still) = (false, false, false);
        Self { path, intent: Intent::Read, parameters: &[], is_of_history, is_of_writer, is_still, render }
    }

    /// Takes query parameters. A request with any other one is refused, as by the API (D56).
    pub(super) const fn taking(self, parameters: &'static [&'static str]) -> Self {
        Self { parameters, ..self }
    }

    /// Shows something of the history.
    pub(super) const fn of_history(self) -> Self {
        Self { is_of_history: true, ..self }
    }

    /// Shows what only the server that writes knows.
    pub(super) const fn of_writer(self) -> Self {
        Self { is_of_writer: true, ..self }
    }

    /// Shows what a form will do, to those who may: the page does not change while somebody reads it.
    pub(super) const fn before_form(self, intent: Intent<'static>) -> Self {
        Self { intent, is_still: true, ..self }
    }
}

/// A request for a page whose caller may read it.
pub(super) struct PageRequest {
    pub app: AppState,
    pub caller: Caller,
    pub session: DashboardSession,
    /// The state that the page shows.
    pub snapshot: Arc<Snapshot>,
    /// The revision that the request asks for; none for the current one.
    pub at: Option<u64>,
    pub now: Timestamp,
    /// The path of the dashboard, relative to that of the page: a proxy may publish it below any path (D13).
    pub root: String,
    /// Whether the server that writes does not answer, and this one knows nothing of what it does.
    pub lacks_writer: bool,
    parameters: Vec<String>,
    query: String,
    /// Set when the client goes.
    cancel: Cancel,
    /// The revisions whose effects the page lacks.
    lacking_effects: Lock<BTreeSet<u64>>,
    /// Whether the history was found to be unavailable.
    lacks_history: AtomicBool,
    /// The place of an earlier state.
    _earlier: Option<WorkPlace>,
}

impl PageRequest {
    /// The address of a page, from its path below the dashboard.
    pub(super) fn to(&self, path: impl Display) -> String {
        format!("{}{path}", self.root)
    }

    /// A parameter of the path; empty if it has none.
    pub(super) fn parameter(&self, number: usize) -> &str {
        self.parameters.get(number).map_or("", String::as_str)
    }

    /// The value of a query parameter without blanks around it; empty if there is none.
    pub(super) fn value(&self, name: &str) -> String {
        query::value(Some(&self.query), name).map(|value| value.trim().to_owned()).unwrap_or_default()
    }

    /// The number in a query parameter.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        at_revision::number(&self.value(name))
    }

    /// Whether the request asks for some of all rows, and not only for an order.
    pub(super) fn is_selecting(&self) -> bool {
        form_urlencoded::parse(self.query.as_bytes()).any(|(name, value)| name != "sort" && !value.trim().is_empty())
    }

    /// The number of rows before those of this page of a table.
    pub(super) fn skipped(&self) -> usize {
        self.number("from").and_then(|from| usize::try_from(from).ok()).unwrap_or_default()
    }

    /// The address of this page with some query parameters replaced, and those removed that are empty.
    pub(super) fn with(&self, replaced: &[(&str, &str)]) -> String {
        let mut pairs: Vec<(String, String)> = form_urlencoded::parse(self.query.as_bytes())
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .filter(|(name, _)| !replaced.iter().any(|(other, _)| other == name))
            .collect();
        pairs.extend(replaced.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        pairs.retain(|(_, value)| !value.is_empty());
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        format!("?{query}")
    }

    /// The address of a resource, if it has a page.
    pub(super) fn to_resource(&self, key: &Key) -> Option<String> {
        match (key.kind, &key.parent) {
            (Kind::HttpsEdge, _) => Some(self.to(format_args!("edges/{}", segment(key.id.as_str())))),
            (Kind::HttpsEdgeRoute, Some(edge)) => {
                Some(self.to(format_args!("edges/{}/routes/{}", segment(edge.as_str()), segment(key.id.as_str()))))
            }
            _ => None,
        }
    }

    /// The effect of a revision on access. One that is not known yet is found when the page is rendered, and then it is
    /// rendered again.
    pub(super) fn effect(&self, revision: u64) -> Option<Arc<AccessEffect>> {
        let known = self.app.dashboard.effects.get(revision);
        if known.is_none() {
            self.lacking_effects.lock().insert(revision);
        }
        known
    }

    /// Whether nobody waits for the page any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// The store.
    pub(super) fn store(&self) -> &Store {
        &self.app.served.store
    }

    /// Reads a part of the history; none while that is unavailable. A page does not wait twice for a database that does not answer.
    pub(super) fn read_history<T>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.lacks_history.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let found = if_available(read(self.store()))?;
        self.lacks_history.store(found.is_none(), Ordering::Relaxed);
        Ok(found)
    }

    /// The links to the forge of a source.
    pub(super) fn forge(&self, source: &str) -> ForgeLinks {
        self.app.sources.registry.forge(source)
    }

    /// Whether the caller may do something more than to read the page.
    pub(super) fn may(&self, intent: &Intent<'_>) -> bool {
        permission::allows(&self.caller, intent, &self.snapshot).is_ok()
    }
}

/// The reader of a page. A key has the name that its description gives it in the current state, if it has one.
fn reader_of(current: &Snapshot, caller: &Caller, session: &DashboardSession, revision: u64) -> PageReader {
    let name = match current.key_description(&caller.key) {
        "" => caller.name().to_owned(),
        description => description.to_owned(),
    };
    PageReader { name, form_token: session.form_token.clone(), revision }
}

/// The reader of the page of an error, if somebody is signed in who may read.
pub(super) fn reader_of_error(app: &AppState, parts: &Parts) -> Option<PageReader> {
    let (session, current) = (session_of(&app.access, parts)?, app.served.store.snapshot());
    let caller = app.access.admit_session_again(&current, &Intent::Read, &parts.headers, &session).ok()?;
    Some(reader_of(&current, &caller, &session, current.revision))
}

/// The route of a page.
pub(super) fn serve(page: &'static DashboardPage) -> MethodRouter<AppState> {
    get(move |State(app): State<AppState>, request: Request| async move {
        let (mut parts, _) = request.into_parts();
        let here = Here::new(&parts);
        let shown = answer(page, app.clone(), &mut parts, &here).await;
        shown.unwrap_or_else(|error| failed(error, &here, reader_of_error(&app, &parts)))
    })
}

/// Where a request is in the dashboard.
pub(super) struct Here {
    /// The path of the dashboard, relative to that of the page.
    pub root: String,
    /// The path below the dashboard, with the query.
    pub path: String,
}

impl Here {
    pub(super) fn new(parts: &Parts) -> Self {
        let path = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        let depth = path.matches('/').count();
        let root = if depth == 0 { "./".to_owned() } else { "../".repeat(depth) };
        let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        Self { root, path: format!("{path}{query}") }
    }

    /// The address of the page to sign in, from where the browser comes back here.
    pub(super) fn sign_in(&self) -> String {
        let next: String = form_urlencoded::byte_serialize(self.path.as_bytes()).collect();
        format!("{}sign-in?next={next}", self.root)
    }
}

/// The session of a request, if it has one.
pub(super) fn session_of(access: &AccessControl, parts: &Parts) -> Option<DashboardSession> {
    let value = cookie::SESSION.find_in(parts)?;
    let session = access.sessions.open(value.text, clock::now())?;
    // What was sealed for TLS counts under no other name, and the reverse.
    (session.is_secure == value.is_secure).then_some(session)
}

async fn answer(
    page: &'static DashboardPage,
    app: AppState,
    parts: &mut Parts,
    here: &Here,
) -> Result<Response, ApiError> {
    let Some((mut request, renewed)) = admitted(page, app, parts, here).await? else { return Ok(to_sign_in(here)) };
    if page.is_of_writer && request.app.forwarder.is_needed() {
        match of_writer(&request, parts).await {
            Some(response) => return Ok(response),
            None => request.lacks_writer = true,
        }
    }
    rendered(page, request, renewed, page.render).await
}

/// The response to a browser that asks for a page that the dashboard does not have.
pub(in crate::server) fn no_page(request: Request) -> Response {
    let (parts, _) = request.into_parts();
    failed(ApiError::with_code(Code::NotFound, "page not found"), &Here::new(&parts), None)
}

/// The request for a page, and the cookie that renews its session if that is due. Returns none without a session.
pub(super) async fn admitted(
    page: &'static DashboardPage,
    app: AppState,
    parts: &mut Parts,
    here: &Here,
) -> Result<Option<(PageRequest, Option<HeaderValue>)>, ApiError> {
    let Some(session) = session_of(&app.access, parts) else { return Ok(None) };
    let parameters = path_parameters(parts).await?;
    let snapshot = app.served.store.snapshot();
    let intent = page.intent.about(parameters.first().map_or("", String::as_str));
    let admitted = app.access.admit_session(&snapshot, &intent, &parts.headers, &session);
    let caller = match admitted {
        Err(error) if error.code() == Code::Unauthenticated => return Ok(None),
        admitted => admitted?,
    };
    query::check(parts.uri.query(), page.parameters)?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let wanted = query::value(Some(&query), AT).map(|at| at.trim().to_owned());
    let at_query = wanted.filter(|at| !at.is_empty()).map(|at| format!("{AT}={}", segment(&at)));
    let (snapshot, at, earlier) = match at_query {
        Some(query) => at_revision::state(&app, &caller.owner, snapshot, &query).await?,
        None => (snapshot, None, None),
    };
    let now = clock::now();
    let renewed = match parts.headers.contains_key(BY_SCRIPT) {
        true => None,
        false => session.renewed(now).as_ref().and_then(|session| cookie::set(&app.access.sessions, session)),
    };
    let root = here.root.clone();
    let request = PageRequest {
        app,
        caller,
        session,
        snapshot,
        at,
        now,
        root,
        lacks_writer: false,
        parameters,
        query,
        cancel: Cancel::default(),
        lacking_effects: Lock::default(),
        lacks_history: AtomicBool::new(false),
        _earlier: earlier,
    };
    Ok(Some((request, renewed)))
}

/// The page of the server that writes, if it answers.
async fn of_writer(request: &PageRequest, parts: &Parts) -> Option<Response> {
    let AppState { forwarder, admissions, .. } = &request.app;
    let outgoing = OutgoingRequest::new(Some(&request.caller.owner), parts, Bytes::new());
    let outgoing = OutgoingRequest { timeout: Some(WRITER), ..outgoing };
    let response = timeout(WRITER, forwarder.forward(&admissions.forwards, outgoing)).await.ok()?.ok()?;
    response.status().is_success().then_some(response)
}

/// The response with a page.
pub(super) async fn rendered<R>(
    page: &'static DashboardPage,
    request: PageRequest,
    renewed: Option<HeaderValue>,
    render: R,
) -> Result<Response, ApiError>
where
    R: Fn(&PageRequest) -> Result<PageContent, ApiError> + Send + 'static,
{
    let (mut html, request, render) = drawn(page, request, render).await?;
    let lacking = std::mem::take(&mut *request.lacking_effects.lock());
    if !lacking.is_empty() {
        find_effects(&request, lacking).await;
        html = drawn(page, request, render).await?.0;
    }
    let mut response = layout::response(StatusCode::OK, html);
    if let Some(renewed) = renewed {
        response.headers_mut().append(header::SET_COOKIE, renewed);
    }
    Ok(response)
}

/// Renders a page in its place.
async fn drawn<R>(
    page: &'static DashboardPage,
    mut request: PageRequest,
    render: R,
) -> Result<(String, PageRequest, R), ApiError>
where
    R: Fn(&PageRequest) -> Result<PageContent, ApiError> + Send + 'static,
{
    let Admissions { searches, renderings, .. } = &*request.app.admissions;
    let is_search = page.is_of_history || SEARCHING.iter().any(|name| !request.value(name).is_empty());
    let place = if is_search { searches } else { renderings }.for_owner(&request.caller.owner)?;
    let draw = move |cancel: Cancel| {
        request.cancel = cancel;
        let content = render(&request)?;
        let is_live = request.at.is_none() && !page.is_still;
        let current = request.store().snapshot();
        let reader = reader_of(&current, &request.caller, &request.session, request.snapshot.revision);
        let html = layout::page(&request.root, &reader, &content, is_live).into_string();
        Ok((html, request, render))
    };
    if is_search { place.run(draw).await } else { place.render(|| draw(Cancel::default())).await }
}

/// Finds what revisions did to access, in the place of a read of earlier revisions: nobody holds another one meanwhile.
async fn find_effects(request: &PageRequest, revisions: BTreeSet<u64>) {
    let AppState { dashboard, served, admissions, .. } = &request.app;
    let Ok(place) = admissions.earlier.for_owner(&request.caller.owner) else { return };
    let (dashboard, served) = (Arc::clone(dashboard), Arc::clone(served));
    let find = move |cancel: Cancel| {
        for revision in revisions.into_iter().rev().take_while(|_| !cancel.is_cancelled()) {
            if let Err(error) = dashboard.effects.find(&served.store, revision) {
                tracing::warn!("cannot find what revision {revision} did to access: {error}");
            }
        }
        Ok(())
    };
    // The page says what is not known.
    let _ = timeout(EFFECTS, place.run(find)).await;
}

/// Leads to the page to sign in.
pub(super) fn to_sign_in(here: &Here) -> Response {
    layout::redirect(&here.sign_in())
}

/// The page of an error, with the status, the headers and the note of the error. A reader gets the navigation, too.
pub(super) fn failed(error: ApiError, here: &Here, reader: Option<PageReader>) -> Response {
    let root = &here.root;
    let text = html! {
        p { (prose(&error.message())) }
        p { a href=(root) { "Go to the overview" } " or " a href={ (root) "sign-in" } { "sign in with another token" } "." }
    };
    failed_with(error, here, reader, text)
}

/// The page of an error of a form: nothing was changed, or nobody knows. The form is at the same address.
pub(super) fn failed_form(error: ApiError, here: &Here, reader: Option<PageReader>) -> Response {
    let text = html! {
        p.error role="alert" { (prose(&error.message())) }
        p { a href="" { "Go back and look again" } " or " a href=(here.root) { "go to the overview" } "." }
    };
    failed_with(error, here, reader, text)
}

fn failed_with(error: ApiError, here: &Here, reader: Option<PageReader>, body: Markup) -> Response {
    failure(error, |status| {
        let title = status.canonical_reason().unwrap_or("Error").to_owned();
        match reader {
            None => layout::outside(&here.root, &title, &body),
            Some(reader) => layout::page(&here.root, &reader, &PageContent { title, section: "", body }, false),
        }
    })
}

/// A page with the status, the headers and the note of an error.
pub(super) fn failure(error: ApiError, page: impl FnOnce(StatusCode) -> Markup) -> Response {
    let (mut parts, _) = error.into_response().into_parts();
    let html = page(parts.status).into_string();
    parts.headers.insert(header::CONTENT_TYPE, layout::HTML.clone());
    parts.headers.remove(header::CONTENT_LENGTH);
    layout::with_policy(Response::from_parts(parts, Body::from(html)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_to_the_page() {
        let here = |uri: &str| {
            let (parts, ()) = axum::http::Request::builder().uri(uri).body(()).unwrap().into_parts();
            let here = Here::new(&parts);
            (here.root.clone(), here.sign_in())
        };
        assert_eq!(here("/ui/"), ("./".to_owned(), "./sign-in?next=".to_owned()));
        let (root, sign_in) = here("/ui/edges/edghts_1/routes/edghtsrt_1?a=b&c");
        assert_eq!(root, "../../../");
        assert_eq!(sign_in, "../../../sign-in?next=edges%2Fedghts_1%2Froutes%2Fedghtsrt_1%3Fa%3Db%26c");
    }
}
