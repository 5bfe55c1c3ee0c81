//! The implementation of each action, shared by all kinds: create, get, list, patch, delete, and the module actions.

use axum::http::Request;

use super::endpoint::{Action, Endpoint};
use super::external_id::check_id;
use super::managed_resources::WriteCheck;
use super::pending_write::{CommittedWrite, PendingWrite};
use super::render::{self, render, render_module};
use super::{at_revision, key_owner, list};
use crate::model::diagnostics::fault::{add_faults_beside_fields, add_new_faults};
use crate::model::{ApiKey, Rendered, Secret, Slot};
use crate::server::handler_prelude::*;
use crate::server::http::body::{self, Limits};
use crate::server::http::{body_fields, page};
use crate::server::limits::blocking_task::SMALL;
use crate::server::limits::guards;
use crate::store::{ids, tokens};
use crate::syntax::yaml::Tape;

/// A request.
struct ApiRequest<'a> {
    app: &'a AppState,
    caller: Caller,
    /// The secrets that the caller sees in this state.
    visibility: SecretVisibility,
    snapshot: Arc<Snapshot>,
    kind: Kind,
    headers: HeaderMap,
    /// The size of the body in bytes.
    size: usize,
    /// The faults of the body's keys and numbers, and of the path parameters that it repeats.
    body_faults: Vec<Fault>,
}

/// An endpoint that is ready for requests.
pub(crate) struct ServedEndpoint {
    app: AppState,
    endpoint: Endpoint,
    /// The query parameters.
    known: Vec<&'static str>,
}

impl ServedEndpoint {
    /// Prepares an endpoint for requests.
    pub(crate) fn new(app: AppState, endpoint: Endpoint) -> Self {
        let known = endpoint.query_parameters().into_iter().map(|(name, _)| name).collect();
        Self { app, endpoint, known }
    }
}

/// Handles a request to an endpoint; `parameters` are the decoded path parameters. What only writes, lists and earlier states
/// wait for is boxed: every read would have to allocate room for it.
pub(crate) async fn handle(served: &ServedEndpoint, parameters: Vec<String>, request: Request<Body>) -> ApiResult {
    let ServedEndpoint { app, endpoint, known } = served;
    let (parts, body) = request.into_parts();
    let (access, store) = (&app.access, &app.served.store);
    // A HEAD request is a GET without a body.
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    let intent = if is_read { Intent::Read } else { Intent::Change };
    let mut snapshot = store.snapshot();
    let mut caller = access.admit(&snapshot, &intent, &parts.headers)?;
    query::check(parts.uri.query(), known)?;
    if !is_read && app.forwarder.is_needed() {
        drop(snapshot);
        let (places, owner) = (&app.admissions.forwards, Some(&caller.owner));
        return Box::pin(app.forwarder.forward_change(places, owner, &parts, body)).await;
    }
    let (mut content, mut body_faults, mut size) = (Tape::default(), Vec::new(), 0);
    if matches!(parts.method, Method::POST | Method::PATCH | Method::PUT) {
        // An old state is not kept while the body is received, and the key may be revoked meanwhile.
        drop((snapshot, caller));
        (content, body_faults, size) = Box::pin(body::read(&parts.headers, body, Limits::RESOURCE)).await?;
        if content.root().is_null() {
            ApiError::check(std::mem::take(&mut body_faults))?;
        }
        snapshot = store.snapshot();
        caller = access.admit_again(&snapshot, &intent, &parts.headers)?;
    }
    // Who may read is decided now, also for an earlier state.
    let (current, visibility) = (snapshot.revision, SecretVisibility::from_caller(&caller));
    // The place of an earlier state is held until the response is made.
    let (snapshot, at, _place) = match parts.uri.query().filter(|_| known.contains(&page::AT)) {
        Some(query) => Box::pin(at_revision::state(app, &caller.owner, snapshot, query)).await?,
        None => (snapshot, None, None),
    };
    let visibility = visibility.for_revision(snapshot.revision, current);
    body_faults.extend(body_fields::take_parameters(&mut content, endpoint, &parameters));
    let call = ApiRequest {
        app,
        caller,
        visibility,
        snapshot,
        kind: endpoint.kind,
        headers: parts.headers,
        size,
        body_faults,
    };
    let mut parameters = parameters.into_iter().map(|parameter| Id::new(&parameter));
    let parent = endpoint.kind.info().parent.and_then(|_| parameters.next());
    let id = parameters.next().unwrap_or_else(|| Id::new(""));
    let key = Key { kind: endpoint.kind, parent, id };
    dispatch(call, endpoint.action, key, content, at, parts.uri.query()).await
}

/// Calls the handler of an action. `at` is the revision that a read asks for.
async fn dispatch(
    call: ApiRequest<'_>,
    action: Action,
    key: Key,
    content: Tape,
    at: Option<u64>,
    query: Option<&str>,
) -> ApiResult {
    match action {
        Action::Create => Box::pin(call.create(key, body_fields::body(content)?, query)).await,
        Action::List => {
            let ApiRequest { app, caller, visibility, snapshot, headers, .. } = call;
            let reader = list::ListReader { owner: caller.owner, visibility };
            Box::pin(list::list(app, reader, snapshot, at, key, query, headers)).await
        }
        Action::Get => call.get(&key).await,
        // The PATCH without fields accepts an empty body (D5).
        Action::Patch if content.root().is_null() && key.kind == Kind::EventSource => {
            Box::pin(call.patch(key, Tape::empty_mapping())).await
        }
        Action::Patch => Box::pin(call.patch(key, body_fields::body(content)?)).await,
        Action::Delete => Box::pin(call.delete(Operation::Delete { key, with_children: true })).await,
        Action::PutModule(slot) => Box::pin(call.put_module(key, slot, body_fields::module_body(slot, content)?)).await,
        Action::GetModule(slot) => call.get_module(&key, slot),
        Action::DeleteModule(slot) => Box::pin(call.delete(Operation::DeleteModule { host: key, slot })).await,
    }
}

impl ApiRequest<'_> {
    async fn create(&self, mut key: Key, content: Tape, query: Option<&str>) -> ApiResult {
        let (kind, info) = (self.kind, self.kind.info());
        let owner_role = key_owner::requested_role(query)?;
        if owner_role.is_some() {
            // The response may tell which role an owner has.
            let owner = content.root().get("owner_id").and_then(|owner| owner.as_str());
            let intent = owner.map_or(Intent::Owners, Intent::KeyFor);
            self.app.access.admit_again(&self.snapshot, &intent, &self.headers)?;
        }
        let (spec, mut faults) = with_body(self.size, move || body_fields::decode(kind, content.root(), None)).await?;
        faults.extend(key_owner::past_expiry(spec.as_deref(), None));
        let mut spec = self.valid(spec, faults, None, |spec| Operation::create(key.clone(), spec)).await?;
        let mut token = None;
        if info.prefix.is_empty() {
            let field = spec.to_json(Secrets::Masked)?.get(info.id_parameter).and_then(Value::as_str).map(Id::new);
            key.id = field.unwrap_or_else(|| Id::new(""));
        } else {
            key.id = ids::fresh_id(self.kind);
        }
        if let Some(api_key) = spec.as_any().downcast_ref::<ApiKey>() {
            let mut api_key = api_key.clone();
            if api_key.owner_id.is_empty() {
                api_key.owner_id = self.caller.owner.to_string();
            }
            spec = Arc::new(api_key);
            token = Some(tokens::token(&key.id));
        }
        if let Some(parent) = &key.parent {
            check_id(&self.snapshot, info.parent, parent)?;
        }
        let hash = token.as_ref().map(|(_, hash)| hash.clone());
        let operation = Operation::Create { key: key.clone(), spec, claim: None, token: hash };
        let done = self.commit(operation, owner_role).await?;
        let entry = done.snapshot.get(&key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
        let rendered = match token {
            Some((token, _)) => with_token(&self.render(&done.snapshot, entry)?, &token)?,
            None => self.render(&done.snapshot, entry)?,
        };
        let mut response = response::resource(StatusCode::CREATED, &rendered);
        let uri = self.app.served.base_urls.uri(&key);
        response::set_header(response.headers_mut(), header::LOCATION, &uri);
        Ok(done.complete(response))
    }

    async fn get(&self, key: &Key) -> ApiResult {
        let entry = self.snapshot.get(key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
        if !render::takes_long(&self.visibility, &self.snapshot, [entry]) {
            return Ok(conditional::response(&self.headers, &self.render(&self.snapshot, entry)?));
        }
        let (served, snapshot, entry) = (Arc::clone(&self.app.served), Arc::clone(&self.snapshot), Arc::clone(entry));
        let visibility = self.visibility.clone();
        let place = self.app.admissions.renderings.for_owner(&self.caller.owner)?;
        let rendered =
            Box::pin(place.render(move || render(&served.base_urls, &visibility, &snapshot, &entry))).await?;
        Ok(conditional::response(&self.headers, &rendered))
    }

    async fn patch(&self, key: Key, content: Tape) -> ApiResult {
        let info = self.kind.info();
        let patch = body_fields::patch_fields(info, content.root(), self.app.writes.blanks_count);
        let (kind, named) = (self.kind, patch.changed.clone());
        let (spec, found) =
            with_body(self.size, move || body_fields::decode(kind, content.root(), Some(&named))).await?;
        let before = self.snapshot.get(&key).map(|entry| Arc::clone(entry.spec()));
        let mut fields = patch.changed.clone();
        if let Some(spec) = &spec {
            // Immutable fields are compared, and one may be a secret.
            let operation = Operation::Patch { key: key.clone(), spec: Arc::clone(spec), fields: fields.clone() };
            self.allows(&operation).map_err(|fault| self.caller.refused(fault))?;
        }
        let mut faults = body_fields::take_fixed(&mut fields, info, before.as_deref(), spec.as_deref());
        faults.extend(found);
        faults.extend(key_owner::past_expiry(spec.as_deref(), before.as_deref()));
        let patch_with = |spec| Operation::Patch { key: key.clone(), spec, fields: fields.clone() };
        let spec = self.valid(spec, faults, None, patch_with).await?;
        let operation = patch_with(Arc::clone(&spec));
        let done = self.commit(operation, None).await?;
        let entry = done.snapshot.get(&key).ok_or_else(|| ApiError::not_found(&key.to_string()))?;
        let mut response = response::resource(StatusCode::OK, &self.render(&done.snapshot, entry)?);
        if let Some(before) = &before {
            let after = entry.spec().as_ref();
            response::warn(
                &mut response,
                &body_fields::blank_fields(info, &patch, before.as_ref(), spec.as_ref(), after),
            );
        }
        Ok(done.complete(response))
    }

    async fn delete(&self, operation: Operation) -> ApiResult {
        Ok(self.commit(operation, None).await?.complete(StatusCode::NO_CONTENT.into_response()))
    }

    async fn put_module(&self, host: Key, slot: &'static Slot, content: Tape) -> ApiResult {
        check_id(&self.snapshot, Some(host.kind), &host.id)?;
        let (module, faults) = with_body(self.size, move || body_fields::decode_module(slot, content.root())).await?;
        let put_with = |module| Operation::PutModule { host: host.clone(), slot, module };
        let module = self.valid(module, faults, Some(slot), put_with).await?;
        let done = self.commit(put_with(module), None).await.map_err(|error| error.inside(slot.name))?;
        let rendered = self.render_module(&done.snapshot, &host, slot)?;
        let rendered = rendered.ok_or_else(|| ApiError::not_found(&host.to_string()))?;
        Ok(done.complete(response::resource(StatusCode::OK, &rendered)))
    }

    fn get_module(&self, host: &Key, slot: &Slot) -> ApiResult {
        if self.snapshot.get(host).is_none() {
            return Err(ApiError::not_found(&host.to_string()));
        }
        let rendered = self.render_module(&self.snapshot, host, slot)?;
        let missing = || format!("{} has no {} module", self.snapshot.name_of(host), slot.name);
        let rendered = rendered.ok_or_else(|| ApiError::with_code(Code::NotFound, missing()))?;
        Ok(conditional::response(&self.headers, &rendered))
    }

    /// Commits if the client's precondition holds at the revision that changes.
    async fn commit(&self, operation: Operation, owner_role: Option<Role>) -> Result<CommittedWrite, ApiError> {
        // A resource that does not exist yet has no ETag.
        let conditional = !matches!(operation, Operation::Create { .. });
        let precondition = if conditional { Precondition::from_headers(&self.headers) } else { Precondition::none() };
        let (app, caller, key) = (self.app.clone(), self.caller.clone(), operation.key().clone());
        let slot = match operation {
            Operation::PutModule { slot, .. } | Operation::DeleteModule { slot, .. } => Some(slot),
            _ => None,
        };
        let mut owned = WriteCheck::new(self.app.clone(), &self.headers, &self.visibility);
        let address = guards::client_of(&self.headers);
        let quick = self.size <= SMALL && !matches!(operation, Operation::Delete { .. });
        let mut operations = vec![operation];
        if !owned.look_up(&operations, false) {
            let look_up = move || {
                owned.look_up(&operations, true);
                Ok((owned, operations))
            };
            (owned, operations) = blocking(look_up).await?;
        }
        let write =
            PendingWrite { app, caller, address, key, slot, operations, owner_role, owned, precondition, quick };
        Box::pin(write.commit()).await
    }

    /// Returns the decoded body, or all of its faults: those of the body, those that were found in its fields, and those that
    /// the operation with it would have beside them (D9). Who may not make the operation learns nothing about other resources.
    async fn valid<T: Clone>(
        &self,
        decoded: Option<T>,
        found: Vec<Fault>,
        slot: Option<&'static Slot>,
        operation: impl FnOnce(T) -> Operation,
    ) -> Result<T, ApiError> {
        let mut faults = self.body_faults.clone();
        add_new_faults(&mut faults, found);
        if !faults.is_empty()
            && let Some(operation) = decoded.clone().map(operation)
            && self.allows(&operation).is_ok()
        {
            let snapshot = Arc::clone(&self.snapshot);
            let beside = blocking(move || Ok(snapshot.faults_beside_fields(&operation))).await?;
            // The body of a module has the fields of the module alone.
            let in_body = |fault: Fault| match slot.and_then(|slot| fault.path.strip(slot.name)) {
                Some(path) => fault.at(path),
                None => fault,
            };
            add_faults_beside_fields(&mut faults, beside.into_iter().map(in_body));
        }
        body_fields::without_faults(decoded, faults)
    }

    /// Whether the caller may make an operation.
    fn allows(&self, operation: &Operation) -> Result<(), Fault> {
        let address = guards::client_of(&self.headers);
        permission::allows_request(&self.caller, address, std::slice::from_ref(operation), &self.snapshot)
    }

    fn render(&self, snapshot: &Snapshot, entry: &Entry) -> Result<Rendered, ApiError> {
        render(&self.app.served.base_urls, &self.visibility, snapshot, entry)
    }

    fn render_module(&self, snapshot: &Snapshot, host: &Key, slot: &Slot) -> Result<Option<Rendered>, ApiError> {
        render_module(&self.app.served.base_urls, &self.visibility, snapshot, host, slot)
    }
}

/// Creates the only response that contains a token.
fn with_token(rendered: &Rendered, token: &Secret) -> Result<Rendered, ApiError> {
    let unshown =
        || ApiError::with_code(Code::Internal, "cannot return the token; delete the key and create another one");
    let mut body: Value = serde_json::from_slice(&rendered.body).map_err(|_| unshown())?;
    let field = body.get_mut("token").ok_or_else(unshown)?;
    *field = json!(token.expose());
    Ok(Rendered { body: json::bytes(&body, Secrets::Masked)?.into(), etag: Arc::clone(&rendered.etag) })
}
