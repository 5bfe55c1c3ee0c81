//! The declaration of an operation: its route, its admission, its part of the OpenAPI document and the test of its permission
//! follow from it.

use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter};
use serde_json::Value;

use crate::server::auth::permission::Intent;
use crate::server::http::page;
use crate::server::openapi::operation_document::OperationDocument;
use crate::server::openapi::schemas::Schemas;
use crate::server::state::AppState;

/// Routes a method to a handler.
type OperationHandler = fn(MethodFilter) -> MethodRouter<AppState>;

/// An operation that no kind of resource has.
#[derive(Clone, Copy)]
pub(crate) struct ApiOperation {
    pub method: MethodFilter,
    /// The path. It has at most one parameter, in braces.
    pub path: &'static str,
    pub handler: OperationHandler,
    /// The permission that callers need; none if the operation needs no API key.
    intent: Option<Intent<'static>>,
    /// The secrets in the response, which are sent only to safe peers.
    pub secrets: Option<&'static str>,
    /// Whether the handler forwards requests, because it receives their bodies in places of their own.
    forwards_itself: bool,
    /// Whether only the server that writes knows the answer.
    is_of_writer: bool,
    /// The name of the items of a paged list, singular and plural.
    paged: Option<[&'static str; 2]>,
    /// The query parameters besides those of pages (D56); none if any are ignored.
    query: Option<&'static [QueryParameter]>,
    names: [&'static str; 3],
    description: &'static str,
    document: Option<fn(OperationDocument, &mut Schemas) -> OperationDocument>,
    failures: &'static str,
}

/// The requests of an operation that a server which follows forwards to the one that writes (D115).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForwardedRequests {
    /// None: the server answers all of them itself, or the handler forwards some.
    Nothing,
    /// All of them. The server knows less, and answers itself if the other one does not.
    IfReached,
    /// Requests that are no dry runs.
    Applying,
    /// All of them.
    All,
}

/// The name of a query parameter, and what the OpenAPI document says about it.
pub(crate) struct QueryParameter(pub &'static str, pub fn() -> Value);

impl ApiOperation {
    const fn new(
        method: MethodFilter,
        path: &'static str,
        intent: Option<Intent<'static>>,
        handler: OperationHandler,
    ) -> Self {
        Self {
            method,
            path,
            handler,
            intent,
            secrets: None,
            forwards_itself: false,
            is_of_writer: false,
            paged: None,
            query: Some(&[]),
            names: [""; 3],
            description: "",
            document: None,
            failures: "",
        }
    }

    /// Declares a GET for callers with an API key.
    pub(in crate::server) const fn get(path: &'static str, intent: Intent<'static>, handler: OperationHandler) -> Self {
        Self::new(MethodFilter::GET, path, Some(intent), handler)
    }

    /// Declares a POST for callers with an API key. In the intent, `Apply` is about the source that the path names.
    pub(super) const fn post(path: &'static str, intent: Intent<'static>, handler: OperationHandler) -> Self {
        Self::new(MethodFilter::POST, path, Some(intent), handler)
    }

    /// Declares a PATCH for callers with an API key.
    pub(super) const fn patch(path: &'static str, intent: Intent<'static>, handler: OperationHandler) -> Self {
        Self::new(MethodFilter::PATCH, path, Some(intent), handler)
    }

    /// Declares an operation for everybody.
    pub(super) const fn open(method: MethodFilter, path: &'static str, handler: OperationHandler) -> Self {
        Self::new(method, path, None, handler)
    }

    /// Sends the response only to safe peers, because of the secrets in it.
    pub(in crate::server) const fn with_secrets(self, secrets: &'static str) -> Self {
        Self { secrets: Some(secrets), ..self }
    }

    /// Leaves it to the handler to forward requests (D115).
    pub(super) const fn forwarding_itself(self) -> Self {
        Self { forwards_itself: true, ..self }
    }

    /// Reads what only the server that writes knows (D115).
    pub(super) const fn of_writer(self) -> Self {
        Self { is_of_writer: true, ..self }
    }

    /// Accepts query parameters.
    pub(in crate::server) const fn query(self, query: &'static [QueryParameter]) -> Self {
        Self { query: Some(query), ..self }
    }

    /// Accepts any query: it says nothing, or the handler checks it.
    pub(super) const fn any_query(self) -> Self {
        Self { query: None, ..self }
    }

    /// Accepts the query parameters of a list in pages. Its items are called so in the singular and plural.
    pub(super) const fn paged(self, item: &'static str, items: &'static str) -> Self {
        Self { paged: Some([item, items]), ..self }
    }

    /// Sets the tag, the id and the summary in the OpenAPI document.
    pub(in crate::server) const fn named(self, tag: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self { names: [tag, id, summary], ..self }
    }

    /// Sets the description in the OpenAPI document.
    pub(in crate::server) const fn described(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Puts the operation into the OpenAPI document, with the statuses of its errors, its body and its responses.
    pub(in crate::server) const fn documented(
        self,
        failures: &'static str,
        document: fn(OperationDocument, &mut Schemas) -> OperationDocument,
    ) -> Self {
        Self { document: Some(document), failures, ..self }
    }

    /// The intent of the caller; none if the operation needs no caller. `parameter` is that of the path.
    pub(in crate::server) fn intent<'p>(&self, parameter: &'p str) -> Option<Intent<'p>> {
        self.intent.map(|intent| intent.about(parameter))
    }

    /// Which requests with a method a server that follows forwards to the one that writes.
    pub(super) fn forwarded(&self, method: &Method) -> ForwardedRequests {
        match self.intent {
            _ if self.forwards_itself => ForwardedRequests::Nothing,
            Some(Intent::Propose) => ForwardedRequests::Applying,
            Some(Intent::Change | Intent::Apply(_) | Intent::Rekey) => ForwardedRequests::All,
            Some(Intent::Owners) if *method == Method::PATCH => ForwardedRequests::All,
            _ if self.is_of_writer && *method == Method::GET => ForwardedRequests::IfReached,
            _ => ForwardedRequests::Nothing,
        }
    }

    /// The method in the OpenAPI document.
    pub(in crate::server) fn method_name(&self) -> &'static str {
        match self.method {
            method if method == MethodFilter::POST => "post",
            method if method == MethodFilter::PATCH => "patch",
            _ => "get",
        }
    }

    /// The query parameters, and what the OpenAPI document says about them; none if any are ignored.
    pub(super) fn parameters(&self) -> Option<Vec<(&'static str, Value)>> {
        let others = self.query?.iter().map(|QueryParameter(name, describe)| (*name, describe()));
        Some(self.paged.map(page::parameters).into_iter().flatten().chain(others).collect())
    }

    /// The operation in the OpenAPI document, if it is there.
    pub(in crate::server) fn document(&self, schemas: &mut Schemas) -> Option<Value> {
        let [tag, id, summary] = self.names;
        let operation = OperationDocument::new(tag, id, summary, self.description).extension();
        let operation = operation.query(self.parameters().unwrap_or_default());
        self.document.map(|document| document(operation, schemas).build(self.failures))
    }
}
