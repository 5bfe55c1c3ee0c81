//! Chooses the id of each declared resource: the stated, the previous, or a derived one (D11, D54).
//!
//! A derived id must be the same wherever the same commits were applied, and free: a renamed resource keeps its id, which
//! was derived from its former name. The next resource of that name gets the id with the smallest number that is free.

mod immutable;
mod names;

use std::{collections::VecDeque, sync::Arc};

use foldhash::{HashMap, HashMapExt as _, HashSet};

use super::cycles::find_cycles;
use super::transfer::TransferState;
use crate::manifest::load::declaration::Declaration;
use crate::model::key::derived_id;
use crate::model::{AnyResource, Code, Diagnostic, Entry, Fault, FaultTarget, Id, JsonError, Key, Kind, Snapshot};
pub(super) use immutable::immutable_content;
use immutable::immutable_error;
pub(super) use names::StoreNames;

/// A declared resource that needs an id.
pub(super) struct DeclaredResource<'a> {
    pub declaration: &'a Arc<Declaration>,
    /// The key, whose id is empty until it is chosen.
    pub key: Key,
    /// The resource in the store with this key, once the key is chosen.
    pub entry: Option<&'a Arc<Entry>>,
    pub spec: Arc<dyn AnyResource>,
    pub faulty: bool,
    /// The immutable content.
    fixed: Vec<String>,
}

/// How an existing resource becomes the declared one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// By an update in place.
    Update,
    /// Only by its replacement, because immutable content differs.
    Replace,
}

impl<'a> DeclaredResource<'a> {
    pub(super) fn new(
        declaration: &'a Arc<Declaration>,
        parent: Option<Id>,
        spec: Arc<dyn AnyResource>,
        faulty: bool,
    ) -> Result<Self, JsonError> {
        let fixed = immutable_content(spec.as_ref())?;
        let key = Key { kind: declaration.kind, parent, id: Id::new("") };
        Ok(Self { declaration, key, entry: None, spec, faulty, fixed })
    }

    fn fit(&self, entry: &Entry) -> Fit {
        if self.fits(entry) { Fit::Update } else { Fit::Replace }
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

    /// The name, and the former one.
    fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        [Some(self.name()), self.former()].into_iter().flatten()
    }

    /// Adopts the spelling of the stored resource where it means the same.
    fn adopt_stored_form(&mut self) {
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
        derived_id(self.key.kind, self.parent(), self.name(), &self.fixed, number)
    }
}

/// The special properties of a declared resource's identity.
#[derive(Default)]
pub(super) struct IdentityChange {
    /// The former name, if declared resources swap names.
    pub renamed_from: Option<String>,
    /// The index of the declared resource that gives up this one's name.
    pub after: Option<usize>,
    pub fault: Option<Diagnostic>,
    /// Position of a declared resource that claims the same former name: neither can be meant.
    pub rival: Option<usize>,
    /// The resource of the name that has other immutable content.
    pub replaces: Option<Key>,
}

/// Chooses the ids of all declared resources of one kind, independent of file order: first stated ids, then renames,
/// then unchanged names, then new resources. Returns what is special about some of them, by their positions.
pub(super) fn choose<'a>(
    known: &StoreNames<'a>,
    wanted: &mut [DeclaredResource<'a>],
) -> HashMap<usize, IdentityChange> {
    let mut chooser = IdChooser {
        known,
        wanted: &*wanted,
        ids: vec![None; wanted.len()],
        taken: HashMap::with_capacity(wanted.len()),
        freed_names: HashMap::new(),
        changes: HashMap::new(),
    };
    chooser.take_stated();
    let exchanged = chooser.rename();
    chooser.keep();
    chooser.derive();
    let (ids, changes) = chooser.finish(&exchanged);
    for (it, id) in wanted.iter_mut().zip(ids) {
        it.key.id = id;
        it.entry = known.snapshot.get(&it.key);
        it.adopt_stored_form();
    }
    changes
}

struct IdChooser<'k, 'a> {
    known: &'k StoreNames<'a>,
    wanted: &'k [DeclaredResource<'a>],
    /// The chosen ids.
    ids: Vec<Option<Id>>,
    /// The declaration that has each resource.
    taken: HashMap<Key, usize>,
    /// The declaration that has the resource formerly under a name.
    freed_names: HashMap<(Option<&'k Id>, &'k str), usize>,
    /// The special properties of declarations.
    changes: HashMap<usize, IdentityChange>,
}

impl<'k, 'a> IdChooser<'k, 'a> {
    fn is_open(&self, index: usize) -> bool {
        self.ids.get(index).is_some_and(Option::is_none)
    }

    fn change(&mut self, index: usize) -> &mut IdentityChange {
        self.changes.entry(index).or_default()
    }

    fn take(&mut self, index: usize, it: &DeclaredResource<'_>, id: Id) {
        self.taken.entry(it.keyed(id.clone())).or_insert(index);
        if let Some(chosen) = self.ids.get_mut(index) {
            *chosen = Some(id);
        }
    }

    fn take_entry(&mut self, index: usize, it: &'k DeclaredResource<'a>, entry: &'k Entry) {
        if let Some(claim) = &entry.claim
            && claim.source == self.known.source
            && claim.name != it.name()
        {
            self.freed_names.entry((it.parent(), claim.name.as_str())).or_insert(index);
        }
        self.take(index, it, entry.key.id.clone());
    }

    /// Whether a declaration with another name has the resource. Two declarations of one name get one id, which is
    /// reported.
    fn is_taken(&self, it: &DeclaredResource<'_>, key: &Key) -> bool {
        let by = self.taken.get(key).and_then(|by| self.wanted.get(*by));
        by.is_some_and(|other| other.name() != it.name())
    }

    /// The source's resource with a name that becomes this one in some way.
    fn find_own(&self, it: &DeclaredResource<'_>, name: &str, fit: Fit) -> Option<&'k Entry> {
        let known: &'k StoreNames<'a> = self.known;
        let mut named = known.named(it.declaration.kind, it.parent(), name).iter().copied();
        let own = named
            .find(|entry| entry.is_owned_by(known.source) && !self.is_taken(it, &entry.key) && it.fit(entry) == fit);
        own.map(|entry| entry.as_ref())
    }

    /// The resource of another source that has or had a name of a declaration, if the declaration is about it (D104).
    fn find_transferred(&self, it: &DeclaredResource<'_>, fit: Fit) -> Option<&'k Entry> {
        let known: &'k StoreNames<'a> = self.known;
        let (kind, parent) = (it.declaration.kind, it.parent());
        it.names().find_map(|name| {
            let mut named =
                known.named(kind, parent, name).iter().chain(known.handed_over(kind, parent, name)).copied();
            let moved = named.find(|entry| {
                let claim = entry.claim.as_deref();
                claim.is_some_and(|claim| it.declaration.transfer.concern(claim, known.source))
                    && !self.is_taken(it, &entry.key)
                    && it.fit(entry) == fit
            });
            moved.map(|entry| entry.as_ref())
        })
    }

    /// Whether no resource of its own name fits a declared resource.
    fn lacks(&self, index: usize) -> bool {
        self.is_open(index)
            && self
                .wanted
                .get(index)
                .is_some_and(|it| it.exists() && self.find_own(it, it.name(), Fit::Update).is_none())
    }

    /// Takes ids stated in manifests, and event types, which are ids themselves.
    fn take_stated(&mut self) {
        let (known, wanted) = (self.known, self.wanted);
        for (index, it) in wanted.iter().enumerate() {
            if it.declaration.kind == Kind::EventSource {
                self.take(index, it, Id::new(it.name()));
                continue;
            }
            let info = it.declaration.kind.info();
            // An ID with the prefix of another kind was reported when it was read.
            let fits = |id: &&str| info.implicit || id.starts_with(info.prefix);
            let Some(id) = it.declaration.id.as_deref().filter(fits) else { continue };
            let key = it.keyed(Id::new(id));
            if let Some(other) = self.find_below_other_parent(it, &key) {
                self.change(index).fault = Some(wrong_parent_error(known.snapshot, it, other));
                continue;
            }
            match known.snapshot.get(&key) {
                // Different immutable content makes it another resource. If it is another source's, nobody can adopt it anyway.
                Some(entry) if !it.fits(entry) && !self.is_of_another(it, entry) => {
                    self.change(index).fault = Some(immutable_error(known, it, entry));
                }
                Some(entry) => self.take_entry(index, it, entry.as_ref()),
                None => {
                    let help = match self.is_misnamed(it) {
                        true => format!("remove or correct the ID: `{}` already exists with another ID", it.name()),
                        // A rebuilt store gets the previously adopted ids, and what was deleted by hand is created again. What is
                        // implicit is known by its ID alone.
                        false
                            if known.recreate_ids
                                || known.snapshot.tombstone(&key).is_some()
                                || it.declaration.kind.info().implicit =>
                        {
                            self.take(index, it, key.id);
                            continue;
                        }
                        false => {
                            "remove or correct the ID; to rebuild a lost store with its IDs, use `--recreate-ids`, or \
                             `recreate_ids: true` for a followed source"
                                .to_owned()
                        }
                    };
                    let fault = Fault::new(Code::UnknownReference, format!("cannot adopt {key}: not found"));
                    let fault = fault.at(["metadata", "id"]).help(help);
                    self.change(index).fault = Some(it.declaration.origin.document().diagnostic(fault));
                }
            }
        }
    }

    /// Whether another source has a resource and does not hand it over.
    fn is_of_another(&self, it: &DeclaredResource<'_>, entry: &Entry) -> bool {
        let state = it.declaration.transfer.state(self.known.source, entry.claim.as_deref());
        matches!(state, TransferState::Conflict(_))
    }

    /// The resource with a stated ID below another parent.
    fn find_below_other_parent(&self, it: &DeclaredResource<'_>, key: &Key) -> Option<&'k Arc<Entry>> {
        let known: &'k StoreNames<'a> = self.known;
        key.parent.as_ref().filter(|_| known.snapshot.get(key).is_none())?;
        known.snapshot.find_child(it.declaration.kind, &key.id)
    }

    /// Whether the source already owns a resource with this name, so that an unknown id is a mistake.
    fn is_misnamed(&self, it: &DeclaredResource<'_>) -> bool {
        let named = self.known.named(it.declaration.kind, it.parent(), it.name());
        !it.declaration.kind.info().implicit && named.first().is_some_and(|entry| entry.is_owned_by(self.known.source))
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
        let cycles = find_cycles(&renamed, next);
        // A swap looks the same before and after, so the claims record that it was applied.
        for index in cycles.iter().flatten().copied() {
            let Some(it) = wanted.get(index).filter(|_| self.is_open(index)) else { continue };
            let made = |entry: &&Entry| {
                entry.claim.as_deref().is_some_and(|claim| claim.renamed_from.as_deref() == it.former())
            };
            if let Some(entry) = self.find_own(it, it.name(), Fit::Update).filter(made) {
                self.take_entry(index, it, entry);
            }
        }
        // A name in use stays with its resource, so a rename that was applied before does nothing. In a chain of
        // renames, each one frees the name for the next.
        let mut open: VecDeque<usize> = renamed.iter().copied().filter(|index| self.lacks(*index)).collect();
        while let Some(index) = open.pop_front() {
            let Some(it) = wanted.get(index).filter(|_| self.is_open(index)) else { continue };
            let Some(former) = it.former() else { continue };
            let Some(entry) = self.find_own(it, former, Fit::Update) else { continue };
            self.take_entry(index, it, entry);
            let other = by_name.get(&(it.parent(), former)).copied();
            open.extend(other.filter(|other| self.lacks(*other)));
        }
        for cycle in &cycles {
            let moves = cycle.iter().copied().map(|index| {
                let it = wanted.get(index).filter(|_| self.is_open(index))?;
                Some((index, it, self.find_own(it, it.former()?, Fit::Update)?))
            });
            let moves: Option<Vec<_>> = moves.collect();
            for (index, it, entry) in moves.into_iter().flatten() {
                self.take_entry(index, it, entry);
            }
        }
        cycles.into_iter().flatten().collect()
    }

    /// Resources with an unchanged name keep their id, also if they move between sources (D104).
    fn keep(&mut self) {
        let wanted = self.wanted;
        for (index, it) in wanted.iter().enumerate() {
            if self.is_open(index)
                && let Some(entry) =
                    self.find_own(it, it.name(), Fit::Update).or_else(|| self.find_transferred(it, Fit::Update))
            {
                self.take_entry(index, it, entry);
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
            let position = it.former().and_then(|former| self.freed_names.get(&(it.parent(), former)).copied());
            if let Some(position) = position.filter(|_| it.exists())
                && let Some(rival) = wanted.get(position)
            {
                let change = self.change(index);
                (change.fault, change.rival) = (Some(double_rename_error(it, rival)), Some(position));
            }
            let find_predecessor = || {
                let own = it.names().find_map(|name| self.find_own(it, name, Fit::Replace));
                own.or_else(|| self.find_transferred(it, Fit::Replace))
            };
            if !it.fixed.is_empty()
                && let Some(old) = find_predecessor()
            {
                self.change(index).replaces = Some(old.key.clone());
            }
            let id = (0..u32::MAX).map(|number| it.derived(number)).find(|id| !self.is_occupied(it, id));
            self.take(index, it, id.unwrap_or_else(|| it.derived(0)));
        }
    }

    /// Whether a derived id belongs to a resource of another source or with another name, which keeps it: names of other
    /// sources do not matter (D112). The id of a resource that another source had is that source's after its deletion, too.
    fn is_occupied(&self, it: &DeclaredResource<'_>, id: &Id) -> bool {
        let key = it.keyed(id.clone());
        if self.taken.contains_key(&key) {
            return self.is_taken(it, &key);
        }
        let known = self.known;
        let Some(entry) = known.snapshot.get(&key) else {
            return known.snapshot.was_of_another(&key, known.source)
                || self.find_below_other_parent(it, &key).is_some();
        };
        entry.claim.as_deref().is_some_and(|claim| {
            // An undeclared resource of this source will be pruned, unless its document has errors or it is promised.
            let stays = || {
                !known.prune
                    || claim.is_promised()
                    || known.loaded.declared().knows(it.declaration.kind.info().name, &claim.name)
            };
            claim.source != known.source || (claim.name != it.name() && stays())
        })
    }

    fn finish(mut self, exchanged: &HashSet<usize>) -> (Vec<Id>, HashMap<usize, IdentityChange>) {
        let wanted = self.wanted;
        for (index, it) in wanted.iter().enumerate() {
            let former = it.former().filter(|_| exchanged.contains(&index));
            let giver = self.freed_names.get(&(it.parent(), it.name())).copied().filter(|giver| *giver != index);
            if former.is_some() || giver.is_some() {
                let change = self.change(index);
                (change.renamed_from, change.after) = (former.map(str::to_owned), giver);
            }
        }
        let ids = self.ids.into_iter().zip(wanted);
        (ids.map(|(id, it)| id.unwrap_or_else(|| it.derived(0))).collect(), self.changes)
    }
}

/// The error of a stated ID that a resource has below another parent, which cannot change.
fn wrong_parent_error(snapshot: &Snapshot, it: &DeclaredResource<'_>, other: &Entry) -> Diagnostic {
    let parent = other.key.parent_key().map(|key| snapshot.name_of(&key)).unwrap_or_default();
    let message = format!("cannot adopt {} {}: it belongs to {parent}", other.key.kind, other.key.id);
    let fault = Fault::new(Code::Immutable, message).at(["metadata", "id"]);
    let help = "declare it there, or remove `metadata.id` to create another one here";
    it.declaration.origin.document().diagnostic(fault.help(help))
}

fn double_rename_error(it: &DeclaredResource<'_>, rival: &DeclaredResource<'_>) -> Diagnostic {
    let former = it.former().unwrap_or_default();
    let message = format!("`{former}` cannot be renamed to both `{}` and `{}`", rival.name(), it.name());
    let fault = Fault::new(Code::DuplicateName, message).at(["metadata", "renamed_from"]);
    let first = rival.declaration.origin.document().place(&["metadata", "name"].into(), FaultTarget::Value);
    it.declaration.origin.document().repeated(fault.help("remove one of the two `renamed_from`"), first)
}
