//! What a followed source may declare (D112): whoever can merge into its repository has no more power than that.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use crate::{
    model::{
        Kind,
        code::Code,
        desired::Desired,
        fault::{Fault, Path},
        id::Id,
        key::Key,
        kind::{api_key::ApiKey, https_edge::HttpsEdge, owner::Role},
        rules,
        snapshot::Snapshot,
        traffic::{host_name, host_port},
    },
    text::printable,
};

/// What a source may declare. The default sets no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceScope {
    /// The kinds of its resources; none for any.
    pub kinds: Option<BTreeSet<Kind>>,
    /// The hosts of its edges, such as `*.docs.example.com` for all below; none for any.
    pub hosts: Option<Vec<String>>,
    /// The roles of the owners of its API keys; none for any.
    pub roles: Option<BTreeSet<Role>>,
    /// The folder of its token files; none for any place.
    pub token_folder: Option<PathBuf>,
}

impl SourceScope {
    /// The scope of a repository for which nothing is configured: neither API keys nor what acts on every source.
    pub fn of_repository() -> Self {
        let kinds = Kind::all().map(|info| info.kind).filter(|kind| *kind != Kind::ApiKey && !kind.facts().global);
        Self { kinds: Some(kinds.collect()), roles: Some(BTreeSet::new()), ..Self::default() }
    }

    /// Returns a fault for each declared resource that is outside. The first one of a kind stands for all.
    pub(crate) fn faults(&self, desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot) -> Vec<(Key, Fault)> {
        let mut found = Vec::new();
        if let Some(kinds) = &self.kinds {
            for kind in Kind::all().map(|info| info.kind).filter(|kind| !kinds.contains(kind)) {
                found.extend(of_kind(desired, kind).map(|wanted| (wanted.key.clone(), not_this_kind(kind))));
            }
        }
        for wanted in of_kind(desired, Kind::ApiKey) {
            found.extend(self.of_key(wanted, snapshot).map(|fault| (wanted.key.clone(), fault)));
        }
        if let Some(hosts) = &self.hosts {
            for wanted in of_kind(desired, Kind::HttpsEdge) {
                let Some(edge) = wanted.spec.as_any().downcast_ref::<HttpsEdge>() else { continue };
                found.extend(other_hosts(edge, hosts).map(|fault| (wanted.key.clone(), fault)));
            }
            for wanted in of_kind(desired, Kind::HttpsEdgeRoute) {
                // An edge of another source delegates, and one of this source is judged itself.
                let parent = wanted.key.parent_key().filter(|parent| !desired.contains_key(parent));
                let entry = parent.and_then(|parent| snapshot.get(&parent)).filter(|entry| entry.claim.is_none());
                let fault = entry.and_then(|entry| other_hosts(entry.spec_as::<HttpsEdge>()?, hosts).next());
                found.extend(fault.map(|fault| (wanted.key.clone(), fault.at(Path::root().join("edge")))));
            }
        }
        found
    }

    /// The fault of an API key of an owner with another role, or with its token elsewhere.
    fn of_key(&self, wanted: &Desired, snapshot: &Snapshot) -> Option<Fault> {
        let key = wanted.spec.as_any().downcast_ref::<ApiKey>()?;
        let role = rules::role_of(snapshot, &key.owner_id).unwrap_or_default();
        if self.roles.as_ref().is_some_and(|roles| !roles.contains(&role)) {
            let (owner, role) = (printable(&key.owner_id), role.as_str());
            let message = format!("this source may not declare API keys of `{owner}`, which has the role `{role}`");
            let fault = Fault::new(Code::Forbidden, message).at(Path::root().join("owner_id"));
            return Some(fault.help(format!("use another owner, or add `{role}` to `roles` in the source's `scope`")));
        }
        // The token of a key is written once.
        let folder = self.token_folder.as_ref().filter(|_| snapshot.get(&wanted.key).is_none())?;
        let is_inside = wanted.token_file.as_ref().is_none_or(|file| file.starts_with(folder));
        let fault = || {
            let message =
                format!("`token_file` must be inside {}, the `token_folder` of this source", folder.display());
            Fault::new(Code::Forbidden, message).at(Path::root().join("token_file"))
        };
        (!is_inside).then(|| fault().help("use a file in that folder"))
    }
}

/// The desired resources of a kind.
fn of_kind(desired: &BTreeMap<Key, Desired>, kind: Kind) -> impl Iterator<Item = &Desired> {
    // Children are sorted by their parents.
    let first = Key { kind, parent: None, id: Id::new("") };
    desired.range(first..).take_while(move |(key, _)| key.kind == kind).map(|(_, wanted)| wanted)
}

fn not_this_kind(kind: Kind) -> Fault {
    let fault = Fault::new(Code::Forbidden, format!("this source may not declare resources of kind {kind}"));
    fault.help(format!("remove it, or add `{kind}` to `kinds` in the source's `scope`"))
}

/// A fault for each hostport of an edge with a host that is not listed.
fn other_hosts<'e>(edge: &'e HttpsEdge, hosts: &'e [String]) -> impl Iterator<Item = Fault> + use<'e> {
    let is_listed = |host: &str| {
        hosts.iter().any(|listed| match listed.strip_prefix('*') {
            Some(suffix) => host.ends_with(&suffix.to_ascii_lowercase()),
            None => host_name(listed) == host,
        })
    };
    let others = edge
        .hostports
        .iter()
        .enumerate()
        .filter(move |(_, text)| host_port(text).is_some_and(|(host, _)| !is_listed(&host)));
    others.map(|(index, text)| {
        let message = format!("this source may not serve `{}`", printable(text));
        let fault = Fault::new(Code::Forbidden, message).at(Path::root().join("hostports").join(index));
        fault.help("remove it, or add its host to `hosts` in the source's `scope`")
    })
}
