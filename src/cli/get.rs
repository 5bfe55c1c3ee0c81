//! `edgewright get`: resources of a store or a server, selected as in the API (D67).

use std::sync::Arc;

use clap::ValueEnum;
use serde_json::{Value, json};

use super::{
    CommandResult, Exit, Failure,
    output::print,
    revision::{revision_in, revision_name, revision_through, unreached},
    show::say,
    store_or_server::StoreOrServer,
    target::ApiClient,
    trace::write_table,
};
use crate::{
    api::{self, origin::ResourceOrigin},
    cel::{CelMeter, OBJ},
    filter::Filter,
    model::{
        Kind,
        code::Code,
        decode::list,
        diagnostic::{Diagnostic, Name},
        fault::{Fault, nearest},
        id::Id,
        key::{Key, segment},
        secret::Secrets,
        snapshot::Snapshot,
        unbounded,
        view::view_json,
    },
    store::{Store, commits::RevisionName},
    text::{escaped, printable, yaml::to_yaml},
};

/// List resources, or show one.
///
/// KIND is a manifest kind in any spelling: `HttpsEdge`, `https-edges`, `edges`. Reads a local store without changing it,
/// with every secret masked, or a server with --server. The table has the main fields; `wide` adds the source, and the
/// file, line and commit that it applied last, of up to 100 resources; `json` and `yaml` have what the API returns.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Kind of the resources, such as `edges`, `routes` or `tls-certificates`, or the id of a resource.
    #[arg(value_name = "KIND|ID")]
    kind: String,
    /// Id of a resource, or its name in the manifest.
    #[arg(value_name = "ID|NAME", conflicts_with = "filter")]
    wanted: Option<String>,
    /// Show only resources for which a CEL expression is true, such as `obj.description == "shop"`.
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Show only the routes of the edge with this id or name.
    #[arg(long, value_name = "ID|NAME")]
    edge: Option<String>,
    /// Show only the sources of the event subscription with this id or name.
    #[arg(long, value_name = "ID|NAME")]
    subscription: Option<String>,
    /// Show the state of this revision, or of the newest revision that was applied from this Git commit.
    #[arg(long, value_name = "REVISION|COMMIT", value_parser = revision_name)]
    at: Option<RevisionName>,
    /// Output format.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = GetFormat::Table, env = "EDGEWRIGHT_GET_FORMAT")]
    format: GetFormat,
    #[command(flatten)]
    pub place: StoreOrServer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum GetFormat {
    Table,
    Wide,
    Json,
    Yaml,
}

/// The singular names of the kinds with lists, the one for messages first.
const NAMES: [(Kind, &[&str]); 9] = [
    (Kind::ApiKey, &["api-key", "key"]),
    (Kind::IpRestriction, &["ip-restriction", "restriction"]),
    (Kind::CertificateAuthority, &["certificate-authority", "authority", "ca"]),
    (Kind::TlsCertificate, &["tls-certificate", "certificate", "cert"]),
    (Kind::HttpsEdge, &["https-edge", "edge"]),
    (Kind::HttpsEdgeRoute, &["https-edge-route", "route"]),
    (Kind::TlsEdge, &["tls-edge"]),
    (Kind::EventSubscription, &["event-subscription", "subscription"]),
    (Kind::EventSource, &["event-source", "source"]),
];

/// The fields of the table, after the id.
const COLUMNS: [&str; 13] = [
    "match_type",
    "match",
    "hostports",
    "type",
    "enforced",
    "owner_id",
    "subject_common_name",
    "not_after",
    "description",
    "created_at",
    // Of `wide`.
    "source",
    "file",
    "commit",
];
/// The most resources whose origin is shown: each is found in the history by itself.
const MOST_WIDE: usize = 100;

impl Args {
    /// Runs the command.
    pub(super) fn run(self) -> CommandResult {
        let (kind, wanted) = self.asked()?;
        let parent = self.parent_of(kind)?;
        if self.format == GetFormat::Wide && self.at.is_some() {
            let message = "`--format wide` shows where resources come from now; it cannot be combined with `--at`";
            return Err(Diagnostic::error(Code::Parameter, message).help("remove one of them").into());
        }
        let origin = GetOrigin::open(&self.place, self.at.as_ref())?;
        let parents = match (kind.info().parent, parent) {
            (Some(of), Some(wanted)) => origin.find(of, &[None], wanted)?,
            (Some(of), None) => origin.list_all(of, &[None], &[])?,
            (None, _) => Vec::new(),
        };
        let parents: Vec<Option<Id>> = match kind.info().parent {
            Some(_) => parents.iter().map(|parent| Some(Id::new(text(&parent.body, "id")))).collect(),
            None => vec![None],
        };
        let mut found = match wanted {
            Some(wanted) => origin.find(kind, &parents, wanted)?,
            None => {
                let given: Vec<_> = self.filter.iter().map(|filter| ("filter", filter.clone())).collect();
                origin.list_all(kind, &parents, &given)?
            }
        };
        if found.is_empty() {
            say(&format!("No {} found.", plural(name_of(kind))));
        }
        if self.format == GetFormat::Wide {
            origin.add_origins(kind, &mut found)?;
        }
        // Resources of one parent that was asked for need no column for it.
        let column = kind.info().parent.filter(|_| parent.is_none()).map(short_name_of);
        print(self.rendered(found, column, wanted.is_some()))?;
        Ok(Exit::Done)
    }

    /// The kind, and the resource that is asked for. The prefix of an id tells its kind.
    fn asked(&self) -> Result<(Kind, Option<&str>), Failure> {
        let is_of = |kind: Kind| !kind.facts().prefix.is_empty() && self.kind.starts_with(kind.facts().prefix);
        match NAMES.iter().map(|(kind, _)| *kind).find(|kind| is_of(*kind)) {
            Some(kind) if self.wanted.is_none() && self.filter.is_none() && kind_of(&self.kind).is_err() => {
                Ok((kind, Some(self.kind.as_str())))
            }
            _ => Ok((kind_of(&self.kind)?, self.wanted.as_deref())),
        }
    }

    /// The parent that an option names.
    fn parent_of(&self, kind: Kind) -> Result<Option<&str>, Failure> {
        let options =
            [("--edge", &self.edge, Kind::HttpsEdgeRoute), ("--subscription", &self.subscription, Kind::EventSource)];
        let mut parent = None;
        for (option, value, of) in options {
            match value {
                Some(value) if of == kind => parent = Some(value.as_str()),
                Some(_) => {
                    let message = format!("`{option}` does not apply to {}", plural(name_of(kind)));
                    let help = format!("remove it, or use it with {}", plural(name_of(of)));
                    return Err(Diagnostic::error(Code::Parameter, message).help(help).into());
                }
                None => {}
            }
        }
        Ok(parent)
    }

    /// The output. A table starts with a column for the parents if they have a name.
    fn rendered(&self, found: Vec<ListedResource>, parents: Option<&str>, is_one: bool) -> String {
        if matches!(self.format, GetFormat::Table | GetFormat::Wide) {
            return table(&found, parents);
        }
        let mut items: Vec<Value> = found.into_iter().map(|listed| listed.body).collect();
        // One resource that was asked for is not a list.
        let value = match (is_one && items.len() == 1, items.pop()) {
            (true, Some(only)) => only,
            (_, last) => Value::Array(items.into_iter().chain(last).collect()),
        };
        match self.format {
            GetFormat::Yaml => to_yaml(&value),
            _ => format!("{value:#}\n"),
        }
    }
}

/// A resource of a list, and its parent, which the API's response need not contain.
struct ListedResource {
    parent: Option<Id>,
    body: Value,
}

/// Where the resources are.
pub(super) enum GetOrigin {
    Store(Box<Store>, Arc<Snapshot>),
    /// A server, and the revision to read if it is not the current one.
    Server(ApiClient, Option<u64>),
}

impl GetOrigin {
    /// Opens a store for reading, or prepares a client. `at` is the revision to read, if it is not the current one.
    pub(super) fn open(place: &StoreOrServer, at: Option<&RevisionName>) -> Result<Self, Failure> {
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

    /// Finds the key of the one resource with an id or name, below any parent.
    pub(super) fn key_of(&self, kind: Kind, wanted: &str) -> Result<Key, Failure> {
        let parents: Vec<Option<Id>> = match kind.info().parent {
            Some(of) => {
                let parents = self.list_all(of, &[None], &[])?;
                parents.iter().map(|parent| Some(Id::new(text(&parent.body, "id")))).collect()
            }
            None => vec![None],
        };
        let mut found = self.find(kind, &parents, wanted)?;
        let (Some(listed), true) = (found.pop(), found.is_empty()) else {
            let message = format!("several {} have the name `{}`", plural(name_of(kind)), printable(wanted));
            return Err(Diagnostic::error(Code::DuplicateName, message).help("use the id").into());
        };
        Ok(Key { kind, parent: listed.parent, id: Id::new(text(&listed.body, kind.info().id_parameter)) })
    }

    /// Finds a resource by id or name below any of the parents. Two sources can use one name.
    fn find(&self, kind: Kind, parents: &[Option<Id>], wanted: &str) -> Result<Vec<ListedResource>, Failure> {
        let by_id = || {
            let field = kind.info().id_parameter;
            vec![("filter", format!("{OBJ}.{field} == {}", json!(wanted)))]
        };
        // An id contains `_`, a name never does (D26). Only clients choose other ids.
        let chosen = kind.info().implicit || kind.info().prefix.is_empty();
        let mut found = Vec::new();
        if !wanted.contains('_') {
            found = self.list_all(kind, parents, &[("name", wanted.to_owned())])?;
        }
        if found.is_empty() && (chosen || wanted.contains('_')) {
            found = self.list_all(kind, parents, &by_id())?;
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
    fn add_origins(&self, kind: Kind, found: &mut [ListedResource]) -> Result<(), Failure> {
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
            fields.insert("commit".into(), commit.into());
        }
        Ok(())
    }

    fn list_all(
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

fn from_store(
    store: &Store,
    snapshot: &Snapshot,
    kind: Kind,
    parent: Option<&Id>,
    given: &[(&'static str, String)],
) -> Result<Vec<Value>, Failure> {
    // A store has no URL: each `uri` is a path.
    let site = api::site(store, "", "");
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
    let parameters = given.iter().map(|(name, value)| format!("&{name}={}", segment(value)));
    let at = at.map(|revision| format!("&at={revision}")).unwrap_or_default();
    let mut query = Some(format!("limit=1000{}{at}", parameters.collect::<String>()));
    let mut items = Vec::new();
    while let Some(parameters) = query {
        let mut page: Value =
            client.get(&format!("{path}?{parameters}")).map_err(|failure| for_a_list(failure, parent))?;
        if let Some(Value::Array(found)) = page.get_mut(kind.info().list).map(Value::take) {
            items.extend(found);
        }
        // Only the query: the token goes to no other server, whatever a response says.
        let next = page.get("next_page_uri").and_then(Value::as_str).and_then(|uri| uri.split_once('?'));
        query = next.map(|(_, parameters)| parameters.to_owned());
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

/// Finds a kind by any of its names, in the singular or plural.
pub(super) fn kind_of(text: &str) -> Result<Kind, Failure> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let wanted = plain(text);
    for (kind, names) in NAMES {
        if names.iter().any(|name| plain(name) == wanted || plain(&plural(name)) == wanted) {
            return Ok(kind);
        }
    }
    let all: Vec<String> = NAMES.iter().flat_map(|(_, names)| names.iter().map(|name| plural(name))).collect();
    let first: Vec<String> = NAMES.iter().map(|(kind, _)| plural(name_of(*kind))).collect();
    let help = match nearest(text, all.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", list(&first.iter().map(String::as_str).collect::<Vec<_>>())),
    };
    let message = format!("unknown kind `{}`", printable(text));
    Err(Diagnostic::error(Code::UnknownKind, message).help(help).into())
}

fn name_of(kind: Kind) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == kind).and_then(|(_, names)| names.first()).copied().unwrap_or_default()
}

fn short_name_of(kind: Kind) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == kind).and_then(|(_, names)| names.last()).copied().unwrap_or_default()
}

fn plural(name: &str) -> String {
    match name.strip_suffix('y') {
        // An authority, but not a key.
        Some(stem) if !stem.ends_with('e') => format!("{stem}ies"),
        _ => format!("{name}s"),
    }
}

fn text<'v>(item: &'v Value, field: &str) -> &'v str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The parent, the id and the main fields of each item, under their names.
fn table(found: &[ListedResource], parents: Option<&str>) -> String {
    let Some(first) = found.first() else { return String::new() };
    let columns: Vec<&str> =
        ["id"].into_iter().chain(COLUMNS).filter(|column| first.body.get(*column).is_some()).collect();
    let names = parents.into_iter().chain(columns.iter().copied());
    let mut rows = vec![names.map(|name| name.to_uppercase().replace('_', "-")).collect::<Vec<_>>()];
    rows.extend(found.iter().map(|listed| {
        let parent = listed.parent.as_ref().filter(|_| parents.is_some());
        let parent = parent.map(|id| escaped(id.as_str()).into_owned());
        parent.into_iter().chain(columns.iter().map(|column| cell(listed.body.get(*column)))).collect()
    }));
    let mut out = String::new();
    write_table(&mut out, "", &rows);
    out
}

fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
    };
    escaped(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resource::Offer;

    #[test]
    fn a_kind_has_every_spelling() {
        for (kind, names) in [
            (Kind::HttpsEdge, "HttpsEdge|httpsedges|https-edges|https_edges|edge|edges|Edges"),
            (Kind::CertificateAuthority, "CertificateAuthority|certificate-authorities|cas|authorities"),
            (Kind::ApiKey, "ApiKeys|keys|api_keys"),
            (Kind::EventSource, "sources|event-source"),
        ] {
            for name in names.split('|') {
                assert_eq!(kind_of(name).ok(), Some(kind), "{name}");
            }
        }
        for (name, near) in [("egdes", "did you mean `edges`?"), ("pods", "use one of `api-keys`,")] {
            let help = kind_of(name).err().and_then(|failure| failure.diagnostics.into_iter().next()?.help);
            assert!(help.as_ref().is_some_and(|help| help.starts_with(near)), "{name}: {help:?}");
        }
    }

    #[test]
    fn every_kind_with_a_list_has_a_name() {
        let listed = Kind::all().filter(|info| info.offers.list != Offer::Absent);
        for info in listed {
            assert_eq!(kind_of(info.name).ok(), Some(info.kind));
            assert_eq!(kind_of(info.facts.list).ok(), Some(info.kind));
        }
    }
}
