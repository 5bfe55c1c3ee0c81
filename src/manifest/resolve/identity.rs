//! Chooses the id of each declared resource: the stated, the previous, or a derived one (D11, D54).

mod fast_path;
mod fixed;
mod former_names;
mod names;

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::{ResolveOptions, cycles::circles};
use crate::{
    manifest::{Loaded, load::declaration::Declaration},
    model::{
        Kind,
        diagnostics::{Aim, Code, Diagnostic, Fault, Path},
        id::Id,
        json::JsonError,
        key::Key,
        operation::Claim,
        resource::AnyResource,
        snapshot::{Entry, Snapshot},
    },
};
use fast_path::alone;
pub(super) use fast_path::{Special, choose};
pub(super) use fixed::fixed_content;
use fixed::unfit;
use former_names::FormerNames;
use names::NameIndex;

/// The names in a store, as one source sees them.
pub(super) struct Known<'a> {
    pub snapshot: &'a Snapshot,
    pub source: &'a str,
    /// Whether undeclared resources of the source are deleted.
    pub prune: bool,
    /// Whether a stated ID that the store does not have is used for a new resource.
    pub recreate_ids: bool,
    /// Whether there is no store to look up identifiers in.
    pub offline: bool,
    pub loaded: &'a Loaded,
    entries: OnceLock<Vec<&'a Arc<Entry>>>,
    names: OnceLock<NameIndex<'a>>,
    handed_over: OnceLock<FormerNames<'a>>,
    routes_elsewhere: OnceLock<HashMap<&'a str, Vec<&'a Id>>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, options: ResolveOptions<'a>, loaded: &'a Loaded) -> Self {
        let ResolveOptions { source, prune, recreate_ids } = options;
        Self {
            snapshot,
            source,
            prune,
            recreate_ids,
            offline: false,
            loaded,
            entries: OnceLock::new(),
            names: OnceLock::new(),
            handed_over: OnceLock::new(),
            routes_elsewhere: OnceLock::new(),
        }
    }

    /// Indexes the names now. Otherwise, all cores would wait for the one that looks up the first.
    pub(super) fn prepare(&self) {
        self.names();
    }

    /// All resources in the store, in the order of their keys, as a list that all cores can read.
    pub(super) fn entries(&self) -> &[&'a Arc<Entry>] {
        self.entries.get_or_init(|| self.snapshot.iter().collect())
    }

    /// The names, indexed when the first is looked up.
    fn names(&self) -> &NameIndex<'a> {
        self.names.get_or_init(|| NameIndex::new(self.entries(), self.source))
    }

    /// The edges of others that have a route of this source with a name.
    pub(super) fn edges_of_routes(&self, name: &str) -> Vec<&'a Id> {
        let index = self.routes_elsewhere.get_or_init(|| {
            let mut index: HashMap<&'a str, Vec<&'a Id>> = HashMap::new();
            for entry in self.entries().iter().filter(|entry| entry.key.kind == Kind::HttpsEdgeRoute) {
                let claim = entry.claim.as_deref().filter(|claim| claim.source == self.source);
                let edge = entry.key.parent_key().and_then(|edge| self.snapshot.get(&edge));
                if let (Some(claim), Some(edge)) = (claim, edge.filter(|edge| !edge.is_owned_by(self.source))) {
                    index.entry(&claim.name).or_default().push(&edge.key.id);
                }
            }
            index
        });
        index.get(name).cloned().unwrap_or_default()
    }

    /// The owned resources with a name, those of this source first.
    pub(super) fn named<'k>(
        &'k self,
        kind: Kind,
        parent: Option<&'k Id>,
        name: &'k str,
    ) -> impl Iterator<Item = &'a Arc<Entry>> + use<'k, 'a> {
        self.names().get(kind, parent, name)
    }
}

/// A declared resource that needs an id.
pub(super) struct Wanted<'a> {
    pub declaration: &'a Arc<Declaration>,
    /// The key, whose id is empty until it is chosen.
    pub key: Key,
    /// The resource in the store with this key, once the key is chosen.
    pub entry: Option<&'a Arc<Entry>>,
    pub spec: Arc<dyn AnyResource>,
    pub faulty: bool,
    /// Whether nothing has to be noted about it besides what it is.
    pub is_plain: bool,
    is_alone: bool,
    /// The immutable content.
    fixed: Vec<String>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(
        known: &Known<'a>,
        declaration: &'a Arc<Declaration>,
        parent: Option<Id>,
        spec: Arc<dyn AnyResource>,
        faulty: bool,
    ) -> Result<Self, JsonError> {
        let fixed = fixed_content(spec.as_ref())?;
        let chosen = alone(known, declaration, parent.as_ref(), &fixed);
        let is_alone = chosen.is_some();
        let (id, entry) = chosen.unwrap_or_else(|| (Id::new(""), None));
        let key = Key { kind: declaration.kind, parent, id };
        Ok(Self { declaration, key, entry, spec, faulty, is_plain: false, is_alone, fixed })
    }

    /// Whether it has a key that no other one of its kind can claim, as long as this holds for all of them.
    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Its claim in the store.
    pub(super) fn claim(&self) -> Option<&'a Claim> {
        self.entry.and_then(|entry| entry.claim.as_deref())
    }

    fn keyed(&self, id: Id) -> Key {
        Key { kind: self.key.kind, parent: self.key.parent.clone(), id }
    }

    fn parent(&self) -> Option<&Id> {
        self.key.parent.as_ref()
    }

    fn name(&self) -> &'a str {
        &self.declaration.name
    }

    /// The former name, if the resource is renamed.
    fn former(&self) -> Option<&'a str> {
        self.declaration.renamed_from.as_deref().filter(|former| *former != self.name())
    }

    /// Takes the words of the resource in the store that it is, where they say the same.
    fn settle(&mut self) {
        let Some(entry) = self.entry.filter(|_| !self.fixed.is_empty()) else { return };
        if let Some(worded) = self.spec.as_stored(entry.spec().as_ref()) {
            self.spec = worded;
        }
    }

    /// Whether the resource will exist: an implicit one needs a module (D34).
    fn exists(&self) -> bool {
        let info = self.declaration.kind.info();
        !info.implicit || info.slots.iter().any(|slot| self.spec.module(slot).is_some())
    }

    fn derived(&self, number: u32) -> Id {
        // One that is new has its first id already, if it was judged alone.
        match number == 0 && self.is_alone && self.entry.is_none() {
            true => self.key.id.clone(),
            false => derived(self.key.kind, self.parent(), self.name(), &self.fixed, number),
        }
    }
}

/// Chooses the ids of all declared resources of one kind, independent of file order: first stated ids, then renames,
/// then unchanged names, then new resources. Returns what is special about some of them, by their positions.
fn choose_together<'a>(known: &Known<'a>, wanted: &[Wanted<'a>]) -> (Vec<Id>, HashMap<usize, Special>) {
    let mut chooser = Chooser {
        known,
        wanted,
        ids: vec![None; wanted.len()],
        taken: HashMap::with_capacity(wanted.len()),
        given_up: HashMap::new(),
        faults: HashMap::new(),
        rivals: HashMap::new(),
        replaced: HashMap::new(),
    };
    chooser.take_stated();
    let exchanged = chooser.rename();
    chooser.keep();
    chooser.derive();
    chooser.finish(&exchanged)
}

struct Chooser<'k, 'a> {
    known: &'k Known<'a>,
    wanted: &'k [Wanted<'a>],
    /// The chosen ids.
    ids: Vec<Option<Id>>,
    /// The declaration that has each resource.
    taken: HashMap<Key, usize>,
    /// The declaration that has the resource formerly under a name.
    given_up: HashMap<(Option<&'k Id>, &'k str), usize>,
    faults: HashMap<usize, Diagnostic>,
    /// Of two declarations that are renamed from one resource, the second with the first.
    rivals: HashMap<usize, usize>,
    /// The resources that are replaced, by the declarations of those that replace them.
    replaced: HashMap<usize, Key>,
}

impl<'k, 'a> Chooser<'k, 'a> {
    fn is_open(&self, index: usize) -> bool {
        self.ids.get(index).is_some_and(Option::is_none)
    }

    fn take(&mut self, index: usize, id: Id) {
        let wanted = self.wanted;
        let Some(it) = wanted.get(index) else { return };
        self.taken.entry(it.keyed(id.clone())).or_insert(index);
        if let Some(chosen) = self.ids.get_mut(index) {
            *chosen = Some(id);
        }
    }

    fn take_entry(&mut self, index: usize, entry: &'k Entry) {
        let wanted = self.wanted;
        let Some(it) = wanted.get(index) else { return };
        if let Some(claim) = &entry.claim
            && claim.source == self.known.source
            && claim.name != it.name()
        {
            self.given_up.entry((it.parent(), claim.name.as_str())).or_insert(index);
        }
        self.take(index, entry.key.id.clone());
    }

    /// Whether a declaration with another name has the resource. Two declarations of one name get one id, which is
    /// reported.
    fn is_taken(&self, it: &Wanted<'_>, key: &Key) -> bool {
        let by = self.taken.get(key).and_then(|by| self.wanted.get(*by));
        by.is_some_and(|other| other.name() != it.name())
    }

    /// The source's resource with a name that can be updated to this one.
    fn free(&self, it: &Wanted<'_>, name: &str) -> Option<&'k Entry> {
        let known: &'k Known<'a> = self.known;
        let named = known.named(it.declaration.kind, it.parent(), name);
        let mut free =
            named.filter(|entry| entry.is_owned_by(known.source) && !self.is_taken(it, &entry.key) && it.fits(entry));
        free.next().map(|entry| entry.as_ref())
    }

    /// Whether no resource of its own name fits a declared resource.
    fn lacks(&self, index: usize) -> bool {
        self.is_open(index)
            && self.wanted.get(index).is_some_and(|it| it.exists() && self.free(it, it.name()).is_none())
    }

    /// Takes ids stated in manifests, and event types, which are ids themselves.
    fn take_stated(&mut self) {
        let (known, wanted) = (self.known, self.wanted);
        for (index, it) in wanted.iter().enumerate() {
            if it.declaration.kind == Kind::EventSource {
                self.take(index, Id::new(it.name()));
                continue;
            }
            let Some(id) = &it.declaration.id else { continue };
            let key = it.keyed(Id::new(id));
            if let Some(other) = self.elsewhere(it, &key) {
                self.faults.insert(index, misplaced(known.snapshot, it, other));
                continue;
            }
            match known.snapshot.get(&key) {
                // Different immutable content makes it another resource.
                Some(entry) if !it.fits(entry) => {
                    self.faults.insert(index, unfit(known, it, entry));
                }
                Some(entry) => self.take_entry(index, entry.as_ref()),
                None => {
                    let help = match self.is_misnamed(it) {
                        true => format!("remove or correct the ID: `{}` already exists with another ID", it.name()),
                        // A rebuilt store gets the previously adopted ids, and what was deleted by hand is put back. What is
                        // implicit is known by its ID alone.
                        false if known.recreate_ids
                            || known.snapshot.tombstone(&key).is_some()
                            || it.declaration.kind.info().implicit =>
                        {
                            self.take(index, key.id);
                            continue;
                        }
                        false => {
                            "remove or correct the ID; to build a lost store again with its IDs, use `--recreate-ids`, or \
                             `recreate_ids: true` of a followed source"
                                .to_owned()
                        }
                    };
                    let fault = Fault::new(Code::UnknownReference, format!("cannot adopt {key}: not found"));
                    let fault = fault.at(Path::root().join("metadata").join("id"));
                    self.faults.insert(index, it.declaration.head().diagnostic(fault.help(help)));
                }
            }
        }
    }

    /// The resource with a stated ID below another parent.
    fn elsewhere(&self, it: &Wanted<'_>, key: &Key) -> Option<&'k Arc<Entry>> {
        let known: &'k Known<'a> = self.known;
        key.parent.as_ref().filter(|_| known.snapshot.get(key).is_none())?;
        known.snapshot.find_child(it.declaration.kind, &key.id)
    }

    /// Whether the source already owns a resource with this name, so that an unknown id is a mistake.
    fn is_misnamed(&self, it: &Wanted<'_>) -> bool {
        let mut named = self.known.named(it.declaration.kind, it.parent(), it.name());
        !it.declaration.kind.info().implicit && named.next().is_some_and(|entry| entry.is_owned_by(self.known.source))
    }

    /// Applies `metadata.renamed_from`, and returns the resources that swap names.
    fn rename(&mut self) -> HashSet<usize> {
        let wanted = self.wanted;
        let renamed = |index: &usize| wanted.get(*index).is_some_and(|it| it.former().is_some());
        let renamed: Vec<usize> = (0..wanted.len()).filter(renamed).collect();
        let by_name: HashMap<(Option<&Id>, &str), usize> = renamed
            .iter()
            .filter_map(|index| wanted.get(*index).map(|it| ((it.parent(), it.name()), *index)))
            .collect();
        let next = |index: usize| {
            let it = wanted.get(index)?;
            by_name.get(&(it.parent(), it.former()?)).copied()
        };
        let circles = circles(&renamed, next);
        // A swap looks the same before and after, so the claims record that it was applied.
        for index in circles.iter().flatten().copied() {
            let Some(it) = wanted.get(index).filter(|_| self.is_open(index)) else { continue };
            let made = |entry: &&Entry| {
                entry.claim.as_deref().is_some_and(|claim| claim.renamed_from.as_deref() == it.former())
            };
            if let Some(entry) = self.free(it, it.name()).filter(made) {
                self.take_entry(index, entry);
            }
        }
        // A name in use stays with its resource, so a rename that was applied before does nothing. In a chain of
        // renames, each one frees the name for the next.
        let mut open: VecDeque<usize> = renamed.iter().copied().filter(|index| self.lacks(*index)).collect();
        while let Some(index) = open.pop_front() {
            let Some(it) = wanted.get(index).filter(|_| self.is_open(index)) else { continue };
            let Some(former) = it.former() else { continue };
            let Some(entry) = self.free(it, former) else { continue };
            self.take_entry(index, entry);
            let other = by_name.get(&(it.parent(), former)).copied();
            open.extend(other.filter(|other| self.lacks(*other)));
        }
        for circle in &circles {
            let moves = circle.iter().copied().map(|index| {
                let it = wanted.get(index).filter(|_| self.is_open(index))?;
                Some((index, self.free(it, it.former()?)?))
            });
            let moves: Option<Vec<(usize, &'k Entry)>> = moves.collect();
            for (index, entry) in moves.into_iter().flatten() {
                self.take_entry(index, entry);
            }
        }
        circles.into_iter().flatten().collect()
    }

    /// Resources with an unchanged name keep their id, also if they move between sources (D104).
    fn keep(&mut self) {
        let wanted = self.wanted;
        for (index, it) in wanted.iter().enumerate() {
            if self.is_open(index)
                && let Some(entry) = self.free(it, it.name()).or_else(|| self.of_other_source(it))
            {
                self.take_entry(index, entry);
            }
        }
    }

    /// The remaining resources are new and get derived ids.
    fn derive(&mut self) {
        let wanted = self.wanted;
        for (index, it) in wanted.iter().enumerate() {
            if !self.is_open(index) {
                continue;
            }
            let position = it.former().and_then(|former| self.given_up.get(&(it.parent(), former)).copied());
            if let Some(position) = position.filter(|_| it.exists())
                && let Some(rival) = wanted.get(position)
            {
                self.faults.insert(index, renamed_twice(it, rival));
                self.rivals.insert(index, position);
            }
            if let Some(old) = self.predecessor(it) {
                self.replaced.insert(index, old.key.clone());
            }
            let id = (0..u32::MAX).map(|number| it.derived(number)).find(|id| !self.is_occupied(it, id));
            self.take(index, id.unwrap_or_else(|| it.derived(0)));
        }
    }

    /// Whether a derived id belongs to a resource of another source or with another name, which keeps it: names of other
    /// sources do not matter (D112).
    fn is_occupied(&self, it: &Wanted<'_>, id: &Id) -> bool {
        let key = it.keyed(id.clone());
        if self.taken.contains_key(&key) {
            return self.is_taken(it, &key);
        }
        let known = self.known;
        let claim = known.snapshot.get(&key).and_then(|entry| entry.claim.as_deref());
        claim.is_some_and(|claim| {
            // An undeclared resource of this source will be pruned, unless its document has errors or it is promised.
            let stays = || {
                !known.prune
                    || claim.is_promised()
                    || known.loaded.declared().knows(it.declaration.kind.info().name, &claim.name)
            };
            claim.source != known.source || (claim.name != it.name() && stays())
        })
    }

    fn finish(mut self, exchanged: &HashSet<usize>) -> (Vec<Id>, HashMap<usize, Special>) {
        let wanted = self.wanted;
        let mut specials = HashMap::new();
        for (index, it) in wanted.iter().enumerate() {
            let giver = self.given_up.get(&(it.parent(), it.name())).copied();
            let special = Special {
                renamed_from: it.former().filter(|_| exchanged.contains(&index)).map(str::to_owned),
                after: giver.filter(|giver| *giver != index),
                fault: self.faults.remove(&index),
                rival: self.rivals.get(&index).copied(),
                replaces: self.replaced.remove(&index),
            };
            if !special.is_empty() {
                specials.insert(index, special);
            }
        }
        let ids = self.ids.into_iter().zip(wanted);
        (ids.map(|(id, it)| id.unwrap_or_else(|| it.derived(0))).collect(), specials)
    }
}

/// The error of a stated ID that a resource has below another parent, which cannot change.
fn misplaced(snapshot: &Snapshot, it: &Wanted<'_>, other: &Entry) -> Diagnostic {
    let parent = other.key.parent_key().map(|key| snapshot.name_of(&key)).unwrap_or_default();
    let message = format!("cannot adopt {} {}: it belongs to {parent}", other.key.kind, other.key.id);
    let fault = Fault::new(Code::Immutable, message).at(Path::root().join("metadata").join("id"));
    let help = "declare it there, or remove `metadata.id` to create another one here".to_owned();
    it.declaration.head().diagnostic(fault.help(help))
}

fn renamed_twice(it: &Wanted<'_>, rival: &Wanted<'_>) -> Diagnostic {
    let path = Path::root().join("metadata").join("renamed_from");
    let former = it.former().unwrap_or_default();
    let message = format!("`{former}` cannot be renamed to both `{}` and `{}`", rival.name(), it.name());
    let fault = Fault::new(Code::DuplicateName, message).at(path);
    let mut diagnostic = it.declaration.head().diagnostic(fault.help("remove one of the two `renamed_from`"));
    let first = rival.declaration.head().place(&Path::root().join("metadata").join("name"), Aim::Value);
    diagnostic.related.push((first, "first here".into()));
    diagnostic
}

/// The derived id of a name. `number` is 0, or higher while another resource still has the lower-numbered ids.
pub(super) fn derived(kind: Kind, parent: Option<&Id>, name: &str, fixed: &[String], number: u32) -> Id {
    let parent = parent.map(Id::as_str).unwrap_or_default();
    let number = (number > 0).then(|| number.to_string());
    let parts = [kind.info().name, parent, name].into_iter().chain(fixed.iter().map(String::as_str));
    Id::derived(kind.info().prefix, parts.chain(number.as_deref()).map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_owner_of_a_name_has_the_id_that_it_always_had() {
        let id = |number| derived(Kind::HttpsEdge, None, "a", &[], number);
        assert_eq!(id(0), Id::derived("edghts_", ["HttpsEdge", "", "a"].map(str::as_bytes)));
        assert!(id(0) != id(1) && id(1) != id(2));
        let fixed = ["1".to_owned()];
        let authority = |fixed: &[String], number| derived(Kind::CertificateAuthority, None, "a", fixed, number);
        assert_ne!(authority(&fixed, 0), authority(&fixed, 1));
    }
}
