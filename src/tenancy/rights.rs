//! What an actor may change of what is not its own: the resources of other sources, and those of no source (D101, D112).
//!
//! An API key and a followed repository are actors of the same kind. What either may do is a [`KeyScope`]: the sources that
//! it may apply, the kinds of resources without a source that it may change, and whether it may change what acts on all.
//! [`Rights::check`] judges the operations of a change whatever they come from: a request, a plan, a rollback or a transfer.

use std::{borrow::Borrow, collections::HashMap};

use super::listed_hosts::taken_host;
use crate::model::{
    Kind,
    id::Id,
    key::Key,
    key_scope::{KeyScope, WriteAction},
    kind::https_edge::HttpsEdge,
    lazy_spec::StoredSecrets,
    operation::{Claim, Operation},
    snapshot::{Entry, Snapshot},
};

/// The IDs of one name that are tried to tell a derived ID from a stated one.
const MOST_DERIVED: u32 = 16;

/// Whose operations are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeOrigin {
    /// A request for a single resource.
    Request,
    /// A plan, a rollback or a transfer of an API key.
    Plan,
    /// The plan of a followed source. It changes resources of other sources only with their consent, so planning has judged
    /// those.
    Followed,
}

/// The rights of an actor.
pub(crate) struct Rights<'a> {
    /// What the actor may do.
    pub scope: &'a KeyScope,
    /// Where its operations come from.
    pub origin: ChangeOrigin,
}

/// What the rights of an actor do not include.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denied {
    /// To do something to a source: the verb and the source.
    Source(String, String),
    /// To do something to resources of a kind that no source owns: the verb and the kind.
    Unowned(&'static str, Kind),
    /// To do something to resources of a kind that act on every source: the verb and the kind.
    Global(&'static str, Kind),
    /// To change a certificate that no source owns.
    Certificate,
    /// To adopt a resource with secrets.
    Secrets(Key),
    /// To declare a resource of another system by its ID.
    Stated(Key),
    /// To make such a change to single resources.
    Action(&'static str),
    /// To take a host for an edge.
    Host(String),
}

impl Rights<'_> {
    /// Returns the first thing that operations on a state do and these rights do not include, with its resource.
    pub(crate) fn check<O: Borrow<Operation>>(
        &self,
        current: &Snapshot,
        operations: &[O],
    ) -> Result<(), (Key, Denied)> {
        // An implicit resource is created by its first module, and claimed after it.
        let mut claims: HashMap<&Key, &Claim> = HashMap::new();
        for operation in operations {
            if let Operation::Claim { key, claim: Some(claim) } = Borrow::<Operation>::borrow(operation) {
                claims.insert(key, claim);
            }
        }
        let check = OperationCheck { scope: self.scope, origin: self.origin, current, claims };
        operations.iter().map(Borrow::<Operation>::borrow).try_for_each(|operation| {
            let host = || taken_host(&self.scope.hosts, current, operation).map(Denied::Host);
            let denied = check.one(operation).err().or_else(host);
            denied.map_or(Ok(()), |denied| Err((operation.key().clone(), denied)))
        })
    }
}

struct OperationCheck<'a> {
    scope: &'a KeyScope,
    origin: ChangeOrigin,
    current: &'a Snapshot,
    /// The claims that the operations give.
    claims: HashMap<&'a Key, &'a Claim>,
}

impl OperationCheck<'_> {
    fn one(&self, operation: &Operation) -> Result<(), Denied> {
        let key = operation.key();
        if key.kind == Kind::Owner {
            return Ok(());
        }
        let entry = match (operation, self.current.get(key)) {
            (Operation::Create { .. }, _) | (_, None) => return self.new_one(operation),
            (_, Some(entry)) => entry,
        };
        let action = match operation {
            Operation::Delete { .. } => WriteAction::Delete,
            _ => WriteAction::Update,
        };
        self.writable(key.kind, self.owner(entry), action)?;
        self.on_edge(entry)?;
        if moves_route(operation) {
            self.moves_on(entry)?;
        }
        match operation {
            Operation::Claim { claim: Some(claim), .. } => self.claimable(entry, claim),
            // What no source owns any longer is as if it had been created so.
            Operation::Claim { claim: None, .. } => {
                self.writable(key.kind, None, WriteAction::Create)?;
                self.unowned_certificate(key.kind)
            }
            Operation::Delete { .. } => {
                if entry.claim.is_none() {
                    self.unowned_certificate(key.kind)?;
                }
                // A deletion takes the children with it, whoever owns them.
                let Some(kind) = key.kind.facts().children else { return Ok(()) };
                let mut children = self.current.children(key, kind);
                children.try_for_each(|child| match (source_of(child), &entry.claim) {
                    // What no source owns belongs to its edge.
                    (None, Some(_)) => Ok(()),
                    (source, _) => self.writable(kind, source, WriteAction::Delete),
                })
            }
            _ => Ok(()),
        }
    }

    /// Checks the creation of a resource. Another operation on a resource that does not exist fails for that.
    fn new_one(&self, operation: &Operation) -> Result<(), Denied> {
        let key = operation.key();
        let claim = match operation {
            Operation::Create { claim, .. } => claim.as_deref().or_else(|| self.claims.get(key).copied()),
            Operation::PutModule { .. } | Operation::Claim { .. } => self.claims.get(key).copied(),
            _ => return Ok(()),
        };
        let source = claim.map(|claim| claim.source.as_str());
        let own = || {
            self.writable(key.kind, source, WriteAction::Create)?;
            match claim {
                Some(claim) => self.stated(key, claim),
                None => self.unowned_certificate(key.kind),
            }
        };
        // A subscription is in another system: it belongs to those who have its event sources.
        if let Some(subscription) = key.parent_key().filter(|parent| parent.kind == Kind::EventSubscription) {
            let mut others = self.current.children(&subscription, key.kind);
            others.try_for_each(|other| self.shared(key.kind, source_of(other), source))?;
            return own();
        }
        let Some(parent) = key.parent_key().and_then(|parent| self.current.get(&parent)) else { return own() };
        // Planning checks the paths that the edge delegates.
        if source.is_some_and(|source| delegates(parent, source)) {
            return own();
        }
        // A route changes what its edge does. Its owner is named first: a single request has no source.
        self.shared(parent.key.kind, source_of(parent), source)?;
        own()
    }

    /// Whether the actor may add something for a source to what `owner` has. Planning leaves this to the rights of a followed
    /// source.
    fn shared(&self, kind: Kind, owner: Option<&str>, source: Option<&str>) -> Result<(), Denied> {
        match owner {
            Some(owner) if source != Some(owner) && !self.scope.may_apply(owner) => {
                Err(Denied::Source("update resources of".to_owned(), owner.to_owned()))
            }
            _ => self.writable(kind, owner, WriteAction::Update),
        }
    }

    /// The source that owns a resource, or that takes it over by these operations because its owner has promised it (D104).
    fn owner<'e>(&self, entry: &'e Entry) -> Option<&'e str> {
        let receiver = entry.claim.as_deref().and_then(Claim::receiver);
        let taken_by = self.claims.get(&entry.key).map(|claim| claim.source.as_str());
        receiver.filter(|receiver| taken_by == Some(receiver)).or_else(|| source_of(entry))
    }

    /// Checks another match of a route on an edge that no source owns: as when it is created, it changes what the edge does.
    fn moves_on(&self, route: &Entry) -> Result<(), Denied> {
        let edge = route.key.parent_key().and_then(|parent| self.current.get(&parent));
        match edge.filter(|edge| edge.claim.is_none()) {
            Some(edge) => self.writable(edge.key.kind, None, WriteAction::Update),
            None => Ok(()),
        }
    }

    /// Checks a change of a route without a source: as when it is created, it changes what its edge does.
    fn on_edge(&self, entry: &Entry) -> Result<(), Denied> {
        let parent = entry.key.parent_key().filter(|_| entry.claim.is_none());
        let Some(edge) = parent.and_then(|parent| self.current.get(&parent)).filter(|edge| edge.claim.is_some()) else {
            return Ok(());
        };
        // A plan adopts it, and planning has checked the paths that the edge delegates.
        if self.claims.get(&entry.key).is_some_and(|claim| delegates(edge, &claim.source)) {
            return Ok(());
        }
        self.writable(edge.key.kind, source_of(edge), WriteAction::Update)
    }

    /// Checks the ID of a TLS edge that a manifest states: the edge is in another system, and may be somebody else's.
    fn stated(&self, key: &Key, claim: &Claim) -> Result<(), Denied> {
        if key.kind != Kind::TlsEdge || self.scope.may_write(key.kind) {
            return Ok(());
        }
        let facts = key.kind.facts();
        let derived = |number: u32| {
            let number = (number > 0).then(|| number.to_string());
            let parts = [facts.name, "", &*claim.name].into_iter().chain(number.as_deref());
            Id::derived(facts.prefix, parts.map(str::as_bytes))
        };
        match (0..MOST_DERIVED).any(|number| derived(number) == key.id) {
            true => Ok(()),
            false => Err(Denied::Stated(key.clone())),
        }
    }

    /// Checks a certificate without a source: edges of everybody present it for hosts that have no other one.
    fn unowned_certificate(&self, kind: Kind) -> Result<(), Denied> {
        // Which kinds a followed source may adopt says enough.
        let is_judged = kind == Kind::TlsCertificate && self.origin != ChangeOrigin::Followed;
        match is_judged && !self.scope.global {
            true => Err(Denied::Certificate),
            false => Ok(()),
        }
    }

    /// Whether the actor may make such a change to a resource of a source, or of none.
    fn writable(&self, kind: Kind, source: Option<&str>, action: WriteAction) -> Result<(), Denied> {
        let Self { scope, origin, .. } = self;
        let verb = action.as_str();
        match source {
            Some(source) if !scope.may_apply(source) && *origin != ChangeOrigin::Followed => {
                return Err(Denied::Source(format!("{verb} resources of"), source.to_owned()));
            }
            None if !scope.may_write(kind) => return Err(Denied::Unowned(verb, kind)),
            _ => {}
        }
        if kind.facts().global && !scope.global {
            return Err(Denied::Global(verb, kind));
        }
        if *origin == ChangeOrigin::Request && !scope.may_do(action) {
            return Err(Denied::Action(verb));
        }
        Ok(())
    }

    /// Whether the actor may give a resource to a source. From then on it sees the secrets of the resource.
    fn claimable(&self, entry: &Entry, claim: &Claim) -> Result<(), Denied> {
        let Self { scope, origin, .. } = self;
        if !scope.may_apply(&claim.source) && *origin != ChangeOrigin::Followed {
            return Err(Denied::Source("give resources to".to_owned(), claim.source.clone()));
        }
        if entry.claim.is_some() {
            return Ok(());
        }
        self.unowned_certificate(entry.key.kind)?;
        if !scope.secrets && has_secrets(entry) {
            return Err(Denied::Secrets(entry.key.clone()));
        }
        Ok(())
    }
}

/// Whether an operation gives a route another match.
fn moves_route(operation: &Operation) -> bool {
    let Operation::Patch { key, fields, .. } = operation else { return false };
    key.kind == Kind::HttpsEdgeRoute && fields.iter().any(|field| field == "match" || field == "match_type")
}

/// Whether an edge admits routes of a source.
fn delegates(edge: &Entry, source: &str) -> bool {
    edge.spec_as::<HttpsEdge>().is_some_and(|edge| edge.delegates_to.iter().any(|it| it.source == source))
}

fn source_of(entry: &Entry) -> Option<&str> {
    entry.claim.as_deref().map(|claim| claim.source.as_str())
}

fn has_secrets(entry: &Entry) -> bool {
    !matches!(entry.lazy_spec.with_known_secrets().secrets(), Ok(StoredSecrets::At(places)) if places.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::{
        code::Code,
        id::Id,
        kind::{
            event_source::EventSource,
            https_edge::Delegation,
            https_edge_route::{HttpsEdgeRoute, MatchType},
            ip_restriction::{IpRestriction, Traffic},
        },
        module::webhook_verification::WebhookVerification,
        resource::AnyResource,
        secret::Secret,
    };

    fn edge(id: &str) -> Key {
        Key::new(Kind::HttpsEdge, Id::new(id))
    }

    fn route(edge: &str, id: &str) -> Key {
        Key::child(Kind::HttpsEdgeRoute, Id::new(edge), Id::new(id))
    }

    fn restriction(id: &str) -> Key {
        Key::new(Kind::IpRestriction, Id::new(id))
    }

    fn claim(source: &str) -> Arc<Claim> {
        Arc::new(Claim { source: source.into(), name: "x".into(), ..Claim::default() })
    }

    fn create(key: Key, source: Option<&str>) -> Operation {
        let spec: Arc<dyn AnyResource> = match key.kind {
            Kind::HttpsEdge => Arc::new(HttpsEdge::default()),
            Kind::HttpsEdgeRoute => {
                let webhook = WebhookVerification {
                    provider: "github".into(),
                    secret: Secret::new("hush"),
                    ..WebhookVerification::default()
                };
                Arc::new(HttpsEdgeRoute {
                    match_type: Some(MatchType::PathPrefix),
                    r#match: "/".into(),
                    webhook_verification: Some(Arc::new(webhook)),
                    ..HttpsEdgeRoute::default()
                })
            }
            _ => Arc::new(IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() }),
        };
        Operation::Create { key, spec, claim: source.map(claim), token: None }
    }

    /// An edge of `shop` with a route of `identity`, an edge of `identity`, and a route and a restriction of no source.
    fn world() -> Snapshot {
        let operations = [
            create(edge("edghts_shop"), Some("shop")),
            create(route("edghts_shop", "edghtsrt_1"), Some("identity")),
            create(edge("edghts_identity"), Some("identity")),
            create(edge("edghts_free"), None),
            create(route("edghts_free", "edghtsrt_2"), None),
            create(restriction("ipx_free"), None),
            create(restriction("ipx_shop"), Some("shop")),
        ];
        Snapshot::default().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0
    }

    fn found(scope: &KeyScope, current: &Snapshot, origin: ChangeOrigin, operations: &[Operation]) -> Result<(), Code> {
        Rights { scope, origin }.check(current, operations).map_err(|_| Code::Forbidden)
    }

    fn allowed(scope: KeyScope, origin: ChangeOrigin, operations: &[Operation]) -> Result<(), Code> {
        found(&scope, &world(), origin, operations)
    }

    fn shop() -> KeyScope {
        KeyScope { apply: vec!["shop".into()], global: true, ..KeyScope::default() }
    }

    fn kinds(names: &[&str]) -> KeyScope {
        KeyScope { kinds: names.iter().map(|name| (*name).to_owned()).collect(), ..shop() }
    }

    const NO: Result<(), Code> = Err(Code::Forbidden);

    fn delete(key: Key) -> Operation {
        Operation::Delete { key, with_children: true }
    }

    #[test]
    fn a_scope_reaches_the_resources_of_its_sources() {
        for (operation, expected) in [
            (delete(restriction("ipx_shop")), Ok(())),
            (delete(restriction("ipx_free")), NO),
            (delete(edge("edghts_identity")), NO),
            (delete(edge("edghts_none")), Ok(())),
            (create(edge("edghts_new"), Some("shop")), Ok(())),
            (create(edge("edghts_new"), Some("identity")), NO),
            (create(edge("edghts_new"), None), NO),
        ] {
            let shown = operation.to_string();
            assert_eq!(allowed(shop(), ChangeOrigin::Plan, &[operation]), expected, "{shown}");
        }
        assert_eq!(
            allowed(kinds(&["IpRestriction"]), ChangeOrigin::Request, &[delete(restriction("ipx_free"))]),
            Ok(())
        );
        assert_eq!(allowed(kinds(&["*"]), ChangeOrigin::Request, &[delete(edge("edghts_identity"))]), NO);
    }

    #[test]
    fn children_and_parents_of_others_are_out_of_reach() {
        // The edge is of `shop`, but one of its routes is not.
        assert_eq!(allowed(shop(), ChangeOrigin::Plan, &[delete(edge("edghts_shop"))]), NO);
        let on = |edge: &str| [create(route(edge, "edghtsrt_new"), Some("shop"))];
        assert_eq!(allowed(shop(), ChangeOrigin::Plan, &on("edghts_shop")), Ok(()));
        assert_eq!(allowed(shop(), ChangeOrigin::Plan, &on("edghts_identity")), NO);
        assert_eq!(allowed(shop(), ChangeOrigin::Plan, &on("edghts_free")), NO);
        assert_eq!(allowed(kinds(&["HttpsEdge"]), ChangeOrigin::Plan, &on("edghts_free")), Ok(()));
    }

    #[test]
    fn a_route_without_a_source_belongs_to_its_edge() {
        let on = |edge: &str| create(route(edge, "edghtsrt_free"), None);
        let current = world().apply(&[on("edghts_identity")], Timestamp::UNIX_EPOCH).unwrap().0;
        let key = route("edghts_identity", "edghtsrt_free");
        let judged = |apply: &[&str], operation: Operation| {
            let apply = apply.iter().map(|name| (*name).to_owned()).collect();
            let scope = KeyScope { apply, kinds: vec!["HttpsEdgeRoute".into()], ..KeyScope::default() };
            found(&scope, &current, ChangeOrigin::Request, &[operation])
        };
        let spec = HttpsEdgeRoute { r#match: "/admin".into(), ..HttpsEdgeRoute::default() };
        let patch = Operation::Patch { key: key.clone(), spec: Arc::new(spec), fields: vec!["match".into()] };
        let slot = Kind::HttpsEdgeRoute.info().slots.iter().find(|slot| slot.name == "webhook_verification").unwrap();
        let module = Operation::DeleteModule { host: key.clone(), slot };
        for operation in [patch, module, delete(key)] {
            assert_eq!(judged(&["shop"], operation.clone()), NO, "{operation}");
            assert_eq!(judged(&["identity"], operation), Ok(()));
        }
    }

    #[test]
    fn a_delegated_edge_admits_routes_of_a_plan() {
        let mut shared = create(edge("edghts_shared"), Some("identity"));
        if let Operation::Create { spec, .. } = &mut shared {
            let delegation = Delegation { source: "shop".into(), path_prefix: "/shop/".into() };
            *spec = Arc::new(HttpsEdge { delegates_to: vec![delegation], ..HttpsEdge::default() });
        }
        let current = world().apply(&[shared], Timestamp::UNIX_EPOCH).unwrap().0;
        let scope = kinds(&["*"]);
        let judged = |source: Option<&str>| {
            let operations = [create(route("edghts_shared", "edghtsrt_new"), source)];
            Rights { scope: &scope, origin: ChangeOrigin::Plan }.check(&current, &operations)
        };
        assert!(judged(Some("shop")).is_ok());
        let of_identity = |(_, denied)| matches!(denied, Denied::Source(_, source) if source == "identity");
        assert!(judged(None).is_err_and(of_identity));
    }

    #[test]
    fn a_subscription_with_the_sources_of_others_is_out_of_reach() {
        let source = |id: &str, owner: Option<&str>| Operation::Create {
            key: Key::child(Kind::EventSource, Id::new("esb_1"), Id::new(id)),
            spec: Arc::new(EventSource { r#type: id.to_owned() }),
            claim: owner.map(claim),
            token: None,
        };
        let current = |owner: Option<&str>| {
            Snapshot::default().apply(&[source("edge_created.v0", owner)], Timestamp::UNIX_EPOCH).unwrap().0
        };
        let scope = kinds(&["EventSource", "EventSubscription"]);
        let judged = |owner: Option<&str>| {
            found(&scope, &current(owner), ChangeOrigin::Request, &[source("edge_deleted.v0", None)])
        };
        assert_eq!((judged(None), judged(Some("shop")), judged(Some("identity"))), (Ok(()), Ok(()), NO));
        // A source adds no type to what no source declares, either.
        let own = [source("edge_deleted.v0", Some("shop"))];
        assert_eq!(found(&shop(), &current(None), ChangeOrigin::Plan, &own), NO);
        assert_eq!(found(&shop(), &current(Some("shop")), ChangeOrigin::Plan, &own), Ok(()));
    }

    #[test]
    fn adoption_does_not_reveal_a_secret() {
        let adopt = |key: Key, source: &str| [Operation::Claim { key, claim: Some(claim(source)) }];
        let (free, guarded) = (restriction("ipx_free"), route("edghts_free", "edghtsrt_2"));
        assert_eq!(allowed(shop(), ChangeOrigin::Plan, &adopt(free.clone(), "shop")), NO);
        assert_eq!(allowed(kinds(&["*"]), ChangeOrigin::Plan, &adopt(free.clone(), "shop")), Ok(()));
        assert_eq!(allowed(kinds(&["*"]), ChangeOrigin::Plan, &adopt(free, "identity")), NO);
        assert_eq!(allowed(kinds(&["*"]), ChangeOrigin::Plan, &adopt(guarded.clone(), "shop")), NO);
        let seeing = KeyScope { secrets: true, ..kinds(&["*"]) };
        assert_eq!(allowed(seeing, ChangeOrigin::Plan, &adopt(guarded, "shop")), Ok(()));
        let stolen = adopt(edge("edghts_identity"), "shop");
        assert_eq!(allowed(kinds(&["*"]), ChangeOrigin::Plan, &stolen), NO);
    }

    #[test]
    fn what_acts_on_every_source_needs_a_scope_of_its_own() {
        let narrow = || KeyScope { global: false, ..kinds(&["*"]) };
        for (operation, origin) in [
            (create(restriction("ipx_new"), Some("shop")), ChangeOrigin::Plan),
            (create(restriction("ipx_new"), None), ChangeOrigin::Request),
            (delete(restriction("ipx_shop")), ChangeOrigin::Plan),
            (delete(restriction("ipx_free")), ChangeOrigin::Request),
        ] {
            assert_eq!(allowed(narrow(), origin, std::slice::from_ref(&operation)), NO, "{operation}");
            assert_eq!(allowed(kinds(&["*"]), origin, &[operation]), Ok(()));
        }
    }

    #[test]
    fn actions_limit_single_changes_only() {
        let renewing = || KeyScope { actions: vec![WriteAction::Create, WriteAction::Update], ..shop() };
        let gone = [delete(restriction("ipx_shop"))];
        assert_eq!(allowed(renewing(), ChangeOrigin::Request, &gone), NO);
        assert_eq!(allowed(renewing(), ChangeOrigin::Plan, &gone), Ok(()));
    }
}
