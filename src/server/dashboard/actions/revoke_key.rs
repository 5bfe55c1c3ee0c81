//! Revoking an API key: who is affected, and the form that does it.

use maud::html;

use super::action::{ActionDone, ActionForm, DANGER, DashboardAction, form};
use crate::model::ApiKey;
use crate::server::dashboard::elements::{facts, time};
use crate::server::dashboard::page::{DashboardPage, PageContent, PageRequest};
use crate::server::handler_prelude::*;
use crate::server::resources::endpoint::{Action, Endpoint, endpoints};
use crate::server::resources::handlers::{ServedEndpoint, handle};

const PATH: &str = "/ui/keys/{p0}/revoke";

pub(in crate::server::dashboard) static PAGE: DashboardPage =
    DashboardPage::new(PATH, before_revoke).before_form(Intent::Change);
pub(in crate::server::dashboard) static ACTION: DashboardAction =
    DashboardAction { path: PATH, intent: Intent::Change, make: |form| Box::pin(revoke(form)) };

/// Whether the caller may revoke a key.
pub(in crate::server::dashboard) fn may_revoke(request: &PageRequest, key: &Id) -> Result<(), Fault> {
    permission::allows(&request.caller, &Intent::Change, &request.snapshot)?;
    let operation = Operation::Delete { key: Key::new(Kind::ApiKey, key.clone()), with_children: true };
    permission::allows_operations(&request.caller, &[operation], None, &request.snapshot)
}

fn before_revoke(request: &PageRequest) -> Result<PageContent, ApiError> {
    let key = Key::new(Kind::ApiKey, Id::new(request.parameter(0)));
    let missing = || ApiError::not_found(&key.to_string());
    let entry = request.snapshot.get(&key).ok_or_else(missing)?;
    let spec = entry.spec_as::<ApiKey>().ok_or_else(missing)?;
    may_revoke(request, &key.id).map_err(|fault| request.caller.refused(fault))?;
    let used = request.app.access.key_use.last(&key.id);
    let body = html! {
        (facts(&[
            ("Key", html! { code { (key.id.as_str()) } }),
            ("Description", html! { (spec.description) }),
            ("Owner", html! { (spec.owner_id) }),
            ("Created", time(&entry.created_at.to_string(), request.now)),
            ("Last use", html! { @match used {
                Some(at) => (time(&at.to_string(), request.now)),
                None => "not since this server started",
            } }),
        ]))
        h2 { "What this does" }
        ul {
            li { "Requests with its token are refused from now on, and everybody who signed in with it is signed out." }
            li { "It cannot be undone: a new key has another token." }
            @if let Some(source) = entry.source() {
                li { "Source " b { (source) } " declares it, and creates it again with another token, unless its manifests change." }
            }
            @if key.id == request.caller.key { li { b { "You are signed in with this key: your own session ends." } } }
        }
        (form(request, &html! {}, (DANGER, "Revoke the key"), "keys"))
    };
    Ok(PageContent { title: "Revoke a key".to_owned(), section: "Keys", body })
}

/// Deletes the key like a DELETE of the API.
async fn revoke(form: ActionForm) -> Result<ActionDone, ApiError> {
    let ActionForm { app, headers, parameter, .. } = form;
    let is_wanted = |it: &Endpoint| it.kind == Kind::ApiKey && it.action == Action::Delete;
    let endpoint = endpoints().into_iter().find(is_wanted).ok_or_else(ApiError::internal)?;
    let mut request = Request::new(Body::empty());
    (*request.method_mut(), *request.headers_mut()) = (Method::DELETE, headers);
    let made = handle(&ServedEndpoint::new(app, endpoint), vec![parameter], request).await?;
    Ok(ActionDone::new("keys".to_owned(), made))
}
