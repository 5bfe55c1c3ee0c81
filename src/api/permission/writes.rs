//! Which resources the scope of a key lets it change (D101): those of the sources that it may apply, and those of no source
//! whose kind it names.

use std::{borrow::Borrow, collections::HashMap};

use super::{Manner, forbidden, of_source};
use crate::api::auth::Caller;
use crate::model::{
    Kind,
    fault::{Fault, Path},
    id::Id,
    key::Key,
    key_scope::{KeyScope, WriteAction},
    kind::{https_edge::HttpsEdge, tls_certificate::TlsCertificate},
    lazy_spec::StoredSecrets,
    operation::{Claim, Operation},
    resource::AnyResource,
    snapshot::{Entry, Snapshot},
};
use crate::tenancy::certificates::edge_behind;

/// Checks the operations of a caller whose key has a scope.
pub(super) fn check<O: Borrow<Operation>>(
    caller: &Caller,
    scope: &KeyScope,
    current: &Snapshot,
    operations: &[O],
    manner: Manner,
) -> Result<(), Fault> {
    // An implicit resource is created by its first module, and claimed after it.
    let mut claims: HashMap<&Key, &Claim> = HashMap::new();
    for operation in operations {
        if let Operation::Claim { key, claim: Some(claim) } = Borrow::<Operation>::borrow(operation) {
            claims.insert(key, claim);
        }
    }
    let check = ScopeCheck { caller, scope, current, claims, manner };
    operations.iter().try_for_each(|operation| check.one(Borrow::<Operation>::borrow(operation)))
}

struct ScopeCheck<'a> {
    caller: &'a Caller,
    scope: &'a KeyScope,
    current: &'a Snapshot,
    /// The claims that the operations give.
    claims: HashMap<&'a Key, &'a Claim>,
    manner: Manner,
}

impl ScopeCheck<'_> {
    fn one(&self, operation: &Operation) -> Result<(), Fault> {
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
        self.writable(key.kind, source_of(entry), action)?;
        if action == WriteAction::Delete && entry.claim.is_none() {
            self.certificate(entry.spec().as_ref())?;
        }
        self.on_edge(entry)?;
        match operation {
            Operation::Claim { claim: Some(claim), .. } => self.claimable(entry, claim),
            Operation::Delete { .. } => {
                // A deletion takes the children with it, whoever owns them.
                let Some(kind) = key.kind.facts().children else { return Ok(()) };
                let mut children = self.current.children(key, kind);
                children.try_for_each(|child| self.writable(kind, source_of(child), WriteAction::Delete))
            }
            _ => Ok(()),
        }
    }

    /// Checks the creation of a resource. Another operation on a resource that does not exist fails for that.
    fn new_one(&self, operation: &Operation) -> Result<(), Fault> {
        let key = operation.key();
        let claim = match operation {
            Operation::Create { claim, .. } => claim.as_deref().or_else(|| self.claims.get(key).copied()),
            Operation::PutModule { .. } | Operation::Claim { .. } => self.claims.get(key).copied(),
            _ => return Ok(()),
        };
        let source = claim.map(|claim| claim.source.as_str());
        let own = || {
            self.writable(key.kind, source, WriteAction::Create)?;
            claim.map_or(Ok(()), |claim| self.stated(key, claim))?;
            match operation {
                Operation::Create { spec, .. } if source.is_none() => self.certificate(spec.as_ref()),
                _ => Ok(()),
            }
        };
        // A subscription is in another system: it belongs to those who declare its sources.
        if let Some(subscription) = key.parent_key().filter(|parent| parent.kind == Kind::EventSubscription) {
            let mut declared = self.current.children(&subscription, key.kind).filter(|other| other.claim.is_some());
            declared.try_for_each(|other| self.writable(key.kind, source_of(other), WriteAction::Update))?;
        }
        let Some(parent) = key.parent_key().and_then(|parent| self.current.get(&parent)) else { return own() };
        // Planning checks the paths that the edge delegates.
        if source.is_some_and(|source| delegates(parent, source)) {
            return own();
        }
        // A route changes what its edge does. Its owner is named first: a single request has no source.
        self.writable(parent.key.kind, source_of(parent), WriteAction::Update)?;
        own()
    }

    /// Checks a change of a route without a source: as when it is created, it changes what its edge does.
    fn on_edge(&self, entry: &Entry) -> Result<(), Fault> {
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

    /// Checks the ID of a TLS edge that a manifest states: the edge is in another system, and may be somebody else's (D112).
    fn stated(&self, key: &Key, claim: &Claim) -> Result<(), Fault> {
        let Self { caller, scope, current, .. } = self;
        let facts = key.kind.facts();
        let derived = || Id::derived(facts.prefix, [facts.name, "", &*claim.name].map(str::as_bytes));
        if key.kind != Kind::TlsEdge || scope.may_write(key.kind) || key.id == derived() {
            return Ok(());
        }
        let what = format!("declare {key} by its ID, which no source has declared yet, without `TlsEdge` in `kinds`");
        Err(forbidden(caller, &what, current))
    }

    /// Checks a certificate without a source: edges of others present it for hosts that have no other one (D112).
    fn certificate(&self, spec: &dyn AnyResource) -> Result<(), Fault> {
        let Self { caller, scope, current, .. } = self;
        let certificate = spec.as_any().downcast_ref::<TlsCertificate>().filter(|_| !scope.global);
        let edge = certificate.and_then(|it| edge_behind(current, it, |source| scope.may_apply(source)));
        match edge {
            None => Ok(()),
            Some(edge) => {
                let edge = current.name_of(&edge.key);
                Err(forbidden(caller, &format!("change a certificate for hosts of {edge} without `global`"), current))
            }
        }
    }

    /// Whether the caller may make such a change to a resource of a source, or of none.
    fn writable(&self, kind: Kind, source: Option<&str>, action: WriteAction) -> Result<(), Fault> {
        let Self { caller, scope, current, .. } = self;
        let verb = action.as_str();
        match source {
            Some(source) if !scope.may_apply(source) => {
                let what = format!("{verb} resources of");
                return Err(of_source(caller, &what, source, current).at(Path::root()));
            }
            None if !scope.may_write(kind) => {
                let what = format!("{verb} resources of kind {kind} that no source owns");
                return Err(forbidden(caller, &what, current));
            }
            _ => {}
        }
        if kind.facts().global && !scope.global {
            let what = format!("{verb} resources of kind {kind}, which act on every source, without `global`");
            return Err(forbidden(caller, &what, current));
        }
        if self.manner == Manner::Single && !scope.may_do(action) {
            return Err(forbidden(caller, &format!("{verb} single resources"), current));
        }
        Ok(())
    }

    /// Whether the caller may give a resource to a source. From then on it sees the secrets of the resource.
    fn claimable(&self, entry: &Entry, claim: &Claim) -> Result<(), Fault> {
        let Self { caller, scope, current, .. } = self;
        if !scope.may_apply(&claim.source) {
            return Err(of_source(caller, "give resources to", &claim.source, current).at(Path::root()));
        }
        if entry.claim.is_none() && !scope.secrets && has_secrets(entry) {
            let what = format!("adopt {}, which has secrets, without `secrets`", entry.key);
            return Err(forbidden(caller, &what, current));
        }
        Ok(())
    }
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

    use super::*;
    use crate::{
        model::{
            code::Code,
            id::Id,
            kind::{
                event_source::EventSource,
                https_edge::Delegation,
                https_edge_route::{HttpsEdgeRoute, MatchType},
                ip_restriction::{IpRestriction, Traffic},
                owner::Role,
            },
            module::webhook_verification::WebhookVerification,
            resource::AnyResource,
            secret::Secret,
        },
        store::mint::now,
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
        Snapshot::default().apply(&operations, now()).unwrap().0
    }

    fn allowed(scope: KeyScope, manner: Manner, operations: &[Operation]) -> Result<(), Code> {
        let (key, owner) = (Id::new("ak_1"), Id::new("usr_1"));
        let scope = Arc::new(scope);
        let caller = Caller { key, owner, role: Role::Editor, scope: Some(Arc::clone(&scope)) };
        check(&caller, &scope, &world(), operations, manner).map_err(|fault| fault.code)
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
            assert_eq!(allowed(shop(), Manner::Planned, &[operation]), expected, "{shown}");
        }
        assert_eq!(allowed(kinds(&["IpRestriction"]), Manner::Single, &[delete(restriction("ipx_free"))]), Ok(()));
        assert_eq!(allowed(kinds(&["*"]), Manner::Single, &[delete(edge("edghts_identity"))]), NO);
    }

    #[test]
    fn children_and_parents_of_others_are_out_of_reach() {
        // The edge is of `shop`, but one of its routes is not.
        assert_eq!(allowed(shop(), Manner::Planned, &[delete(edge("edghts_shop"))]), NO);
        let on = |edge: &str| [create(route(edge, "edghtsrt_new"), Some("shop"))];
        assert_eq!(allowed(shop(), Manner::Planned, &on("edghts_shop")), Ok(()));
        assert_eq!(allowed(shop(), Manner::Planned, &on("edghts_identity")), NO);
        assert_eq!(allowed(shop(), Manner::Planned, &on("edghts_free")), NO);
        assert_eq!(allowed(kinds(&["HttpsEdge"]), Manner::Planned, &on("edghts_free")), Ok(()));
    }

    #[test]
    fn a_route_without_a_source_belongs_to_its_edge() {
        let on = |edge: &str| create(route(edge, "edghtsrt_free"), None);
        let current = world().apply(&[on("edghts_identity")], now()).unwrap().0;
        let key = route("edghts_identity", "edghtsrt_free");
        let found = |apply: &[&str], operation: Operation| {
            let apply = apply.iter().map(|name| (*name).to_owned()).collect();
            let scope = Arc::new(KeyScope { apply, kinds: vec!["HttpsEdgeRoute".into()], ..KeyScope::default() });
            let (id, owner) = (Id::new("ak_1"), Id::new("usr_1"));
            let caller = Caller { key: id, owner, role: Role::Editor, scope: Some(Arc::clone(&scope)) };
            check(&caller, &scope, &current, &[operation], Manner::Single).map_err(|fault| fault.code)
        };
        let spec = HttpsEdgeRoute { r#match: "/admin".into(), ..HttpsEdgeRoute::default() };
        let patch = Operation::Patch { key: key.clone(), spec: Arc::new(spec), fields: vec!["match".into()] };
        let slot = Kind::HttpsEdgeRoute.info().slots.iter().find(|slot| slot.name == "webhook_verification").unwrap();
        let module = Operation::DeleteModule { host: key.clone(), slot };
        for operation in [patch, module, delete(key)] {
            assert_eq!(found(&["shop"], operation.clone()), NO, "{operation}");
            assert_eq!(found(&["identity"], operation), Ok(()));
        }
    }

    #[test]
    fn a_delegated_edge_admits_routes_of_a_plan() {
        let mut shared = create(edge("edghts_shared"), Some("identity"));
        if let Operation::Create { spec, .. } = &mut shared {
            let delegation = Delegation { source: "shop".into(), path_prefix: "/shop/".into() };
            *spec = Arc::new(HttpsEdge { delegates_to: vec![delegation], ..HttpsEdge::default() });
        }
        let current = world().apply(&[shared], now()).unwrap().0;
        let (key, owner, scope) = (Id::new("ak_1"), Id::new("usr_1"), Arc::new(kinds(&["*"])));
        let caller = Caller { key, owner, role: Role::Editor, scope: Some(Arc::clone(&scope)) };
        let found = |source: Option<&str>| {
            let operations = [create(route("edghts_shared", "edghtsrt_new"), source)];
            check(&caller, &scope, &current, &operations, Manner::Planned)
        };
        assert!(found(Some("shop")).is_ok());
        let refusal = found(None).map_err(|fault| fault.message);
        assert!(refusal.is_err_and(|message| message.contains("source `identity`")));
    }

    #[test]
    fn a_subscription_with_the_sources_of_others_is_out_of_reach() {
        let source = |id: &str, owner: Option<&str>| Operation::Create {
            key: Key::child(Kind::EventSource, Id::new("esb_1"), Id::new(id)),
            spec: Arc::new(EventSource { r#type: id.to_owned() }),
            claim: owner.map(claim),
            token: None,
        };
        let current =
            |owner: Option<&str>| Snapshot::default().apply(&[source("edge_created.v0", owner)], now()).unwrap().0;
        let (key, owner, scope) =
            (Id::new("ak_1"), Id::new("usr_1"), Arc::new(kinds(&["EventSource", "EventSubscription"])));
        let caller = Caller { key, owner, role: Role::Editor, scope: Some(Arc::clone(&scope)) };
        let found = |owner: Option<&str>| {
            let operations = [source("edge_deleted.v0", None)];
            check(&caller, &scope, &current(owner), &operations, Manner::Single).map_err(|fault| fault.code)
        };
        assert_eq!((found(None), found(Some("shop")), found(Some("identity"))), (Ok(()), Ok(()), NO));
    }

    #[test]
    fn adoption_does_not_reveal_a_secret() {
        let adopt = |key: Key, source: &str| [Operation::Claim { key, claim: Some(claim(source)) }];
        let (free, guarded) = (restriction("ipx_free"), route("edghts_free", "edghtsrt_2"));
        assert_eq!(allowed(shop(), Manner::Planned, &adopt(free.clone(), "shop")), NO);
        assert_eq!(allowed(kinds(&["*"]), Manner::Planned, &adopt(free.clone(), "shop")), Ok(()));
        assert_eq!(allowed(kinds(&["*"]), Manner::Planned, &adopt(free, "identity")), NO);
        assert_eq!(allowed(kinds(&["*"]), Manner::Planned, &adopt(guarded.clone(), "shop")), NO);
        let seeing = KeyScope { secrets: true, ..kinds(&["*"]) };
        assert_eq!(allowed(seeing, Manner::Planned, &adopt(guarded, "shop")), Ok(()));
        let stolen = adopt(edge("edghts_identity"), "shop");
        assert_eq!(allowed(kinds(&["*"]), Manner::Planned, &stolen), NO);
    }

    #[test]
    fn what_acts_on_every_source_needs_a_scope_of_its_own() {
        let narrow = || KeyScope { global: false, ..kinds(&["*"]) };
        for (operation, manner) in [
            (create(restriction("ipx_new"), Some("shop")), Manner::Planned),
            (create(restriction("ipx_new"), None), Manner::Single),
            (delete(restriction("ipx_shop")), Manner::Planned),
            (delete(restriction("ipx_free")), Manner::Single),
        ] {
            assert_eq!(allowed(narrow(), manner, std::slice::from_ref(&operation)), NO, "{operation}");
            assert_eq!(allowed(kinds(&["*"]), manner, &[operation]), Ok(()));
        }
    }

    #[test]
    fn actions_limit_single_changes_only() {
        let renewing = || KeyScope { actions: vec![WriteAction::Create, WriteAction::Update], ..shop() };
        let gone = [delete(restriction("ipx_shop"))];
        assert_eq!(allowed(renewing(), Manner::Single, &gone), NO);
        assert_eq!(allowed(renewing(), Manner::Planned, &gone), Ok(()));
    }
}
