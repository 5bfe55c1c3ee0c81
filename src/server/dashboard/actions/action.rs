//! What the forms of the dashboard change: the same as requests of the API, through the same handlers (D116).
//!
//! A form is answered in this order: the session, the site that it is from, the permission, the text that only a page of this
//! session has, and the permission again once the form is there. A server that follows then sends the form as it is to the
//! server that writes, which opens the session itself and checks everything else again (D115).

use std::pin::Pin;

use axum::http::request::Parts;
use axum::routing::{MethodRouter, post};
use maud::{Markup, html};

use crate::server::auth::session_credentials::request_headers;
use crate::server::dashboard::layout;
use crate::server::dashboard::page::{Here, PageRequest, failed_form, reader_of_error, session_of, to_sign_in};
use crate::server::dashboard::session::origin_check;
use crate::server::dashboard::session::sign_in::{FormFields, not_own};
use crate::server::handler_prelude::*;
use crate::server::operations::checks::path_parameters;
use crate::server::replicas::forwarded_client::ForwardedClient;
use crate::server::replicas::forwarder::OutgoingRequest;
use crate::server::replicas::read_your_writes::set_revision;

/// A change that is being made.
pub(in crate::server::dashboard) type MadeChange = Pin<Box<dyn Future<Output = Result<ActionDone, ApiError>> + Send>>;

/// A change that a form makes.
pub(in crate::server::dashboard) struct DashboardAction {
    /// The path of the form, which is that of the page that shows what it will do.
    pub path: &'static str,
    /// The intent of the corresponding request of the API. `Apply` is about the source that the path names.
    pub intent: Intent<'static>,
    /// Makes the change.
    pub make: fn(ActionForm) -> MadeChange,
}

/// A form that its sender may send.
pub(in crate::server::dashboard) struct ActionForm {
    pub app: AppState,
    pub caller: Caller,
    /// The headers of the corresponding request of the API.
    pub headers: HeaderMap,
    /// The parameter of the path; empty if it has none.
    pub parameter: String,
    query: String,
    fields: FormFields,
}

impl ActionForm {
    /// The value of a field without blanks around it; empty if there is none.
    pub(in crate::server::dashboard) fn field(&self, name: &str) -> String {
        self.fields.value(name).trim().to_owned()
    }

    /// The value of a query parameter without blanks around it; empty if there is none.
    pub(in crate::server::dashboard) fn value(&self, name: &str) -> String {
        query::value(Some(&self.query), name).map(|value| value.trim().to_owned()).unwrap_or_default()
    }
}

/// The response to a browser whose form has made a change.
pub(in crate::server::dashboard) struct ActionDone {
    /// The page that it is led to, below the dashboard.
    pub page: String,
    /// The note for the security log.
    pub note: Option<SecurityNote>,
}

impl ActionDone {
    /// Leads to a page after a change with this response of the API.
    pub(in crate::server::dashboard) fn new(page: String, mut made: Response) -> Self {
        Self { page, note: made.extensions_mut().remove::<SecurityNote>() }
    }
}

/// How the button of a form looks that does nothing dangerous, and that of one that does.
pub(super) const PRIMARY: &str = "primary";
pub(super) const DANGER: &str = "danger";

/// A form with its button, and a link back. `look` is that of the button, and `cancel` a path below the dashboard.
pub(super) fn form(request: &PageRequest, fields: &Markup, (look, button): (&str, &str), cancel: &str) -> Markup {
    html! {
        form.change action=(request.with(&[])) method="post" {
            input type="hidden" name="form_token" value=(request.session.form_token);
            (fields)
            p { button class=(look) { (button) } " " a href=(request.to(cancel)) { "Cancel" } }
        }
    }
}

/// The route of a form.
pub(in crate::server::dashboard) fn serve(action: &'static DashboardAction) -> MethodRouter<AppState> {
    post(move |State(app): State<AppState>, request: Request| async move {
        let (mut parts, body) = request.into_parts();
        let here = Here::new(&parts);
        let done = answer(action, app.clone(), &mut parts, body, &here).await;
        done.unwrap_or_else(|error| failed_form(error, &here, reader_of_error(&app, &parts)))
    })
}

async fn answer(action: &DashboardAction, app: AppState, parts: &mut Parts, body: Body, here: &Here) -> ApiResult {
    let Some(session) = session_of(&app.access, parts) else { return Ok(to_sign_in(here)) };
    // The server that forwards a form has the connection to the browser.
    if parts.extensions.get::<ForwardedClient>().is_none() {
        origin_check::check(parts, &app.served.base_urls.base_url)?;
    }
    let parameter = path_parameters(parts).await?.into_iter().next().unwrap_or_default();
    let intent = action.intent.about(&parameter);
    let admitted = app.access.admit_session(&app.served.store.snapshot(), &intent, &parts.headers, &session);
    match admitted {
        Err(error) if error.code() == Code::Unauthenticated => return Ok(to_sign_in(here)),
        admitted => drop(admitted?),
    }
    let fields = FormFields::receive(parts, body).await?;
    if !session.has_form_token(&fields.value("form_token")) {
        return Err(not_own());
    }
    let store = Arc::clone(&app.served.store);
    let caller = app.access.admit_session_again(&store.snapshot(), &intent, &parts.headers, &session)?;
    if app.forwarder.is_needed() {
        let form = OutgoingRequest::new(Some(&caller.owner), parts, fields.into_bytes());
        return app.forwarder.forward(&app.admissions.forwards, form).await;
    }
    let headers = request_headers(&app.access.sessions, &session, &parts.headers)?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    let done = (action.make)(ActionForm { app, caller, headers, parameter, query, fields }).await?;
    let mut response = layout::redirect(&format!("{}{}", here.root, done.page));
    // A server that has forwarded the form waits until it can show the change.
    set_revision(response.headers_mut(), store.snapshot().revision);
    Ok(response::noted(response, done.note))
}
