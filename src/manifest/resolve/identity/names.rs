//! The names in a store, as one source sees them.

use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashSet};

use crate::manifest::loader::Loaded;
use crate::manifest::resolve::options::ResolveOptions;
use crate::model::{Entry, Id, Kind, Snapshot};

/// Resources by kind, parent and name. Two sources can use one name, and so can a replacement and its predecessor that was
/// not pruned.
type EntriesByName<'a> = HashMap<(Kind, Option<&'a Id>, &'a str), Vec<&'a Arc<Entry>>>;

/// The names in a store, as one source sees them.
pub(crate) struct StoreNames<'a> {
    pub snapshot: &'a Snapshot,
    pub source: &'a str,
    /// Whether undeclared resources of the source are deleted.
    pub prune: bool,
    /// Whether a stated ID that the store does not have is used for a new resource.
    pub recreate_ids: bool,
    /// Whether there is no store to look up identifiers in.
    pub offline: bool,
    /// The source that the manifests surround, if they are surrounding ones. None of these is of that source.
    pub beside: Option<&'a str>,
    pub loaded: &'a Loaded,
    /// Indexed when the first name is looked up.
    names: OnceLock<NameIndex<'a>>,
    routes_elsewhere: OnceLock<RoutesElsewhere<'a>>,
}

/// The edges of others that have routes of the source.
#[derive(Default)]
struct RoutesElsewhere<'a> {
    /// By the names of the routes.
    by_name: HashMap<&'a str, Vec<&'a Id>>,
    /// All of them.
    edges: HashSet<&'a Id>,
}

/// The owned resources of a store.
#[derive(Default)]
struct NameIndex<'a> {
    /// By the names of their claims. Those of the source come first, the last of them before the others.
    current: EntriesByName<'a>,
    /// Resources that the source has handed over and that have another name since, by the name they had.
    former: EntriesByName<'a>,
}

impl<'a> NameIndex<'a> {
    fn new(snapshot: &'a Snapshot, source: &str) -> Self {
        let mut index = Self::default();
        for entry in snapshot.iter() {
            let Some(claim) = entry.claim.as_deref() else { continue };
            let (kind, parent) = (entry.key.kind, entry.key.parent.as_ref());
            let named = index.current.entry((kind, parent, claim.name.as_str())).or_default();
            let place = if claim.source == source { 0 } else { named.len() };
            named.insert(place, entry);
            if let (Some(from), Some(name)) = (&claim.transferred_from, &claim.transferred_as)
                && from == source
            {
                index.former.entry((kind, parent, name.as_str())).or_default().push(entry);
            }
        }
        index
    }
}

impl<'a> StoreNames<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, options: ResolveOptions<'a>, loaded: &'a Loaded) -> Self {
        let ResolveOptions { source, prune, recreate_ids } = options;
        let (names, routes_elsewhere) = (OnceLock::new(), OnceLock::new());
        let (offline, beside) = (false, None);
        Self { snapshot, source, prune, recreate_ids, offline, beside, loaded, names, routes_elsewhere }
    }

    fn names(&self) -> &NameIndex<'a> {
        self.names.get_or_init(|| NameIndex::new(self.snapshot, self.source))
    }

    fn routes_elsewhere(&self) -> &RoutesElsewhere<'a> {
        self.routes_elsewhere.get_or_init(|| {
            let mut index = RoutesElsewhere::default();
            for entry in self.snapshot.iter().filter(|entry| entry.key.kind == Kind::HttpsEdgeRoute) {
                let claim = entry.claim.as_deref().filter(|claim| claim.source == self.source);
                let edge = entry.key.parent_key().and_then(|edge| self.snapshot.get(&edge));
                if let (Some(claim), Some(edge)) = (claim, edge.filter(|edge| !edge.is_owned_by(self.source))) {
                    index.by_name.entry(&claim.name).or_default().push(&edge.key.id);
                    index.edges.insert(&edge.key.id);
                }
            }
            index
        })
    }

    /// The edges of others that have a route of this source with a name.
    pub(crate) fn edges_of_routes(&self, name: &str) -> Vec<&'a Id> {
        self.routes_elsewhere().by_name.get(name).cloned().unwrap_or_default()
    }

    /// Whether an edge of others has a route of this source.
    pub(crate) fn has_route_on(&self, edge: &Id) -> bool {
        self.routes_elsewhere().edges.contains(edge)
    }

    /// The owned resources with a name, those of this source first.
    pub(crate) fn named<'k>(&'k self, kind: Kind, parent: Option<&'k Id>, name: &'k str) -> &'k [&'a Arc<Entry>] {
        self.names().current.get(&(kind, parent, name)).map(Vec::as_slice).unwrap_or_default()
    }

    /// The resources that this source has handed over under a name, and that have another name since.
    pub(super) fn handed_over<'k>(&'k self, kind: Kind, parent: Option<&'k Id>, name: &'k str) -> &'k [&'a Arc<Entry>] {
        self.names().former.get(&(kind, parent, name)).map(Vec::as_slice).unwrap_or_default()
    }
}
