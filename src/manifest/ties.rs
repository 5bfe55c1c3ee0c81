//! How the files of a source depend on each other. A run after which there is nothing to do leaves that for a later one,
//! which then resolves few changed files without all others (D73).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use foldhash::{HashMap, HashSet};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use serde::{Deserialize, Serialize};

use super::{
    FileRead, Loaded, ParsedFiles,
    declaration::{Declaration, Declared, Origins},
    origin::{ManifestFile, Origin},
    read,
    resolve::{ResolveOptions, Resolved, resolve},
    tree::Tree,
};
use crate::model::{Kind, desired::Desired, digest_key::DigestKey, id::Id, key::Key, snapshot::Snapshot};

/// The most files that a change concerns. A larger one is planned from scratch.
const MOST_FILES: usize = 64;
/// The most files of a source whose ties are kept.
const MOST_KEPT: usize = 20_000;

/// The files of a source that had no error, with what each of them needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SourceTies {
    /// The run that left them.
    run: String,
    files: Vec<FileTies>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileTies {
    name: String,
    /// The digest of the name and text, with a secret key: the file may have a secret.
    digest: String,
    /// The key of its entry in the cache of parsed files, hidden because it is a hash of the text. None if the file is too
    /// short to have one.
    entry: Option<String>,
    /// The digest of the resources that others can refer to.
    standing: String,
    /// None if its resources cannot be resolved without the rest of the source.
    apart: Option<ApartFile>,
}

/// What a file needs to be resolved without the rest of its source.
#[derive(Debug, Serialize, Deserialize)]
struct ApartFile {
    /// The digest of its resources.
    resources: String,
    /// The files with parts of the same edges, and with edges that share hosts with these.
    together: HashSet<usize>,
    /// The files with module sets and resources that its resources use.
    uses: HashSet<usize>,
}

/// What is known of a file while the ties are made.
struct OpenTies<'d> {
    own: Vec<&'d Desired>,
    is_apart: bool,
    together: HashSet<usize>,
    uses: HashSet<usize>,
}

/// Changed files with all files that the change concerns, as they were and as they are now. No file outside of it depends
/// on what has changed.
pub(crate) struct ChangedPart {
    before: Loaded,
    now: Loaded,
    /// The files as they were, with the digests of their resources.
    resources: Vec<(Arc<ManifestFile>, String)>,
    /// The indices of the files in the source.
    indices: BTreeSet<usize>,
}

/// Whether the resources of a kind refer to no others, and have no children.
fn is_standing(kind: Kind) -> bool {
    matches!(kind, Kind::IpRestriction | Kind::CertificateAuthority | Kind::TlsCertificate)
}

/// Whether a kind is that of edges that routes belong to, or of such routes.
pub(crate) fn is_of_edge(kind: Kind) -> bool {
    matches!(kind, Kind::HttpsEdge | Kind::HttpsEdgeRoute)
}

impl SourceTies {
    /// Finds the ties of a source. `run` is what tells the run from others, with the key of its digests, `digests` are those
    /// of the files, and `groups` has the edges that share hosts. Returns none if the source has too many files.
    pub(crate) fn of(
        (run, digest_key): (&str, &DigestKey),
        files: &[Arc<ManifestFile>],
        digests: &[blake3::Hash],
        desired: &BTreeMap<Key, Desired>,
        origins: &Origins,
        groups: &HashMap<Id, usize>,
        parsed: &ParsedFiles,
    ) -> Option<Self> {
        if files.len() != digests.len() || files.len() > MOST_KEPT {
            return None;
        }
        let indices: HashMap<*const ManifestFile, usize> = files.iter().map(Arc::as_ptr).zip(0..).collect();
        let index = |origin: &Origin| indices.get(&origin.document_key().0).copied();
        let mut all: Vec<OpenTies<'_>> = files.iter().map(|_| OpenTies::new()).collect();
        let mut of_edges: HashMap<&Id, BTreeSet<usize>> = HashMap::default();
        for (key, wanted) in desired {
            let declaration = origins.declaration(key)?;
            let file = index(&declaration.origin)?;
            let ties = all.get_mut(file)?;
            ties.own.push(wanted);
            match uses(declaration, wanted, desired, origins, index) {
                Some(uses) => ties.uses.extend(uses),
                None => ties.is_apart = false,
            }
            if is_of_edge(key.kind) {
                of_edges.entry(key.parent.as_ref().unwrap_or(&key.id)).or_default().insert(file);
            }
        }
        let mut of_groups: HashMap<usize, BTreeSet<usize>> = HashMap::default();
        for (edge, files) in &of_edges {
            if let Some(group) = groups.get(*edge) {
                of_groups.entry(*group).or_default().extend(files);
            }
        }
        for together in of_edges.values().chain(of_groups.values()).filter(|together| together.len() > 1) {
            for file in together {
                let ties = all.get_mut(*file)?;
                if together.len() > MOST_FILES {
                    ties.is_apart = false;
                } else {
                    ties.together.extend(together);
                }
            }
        }
        let files = files.par_iter().zip(digests.par_iter()).zip(all.into_par_iter());
        let files = files.map(|((file, digest), ties)| FileTies {
            name: file.source.name.clone(),
            digest: digest.to_hex().to_string(),
            entry: parsed.key_of(file).map(|entry| hidden(&entry, digest_key, run, file).to_hex().to_string()),
            standing: digest_of(ties.own.iter().copied().filter(|it| is_standing(it.key.kind))),
            apart: ties.is_apart.then(|| ApartFile {
                resources: digest_of(ties.own.iter().copied()),
                together: ties.together,
                uses: ties.uses,
            }),
        });
        Some(Self { run: run.to_owned(), files: files.collect() })
    }

    /// Whether a run left them.
    pub(crate) fn are_of(&self, run: &str) -> bool {
        self.run == run
    }

    /// Reads the part of a source that a change of its files concerns. Returns none if the change is not one of a few
    /// edges and routes that keep their names, without an error or a warning.
    pub(crate) fn changed_part(
        &self,
        files: &[Arc<ManifestFile>],
        digests: &[blake3::Hash],
        digest_key: &DigestKey,
        tree: &dyn Tree,
        caches: &[ParsedFiles],
    ) -> Option<ChangedPart> {
        let changed = self.changed(files, digests)?;
        let (whole, used) = self.concerned(&changed)?;
        let (mut before, mut now): (Vec<Arc<FileRead>>, Vec<Arc<FileRead>>) = (Vec::new(), Vec::new());
        let (mut of_part, mut resources) = (Vec::new(), Vec::new());
        let indices: BTreeSet<usize> = whole.union(&used).copied().collect();
        for at in &indices {
            let (ties, file) = (self.files.get(*at)?, files.get(*at)?);
            let mut later = match caches.first() {
                Some(parsed) => parsed.read(file, || read(tree, file)),
                None => read(tree, file),
            };
            let mut former = Arc::clone(file);
            if changed.contains(at) {
                if !later.taken.is_empty() {
                    return None;
                }
                former = without_text(file);
                let entry = blake3::Hash::from_hex(ties.entry.as_deref()?).ok()?;
                let entry = hidden(&entry, digest_key, &self.run, file);
                let declared = caches.iter().find_map(|parsed| parsed.declared(&entry, &former))?;
                before.push(Arc::new(FileRead { declared, ..FileRead::default() }));
                now.push(Arc::new(later));
            } else {
                if !whole.contains(at) {
                    later.declared.resources.retain(|it| is_standing(it.kind));
                }
                let later = Arc::new(later);
                before.push(Arc::clone(&later));
                now.push(later);
            }
            let digest = match &ties.apart {
                Some(apart) if whole.contains(at) => apart.resources.clone(),
                _ => ties.standing.clone(),
            };
            resources.push((former, digest));
            of_part.push(Arc::clone(file));
        }
        let loaded = |reads: Vec<Arc<FileRead>>| {
            let loaded = Loaded { files: of_part.clone(), reads: reads.clone(), ..Loaded::default() };
            loaded.with(reads)
        };
        let (before, now) = (loaded(before), loaded(now));
        let is_clean = before.diagnostics.is_empty() && now.diagnostics.is_empty();
        let keeps_names = now.is_consistent && now.has_shape_of(&before);
        let stays_inside = now
            .changed_since(&before)
            .all(|((_, now), (_, before))| concerns_only_edges(&before.declared, &now.declared));
        (is_clean && keeps_names && stays_inside).then_some(ChangedPart { before, now, resources, indices })
    }

    /// The files that have changed, if they are few and all files have the same names.
    fn changed(&self, files: &[Arc<ManifestFile>], digests: &[blake3::Hash]) -> Option<BTreeSet<usize>> {
        if self.files.len() != files.len() || files.len() != digests.len() {
            return None;
        }
        let mut changed = BTreeSet::new();
        for (at, ((ties, file), digest)) in self.files.iter().zip(files).zip(digests).enumerate() {
            if ties.name != file.source.name {
                return None;
            }
            if ties.digest != digest.to_hex().as_str() {
                changed.insert(at);
            }
        }
        (1..=MOST_FILES).contains(&changed.len()).then_some(changed)
    }

    /// The files that a change concerns as a whole, and those of which they only use something.
    fn concerned(&self, changed: &BTreeSet<usize>) -> Option<(BTreeSet<usize>, BTreeSet<usize>)> {
        let (mut whole, mut used) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<usize> = changed.iter().copied().collect();
        while let Some(at) = open.pop() {
            if !whole.insert(at) {
                continue;
            }
            let apart = self.files.get(at)?.apart.as_ref()?;
            open.extend(&apart.together);
            used.extend(&apart.uses);
            if whole.len() > MOST_FILES || used.len() > MOST_FILES {
                return None;
            }
        }
        used.retain(|at| !whole.contains(at));
        Some((whole, used))
    }
}

impl OpenTies<'_> {
    fn new() -> Self {
        Self { own: Vec::new(), is_apart: true, together: HashSet::default(), uses: HashSet::default() }
    }
}

impl ChangedPart {
    /// Whether it has the file at an index of the source.
    pub(crate) fn has_file(&self, index: usize) -> bool {
        self.indices.contains(&index)
    }

    /// Resolves the part as it was. Returns none if that does not give the resources that the whole source gave.
    pub(crate) fn resolved_before(&self, source: &str, prune: bool) -> Option<Resolved> {
        let resolved =
            resolve(&self.before, &Snapshot::default(), ResolveOptions { source, prune, recreate_ids: true });
        if !resolved.keeps_all_names() {
            return None;
        }
        let is_same = {
            let mut own: HashMap<*const ManifestFile, Vec<&Desired>> = HashMap::default();
            for (key, wanted) in &resolved.desired {
                own.entry(resolved.origins.get(key)?.document_key().0).or_default().push(wanted);
            }
            self.resources.iter().all(|(file, digest)| {
                let own = own.get(&Arc::as_ptr(file)).map(Vec::as_slice).unwrap_or_default();
                digest_of(own.iter().copied()) == *digest
            })
        };
        is_same.then_some(resolved)
    }

    /// Resolves the part as it is now. Returns none if anything is renamed or has an error.
    pub(crate) fn resolved_now(&self, snapshot: &Snapshot, source: &str, prune: bool) -> Option<Resolved> {
        let resolved = resolve(&self.now, snapshot, ResolveOptions { source, prune, recreate_ids: false });
        resolved.keeps_all_names().then_some(resolved)
    }
}

/// The files with the module sets and resources that a resource uses. Returns none if it cannot be resolved by its names
/// alone, or depends on something outside of the source.
fn uses(
    declaration: &Declaration,
    wanted: &Desired,
    desired: &BTreeMap<Key, Desired>,
    origins: &Origins,
    index: impl Fn(&Origin) -> Option<usize>,
) -> Option<Vec<usize>> {
    let kind = wanted.key.kind;
    let is_known = is_standing(kind) || is_of_edge(kind) || kind == Kind::TlsEdge;
    let has_parent = wanted.key.parent_key().is_none_or(|parent| desired.contains_key(&parent));
    if !is_known || !has_parent || declaration.renamed_from.is_some() || declaration.token_file.is_some() {
        return None;
    }
    let sets = declaration.modules_from.iter().map(|name| index(&origins.sets.get(name)?.origin));
    let mut files: Vec<Option<usize>> = sets.collect();
    wanted.spec.references(&mut |reference| files.push(origins.get(&reference.target).and_then(&index)));
    files.into_iter().collect()
}

/// The key of a file's entry while it is kept, or the kept one as it was.
fn hidden(entry: &blake3::Hash, digest_key: &DigestKey, run: &str, file: &ManifestFile) -> blake3::Hash {
    digest_key.hidden(entry, "entry", &[run.as_bytes(), file.source.name.as_bytes()])
}

/// A file with the name and place of another, for what an earlier text declared.
fn without_text(file: &ManifestFile) -> Arc<ManifestFile> {
    let (name, folder, root) = (file.source.name.clone(), file.folder.clone(), file.root.clone());
    Arc::new(ManifestFile::new(name, String::new(), folder, root))
}

/// Whether a change of a file leaves everything alone that resources of other files can depend on.
fn concerns_only_edges(before: &Declared, now: &Declared) -> bool {
    let sets_are_same = before
        .sets
        .values()
        .zip(now.sets.values())
        .all(|(one, other)| one.has_same_modules(other) && one.facts == other.facts);
    let are_like = |(one, other): (&Arc<Declaration>, &Arc<Declaration>)| {
        let is_same = || {
            one.prevent_destroy == other.prevent_destroy
                && one.modules_from == other.modules_from
                && one.facts == other.facts
                && one.spec.same(other.spec.as_ref())
        };
        one.facts.levels == other.facts.levels && (is_of_edge(one.kind) || is_same())
    };
    sets_are_same && before.resources.iter().zip(&now.resources).all(are_like) && sets_used(before) == sets_used(now)
}

/// The module sets that the resources of a file use.
fn sets_used(declared: &Declared) -> BTreeSet<&String> {
    declared.resources.iter().flat_map(|it| &it.modules_from).collect()
}

/// A digest of what identifies resources.
fn digest_of<'d>(resources: impl Iterator<Item = &'d Desired>) -> String {
    let mut hasher = blake3::Hasher::new();
    for Desired { key, claim, .. } in resources {
        let parent = key.parent.as_ref().map(Id::as_str).unwrap_or_default();
        let former = claim.renamed_from.as_deref().unwrap_or_default();
        let parts = [key.kind.info().name, parent, key.id.as_str(), claim.source.as_str(), claim.name.as_str(), former];
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        hasher.update(&[u8::from(claim.prevent_destroy)]);
    }
    hasher.finalize().to_hex().to_string()
}
