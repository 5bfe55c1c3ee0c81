//! `edgewright get`: resources of a store or a server, selected as in the API (D67).

mod kinds;
mod near;
mod reader;

use crate::cli::access::keys;
use crate::cli::command_prelude::*;
use crate::cli::operate::revision::revision_name;
use crate::cli::output::list::{ListFormat, ListItem, sort};
use kinds::name_of;
pub(crate) use kinds::{kinds, parse_kind, plurals, short_name_of};
pub(crate) use reader::ResourceReader;
use reader::{NAME, parent_and_name};

/// List resources, or show one.
///
/// KIND is a manifest kind in any spelling: `HttpsEdge`, `https-edges`, `edges`. Reads a local store without changing
/// it, with every secret masked, or a server with --server. The table has the name in the manifests, or the ID of a
/// resource without one, and the main fields; that of API keys is the one of `keys list`. `wide` adds the ID, the
/// time of creation, the source, and the file, line and commit that it applied last, of up to 100 resources. `name`
/// prints one `KIND/NAME` per line, as other commands take it. `json` and `yaml` print what the API returns.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind of the resources, such as `edges`, `routes` or `tls-certificates`, `KIND/NAME`, or the ID of a resource.
    #[arg(value_name = "KIND|ID")]
    kind: String,
    /// ID of a resource, or its name in the manifest; for a route also `EDGE/ROUTE`, as plans show it.
    #[arg(value_name = "ID|NAME", conflicts_with = "filter")]
    wanted: Option<String>,
    /// Show only resources for which a CEL expression is true, such as `obj.description == "shop"`.
    #[arg(long, value_name = "EXPR")]
    filter: Option<String>,
    /// Show only the routes of the edge with this ID or name.
    #[arg(long, value_name = "ID|NAME")]
    edge: Option<String>,
    /// Show only the sources of the event subscription with this ID or name.
    #[arg(long, value_name = "ID|NAME")]
    subscription: Option<String>,
    /// Show the state of this revision, or of the newest revision that was applied from this Git commit.
    #[arg(long, value_name = "REVISION|COMMIT", value_parser = revision_name)]
    at: Option<RevisionName>,
    /// Sort by a column that the output has, or by `id` or `created-at` (default: the newest first).
    #[arg(long, value_name = "COLUMN", env = "EDGEWRIGHT_GET_SORT_BY")]
    sort_by: Option<String>,
    /// Output format; `name` prints one `KIND/NAME` per line.
    #[arg(short = 'o', long = "format", value_enum, default_value_t = ListFormat::Table, env = "EDGEWRIGHT_GET_FORMAT")]
    format: ListFormat,
    #[command(flatten)]
    pub place: StoreOrServer,
}

/// The fields of the table, after the name.
const COLUMNS: [&str; 9] = [
    "match",
    "match_type",
    "hostports",
    "type",
    "enforced",
    "subject_common_name",
    "not_after",
    "description",
    "owner_id",
];
const WIDE_COLUMNS: [&str; 5] = ["id", "created_at", "source", "file", "commit"];

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        // As `-o name` prints it.
        let with_name = self.kind.split_once('/').filter(|(_, name)| self.can_be_name() && !name.is_empty());
        let (kind, name_of_kind) = with_name.map_or((self.kind.as_str(), None), |(kind, name)| (kind, Some(name)));
        let named = match parse_kind(kind) {
            Err(unknown) if !self.can_be_name() || !self.kind.contains('_') => {
                return Err(self.unknown_kind(kind, unknown));
            }
            named => named,
        };
        if self.format == ListFormat::Wide && self.at.is_some() {
            let message = "`--format wide` shows where resources come from now; it cannot be combined with `--at`";
            return Err(Diagnostic::error(Code::Parameter, message).help("remove one of them").into());
        }
        let origin = ResourceReader::open(&self.place, self.at.as_ref())?;
        let (kind, wanted) = match named {
            Ok(kind) => (kind, self.wanted.as_deref().or(name_of_kind)),
            Err(_) => (origin.find_kind(&self.kind)?, Some(self.kind.as_str())),
        };
        let (of_name, wanted) = wanted.map_or((None, None), |wanted| {
            let (parent, name) = parent_and_name(kind, wanted);
            (parent, Some(name))
        });
        let parent = self.parent_option(kind, of_name)?;
        let parents = origin.parents(kind, parent, wanted)?;
        let mut found = match wanted {
            Some(wanted) => origin.find(kind, of_name, &parents, wanted)?,
            None => {
                let given: Vec<_> = self.filter.iter().map(|filter| ("filter", filter.clone())).collect();
                origin.list_all(kind, &parents, &given)?
            }
        };
        if found.is_empty() {
            let name = if kind == Kind::ApiKey { "API key" } else { name_of(kind) };
            say(&format!("No {} found.", plural(name)));
            if kind == Kind::EventSource {
                // Users ask for the sources that own resources, too.
                say("Sources of manifests are in `edgewright status`.");
            }
        }
        if self.format == ListFormat::Wide {
            origin.add_origins(&mut found)?;
        }
        if !self.format.is_document() || self.sort_by.is_some() {
            origin.add_names(&mut found)?;
        }
        let mut items: Vec<ListItem> = found.into_iter().map(|listed| listed.into_item()).collect();
        if kind == Kind::ApiKey {
            let roles = origin.roles()?;
            items.iter_mut().for_each(|item| keys::add_columns(item, &roles));
        }
        self.sort(kind, &mut items)?;
        print(self.rendered(kind, items, wanted.is_some()))
    }

    /// The failure for an unknown kind: the only argument can be the name of a resource.
    fn unknown_kind(&self, kind: &str, unknown: Failure) -> Failure {
        if !self.can_be_name() || nearest(kind, plurals().iter().map(String::as_str)).is_some() {
            return unknown;
        }
        let open = || ResourceReader::open(&self.place, self.at.as_ref());
        let Ok(key) = open().and_then(|origin| origin.find_key(&self.kind, None)) else { return unknown };
        let help = format!("did you mean `{}/{}`?", short_name_of(key.kind), printable(&self.kind));
        unknown.with_help(Code::UnknownKind, &help)
    }

    fn sort(&self, kind: Kind, items: &mut [ListItem]) -> Result<(), Failure> {
        let Some(column) = &self.sort_by else { return Ok(()) };
        let Some(first) = items.first() else { return Ok(()) };
        let (narrow, wide) = columns(kind, first);
        sort(items, &plural(name_of(kind)), column, &[narrow, wide].concat())
    }

    /// Whether the only argument can name a resource.
    fn can_be_name(&self) -> bool {
        self.wanted.is_none() && self.filter.is_none()
    }

    /// The parent that an option or the name itself names.
    fn parent_option<'s>(&'s self, kind: Kind, of_name: Option<&'s str>) -> Result<Option<&'s str>, Failure> {
        let options =
            [("--edge", &self.edge, Kind::HttpsEdgeRoute), ("--subscription", &self.subscription, Kind::EventSource)];
        let mut parent = of_name;
        for (option, value, of) in options {
            let Some(value) = value else { continue };
            if of != kind {
                let message = format!("`{option}` does not apply to {}", plural(name_of(kind)));
                let help = format!("remove it, or use it with {}", plural(name_of(of)));
                return Err(Diagnostic::error(Code::Parameter, message).help(help).into());
            }
            if of_name.is_some() {
                let message = format!("`{option}` cannot be combined with a name that includes the parent");
                return Err(Diagnostic::error(Code::Parameter, message).help("remove one of them").into());
            }
            parent = Some(value.as_str());
        }
        Ok(parent)
    }

    fn rendered(&self, kind: Kind, mut items: Vec<ListItem>, is_one: bool) -> String {
        // One resource that was asked for is not a list.
        let is_alone = is_one && items.len() == 1 && self.format.is_document();
        if let Some(only) = items.pop_if(|_| is_alone) {
            return self.format.document(&only.document);
        }
        let (columns, wide) = items.first().map(|first| columns(kind, first)).unwrap_or_default();
        self.format.list(&columns, &wide, items)
    }
}

/// The columns by which any list can be sorted.
pub(crate) fn sort_columns() -> Vec<&'static str> {
    [COLUMNS.as_slice(), &WIDE_COLUMNS, &keys::COLUMNS, &keys::WIDE_COLUMNS, &[NAME]].concat()
}

/// The columns of resources of a kind, and the further ones of `wide`. All of them have the same fields.
fn columns(kind: Kind, first: &ListItem) -> (Vec<&'static str>, Vec<&'static str>) {
    if kind == Kind::ApiKey {
        // Those of `edgewright keys list`, and where the keys come from.
        let origin = WIDE_COLUMNS.into_iter().filter(|field| first.document.get(*field).is_some());
        let origin = origin.filter(|field| !["id", "created_at"].contains(field));
        return (keys::COLUMNS.to_vec(), keys::WIDE_COLUMNS.into_iter().chain(origin).collect());
    }
    // A chosen identifier is the name.
    let is_shown = |field: &&'static str| {
        first.document.get(*field).is_some() && (*field == "id" || *field != kind.info().id_parameter)
    };
    let columns = std::iter::once(NAME).chain(COLUMNS.into_iter().filter(is_shown)).collect();
    (columns, WIDE_COLUMNS.into_iter().filter(is_shown).collect())
}
