//! Signing in with an API token, and signing out. Who is sent to the provider instead does not use a form: the policy of the
//! pages lets no form lead elsewhere.

use axum::http::request::Parts;
use maud::{Markup, html};

use super::{cookie, origin_check};
use crate::server::auth::oidc::connector::OpenIdConnect;
use crate::server::auth::session::DashboardSession;
use crate::server::dashboard::layout;
use crate::server::dashboard::page::{Here, failed, failure, session_of};
use crate::server::handler_prelude::*;
use crate::server::http::body::{self, Limits};

/// The limits of a form. Who sends it to sign in is not known yet.
const FORM: Limits =
    Limits { bytes: 16 << 10, time: Duration::from_secs(5), first: Duration::from_secs(3), ..Limits::RESOURCE };
/// The title of the page.
const TITLE: &str = "Sign in";

/// The fields of a form.
pub(in crate::server::dashboard) struct FormFields(Bytes);

impl FormFields {
    /// Receives a form.
    pub(in crate::server::dashboard) async fn receive(parts: &Parts, body: Body) -> Result<Self, ApiError> {
        body::take_any(&parts.headers, body, FORM, |_| Ok(())).await.map(Self)
    }

    /// The value of a field; empty if there is none.
    pub(in crate::server::dashboard) fn value(&self, name: &str) -> String {
        let mut fields = form_urlencoded::parse(&self.0);
        fields.find(|(found, _)| found == name).map(|(_, value)| value.into_owned()).unwrap_or_default()
    }

    /// The form as it was sent.
    pub(in crate::server::dashboard) fn into_bytes(self) -> Bytes {
        self.0
    }
}

/// Shows the form to sign in.
pub(in crate::server::dashboard) async fn show(State(app): State<AppState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let next = query::value(parts.uri.query(), "next").unwrap_or_default();
    let form = form(&next, provider_of(&app.access), None);
    layout::response(StatusCode::OK, layout::outside(&Here::new(&parts).root, TITLE, &form).into_string())
}

/// The host of the provider through which people can sign in.
fn provider_of(access: &AccessControl) -> Option<&str> {
    access.provider.as_ref().map(OpenIdConnect::host)
}

fn form(next: &str, provider: Option<&str>, error: Option<&str>) -> Markup {
    let encoded: String = form_urlencoded::byte_serialize(next.as_bytes()).collect();
    html! {
        @if let Some(error) = error { p.error role="alert" { (layout::prose(error)) } }
        @if let Some(provider) = provider {
            p { a.button href={ "./login/oidc?next=" (encoded) } { "Sign in with " (provider) } }
            p { "Or, if you have a token:" }
        }
        form action="./sign-in" method="post" {
            input type="hidden" name="next" value=(next);
            p { label for="token" { "API token" }
                input id="token" type="password" name="token" required autofocus autocomplete="current-password"
                    spellcheck="false" placeholder="ew_…"; }
            p { button { "Sign in" } }
        }
        p { "You see what the API would show to this token, without secrets. The session ends after 30 minutes of \
            inactivity, after 8 hours, and when the key is revoked." }
    }
}

/// Signs in, and goes to the page that was asked for.
pub(in crate::server::dashboard) async fn sign_in(State(app): State<AppState>, request: Request) -> Response {
    let AppState { access, served, .. } = app;
    let (parts, body) = request.into_parts();
    let here = Here::new(&parts);
    let fields = match FormFields::receive(&parts, body).await {
        Ok(fields) => fields,
        Err(error) => return failed(error, &here, None),
    };
    let next = fields.value("next");
    begin(&access, &served, &parts, &fields, &next).unwrap_or_else(|error| {
        let form = form(&next, provider_of(&access), Some(&error.message()));
        failure(error, |_| layout::outside(&here.root, TITLE, &form))
    })
}

fn begin(access: &AccessControl, served: &ServedStore, parts: &Parts, fields: &FormFields, next: &str) -> ApiResult {
    let is_secure = origin_check::check(parts, &served.base_urls.base_url)?;
    let (session, note) = access.sign_in(&parts.headers, &fields.value("token"))?;
    let page = if is_page(next) { next } else { "" };
    signed_in(access, session, is_secure, note, &format!("./{page}"))
}

/// The response to somebody who has signed in: the browser gets the cookie of the session, and goes to a page.
pub(super) fn signed_in(
    access: &AccessControl,
    mut session: DashboardSession,
    is_secure: bool,
    note: SecurityNote,
    page: &str,
) -> ApiResult {
    session.is_secure = is_secure;
    let cookie = cookie::set(&access.sessions, &session).ok_or_else(ApiError::internal)?;
    let mut response = layout::redirect(page);
    response.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(response::noted(response, note))
}

/// Whether a text is the path of a page below the dashboard, and not an address elsewhere. A browser takes `%2e` for a dot.
pub(in crate::server::dashboard) fn is_page(next: &str) -> bool {
    let path = next.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let leaves = next.starts_with('/') || path.split('/').any(|segment| segment.replace("%2e", ".") == "..");
    !leaves && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

/// Signs out: the browser forgets the session. No server keeps one, so a copy of the cookie lasts until the session ends.
pub(in crate::server::dashboard) async fn sign_out(State(app): State<AppState>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let done = signed_out(&app.access, &app.served, &parts, body).await;
    done.unwrap_or_else(|error| failed(error, &Here::new(&parts), None))
}

async fn signed_out(access: &AccessControl, served: &ServedStore, parts: &Parts, body: Body) -> ApiResult {
    let fields = FormFields::receive(parts, body).await?;
    origin_check::check(parts, &served.base_urls.base_url)?;
    if session_of(access, parts).is_some_and(|session| !session.has_form_token(&fields.value("form_token"))) {
        return Err(not_own());
    }
    let mut response = layout::redirect("./sign-in");
    cookie::SESSION.remove(&mut response);
    Ok(response)
}

/// The error of a form that no page of the session has.
pub(in crate::server::dashboard) fn not_own() -> ApiError {
    ApiError::with_code(Code::Forbidden, "the form is not from a page of this session; open the page again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        for page in ["", "edges", "edges/edghts_1?search=a%20b&sort=name", "routes?search=a..b%2e", "sources/a..b"] {
            assert!(is_page(page), "{page}");
        }
        for other in ["/evil", "//evil.example", "..//evil.example", "a\\b", "a b", "a\r\nb", "\u{e4}"] {
            assert!(!is_page(other), "{other}");
        }
        for other in ["%2e%2e/%2e%2e/evil", "edges/.%2E/../evil", "%2E./evil"] {
            assert!(!is_page(other), "{other}");
        }
    }

    #[test]
    fn the_form_shows_texts_and_no_markup() {
        let shown = form("\"><script>", Some("<i>"), Some("<b>")).into_string();
        assert!(!shown.contains("<i>") && shown.contains("./login/oidc?next=%22%3E%3Cscript%3E"), "{shown}");
        assert!(shown.contains("&quot;&gt;&lt;script&gt;") && shown.contains("&lt;b&gt;"), "{shown}");
    }
}
