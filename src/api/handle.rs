//! The implementation of each action, shared by all kinds: create, get, list, patch, delete, and the module actions.

use std::sync::Arc;

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

use super::{
    App,
    answer::{self, ApiError},
    auth::{self, Caller},
    body::{self, Limits},
    endpoint::{Action, Endpoint},
    list, query,
    work::with_body,
};
use crate::{
    model::{
        Kind,
        code::Code,
        decode::Decoded,
        fault::{Fault, Faults, Path, Segment, add_untold},
        id::{Id, is_opaque_id},
        json,
        key::Key,
        kind::{
            api_key::ApiKey,
            owner::{Owner, Role},
        },
        module::Slot,
        node::Node,
        operation::Operation,
        resource::AnyResource,
        rules,
        secret::{Secret, Secrets},
        snapshot::{Entry, Rendered, Snapshot},
        view::view_json,
    },
    store::{Attempt, Declined, mint},
};

/// A request.
struct ApiRequest<'a> {
    app: &'a Arc<App>,
    caller: Caller,
    snapshot: Arc<Snapshot>,
    kind: Kind,
    headers: HeaderMap,
    /// The size of the body in bytes.
    size: usize,
}

/// Handles a request to an endpoint; `parameters` are the decoded path parameters.
pub(super) async fn handle(
    app: Arc<App>,
    endpoint: Endpoint,
    parameters: Vec<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    auth::admit(&app, &app.store.snapshot(), &parts.method, &parts.headers)?;
    match endpoint.action {
        Action::List => query::check(parts.uri.query(), &list::parameters(endpoint.kind))?,
        _ => query::check(parts.uri.query(), &[])?,
    }
    let (node, faults, size) = match parts.method {
        Method::POST | Method::PATCH | Method::PUT => body::read(&parts.headers, body, Limits::RESOURCE).await?,
        _ => (Node::Null, Vec::new(), 0),
    };
    if !faults.is_empty() {
        return Err(ApiError::from_faults(faults));
    }
    // The key may be revoked while the body is received.
    let snapshot = app.store.snapshot();
    let caller = auth::admit(&app, &snapshot, &parts.method, &parts.headers)?;
    let call = ApiRequest { app: &app, caller, snapshot, kind: endpoint.kind, headers: parts.headers, size };
    let mut parameters = parameters.into_iter().map(|parameter| Id::new(&parameter));
    let parent = endpoint.kind.info().parent.and_then(|_| parameters.next());
    let id = parameters.next().unwrap_or_else(|| Id::new(""));
    let key = Key { kind: endpoint.kind, parent, id };
    match endpoint.action {
        Action::Create => call.create(key, given(node)?).await,
        Action::List => list::list(&app, call.caller.role, call.snapshot, key, parts.uri.query()).await,
        Action::Get => call.get(&key),
        // The PATCH without fields accepts an empty body (D5).
        Action::Patch if node.is_null() && endpoint.kind == Kind::EventSource => {
            call.patch(key, Node::Map(Vec::new())).await
        }
        Action::Patch => call.patch(key, given(node)?).await,
        Action::Delete => call
            .commit(&key, None, vec![Operation::Delete { key: key.clone(), with_children: true }])
            .await
            .map(|_| no_content()),
        Action::PutModule(slot) => call.put_module(key, slot, given(node)?).await,
        Action::GetModule(slot) => call.get_module(&key, slot),
        Action::DeleteModule(slot) => call
            .commit(&key, Some(slot), vec![Operation::DeleteModule { host: key.clone(), slot }])
            .await
            .map(|_| no_content()),
    }
}

fn given(node: Node) -> Result<Node, ApiError> {
    if node.is_null() {
        return Err(ApiError::of(Code::Syntax, "the request body must be a JSON object"));
    }
    Ok(node)
}

fn no_content() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

pub(super) fn not_found(what: &str) -> ApiError {
    ApiError::of(Code::NotFound, format!("{what} does not exist"))
}

impl ApiRequest<'_> {
    async fn create(&self, mut key: Key, node: Node) -> Result<Response, ApiError> {
        let (kind, info) = (self.kind, self.kind.info());
        let (spec, faults) = with_body(self.size, move || decode(kind, &node, None)).await?;
        let mut spec = without_faults(spec, faults)?;
        let mut operations = Vec::new();
        let mut token = None;
        if info.prefix.is_empty() {
            let field = spec.to_json(Secrets::Masked)?.get(info.id_parameter).and_then(Value::as_str).map(Id::new);
            key.id = field.unwrap_or_else(|| Id::new(""));
        } else {
            key.id = mint::fresh_id(self.kind);
        }
        if let Some(api_key) = spec.as_any().downcast_ref::<ApiKey>() {
            let api_key = self.owned(api_key.clone(), &mut operations)?;
            spec = Arc::new(api_key);
            token = Some(mint::token(&key.id));
        }
        if let Some(parent) = &key.parent {
            check_id(info.parent, parent)?;
        }
        let hash = token.as_ref().map(|(_, hash)| hash.clone());
        operations.push(Operation::Create { key: key.clone(), spec, claim: None, token: hash });
        let snapshot = self.commit(&key, None, operations).await?;
        let entry = snapshot.get(&key).ok_or_else(|| not_found(&key.to_string()))?;
        let rendered = match token {
            Some((token, _)) => with_token(&self.render(&snapshot, entry)?, &token)?,
            None => self.render(&snapshot, entry)?,
        };
        let mut response = answer::resource(StatusCode::CREATED, &rendered);
        if let Ok(location) = HeaderValue::from_str(&self.app.site.uri(&key)) {
            response.headers_mut().insert(header::LOCATION, location);
        }
        Ok(response)
    }

    /// The owner of a new key: the caller, or for admins any owner, who is created as an editor if needed (D23).
    fn owned(&self, mut key: ApiKey, operations: &mut Vec<Operation>) -> Result<ApiKey, ApiError> {
        if key.owner_id.is_empty() {
            key.owner_id = self.caller.owner.to_string();
        }
        if key.owner_id != self.caller.owner.as_str() && self.caller.role != Role::Admin {
            let fault = Fault::new(Code::Forbidden, "only admins may create a key for another owner");
            return Err(ApiError::new(fault.at(Path::root().join("owner_id"))));
        }
        if rules::role_of(&self.snapshot, &key.owner_id).is_none() {
            let owner = Key::new(Kind::Owner, Id::new(&key.owner_id));
            operations.push(Operation::Create {
                key: owner,
                spec: Arc::new(Owner::default()),
                claim: None,
                token: None,
            });
        }
        Ok(key)
    }

    fn get(&self, key: &Key) -> Result<Response, ApiError> {
        let entry = self.snapshot.get(key).ok_or_else(|| not_found(&key.to_string()))?;
        Ok(self.conditional(&self.render(&self.snapshot, entry)?))
    }

    async fn patch(&self, key: Key, node: Node) -> Result<Response, ApiError> {
        let info = self.kind.info();
        let fields = patched_fields(info.blank_is_unset, &node);
        let fixed = fields.iter().filter(|field| info.fixed.contains(&field.as_str()));
        let mut faults: Vec<Fault> = fixed
            .map(|field| {
                Fault::new(Code::Immutable, format!("`{field}` cannot change after creation"))
                    .at(Path::root().join(field.as_str()))
            })
            .collect();
        let (kind, given) = (self.kind, fields.clone());
        let (spec, found) = with_body(self.size, move || decode(kind, &node, Some(&given))).await?;
        faults.extend(found);
        let spec = without_faults(spec, faults)?;
        let operation = Operation::Patch { key: key.clone(), spec, fields };
        let snapshot = self.commit(&key, None, vec![operation]).await?;
        let entry = snapshot.get(&key).ok_or_else(|| not_found(&key.to_string()))?;
        Ok(answer::resource(StatusCode::OK, &self.render(&snapshot, entry)?))
    }

    async fn put_module(&self, host: Key, slot: &'static Slot, node: Node) -> Result<Response, ApiError> {
        check_id(Some(host.kind), &host.id)?;
        let decode = move || {
            let (module, mut faults) = (slot.decode)(&node, None);
            if let Some(module) = &module {
                let mut found = Faults::new();
                module.check(&mut found);
                add_untold(&mut faults, found.into_vec());
            }
            (module, faults)
        };
        let (module, faults) = with_body(self.size, decode).await?;
        let module = without_faults(module, faults)?;
        let operation = Operation::PutModule { host: host.clone(), slot, module };
        let snapshot =
            self.commit(&host, Some(slot), vec![operation]).await.map_err(|error| error.inside(slot.name))?;
        let rendered = self.render_module(&snapshot, &host, slot)?.ok_or_else(|| not_found(&host.to_string()))?;
        Ok(answer::resource(StatusCode::OK, &rendered))
    }

    fn get_module(&self, host: &Key, slot: &Slot) -> Result<Response, ApiError> {
        if self.snapshot.get(host).is_none() {
            return Err(not_found(&host.to_string()));
        }
        let rendered = self.render_module(&self.snapshot, host, slot)?;
        let rendered =
            rendered.ok_or_else(|| ApiError::of(Code::NotFound, format!("{host} has no {} module", slot.name)))?;
        Ok(self.conditional(&rendered))
    }

    /// Commits if the client's precondition holds at the revision that changes.
    async fn commit(
        &self,
        key: &Key,
        slot: Option<&'static Slot>,
        operations: Vec<Operation>,
    ) -> Result<Arc<Snapshot>, ApiError> {
        // A resource that does not exist yet has no ETag.
        let conditional = !matches!(operations.last(), Some(Operation::Create { .. }));
        let conditions = self.headers.get_all(header::IF_MATCH).iter().filter(|_| conditional);
        let conditions = conditions.map(|value| value.to_str().unwrap_or_default());
        let conditions: Vec<String> =
            conditions.flat_map(|value| value.split(',')).map(|tag| tag.trim().to_owned()).collect();
        let (app, role, key) = (Arc::clone(self.app), self.caller.role, key.clone());
        let attempt = Attempt::new(self.caller.author());
        let commit = move || {
            app.store.commit_with(attempt, |current| -> Result<Vec<Operation>, ApiError> {
                if !conditions.is_empty() {
                    let now = match slot {
                        Some(slot) => render_module(&app, role, current, &key, slot)?,
                        None => current.get(&key).map(|entry| render(&app, role, current, entry)).transpose()?,
                    };
                    let holds = now.is_some_and(|now| conditions.iter().any(|tag| tag == "*" || **tag == *now.etag));
                    if !holds {
                        let message = "`If-Match` does not match the current state of the resource";
                        return Err(ApiError::of(Code::PreconditionFailed, message));
                    }
                }
                Ok(operations)
            })
        };
        // The engine blocks until the data is on disk.
        let committed = tokio::task::spawn_blocking(commit).await;
        match committed.map_err(|_| ApiError::of(Code::Internal, "internal error while handling the request"))? {
            Ok(committed) => Ok(committed.snapshot),
            Err(Declined::Declined(error)) => Err(error),
            Err(Declined::Commit(error)) => Err(error.into()),
        }
    }

    fn render(&self, snapshot: &Snapshot, entry: &Entry) -> Result<Rendered, ApiError> {
        render(self.app, self.caller.role, snapshot, entry)
    }

    fn render_module(&self, snapshot: &Snapshot, host: &Key, slot: &Slot) -> Result<Option<Rendered>, ApiError> {
        render_module(self.app, self.caller.role, snapshot, host, slot)
    }

    /// Responds to a GET, with 304 if the client's copy is current (D25).
    fn conditional(&self, rendered: &Rendered) -> Response {
        answer::conditional(&self.headers, rendered)
    }
}

/// Renders a resource for a role. The common form is cached with the entry.
pub(super) fn render(app: &App, role: Role, snapshot: &Snapshot, entry: &Entry) -> Result<Rendered, ApiError> {
    if role == Role::Viewer {
        return Ok(answer::rendered(view_json(snapshot, entry, &app.site, Secrets::Masked)?));
    }
    if let Some(rendered) = entry.rendered.get() {
        return Ok(rendered.clone());
    }
    let body = view_json(snapshot, entry, &app.site, Secrets::Revealed)?;
    Ok(entry.rendered.get_or_init(|| answer::rendered(body)).clone())
}

/// Renders a module for a role; `None` if the slot is empty.
fn render_module(
    app: &App,
    role: Role,
    snapshot: &Snapshot,
    host: &Key,
    slot: &Slot,
) -> Result<Option<Rendered>, ApiError> {
    let Some(module) = snapshot.get(host).and_then(|entry| entry.spec().module(slot)) else { return Ok(None) };
    let secrets = if role == Role::Viewer { Secrets::Masked } else { Secrets::Revealed };
    Ok(Some(answer::rendered(module.view_json(host, &app.site, secrets)?)))
}

/// The fields that a PATCH changes: set, and not blank if blank means unset (D6).
fn patched_fields(blank_is_unset: &[&str], node: &Node) -> Vec<String> {
    let entries = node.entries().unwrap_or_default().iter();
    let blank = |key: &String, value: &Node| blank_is_unset.contains(&key.as_str()) && value.as_str() == Some("");
    entries.filter(|(key, value)| !value.is_null() && !blank(key, value)).map(|(key, _)| key.clone()).collect()
}

/// Decodes a body and checks the spec's rules; for a PATCH, only those of the `given` fields.
fn decode(kind: Kind, node: &Node, given: Option<&[String]>) -> Decoded<Arc<dyn AnyResource>> {
    let blank = |field: &&&str| given.is_some_and(|given| !given.iter().any(|it| it == **field));
    let blank: Vec<&str> = kind.info().blank_is_unset.iter().filter(blank).copied().collect();
    let info = kind.info();
    let (spec, mut faults) = match given {
        Some(_) => (info.decode_patch)(node, &blank, info.fixed),
        None => (info.decode)(node, &blank, None),
    };
    if let Some(spec) = &spec {
        let mut found = Faults::new();
        spec.check(&mut found);
        let checked = |fault: &Fault| match (given, fault.path.0.first()) {
            (Some(given), Some(Segment::Key(field))) => given.contains(field),
            _ => true,
        };
        add_untold(&mut faults, found.into_vec().into_iter().filter(checked));
    }
    (spec, faults)
}

/// Returns the value, or all faults.
fn without_faults<T>(decoded: Option<T>, faults: Vec<Fault>) -> Result<T, ApiError> {
    match decoded {
        Some(decoded) if faults.is_empty() => Ok(decoded),
        _ => Err(ApiError::from_faults(faults)),
    }
}

/// Checks the id of an implicit resource, which is created with its first module (D20).
pub(super) fn check_id(kind: Option<Kind>, id: &Id) -> Result<(), ApiError> {
    if kind.is_some_and(|kind| kind.info().implicit) && !is_opaque_id(id.as_str()) {
        return Err(ApiError::of(
            Code::InvalidFormat,
            "the id in the path must have 1 to 255 bytes, without slash, space or control characters",
        ));
    }
    Ok(())
}

/// Creates the only response that contains a token.
fn with_token(rendered: &Rendered, token: &Secret) -> Result<Rendered, ApiError> {
    let unshown = || ApiError::of(Code::Internal, "cannot return the token; delete the key and create another one");
    let mut body: Value = serde_json::from_slice(&rendered.body).map_err(|_| unshown())?;
    let field = body.get_mut("token").ok_or_else(unshown)?;
    *field = json!(token.expose());
    Ok(Rendered { body: json::bytes(&body, Secrets::Masked)?.into(), etag: Arc::clone(&rendered.etag) })
}
