//! The report of a replay, as programs read it. Text is made of it, so that both say the same.
//!
//! Logs have personal data: addresses, and paths with names in them. The report has the matches of routes in place of paths,
//! and the places of lines in place of examples, unless it is asked for more.

use super::log_files::shown;
use super::pipeline::LineCounts;
use crate::cli::prelude::*;
use crate::model::traffic::RequestVerdict;
use crate::routing::edge_table::{EdgeTable, RoutedTo};
use crate::routing::replay::tally::{LinePlace, ReplayClass, ReplayExample, ReplaySide, ReplayTally, RequestCount};

#[derive(Debug, Serialize)]
pub(super) struct ReplayReport {
    pub(super) lines: u64,
    /// The lines that are no request.
    pub(super) unread: UnreadLines,
    pub(super) all: ReplayCount,
    /// The number of those to hosts and ports that no edge serves: before and after, if states were compared.
    pub(super) without_edge: u64,
    /// The requests that would be treated differently; null if nothing was compared.
    pub(super) differing: Option<DifferingRequests>,
    /// The requests by where they go; null if states were compared.
    pub(super) counts: Option<Vec<PlaceCount>>,
}

/// Requests with what they have in sum.
#[derive(Debug, Serialize)]
pub(super) struct ReplayCount {
    pub(super) requests: u64,
    /// The bytes of the responses.
    pub(super) bytes: u64,
    pub(super) clients: u64,
    /// Whether the number of clients is an estimate, usually within 3 %.
    pub(super) clients_estimated: bool,
}

/// Lines that were not counted as requests.
#[derive(Debug, Serialize)]
pub(super) struct UnreadLines {
    pub(super) unreadable: u64,
    /// Lines of connections without a request.
    pub(super) without_request: u64,
    /// Lines without a host, of which nothing says where they go.
    pub(super) without_host: u64,
    pub(super) first: Vec<UnreadLine>,
}

#[derive(Debug, Serialize)]
pub(super) struct UnreadLine {
    pub(super) file: String,
    pub(super) line: u64,
    pub(super) reason: String,
}

/// The requests that would be treated differently.
#[derive(Debug, Serialize)]
pub(super) struct DifferingRequests {
    #[serde(flatten)]
    pub(super) count: ReplayCount,
    pub(super) all_classes: usize,
    /// The first classes: those that open access, and then those with the most requests.
    pub(super) classes: Vec<DifferingClass>,
}

/// Requests that are treated differently in the same way.
#[derive(Debug, Serialize)]
pub(super) struct DifferingClass {
    #[serde(flatten)]
    pub(super) count: ReplayCount,
    /// Whether access opens, in the sense of a plan.
    pub(super) opens_access: bool,
    pub(super) before: TreatedRequests,
    pub(super) after: TreatedRequests,
    /// The modules that the requests no longer pass, if a route takes them before and after.
    pub(super) lost_modules: Vec<&'static str>,
    /// The modules that they pass now.
    pub(super) gained_modules: Vec<&'static str>,
    /// The modules that do something else.
    pub(super) changed_modules: Vec<&'static str>,
    pub(super) examples: Vec<LoggedExample>,
}

/// The treatment of requests.
#[derive(Debug, Serialize)]
pub(super) struct TreatedRequests {
    #[serde(flatten)]
    pub(super) place: ReplayPlace,
    /// As route tests have it.
    pub(super) verdict: RequestVerdict,
    /// The module that ends the way of the requests, or those on which it depends.
    pub(super) modules: Vec<&'static str>,
    /// The backend that the requests can reach.
    pub(super) backend_id: Option<String>,
}

/// Where requests go: the names, or IDs of what has none.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct ReplayPlace {
    pub(super) edge: Option<String>,
    pub(super) hostports: Vec<String>,
    pub(super) r#match: Option<String>,
    pub(super) route: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct LoggedExample {
    pub(super) file: String,
    pub(super) line: u64,
    /// The method and the URL without its query, with `--show-urls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) url: Option<String>,
    /// The client, with `--show-clients`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<String>,
}

/// The requests of a route, those of an edge that no route takes, or those of no edge.
#[derive(Debug, Serialize)]
pub(super) struct PlaceCount {
    #[serde(flatten)]
    pub(super) place: ReplayPlace,
    #[serde(flatten)]
    pub(super) count: ReplayCount,
}

impl ReplayReport {
    /// Describes what was counted. At most `top` classes are listed.
    pub(super) fn new(
        logs: &[PathBuf],
        (tally, lines): (&ReplayTally, &LineCounts),
        before: &EdgeTable<'_>,
        after: Option<&EdgeTable<'_>>,
        top: usize,
    ) -> Self {
        let file = |place: &LinePlace| logs.get(place.file).map(|path| shown(path)).unwrap_or_default();
        let unread = lines.problems.iter().map(|(place, problem)| UnreadLine {
            file: file(place),
            line: place.line,
            reason: problem.to_string(),
        });
        let differing = after.map(|after| {
            let classes = tally.classes();
            let listed = classes.iter().take(top).map(|class| differing_class(class, before, after, &file));
            DifferingRequests {
                count: ReplayCount::new(&tally.differing),
                all_classes: classes.len(),
                classes: listed.collect(),
            }
        });
        Self {
            lines: lines.lines,
            unread: UnreadLines {
                unreadable: lines.unread,
                without_request: lines.without_request,
                without_host: lines.without_host,
                first: unread.collect(),
            },
            all: ReplayCount::new(&tally.all),
            without_edge: tally.without_edge,
            differing,
            counts: after.is_none().then(|| counts(tally, before)),
        }
    }
}

impl ReplayCount {
    fn new(count: &RequestCount) -> Self {
        let RequestCount { requests, bytes, clients } = count;
        Self { requests: *requests, bytes: *bytes, clients: clients.count(), clients_estimated: !clients.is_exact() }
    }
}

fn differing_class(
    class: &ReplayClass,
    before: &EdgeTable<'_>,
    after: &EdgeTable<'_>,
    file: &dyn Fn(&LinePlace) -> String,
) -> DifferingClass {
    let example = |example: &ReplayExample| LoggedExample {
        file: file(&example.place),
        line: example.place.line,
        url: example.url.clone(),
        client: example.client.clone(),
    };
    DifferingClass {
        count: ReplayCount::new(&class.count),
        opens_access: class.opens,
        before: treated(&class.before, before),
        after: treated(&class.after, after),
        lost_modules: class.lost.clone(),
        gained_modules: class.gained.clone(),
        changed_modules: class.changed.clone(),
        examples: class.examples.iter().map(example).collect(),
    }
}

fn treated(side: &ReplaySide, state: &EdgeTable<'_>) -> TreatedRequests {
    let ReplaySide { to, outcome } = side;
    TreatedRequests {
        place: place(*to, state),
        verdict: outcome.verdict(),
        modules: outcome.decided_by(),
        backend_id: outcome.backend_id.clone(),
    }
}

fn place(to: RoutedTo, state: &EdgeTable<'_>) -> ReplayPlace {
    let Some(edge) = state.edge(to) else { return ReplayPlace::default() };
    let route = state.edge_and_route(to).map(|(_, route)| route);
    let name = |key| state.state().name(key).to_owned();
    ReplayPlace {
        edge: Some(name(edge.key)),
        hostports: edge.edge.hostports.clone(),
        route: route.map(|(key, _)| name(key)),
        r#match: route.map(|(_, route)| route.r#match.clone()),
    }
}

/// The requests of every route, also of those without any; of edges without a route for them, and of no edge.
fn counts(tally: &ReplayTally, state: &EdgeTable<'_>) -> Vec<PlaceCount> {
    let mut places: Vec<RoutedTo> = Vec::new();
    for (at, edge) in state.edges().iter().enumerate() {
        places.extend((0..state.routes(edge).routes().len()).map(|route| RoutedTo::Route(at, route)));
    }
    places.extend(tally.counts.keys().filter(|to| !matches!(to, RoutedTo::Route(..))));
    let none = RequestCount::default();
    let described = places.into_iter().map(|to| PlaceCount {
        place: place(to, state),
        count: ReplayCount::new(tally.counts.get(&to).unwrap_or(&none)),
    });
    let mut described: Vec<PlaceCount> = described.collect();
    described.sort_by(|one, other| {
        let by_count = other.count.requests.cmp(&one.count.requests);
        by_count.then_with(|| one.place.cmp(&other.place))
    });
    described
}
