//! The limits on what a followed source may declare (D112), and so on everyone who can merge into its repository.
//!
//! Without a scope, a folder may declare everything, because it is the operator's, and a repository everything but API
//! keys and what acts on every source. A violation is a fault at the line of the manifest, found before anything is
//! planned, so that the rest of an isolated source is applied. `rights.rs` judges the rest, like the changes of an API
//! key.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::host_allowlist::{unlisted, unowned_edge};
use super::{ChangeOrigin, Denied, Rights};
use crate::model::{
    ApiKey, Code, Desired, Entry, Fault, HttpsEdge, Id, Key, KeyScope, Kind, Operation, Path, Role, Snapshot, rules,
};
use crate::syntax::text::printable;

/// The pattern for every kind in the scope of a key.
const ALL_KINDS: &str = "*";

/// Limits what a source may declare. The default sets no limit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceScope {
    /// The kinds of its resources; none for any.
    pub kinds: Option<BTreeSet<Kind>>,
    /// The hosts of its edges, such as `*.docs.example.com` for all below; none for any.
    pub hosts: Option<Vec<String>>,
    /// The kinds without a source that it may adopt and add to.
    pub adopt: Adoption,
    /// The roles of the owners of its API keys; none for any.
    pub roles: Option<BTreeSet<Role>>,
    /// The owners of its API keys. None for its own bot and owners that have keys of the source alone, or for any if it may declare
    /// keys of admins.
    pub owners: Option<BTreeSet<String>>,
    /// The folder of its token files; none for any place.
    pub token_folder: Option<PathBuf>,
}

/// The resources without a source that a source may adopt and add to.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Adoption {
    /// All.
    #[default]
    Any,
    /// All, as long as no other source owns anything.
    WhileAlone,
    /// Resources of these kinds.
    Of(BTreeSet<Kind>),
}

impl SourceScope {
    /// The scope of a repository for which nothing is configured: neither API keys nor what acts on every source, and beside
    /// other sources nothing that was made over the API.
    pub fn for_repository() -> Self {
        let kinds = Kind::all().map(|info| info.kind).filter(|kind| *kind != Kind::ApiKey && !kind.facts().global);
        Self {
            kinds: Some(kinds.collect()),
            adopt: Adoption::WhileAlone,
            roles: Some(BTreeSet::new()),
            ..Self::default()
        }
    }

    /// Returns a fault for each declared resource that is outside. The first one of a kind stands for all.
    pub(crate) fn faults(&self, desired: &BTreeMap<Key, Desired>, snapshot: &Snapshot) -> Vec<(Key, Fault)> {
        let mut found = Vec::new();
        if let Some(kinds) = &self.kinds {
            for kind in Kind::all().map(|info| info.kind).filter(|kind| !kinds.contains(kind)) {
                found.extend(Desired::of_kind(desired, kind).map(|wanted| (wanted.key.clone(), not_this_kind(kind))));
            }
        }
        for wanted in Desired::of_kind(desired, Kind::ApiKey) {
            found.extend(self.api_key_fault(wanted, snapshot).map(|fault| (wanted.key.clone(), fault)));
        }
        if let Some(hosts) = &self.hosts {
            for wanted in Desired::of_kind(desired, Kind::HttpsEdge) {
                let Some(edge) = wanted.spec_as::<HttpsEdge>() else { continue };
                found.extend(other_hosts(edge, hosts).map(|fault| (wanted.key.clone(), fault)));
            }
            for wanted in Desired::of_kind(desired, Kind::HttpsEdgeRoute) {
                // An edge of another source delegates, and one of this source is judged itself.
                let parent = wanted.key.parent_key().filter(|parent| !desired.contains_key(parent));
                let edge = parent.and_then(|parent| unowned_edge(snapshot, &parent));
                let fault = edge.and_then(|edge| other_hosts(edge, hosts).next());
                found.extend(fault.map(|fault| (wanted.key.clone(), fault.at("edge"))));
            }
        }
        found
    }

    /// Returns a fault for each resource by which the plan of a source is outside: it adopts what no source owns, or adds to what
    /// is not its own. `stated` has the resources whose manifests state their ID.
    pub(crate) fn refused<O: Borrow<Operation>>(
        &self,
        current: &Snapshot,
        operations: &[O],
        stated: &BTreeSet<Key>,
        source: &str,
    ) -> BTreeMap<Key, Fault> {
        let global = self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind.facts().global));
        if global && self.adopt == Adoption::Any {
            return BTreeMap::new();
        }
        let denied = |kinds: Vec<String>| {
            // The values of what the source may adopt are no secret to it.
            let scope =
                KeyScope { apply: vec![source.to_owned()], kinds, secrets: true, global, ..KeyScope::default() };
            let rights = Rights { scope: &scope, origin: ChangeOrigin::Followed, stated };
            rights.denied(current, operations).collect::<Vec<_>>()
        };
        let all = || vec![ALL_KINDS.to_owned()];
        let is_of_others = |entry: &Arc<Entry>| entry.claim.as_deref().is_some_and(|claim| claim.source != source);
        let denied = match &self.adopt {
            Adoption::Any => denied(all()),
            Adoption::Of(kinds) => denied(kinds.iter().map(|kind| kind.facts().name.to_owned()).collect()),
            Adoption::WhileAlone => {
                let found = denied(Vec::new());
                // The state is only searched for other sources if that matters.
                let is_final = found.is_empty() || current.iter().any(is_of_others);
                if is_final { found } else { denied(all()) }
            }
        };
        let mut refused = BTreeMap::new();
        for (key, denied) in denied {
            // Several operations on a resource have one cause.
            refused.entry(key).or_insert_with(|| refused_operation(&denied));
        }
        refused
    }

    /// The fault of an API key of an owner with another role or of others, with more rights than the source, or with its token
    /// elsewhere.
    fn api_key_fault(&self, wanted: &Desired, snapshot: &Snapshot) -> Option<Fault> {
        let key = wanted.spec_as::<ApiKey>()?;
        let (stored, source) = (snapshot.get(&wanted.key), wanted.claim.source.as_str());
        let owner = owner_of(key, stored, source);
        let role = rules::role_of(snapshot, owner.as_str()).unwrap_or_default();
        if self.roles.as_ref().is_some_and(|roles| !roles.contains(&role)) {
            let (owner, role) = (printable(owner.as_str()), role.as_str());
            let message = format!("this source may not declare API keys of `{owner}`, which has the role `{role}`");
            let fault = Fault::new(Code::Forbidden, message).at("owner_id");
            return Some(fault.help(format!("use another owner, or add `{role}` to `roles` in the source's `scope`")));
        }
        // Whoever may make admins may do everything anyway.
        let is_limited = self.roles.as_ref().is_some_and(|roles| !roles.contains(&Role::Admin));
        let is_allowed = match &self.owners {
            Some(owners) => owners.contains(owner.as_str()),
            // Keys that others create later for the owner do not invalidate one that is there.
            None => !is_limited || has_key(stored, source) || has_owner(&owner, source, snapshot),
        };
        if !is_allowed && owner != Id::bot_of(source) {
            return Some(other_owner(&owner));
        }
        if is_limited && let Some(fault) = exceeding(key, source, self.hosts.as_deref()) {
            return Some(fault);
        }
        // The token of a key is written once.
        let folder = self.token_folder.as_ref().filter(|_| stored.is_none())?;
        let is_inside = wanted.token_file.as_ref().is_none_or(|file| file.starts_with(folder));
        let fault = || {
            let message =
                format!("`token_file` must be inside {}, the `token_folder` of this source", folder.display());
            Fault::new(Code::Forbidden, message).at("token_file")
        };
        (!is_inside).then(|| fault().help("use a file in that folder"))
    }
}

/// The fault of a resource with an operation that the source has no right to.
fn refused_operation(denied: &Denied) -> Fault {
    let help = match denied {
        Denied::Source(..) => "declare it in that source".to_owned(),
        Denied::Unowned(_, kind) => format!("remove it, or add `{kind}` to `adopt` in the source's `scope`"),
        Denied::Global(_, kind) => {
            format!("ask an admin to do it, or add `{kind}` to `kinds` in the source's `scope`")
        }
        Denied::Stated(key) => {
            format!("remove `metadata.id`, or add `{}` to `adopt` in the source's `scope`", key.kind)
        }
        Denied::Former(..) => "remove `metadata.id`, or ask an admin to apply this source once".to_owned(),
        _ => "ask an admin to do it".to_owned(),
    };
    Fault::new(Code::Forbidden, format!("this source may not {denied}")).help(help)
}

/// The owner of a declared API key, also if its manifest names none (D27).
fn owner_of(key: &ApiKey, stored: Option<&Arc<Entry>>, source: &str) -> Id {
    let stored = stored.and_then(|entry| entry.spec_as::<ApiKey>());
    let mut owners = [Some(key), stored].into_iter().flatten().map(|key| key.owner_id.as_str());
    owners.find(|owner| !owner.is_empty()).map_or_else(|| Id::bot_of(source), Id::new)
}

/// Whether a source has an API key, whose owner cannot change, or the source that has it hands it over to this one (D104).
fn has_key(stored: Option<&Arc<Entry>>, source: &str) -> bool {
    let claim = stored.and_then(|entry| entry.claim.as_deref());
    claim.is_some_and(|claim| claim.source == source || claim.receiver() == Some(source))
}

/// Whether an owner has API keys of a source and no others. Otherwise, the source could act in the
/// name of another team, be first with the owner that another team will need, or have a share of the history for each owner that it
/// makes up.
fn has_owner(owner: &Id, source: &str, snapshot: &Snapshot) -> bool {
    let is_own = |key: &Key| snapshot.get(key).is_some_and(|entry| entry.is_owned_by(source));
    let owning = Key::new(Kind::Owner, owner.clone());
    let mut keys = snapshot.users(&owning).peekable();
    keys.peek().is_some() && keys.all(is_own)
}

/// The fault of an API key of an owner that the source may not declare keys of.
fn other_owner(owner: &Id) -> Fault {
    let owner = printable(owner.as_str());
    let message = format!("this source may not declare API keys of `{owner}`");
    let fault = Fault::new(Code::Forbidden, message).at("owner_id");
    fault.help(format!("leave out `owner_id`, or add `{owner}` to `owners` in the source's `scope`"))
}

/// The fault of an API key that may do more than the source that declares it.
fn exceeding(key: &ApiKey, source: &str, hosts: Option<&[String]>) -> Option<Fault> {
    let listed = hosts.unwrap_or_default();
    let own = KeyScope { apply: vec![source.to_owned()], hosts: listed.to_vec(), ..KeyScope::default() };
    let place = Path::from("scope");
    let (message, place) = match key.scope.as_deref() {
        None => ("this source may not declare API keys without a `scope`".to_owned(), place),
        Some(scope) => {
            // A source without any host has no key: the empty list of a key has all.
            let no_host = || hosts.filter(|hosts| hosts.is_empty()).map(|_| "hosts");
            let field = own.exceeded_by(scope).or_else(no_host)?;
            (
                format!("this source may not declare API keys with more rights than its own: `{field}`"),
                place.join(field),
            )
        }
    };
    let hosts = if listed.is_empty() { String::new() } else { format!(", hosts: {}", in_yaml(listed)) };
    let help = format!("write `scope: {{apply: [{}]{hosts}}}`, or less", printable(source));
    Some(Fault::new(Code::Forbidden, message).at(place).help(help))
}

/// A list of hosts as one writes it: `*` begins an alias.
fn in_yaml(hosts: &[String]) -> String {
    let quoted: Vec<String> = hosts.iter().map(|host| format!("\"{}\"", printable(host))).collect();
    format!("[{}]", quoted.join(", "))
}

fn not_this_kind(kind: Kind) -> Fault {
    let fault = Fault::new(Code::Forbidden, format!("this source may not declare resources of kind {kind}"));
    fault.help(format!("remove it, or add `{kind}` to `kinds` in the source's `scope`"))
}

/// A fault for each hostport of an edge with a host that is not listed.
fn other_hosts<'e>(edge: &'e HttpsEdge, hosts: &'e [String]) -> impl Iterator<Item = Fault> + use<'e> {
    unlisted(edge, hosts).map(|(index, text, _)| {
        let message = format!("this source may not serve `{}`", printable(text));
        let fault = Fault::new(Code::Forbidden, message).at(("hostports", index));
        fault.help("remove it, or add its host to `hosts` in the source's `scope`")
    })
}
