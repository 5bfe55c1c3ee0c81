//! Signing in through the OpenID Connect provider: the browser goes there, and comes back with a code (D117).

use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::cookie;
use super::sign_in::{is_page, signed_in};
use crate::server::auth::oidc::connector::{OpenIdConnect, PendingLogin};
use crate::server::auth::session::DashboardSession;
use crate::server::dashboard::layout;
use crate::server::dashboard::page::{Here, failed};
use crate::server::handler_prelude::*;
use crate::server::operations::login::at_provider;

/// The purpose of the sealed cookie.
const PURPOSE: &str = "edgewright 2026 sign-ins at a provider";
/// How somebody has signed in, in the security log.
const CODE_FLOW: &str = "OpenID Connect";
/// The longest page to come back to. Browsers drop cookies that are too long.
const LONGEST_NEXT: usize = 1000;

/// Sends the browser to the provider.
pub(in crate::server::dashboard) async fn begin(State(app): State<AppState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let next = query::value(parts.uri.query(), "next").filter(|next| is_page(next) && next.len() <= LONGEST_NEXT);
    let next = next.unwrap_or_default();
    let begun = at_provider(&app, &parts.headers, move |access, provider| {
        let (pending, address) = provider.begin(next)?;
        let sealed = access.sessions.seal_for(PURPOSE, &pending).ok_or_else(ApiError::internal)?;
        let cookie = cookie::set_login(&URL_SAFE_NO_PAD.encode(sealed), pending.is_secure);
        Ok((cookie.ok_or_else(ApiError::internal)?, address))
    });
    match begun.await {
        Ok((cookie, address)) => {
            let mut response = layout::redirect(&address);
            response.headers_mut().append(header::SET_COOKIE, cookie);
            response
        }
        Err(error) => failed(error, &Here::new(&parts), None),
    }
}

/// Takes the browser back from the provider, and goes to the page that was asked for.
pub(in crate::server::dashboard) async fn finish(State(app): State<AppState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let here = Here::new(&parts);
    let answered = answer(&app, &parts, &here).await;
    let mut response = answered.unwrap_or_else(|error| failed(error, &here, None));
    cookie::LOGIN.remove(&mut response);
    response
}

async fn answer(app: &AppState, parts: &Parts, here: &Here) -> ApiResult {
    let pending = pending(&app.access, parts)?;
    let (page, is_secure) = (format!("{}{}", here.root, pending.next), pending.is_secure);
    let query = parts.uri.query().map(str::to_owned);
    let finish = move |_: &AccessControl, provider: &OpenIdConnect| provider.finish(&pending, query.as_deref());
    let person = at_provider(app, &parts.headers, finish).await?;
    let note = app.access.sign_in_person(&parts.headers, &person, CODE_FLOW)?;
    signed_in(&app.access, DashboardSession::of_person(person), is_secure, note, &page)
}

/// The sign-in that this browser has begun.
fn pending(access: &AccessControl, parts: &Parts) -> Result<PendingLogin, ApiError> {
    let found = cookie::LOGIN.find_in(parts).and_then(|value| {
        let sealed = URL_SAFE_NO_PAD.decode(value.text).ok()?;
        let pending: PendingLogin = access.sessions.open_for(PURPOSE, &sealed)?;
        (pending.is_secure == value.is_secure).then_some(pending)
    });
    found.ok_or_else(|| {
        let page = access.provider.as_ref().map(|provider| format!("{}/ui/", provider.base_url()));
        let fault = Fault::new(Code::Unauthenticated, "this browser has not begun to sign in, or its cookie is gone");
        let help = format!("allow cookies, and sign in again from {}", page.as_deref().unwrap_or("the beginning"));
        let note = SecurityNote::new(SecurityEvent::AuthenticationFailed, "no sign-in was begun", None);
        ApiError::new(fault.help(help)).noted(note)
    })
}
