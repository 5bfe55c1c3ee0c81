//! What changes do to access: whether one has taken or added protection. What a revision did never changes, so it is found
//! once.

use quick_cache::sync::Cache;

use crate::plan::exposure::opened_requests::opened_requests;
use crate::server::prelude::*;
use crate::store::commit::header::ProtectionChange;
use crate::store::{ChangeEvent, CommitHeader, ResourceChange, RevisionError};
use crate::syntax::text::first_of;

/// How many revisions ago one is whose requests are compared: the state of an older one takes long to restore.
const MOST_REVISIONS: u64 = 100;
/// The most resources of a revision whose effect on access is looked at, and the most whose requests are compared.
const MOST_CHANGED: usize = 1000;
const MOST_COMPARED: usize = 50;
/// The most resources of a revision that lists name.
const MOST_NAMED: usize = 3;
/// The most routes of the edges of a revision whose requests are compared.
const MOST_ROUTES: usize = 400;
/// The most findings of a revision that are shown.
const MOST_SHOWN: usize = 3;
/// The revisions whose effects are in memory.
const MOST_KEPT: usize = 3000;

/// The effect of a change on access.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AccessEffect {
    /// The modules that no longer restrict access.
    pub lost: Vec<String>,
    /// The modules that restrict access from then on.
    pub gained: Vec<String>,
    /// Whether the change made a route without any.
    pub is_new_and_open: bool,
    /// The first of these routes of a revision, by name.
    pub open_routes: String,
    /// The access that the change opens although no resource loses a module: another route has the requests of a
    /// protected one, or a restriction admits more.
    pub taken_over: Vec<String>,
    /// Whether that was not looked for, although there may be some: the change is old or large, or its edges are.
    pub is_partial: bool,
    /// What changed: the names of the resources if they are few, and otherwise their numbers.
    pub changed: String,
    /// How many resources were created, updated and deleted.
    pub counts: String,
}

impl AccessEffect {
    /// The effect of a change of a resource.
    pub(super) fn from_change(change: &ResourceChange) -> Self {
        let ProtectionChange { lost, gained, is_new_and_open } = change.access.clone();
        Self { lost, gained, is_new_and_open, ..Self::default() }
    }

    /// Whether somebody gets access who had none.
    pub(super) fn opens(&self) -> bool {
        !self.lost.is_empty() || !self.taken_over.is_empty()
    }

    /// The effect of a revision, whose commit is the header's.
    fn from_revision(store: &Store, revision: u64, header: &CommitHeader) -> Result<Self, RevisionError> {
        let changes = store.some_changes(header, 0, MOST_CHANGED)?.unwrap_or_default();
        let keys: BTreeSet<Key> = changes.iter().filter_map(|change| Key::at_path(change.kind, &change.path)).collect();
        let state = store.snapshot();
        let mut effect = Self::default();
        let mut open_routes: Vec<&ResourceChange> = Vec::new();
        for change in &changes {
            let of_change = Self::from_change(change);
            open_routes.extend(of_change.is_new_and_open.then_some(change));
            effect.add(of_change);
        }
        effect.open_routes = first_of(open_routes.iter().map(|change| changed_name(change, &state)), MOST_NAMED);
        effect.counts = counts(&changes);
        effect.changed = if changes.len() <= MOST_NAMED {
            changes.iter().map(|change| outlined(change, &state)).collect::<Vec<_>>().join(", ")
        } else {
            effect.counts.clone()
        };
        if effect.lost.is_empty() {
            let is_recent = state.revision.saturating_sub(revision) <= MOST_REVISIONS;
            let taken_over = taken_over(store, revision, &keys, is_recent && changes.len() <= MOST_COMPARED)?;
            effect.is_partial = taken_over.is_none();
            effect.taken_over = taken_over.unwrap_or_default();
        }
        Ok(effect)
    }

    /// Adds the effect of another change.
    fn add(&mut self, other: Self) {
        self.lost.extend(other.lost);
        self.gained.extend(other.gained);
        self.is_new_and_open |= other.is_new_and_open;
        self.taken_over.extend(other.taken_over);
    }
}

/// The effects of revisions that pages have asked for. Within a process, a revision has one content.
pub(crate) struct AccessEffects(Cache<u64, Arc<AccessEffect>>);

impl Default for AccessEffects {
    fn default() -> Self {
        Self(Cache::new(MOST_KEPT))
    }
}

impl AccessEffects {
    /// The effect of a revision, if it is known.
    pub(super) fn get(&self, revision: u64) -> Option<Arc<AccessEffect>> {
        self.0.get(&revision)
    }

    /// Finds the effect of a revision, which takes the states before and after it.
    pub(super) fn find(&self, store: &Store, revision: u64) -> Result<(), RevisionError> {
        if let Some(header) = store.header(revision)? {
            self.0.insert(revision, Arc::new(AccessEffect::from_revision(store, revision, &header)?));
        }
        Ok(())
    }
}

/// Returns a revision whose effect is looked at: that of a very large one takes long to find.
pub(super) fn compared_revision(revision: Option<u64>, changed: usize) -> Option<u64> {
    revision.filter(|_| (1..=MOST_CHANGED).contains(&changed))
}

/// The numbers of the resources that were created, updated and deleted, such as `2 resources created, 1 updated`.
fn counts(changes: &[ResourceChange]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for wanted in [ChangeEvent::Created, ChangeEvent::Updated, ChangeEvent::Deleted] {
        let count = changes.iter().filter(|change| change.event() == Some(wanted)).count();
        if count > 0 {
            let what = if parts.is_empty() { number_of(count, "resource") } else { count.to_string() };
            parts.push(format!("{what} {}", wanted.as_str()));
        }
    }
    parts.join(", ")
}

/// Names a changed resource, and whether it was created or deleted.
fn outlined(change: &ResourceChange, state: &Snapshot) -> String {
    let event = match change.event() {
        Some(ChangeEvent::Created) => " created",
        Some(ChangeEvent::Deleted) => " deleted",
        _ => "",
    };
    format!("{} {}{event}", change.kind, changed_name(change, state))
}

/// The name of a changed resource with that of its parent. An API key that no manifest names has its description.
pub(super) fn changed_name(change: &ResourceChange, state: &Snapshot) -> String {
    let own = change.name.as_deref().unwrap_or_default();
    let Some(key) = Key::at_path(change.kind, &change.path) else { return change.path.clone() };
    let described = |side: &Option<Value>| side.as_ref()?.get("description")?.as_str().map(str::to_owned);
    let description = match key.kind {
        Kind::ApiKey if own.is_empty() => [&change.after, &change.before].into_iter().find_map(described),
        _ => return state.full_name_at(&key, own),
    };
    let description = description.unwrap_or_else(|| state.key_description(&key.id).to_owned());
    if description.is_empty() { key.id.to_string() } else { description }
}

/// Finds the access that a revision opens, from all requests that the edges of changed resources serve. Returns none if
/// these are not compared: the revision is old or large, or nobody would wait for edges with so many routes.
fn taken_over(
    store: &Store,
    revision: u64,
    changed: &BTreeSet<Key>,
    is_compared: bool,
) -> Result<Option<Vec<String>>, RevisionError> {
    let edges: BTreeSet<Key> = changed
        .iter()
        .filter_map(|key| match key.kind {
            Kind::HttpsEdge => Some(key.clone()),
            Kind::HttpsEdgeRoute => key.parent_key(),
            _ => None,
        })
        .collect();
    // Before the first revision, nothing was protected.
    let previous = revision.saturating_sub(1);
    if previous == 0 || edges.is_empty() {
        return Ok(Some(Vec::new()));
    }
    if !is_compared {
        return Ok(None);
    }
    let (before, after) = match (store.glance_at(previous), store.glance_at(revision)) {
        (Err(RevisionError::Gone { .. }), _) | (_, Err(RevisionError::Gone { .. })) => return Ok(None),
        (before, after) => (before?, after?),
    };
    let routes: usize = [&before, &after]
        .into_iter()
        .flat_map(|state| edges.iter().map(move |edge| state.children_after(edge, None).take(MOST_ROUTES + 1).count()))
        .sum();
    if routes > MOST_ROUTES {
        return Ok(None);
    }
    let opened = opened_requests(changed, &before, &after);
    // The badge before it says that already.
    let shown = |text: String| text.strip_prefix("this opens access: ").unwrap_or(&text).to_owned();
    Ok(Some(opened.iter().take(MOST_SHOWN).map(|it| shown(it.to_string())).collect()))
}
