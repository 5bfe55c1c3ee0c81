//! The resources in a store or on a server: lists, names and origins.

use super::kinds::{kinds, name_of, parse_kind, short_name_of};
use super::near::near_kind;
use crate::cli::access::keys::roles_on_server;
use crate::cli::access::owners::owners_in_store;
use crate::cli::command_prelude::*;
use crate::cli::failure::if_found;
use crate::cli::operate::revision::{revision_failure, revision_in_store, revision_on_server};
use crate::cli::output::list::ListItem;
use crate::cli::target::{sources_of_server, sources_of_store};
use crate::filter::Filter;
use crate::model::Entry;
use crate::model::decode::list;
use crate::model::json::deserialize;
use crate::model::snapshot::view::view_json;
use crate::server;
use crate::server::operations::origin::ResourceOrigin;
use crate::server::operations::resource_names::{COLLECTION, PATH, ResourceName};
use crate::store::history::commits::short_commit;
use crate::syntax::cel::{CelMeter, OBJ};

/// The first column of a list.
pub(super) const NAME: &str = "name";
/// The most resources whose origin is shown: each is found in the history by itself.
const MOST_WIDE: usize = 100;
/// The most resources of one name that an error lists.
const MOST_NAMED: usize = 5;
/// The help for a server that cannot find a resource by its name or ID.
const LIST_ALL: &str = "upgrade the server, or list all resources without a name, an ID or a filter";

/// A resource of a list. Its parent need not be in the API's response.
pub(super) struct ListedResource {
    key: Key,
    body: Value,
    /// The name in the manifests, after that of the parent, with identifiers for what has none; empty until it is looked up.
    name: String,
}

impl ListedResource {
    /// The resource as the list shows it.
    pub(super) fn into_item(self) -> ListItem {
        let name = format!("{}/{}", short_name_of(self.key.kind), self.name);
        ListItem { name, document: self.body, columns: vec![(NAME, self.name)] }
    }
}

/// A store or server with resources.
pub(crate) enum ResourceReader {
    Store(Box<Store>, Arc<Snapshot>),
    /// A server, and the revision to read if it is not the current one.
    Server(ApiClient, Option<u64>),
}

impl ResourceReader {
    /// Opens a store for reading, or prepares a client. `at` is the revision to read, if it is not the current one.
    pub(crate) fn open(place: &StoreOrServer, at: Option<&RevisionName>) -> Result<Self, Failure> {
        if let Some(client) = place.client()? {
            // All lists must be of one revision, so a commit is looked up once.
            let revision = at.map(|name| revision_on_server(&client, name, None)).transpose()?;
            return Ok(ResourceReader::Server(client, revision));
        }
        let store = place.store.read_existing()?;
        let snapshot = match at {
            Some(name) => store.snapshot_at(revision_in_store(&store, name, None)?).map_err(revision_failure)?,
            None => store.snapshot(),
        };
        Ok(ResourceReader::Store(Box::new(store), snapshot))
    }

    /// Finds the key of the one resource that `KIND NAME`, `KIND ID`, `ID`, `NAME`, `PARENT/NAME` or `KIND/NAME` names.
    pub(crate) fn find_key(&self, first: &str, second: Option<&str>) -> Result<Key, Failure> {
        if let Some(wanted) = second {
            return self.find_key_of_kind(parse_kind(first)?, wanted);
        }
        if let Some(kind) = if_found(self.find_kind(first))? {
            return self.find_key_of_kind(kind, first);
        }
        // An edge can have the name of a kind, so that a parent comes first.
        let with_kind = first.split_once('/').and_then(|(kind, name)| Some((parse_kind(kind).ok()?, name)));
        match (self.find_named_key(first), with_kind) {
            (Ok(Some(key)), _) => Ok(key),
            (Ok(None), Some((kind, name))) => self.find_key_of_kind(kind, name),
            (Err(failure), Some((kind, name))) if failure.has_code(Code::NotFound) => self.find_key_of_kind(kind, name),
            (Ok(None), None) => {
                let message = format!("no resource has the ID or name `{}`", printable(first));
                Err(Diagnostic::error(Code::NotFound, message).help(self.near_name(first)).into())
            }
            (Err(failure), _) => Err(failure),
        }
    }

    /// The key of an id, if it is one of a resource without a parent. The resource need not exist.
    pub(crate) fn key_from_id(&self, id: &str) -> Result<Option<Key>, Failure> {
        let kind = if_found(self.find_kind(id))?.filter(|kind| kind.info().parent.is_none());
        Ok(kind.map(|kind| Key::new(kind, Id::new(id))))
    }

    /// Finds the key of the one resource of any kind that has a name, alone or after that of its parent; none if there is none.
    fn find_named_key(&self, name: &str) -> Result<Option<Key>, Failure> {
        let (children, others): (Vec<Kind>, Vec<Kind>) = kinds().partition(|kind| kind.info().parent.is_some());
        let others = if name.contains('/') { Vec::new() } else { others };
        let mut found = Vec::new();
        for group in [others, children] {
            // Without the name of a parent, children are searched for below each, with a request for every parent.
            if !found.is_empty() {
                break;
            }
            for kind in group {
                found.extend(self.search_keys(kind, name)?);
            }
        }
        let ways: Vec<String> = found
            .iter()
            .take(MOST_NAMED)
            .map(|key| format!("{} {}", name_of(key.kind), printable(key.id.as_str())))
            .collect();
        let key = found.pop();
        if found.is_empty() {
            return Ok(key);
        }
        let message = format!("several resources have the name `{}`", printable(name));
        let ways: Vec<&str> = ways.iter().map(String::as_str).collect();
        Err(Diagnostic::error(Code::DuplicateName, message).help(format!("use one of {}", list(&ways))).into())
    }

    /// Finds the kind of an id: by its prefix, or among the resources whose ids are chosen elsewhere (D20).
    pub(crate) fn find_kind(&self, id: &str) -> Result<Kind, Failure> {
        if let Some(kind) = kinds().find(|kind| has_prefix(*kind, id)) {
            return Ok(kind);
        }
        for kind in kinds().filter(|kind| kind.info().implicit) {
            if !self.list(kind, None, &by_id(kind, id))?.is_empty() {
                return Ok(kind);
            }
        }
        let message = format!("`{}` is neither the ID of a resource nor a kind", printable(id));
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
            (Some(named), _) => self.find(of, None, &[None], named)?,
            // A server finds a resource by its ID alone only in the current revision.
            (None, Some(wanted)) if has_prefix(kind, wanted) && !matches!(self, ResourceReader::Server(_, Some(_))) => {
                return Ok(self.find_parent(kind, wanted)?.into_iter().map(Some).collect());
            }
            (None, _) => self.list_all(of, &[None], &[])?,
        };
        Ok(parents.into_iter().map(|parent| Some(parent.key.id)).collect())
    }

    /// The parent of a resource, if the resource exists.
    fn find_parent(&self, kind: Kind, id: &str) -> Result<Option<Id>, Failure> {
        if let ResourceReader::Store(_, snapshot) = self {
            return Ok(snapshot.find_child(kind, &Id::new(id)).and_then(|child| child.key.parent.clone()));
        }
        let found = self.origin(&Key::new(kind, Id::new(id)))?;
        Ok(found.and_then(|found| Key::at_path(kind, &found.path)?.parent))
    }

    /// The origin of a resource. A server finds one by its ID alone, if the ID is of this service.
    fn origin(&self, key: &Key) -> Result<Option<ResourceOrigin>, Failure> {
        match self {
            ResourceReader::Store(store, snapshot) => {
                Ok(snapshot.get(key).map(|entry| ResourceOrigin::find(store, entry, "")).transpose()?)
            }
            ResourceReader::Server(..) if key.kind.facts().prefix.is_empty() => Ok(None),
            ResourceReader::Server(client, _) => if_found(client.get(&format!("{PATH}/{}", segment(key.id.as_str())))),
        }
    }

    /// The roles of the owners of API keys in this state, as far as the caller sees them.
    pub(super) fn roles(&self) -> Result<HashMap<String, Role>, Failure> {
        match self {
            ResourceReader::Store(_, snapshot) => Ok(owners_in_store(snapshot).into_iter().collect()),
            ResourceReader::Server(client, None) => roles_on_server(client),
            // A server tells the present ones only.
            ResourceReader::Server(_, Some(_)) => Ok(HashMap::new()),
        }
    }

    /// The names of the sources: of a store those that own resources.
    pub(crate) fn sources(&self) -> BTreeSet<String> {
        match self {
            ResourceReader::Store(_, snapshot) => sources_of_store(snapshot),
            ResourceReader::Server(client, _) => sources_of_server(client),
        }
    }

    /// The name of a resource in the manifests, if it exists and has one.
    pub(crate) fn name_of_key(&self, key: &Key) -> Result<Option<String>, Failure> {
        let name = match self {
            ResourceReader::Store(_, snapshot) => snapshot.get(key).and_then(|entry| own_name(entry)),
            ResourceReader::Server(client, _) if key.kind.facts().prefix.is_empty() => {
                names_on_server(client, &key.collection_path())?.remove(key.id.as_str())
            }
            ResourceReader::Server(..) => self.origin(key)?.map(|origin| origin.name),
        };
        Ok(name.filter(|name| !name.is_empty()))
    }

    fn find_key_of_kind(&self, kind: Kind, wanted: &str) -> Result<Key, Failure> {
        let (parent, name) = parent_and_name(kind, wanted);
        let parents = self.parents(kind, parent, Some(name))?;
        let mut found = self.find(kind, parent, &parents, name)?;
        let (Some(listed), true) = (found.pop(), found.is_empty()) else {
            let message = format!("several {} have the name `{}`", plural(name_of(kind)), printable(wanted));
            return Err(Diagnostic::error(Code::DuplicateName, message).help("use the ID").into());
        };
        Ok(listed.key)
    }

    /// Returns the keys of the resources of a kind that have an id or name; none if not even the parent exists.
    fn search_keys(&self, kind: Kind, wanted: &str) -> Result<Vec<Key>, Failure> {
        let (parent, name) = parent_and_name(kind, wanted);
        let parents: Option<Vec<Option<Id>>> = match kind.info().parent.zip(parent) {
            // Without the help for an unknown parent, for which a server lists all names.
            Some((of, parent)) => if_found(self.search(of, &[None], parent))?
                .map(|found| found.into_iter().map(|listed| Some(listed.key.id)).collect()),
            None => if_found(self.parents(kind, None, Some(name)))?,
        };
        let found = self.search(kind, &parents.unwrap_or_default(), name)?;
        Ok(found.into_iter().map(|listed| listed.key).collect())
    }

    /// Finds a resource by id or name below any of the parents, of which `of` names one. Two sources can use one name.
    pub(super) fn find(
        &self,
        kind: Kind,
        of: Option<&str>,
        parents: &[Option<Id>],
        wanted: &str,
    ) -> Result<Vec<ListedResource>, Failure> {
        let found = self.search(kind, parents, wanted)?;
        if found.is_empty() {
            let message = format!("no {} with the ID or name `{}`", name_of(kind), printable(wanted));
            let help = self.near_name_below(kind, of, parents, wanted);
            return Err(Diagnostic::error(Code::NotFound, message).help(help).into());
        }
        Ok(found)
    }

    fn search(&self, kind: Kind, parents: &[Option<Id>], wanted: &str) -> Result<Vec<ListedResource>, Failure> {
        // An id contains `_`, a name never does (D26). Only clients choose other ids.
        let chosen = kind.info().implicit || kind.info().prefix.is_empty();
        let mut found = Vec::new();
        if !wanted.contains('_') {
            found = self.list_all(kind, parents, &[("name", wanted.to_owned())])?;
        }
        if found.is_empty() && (chosen || wanted.contains('_')) {
            found = self.list_all(kind, parents, &by_id(kind, wanted))?;
        }
        Ok(found)
    }

    /// Adds the source, the file and line, and the commit of each resource.
    pub(super) fn add_origins(&self, found: &mut [ListedResource]) -> Result<(), Failure> {
        if found.len() > MOST_WIDE {
            let message = format!("`wide` shows up to {MOST_WIDE} resources (found {})", found.len());
            return Err(Diagnostic::error(Code::Parameter, message).help("name a resource, or set --filter").into());
        }
        let (mut is_incomplete, mut sources) = (false, HashMap::new());
        for listed in found {
            // A resource that is deleted meanwhile has no origin. A silent database is asked once, because that takes seconds.
            let origin = if is_incomplete { None } else { self.origin(&listed.key)? };
            is_incomplete |= origin.as_ref().is_some_and(|origin| origin.history_unavailable);
            let Value::Object(fields) = &mut listed.body else { continue };
            let line = origin.as_ref().and_then(|origin| origin.line).map(|line| format!(":{line}"));
            let (source, file, commit) = match origin {
                Some(origin) => (origin.source, origin.file, origin.commit),
                None if is_incomplete => (self.source(&listed.key, &mut sources)?, String::new(), String::new()),
                None => Default::default(),
            };
            fields.insert("source".into(), source.into());
            fields.insert("file".into(), (file + &line.unwrap_or_default()).into());
            fields.insert("commit".into(), short_commit(&commit).into());
        }
        if is_incomplete {
            say("The history is unavailable: no connection to the database. Files and commits are not shown.");
        }
        Ok(())
    }

    /// The source of a resource, or empty; needs no history. `known` has the sources of the collections that a server was asked for.
    fn source(&self, key: &Key, known: &mut HashMap<String, HashMap<String, String>>) -> Result<String, Failure> {
        let source = match self {
            ResourceReader::Store(_, snapshot) => {
                snapshot.get(key).and_then(|entry| entry.claim.as_deref()).map(|claim| claim.source.clone())
            }
            ResourceReader::Server(client, _) => {
                let collection = key.collection_path();
                if !known.contains_key(&collection) {
                    let listed = claims_on_server(client, &collection)?;
                    known.insert(collection.clone(), listed.into_iter().map(|it| (it.id, it.source)).collect());
                }
                known.get(&collection).and_then(|sources| sources.get(key.id.as_str())).cloned()
            }
        };
        Ok(source.unwrap_or_default())
    }

    /// Adds the names of the resources. Those at an earlier revision of a server have none.
    pub(super) fn add_names(&self, found: &mut [ListedResource]) -> Result<(), Failure> {
        let mut known: HashMap<String, HashMap<String, String>> = HashMap::new();
        let is_one = found.len() == 1;
        let mut name = |key: &Key| -> Result<String, Failure> {
            let name = match self {
                ResourceReader::Server(_, Some(_)) => None,
                ResourceReader::Server(client, None) if !is_one => {
                    let collection = key.collection_path();
                    if !known.contains_key(&collection) {
                        known.insert(collection.clone(), names_on_server(client, &collection)?);
                    }
                    known.get(&collection).and_then(|names| names.get(key.id.as_str())).cloned()
                }
                _ => self.name_of_key(key)?,
            };
            Ok(name.filter(|name| !name.is_empty()).unwrap_or_else(|| key.id.to_string()))
        };
        for listed in found {
            let key = &listed.key;
            listed.name = match key.parent_key() {
                Some(parent) => format!("{}/{}", name(&parent)?, name(key)?),
                None => name(key)?,
            };
        }
        Ok(())
    }

    /// The names of the resources of a kind that may begin with what is typed. Resources below a parent are `PARENT/NAME`, and
    /// only `PARENT/` until that is typed: a server has a list for each parent.
    pub(crate) fn names(&self, kind: Kind, typed: &str) -> Result<Vec<String>, Failure> {
        if let Some(of) = kind.info().parent.filter(|_| !typed.contains('/')) {
            return Ok(self.names(of, typed)?.into_iter().map(|parent| format!("{parent}/")).collect());
        }
        let client = match self {
            ResourceReader::Store(_, snapshot) => {
                let entries = snapshot.iter().filter(|entry| entry.key.kind == kind);
                return Ok(entries.filter_map(|entry| full_name(snapshot, entry)).collect());
            }
            ResourceReader::Server(client, _) => client,
        };
        let is_named = |name: &String| !name.is_empty();
        let Some(of) = kind.info().parent else {
            let names = names_on_server(client, kind.facts().collection)?;
            return Ok(names.into_values().filter(is_named).collect());
        };
        let mut names = Vec::new();
        for (id, parent) in names_on_server(client, of.facts().collection)? {
            let beginning = format!("{parent}/");
            if parent.is_empty() || !typed.starts_with(&beginning) {
                continue;
            }
            let collection = Key { kind, parent: Some(Id::new(&id)), id: Id::new("") }.collection_path();
            let below = names_on_server(client, &collection)?.into_values().filter(is_named);
            names.extend(below.map(|name| format!("{beginning}{name}")));
        }
        Ok(names)
    }

    /// The identifiers of the resources of a kind without a parent.
    pub(crate) fn ids(&self, kind: Kind) -> Result<Vec<String>, Failure> {
        if let ResourceReader::Store(_, snapshot) = self {
            let entries = snapshot.iter().filter(|entry| entry.key.kind == kind);
            return Ok(entries.map(|entry| entry.key.id.to_string()).collect());
        }
        Ok(self.list_all(kind, &[None], &[])?.into_iter().map(|listed| listed.key.id.to_string()).collect())
    }

    pub(super) fn list_all(
        &self,
        kind: Kind,
        parents: &[Option<Id>],
        filters: &[(&'static str, String)],
    ) -> Result<Vec<ListedResource>, Failure> {
        let mut found = Vec::new();
        for parent in parents {
            let items = self.list(kind, parent.as_ref(), filters)?;
            found.extend(items.into_iter().map(|body| {
                let id = body.get(kind.info().id_parameter).and_then(Value::as_str).unwrap_or_default();
                let key = Key { kind, parent: parent.clone(), id: Id::new(id) };
                ListedResource { key, body, name: String::new() }
            }));
        }
        Ok(found)
    }

    /// Lists resources of a parent, newest first.
    fn list(&self, kind: Kind, parent: Option<&Id>, filters: &[(&'static str, String)]) -> Result<Vec<Value>, Failure> {
        match self {
            ResourceReader::Store(store, snapshot) => {
                // A store has no URL: each `uri` is a path.
                let base_urls = server::base_urls(store, "", "");
                let filter = Filter::new(kind, filters)?;
                let never = || false;
                let meter = CelMeter::new(u64::MAX, &never);
                let mut items = Vec::new();
                for entry in snapshot.newest_first(kind, parent, u64::MAX) {
                    if filter.selects(snapshot, &base_urls, entry, &meter)? {
                        let body = view_json(snapshot, entry, &base_urls, Secrets::Masked)?;
                        let item = deserialize::from_slice(&body);
                        items.push(item.map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?);
                    }
                }
                Ok(items)
            }
            ResourceReader::Server(client, at) => {
                let collection = kind.facts().collection;
                if !filters.is_empty() {
                    client.require(collection, "filter", "its lists do not support filters", LIST_ALL)?;
                }
                if at.is_some() {
                    let lack = "its lists do not support earlier revisions";
                    client.require(collection, "at", lack, "upgrade the server")?;
                }
                let path = Key { kind, parent: parent.cloned(), id: Id::new("") }.collection_path();
                let limit = kind.is_paged().then(|| "limit=1000".to_owned());
                let filters = filters.iter().map(|(name, value)| format!("{name}={}", segment(value)));
                let at = at.map(|revision| format!("at={revision}"));
                let query = limit.into_iter().chain(filters).chain(at).collect::<Vec<String>>().join("&");
                client.list(&path, kind.info().list, &query).map_err(|failure| match parent {
                    // A parent that was deleted since it was listed is no mistake in the URL.
                    Some(_) => failure.with_help(Code::NotFound, "run the command again"),
                    None => failure,
                })
            }
        }
    }
}

/// The names of the resources in a collection of a server, by their identifiers; none of a server that does not list them.
pub(super) fn names_on_server(client: &ApiClient, collection: &str) -> Result<HashMap<String, String>, Failure> {
    Ok(claims_on_server(client, collection)?.into_iter().map(|it| (it.id, it.name)).collect())
}

/// The names and sources of the resources in a collection of a server; none of a server that does not list them.
fn claims_on_server(client: &ApiClient, collection: &str) -> Result<Vec<ResourceName>, Failure> {
    let query = format!("limit=1000&{COLLECTION}={}", segment(collection));
    Ok(if_found(client.list::<ResourceName>(PATH, "resources", &query))?.unwrap_or_default())
}

/// The name of a resource, after that of its parent.
pub(super) fn full_name(snapshot: &Snapshot, entry: &Entry) -> Option<String> {
    match entry.key.parent_key() {
        Some(parent) => Some(format!("{}/{}", own_name(snapshot.get(&parent)?)?, own_name(entry)?)),
        None => own_name(entry),
    }
}

/// The name of a resource in its manifest.
pub(super) fn own_name(entry: &Entry) -> Option<String> {
    entry.name().map(str::to_owned)
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

fn by_id(kind: Kind, id: &str) -> Vec<(&'static str, String)> {
    vec![("filter", format!("{OBJ}.{} == {}", kind.info().id_parameter, json!(id)))]
}
