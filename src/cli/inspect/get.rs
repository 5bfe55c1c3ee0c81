//! `edgewright get`: resources of a store or a server, selected as in the API (D67).

mod kinds;
mod reader;

use clap::ValueEnum;

use crate::{
    cli::{operate::revision::revision_name, output::table::table, prelude::*},
    syntax::text::yaml::to_yaml,
};
pub(crate) use kinds::parse_kind;
use kinds::{name_of, plural, short_name_of};
pub(super) use reader::ResourceReader;
use reader::{ListedResource, parent_and_name};

/// List resources, or show one.
///
/// KIND is a manifest kind in any spelling: `HttpsEdge`, `https-edges`, `edges`. Reads a local store without changing it,
/// with every secret masked, or a server with --server. The table has the main fields; `wide` adds the source, and the
/// file, line and commit that it applied last, of up to 100 resources; `json` and `yaml` have what the API returns.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Kind of the resources, such as `edges`, `routes` or `tls-certificates`, or the id of a resource.
    #[arg(value_name = "KIND|ID")]
    kind: String,
    /// Id of a resource, or its name in the manifest; for a route also `EDGE/ROUTE`, as plans show it.
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

impl Args {
    /// Runs the command.
    pub(crate) fn run(self) -> CommandResult {
        let named = match parse_kind(&self.kind) {
            Err(unknown) if !self.can_be_id() => return Err(unknown),
            named => named,
        };
        if self.format == GetFormat::Wide && self.at.is_some() {
            let message = "`--format wide` shows where resources come from now; it cannot be combined with `--at`";
            return Err(Diagnostic::error(Code::Parameter, message).help("remove one of them").into());
        }
        let origin = ResourceReader::open(&self.place, self.at.as_ref())?;
        let (kind, wanted) = match named {
            Ok(kind) => (kind, self.wanted.as_deref()),
            Err(_) => (origin.find_kind(&self.kind)?, Some(self.kind.as_str())),
        };
        let (of_name, wanted) = match wanted {
            Some(wanted) => {
                let (parent, name) = parent_and_name(kind, wanted);
                (parent, Some(name))
            }
            None => (None, None),
        };
        let parent = self.parent_option(kind, of_name)?;
        let parents = origin.parents(kind, parent, wanted)?;
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
        print(self.rendered(found, column, wanted.is_some()))
    }

    /// Whether the only argument can be an id.
    fn can_be_id(&self) -> bool {
        self.wanted.is_none() && self.filter.is_none() && self.kind.contains('_')
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
                let message = format!("`{option}` cannot be combined with a name that has its parent");
                return Err(Diagnostic::error(Code::Parameter, message).help("remove one of them").into());
            }
            parent = Some(value.as_str());
        }
        Ok(parent)
    }

    /// The output. A table starts with a column for the parents if they have a name.
    fn rendered(&self, found: Vec<ListedResource>, parents: Option<&str>, is_one: bool) -> String {
        if matches!(self.format, GetFormat::Table | GetFormat::Wide) {
            return listing(&found, parents);
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

/// The parent, the id and the main fields of each item, under their names.
fn listing(found: &[ListedResource], parents: Option<&str>) -> String {
    let Some(first) = found.first() else { return String::new() };
    let columns: Vec<&str> =
        ["id"].into_iter().chain(COLUMNS).filter(|column| first.body.get(*column).is_some()).collect();
    let names = parents.into_iter().chain(columns.iter().copied());
    let mut rows = vec![names.map(|name| name.to_uppercase().replace('_', "-")).collect::<Vec<_>>()];
    rows.extend(found.iter().map(|listed| {
        let parent = listed.parent.as_ref().filter(|_| parents.is_some()).map(|id| id.as_str().to_owned());
        parent.into_iter().chain(columns.iter().map(|column| cell(listed.body.get(*column)))).collect()
    }));
    table("", &rows)
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
    }
}
