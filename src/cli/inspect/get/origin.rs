//! Where the resources of `get` are found: in a store or on a server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::{kind_of, kinds, name_of, plural};
use crate::{
    cli::{
        Exit, Failure,
        inspect::status::short,
        operate::revision::{revision_in, revision_through, unreached},
        target::{ApiClient, Pages, foreign_response, store_or_server::StoreOrServer},
    },
    filter::Filter,
    model::{
        Kind,
        decode::list,
        diagnostics::{
            code::Code,
            diagnostic::{Diagnostic, Name},
            fault::{Fault, nearest},
        },
        id::Id,
        json::unbounded,
        key::{Key, segment},
        secrets::secret::Secrets,
        snapshot::{Entry, Snapshot},
        view::view_json,
    },
    server::{self, operations::origin::ResourceOrigin},
    store::{Store, history::commits::RevisionName},
    syntax::{
        cel::{CelMeter, OBJ},
        text::printable,
    },
};

/// The most resources whose origin is shown: each is found in the history by itself.
const MOST_WIDE: usize = 100;
/// The most resources of one name that an error lists.
const MOST_NAMED: usize = 5;

/// A resource of a list, and its parent, which the API's response need not contain.
pub(super) struct ListedResource {
    pub(super) parent: Option<Id>,
    pub(super) body: Value,
}

/// Where the resources are.
pub(crate) enum GetOrigin {
    Store(Box<Store>, Arc<Snapshot>),
    /// A server, and the revision to read if it is not the current one.
    Server(ApiClient, Option<u64>),
}

impl GetOrigin {
    /// Opens a store for reading, or prepares a client. `at` is the revision to read, if it is not the current one.
    pub(crate) fn open(place: &StoreOrServer, at: Option<&RevisionName>) -> Result<Self, Failure> {
        if let Some(client) = place.client()? {
            // All lists must be of one revision, so a commit is looked up once.
            let revision = at.map(|name| revision_through(&client, name)).transpose()?;
            return Ok(GetOrigin::Server(client, revision));
        }
        let store = place.store.read_existing()?;
        let snapshot = match at {
            Some(name) => store.snapshot_at(revision_in(&store, name)?).map_err(unreached)?,
            None => store.snapshot(),
        };
        Ok(GetOrigin::Store(Box::new(store), snapshot))
    }

    /// Finds the key of the one resource that `KIND NAME`, `KIND ID`, `ID`, `NAME`, `PARENT/NAME` or `KIND/NAME` names.
    pub(crate) fn key_of(&self, first: &str, second: Option<&str>) -> Result<Key, Failure> {
        match second {
            Some(wanted) => self.key_of_kind(kind_of(first)?, wanted),
            None => match self.kind_of_id(first) {
                Ok(kind) => self.key_of_kind(kind, first),
                Err(failure) if failure.has_code(Code::NotFound) => self.key_of_full_name(first),
                Err(failure) => Err(failure),
            },
        }
    }

    /// Finds the key of the one resource that has a name, alone, after that of its parent, or after its kind. An edge can have
    /// the name of a kind, so that a parent comes first.
    fn key_of_full_name(&self, name: &str) -> Result<Key, Failure> {
        let found = self.key_of_name(name);
        let is_unknown = found.as_ref().is_err_and(|failure| failure.has_code(Code::NotFound));
        let with_kind = name.split_once('/').filter(|_| is_unknown);
        match with_kind.and_then(|(kind, name)| Some((kind_of(kind).ok()?, name))) {
            Some((kind, name)) => self.key_of_kind(kind, name),
            None => found,
        }
    }

    /// The key of an id, if it is one of a resource without a parent. The resource need not exist.
    pub(crate) fn key_of_id(&self, id: &str) -> Result<Option<Key>, Failure> {
        match self.kind_of_id(id) {
            Ok(kind) if kind.info().parent.is_none() => Ok(Some(Key::new(kind, Id::new(id)))),
            Ok(_) => Ok(None),
            Err(unknown) if unknown.has_code(Code::NotFound) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Finds the key of the one resource of any kind that has a name, alone or after that of its parent.
    fn key_of_name(&self, name: &str) -> Result<Key, Failure> {
        let (children, others): (Vec<Kind>, Vec<Kind>) = kinds().partition(|kind| kind.info().parent.is_some());
        let others = if name.contains('/') { Vec::new() } else { others };
        let mut found = Vec::new();
        for group in [others, children] {
            // Without the name of a parent, children are searched for below each, with a request for every parent.
            if !found.is_empty() {
                break;
            }
            for kind in group {
                match self.keys_of_kind(kind, name) {
                    Ok(keys) => found.extend(keys),
                    Err(failure) if failure.has_code(Code::NotFound) => {}
                    Err(failure) => return Err(failure),
                }
            }
        }
        let ways: Vec<String> = found
            .iter()
            .take(MOST_NAMED)
            .map(|key| format!("{} {}", name_of(key.kind), printable(key.id.as_str())))
            .collect();
        match (found.pop(), found.is_empty()) {
            (Some(key), true) => Ok(key),
            (Some(_), false) => {
                let message = format!("several resources have the name `{}`", printable(name));
                let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
                Err(Diagnostic::error(Code::DuplicateName, message).help(format!("use one of {}", list(&ways))).into())
            }
            (None, _) => {
                let message = format!("no resource has the id or name `{}`", printable(name));
                Err(Diagnostic::error(Code::NotFound, message).help(self.near_name(name)).into())
            }
        }
    }

    /// The help for a name that no resource has. Only a store has all names at hand.
    fn near_name(&self, name: &str) -> String {
        let names = match self {
            GetOrigin::Store(_, snapshot) => names(snapshot, name.contains('/')),
            GetOrigin::Server(..) => Vec::new(),
        };
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{}`?", printable(near)),
            None if name.contains('/') => {
                "name a resource as `KIND/NAME`, a route as `EDGE/ROUTE`, or by its id; `edgewright get` lists them"
                    .into()
            }
            None => near_kind(name),
        }
    }

    /// Finds the kind of an id: by its prefix, or among the resources whose ids are chosen elsewhere (D20).
    pub(crate) fn kind_of_id(&self, id: &str) -> Result<Kind, Failure> {
        if let Some(kind) = kinds().find(|kind| has_prefix(*kind, id)) {
            return Ok(kind);
        }
        for kind in kinds().filter(|kind| kind.info().implicit) {
            if !self.list(kind, None, &by_id(kind, id))?.is_empty() {
                return Ok(kind);
            }
        }
        let message = format!("`{}` is neither the id of a resource nor a kind", printable(id));
        Err(Diagnostic::error(Code::NotFound, message).help(near_kind(id)).into())
    }

    /// Returns the parents to look below: those that are named, that of the id that is wanted, or all.
    pub(super) fn parents(
        &self,
        kind: Kind,
        named: Option<&str>,
        wanted: Option<&str>,
    ) -> Result<Vec<Option<Id>>, Failure> {
        let Some(of) = kind.info().parent else { return Ok(vec![None]) };
        let parents = match (named, wanted) {
            (Some(named), _) => self.find(of, &[None], named)?,
            (None, Some(wanted)) if has_prefix(kind, wanted) && self.finds_by_id() => {
                return Ok(self.parent_of(kind, wanted)?.into_iter().map(Some).collect());
            }
            (None, _) => self.list_all(of, &[None], &[])?,
        };
        Ok(parents.iter().map(|parent| Some(Id::new(text(&parent.body, "id")))).collect())
    }

    /// Whether a resource is found by its id without its parent. A server only knows that of the current revision.
    fn finds_by_id(&self) -> bool {
        !matches!(self, GetOrigin::Server(_, Some(_)))
    }

    /// The parent of a resource, if the resource exists.
    fn parent_of(&self, kind: Kind, id: &str) -> Result<Option<Id>, Failure> {
        let client = match self {
            GetOrigin::Store(_, snapshot) => {
                return Ok(snapshot.find_child(kind, &Id::new(id)).and_then(|child| child.key.parent.clone()));
            }
            GetOrigin::Server(client, _) => client,
        };
        match client.get::<ResourceOrigin>(&format!("/resources/{}", segment(id))) {
            Ok(found) => Ok(Key::at_path(kind, &found.path).and_then(|key| key.parent)),
            Err(failure) if failure.diagnostics.iter().any(|it| it.code == Name::Code(Code::NotFound)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn key_of_kind(&self, kind: Kind, wanted: &str) -> Result<Key, Failure> {
        let mut found = self.keys_of_kind(kind, wanted)?;
        let (Some(key), true) = (found.pop(), found.is_empty()) else {
            let message = format!("several {} have the name `{}`", plural(name_of(kind)), printable(wanted));
            return Err(Diagnostic::error(Code::DuplicateName, message).help("use the id").into());
        };
        Ok(key)
    }

    /// Finds the keys of the resources of a kind that have an id or name.
    fn keys_of_kind(&self, kind: Kind, wanted: &str) -> Result<Vec<Key>, Failure> {
        let (parent, name) = parent_and_name(kind, wanted);
        let parents = self.parents(kind, parent, Some(name))?;
        let key = |listed: ListedResource| {
            let id = Id::new(text(&listed.body, kind.info().id_parameter));
            Key { kind, parent: listed.parent, id }
        };
        Ok(self.find(kind, &parents, name)?.into_iter().map(key).collect())
    }

    /// Finds a resource by id or name below any of the parents. Two sources can use one name.
    pub(super) fn find(
        &self,
        kind: Kind,
        parents: &[Option<Id>],
        wanted: &str,
    ) -> Result<Vec<ListedResource>, Failure> {
        // An id contains `_`, a name never does (D26). Only clients choose other ids.
        let chosen = kind.info().implicit || kind.info().prefix.is_empty();
        let mut found = Vec::new();
        if !wanted.contains('_') {
            found = self.list_all(kind, parents, &[("name", wanted.to_owned())])?;
        }
        if found.is_empty() && (chosen || wanted.contains('_')) {
            found = self.list_all(kind, parents, &by_id(kind, wanted))?;
        }
        if found.is_empty() {
            let name = name_of(kind);
            let message = format!("no {name} with the id or name `{}`", printable(wanted));
            let help = format!("list them with `edgewright get {}`", plural(name));
            return Err(Diagnostic::error(Code::NotFound, message).help(help).into());
        }
        Ok(found)
    }

    /// Adds the source, the file and line, and the commit of each resource.
    pub(super) fn add_origins(&self, kind: Kind, found: &mut [ListedResource]) -> Result<(), Failure> {
        if found.len() > MOST_WIDE {
            let message = format!("`wide` shows up to {MOST_WIDE} resources (found {})", found.len());
            return Err(Diagnostic::error(Code::Parameter, message).help("name a resource, or set --filter").into());
        }
        for listed in found {
            let id = text(&listed.body, kind.info().id_parameter).to_owned();
            let key = Key { kind, parent: listed.parent.clone(), id: Id::new(&id) };
            let origin = match self {
                GetOrigin::Server(client, _) if !kind.facts().prefix.is_empty() => {
                    Some(client.get::<ResourceOrigin>(&format!("/resources/{}", segment(&id)))?)
                }
                GetOrigin::Store(store, snapshot) => {
                    snapshot.get(&key).map(|entry| ResourceOrigin::of(store, entry, "")).transpose()?
                }
                GetOrigin::Server(..) => None,
            };
            let Value::Object(fields) = &mut listed.body else { continue };
            let line = origin.as_ref().and_then(|origin| origin.line).map(|line| format!(":{line}"));
            let (source, file, commit) = origin.map(|it| (it.source, it.file, it.commit)).unwrap_or_default();
            fields.insert("source".into(), source.into());
            fields.insert("file".into(), (file + &line.unwrap_or_default()).into());
            fields.insert("commit".into(), short(&commit).into());
        }
        Ok(())
    }

    pub(super) fn list_all(
        &self,
        kind: Kind,
        parents: &[Option<Id>],
        given: &[(&'static str, String)],
    ) -> Result<Vec<ListedResource>, Failure> {
        let mut found = Vec::new();
        for parent in parents {
            let items = self.list(kind, parent.as_ref(), given)?;
            found.extend(items.into_iter().map(|body| ListedResource { parent: parent.clone(), body }));
        }
        Ok(found)
    }

    /// Lists resources of a parent, newest first.
    fn list(&self, kind: Kind, parent: Option<&Id>, given: &[(&'static str, String)]) -> Result<Vec<Value>, Failure> {
        match self {
            GetOrigin::Store(store, snapshot) => from_store(store, snapshot, kind, parent, given),
            GetOrigin::Server(client, at) => from_server(client, *at, kind, parent, given),
        }
    }
}

/// The names of resources, of children with or without that of their parents.
fn names(snapshot: &Snapshot, with_parents: bool) -> Vec<String> {
    let own = |entry: &Entry| Some(entry.claim.as_deref()?.name.clone());
    let full = |entry: &Entry| match entry.key.parent_key().filter(|_| with_parents) {
        Some(parent) => Some(format!("{}/{}", own(snapshot.get(&parent)?)?, own(entry)?)),
        None => own(entry),
    };
    snapshot.iter().filter_map(|entry| full(entry)).collect()
}

/// The help for what is neither an id nor a name: a kind may be meant.
fn near_kind(word: &str) -> String {
    match kind_of(word) {
        Ok(kind) => format!("name the resource, too, as in `{} NAME`", name_of(kind)),
        Err(unknown) => unknown.diagnostics.into_iter().find_map(|it| it.help).unwrap_or_default(),
    }
}

/// Splits `EDGE/ROUTE`, as plans show a resource that has a parent.
pub(super) fn parent_and_name(kind: Kind, wanted: &str) -> (Option<&str>, &str) {
    match wanted.rsplit_once('/') {
        // The id of a subscription can contain a slash; the type of a source, and the name of a route, cannot.
        Some((parent, name)) if kind.info().parent.is_some() => (Some(parent), name),
        _ => (None, wanted),
    }
}

/// Whether an id has the prefix of a kind.
fn has_prefix(kind: Kind, id: &str) -> bool {
    !kind.facts().prefix.is_empty() && id.starts_with(kind.facts().prefix)
}

/// The filter for an id.
fn by_id(kind: Kind, id: &str) -> Vec<(&'static str, String)> {
    vec![("filter", format!("{OBJ}.{} == {}", kind.info().id_parameter, json!(id)))]
}

fn from_store(
    store: &Store,
    snapshot: &Snapshot,
    kind: Kind,
    parent: Option<&Id>,
    given: &[(&'static str, String)],
) -> Result<Vec<Value>, Failure> {
    // A store has no URL: each `uri` is a path.
    let site = server::site(store, "", "");
    let failed =
        |faults: Vec<Fault>| Failure { diagnostics: faults.into_iter().map(diagnostic).collect(), exit: Exit::Error };
    let filter = Filter::new(kind, given).map_err(failed)?;
    let never = || false;
    let meter = CelMeter::new(u64::MAX, &never);
    let mut items = Vec::new();
    for entry in snapshot.newest_first(kind, parent, u64::MAX) {
        if filter.selects(snapshot, &site, entry, &meter).map_err(|fault| failed(vec![fault]))? {
            let body = view_json(snapshot, entry, &site, Secrets::Masked)?;
            let item = unbounded::from_slice(&body);
            items.push(item.map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?);
        }
    }
    Ok(items)
}

fn diagnostic(fault: Fault) -> Diagnostic {
    let diagnostic = Diagnostic::error(fault.code, fault.message);
    match fault.help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    }
}

const LIST_ALL: &str = "upgrade the server, or list all resources without a name, an id or a filter";

fn from_server(
    client: &ApiClient,
    at: Option<u64>,
    kind: Kind,
    parent: Option<&Id>,
    given: &[(&'static str, String)],
) -> Result<Vec<Value>, Failure> {
    let collection = kind.facts().collection;
    if !given.is_empty() {
        client.require(collection, "filter", "its lists do not support filters", LIST_ALL)?;
    }
    if at.is_some() {
        client.require(collection, "at", "its lists do not support earlier revisions", "upgrade the server")?;
    }
    let path = Key { kind, parent: parent.cloned(), id: Id::new("") }.collection_path();
    let limit = kind.is_paged().then(|| "limit=1000".to_owned());
    let filters = given.iter().map(|(name, value)| format!("{name}={}", segment(value)));
    let at = at.map(|revision| format!("at={revision}"));
    let first = limit.into_iter().chain(filters).chain(at).collect::<Vec<String>>().join("&");
    let mut pages = Pages::of_resources(client, &path, &first);
    let mut query = Some(first);
    let mut items = Vec::new();
    while let Some(parameters) = query {
        let mut page: Value =
            client.get(&format!("{path}?{parameters}")).map_err(|failure| for_a_list(failure, parent))?;
        let Some(Value::Array(found)) = page.get_mut(kind.info().list).map(Value::take) else {
            return Err(foreign_response(&client.address(&path), 200));
        };
        let count = found.len();
        items.extend(found);
        query = pages.next(count, page.get("next_page_uri").and_then(Value::as_str))?;
    }
    Ok(items)
}

/// A parent that was deleted since it was listed is no mistake in the URL.
fn for_a_list(mut failure: Failure, parent: Option<&Id>) -> Failure {
    for diagnostic in &mut failure.diagnostics {
        if parent.is_some() && diagnostic.code == Name::Code(Code::NotFound) {
            diagnostic.help = Some("run the command again".into());
        }
    }
    failure
}

fn text<'v>(item: &'v Value, field: &str) -> &'v str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}
