//! The rights of an actor, operation by operation.

use std::sync::Arc;

use jiff::Timestamp;

use super::*;
use crate::model::kind::https_edge::Delegation;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::module::webhook_verification::WebhookVerification;
use crate::model::{AnyResource, Code, EventSource, HttpsEdgeRoute, Id, IpRestriction, MatchType, Secret};
use crate::tenancy::{Adoption, SourceScope};

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
    Arc::new(Claim::new(source, "x"))
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

fn event_source(id: &str, owner: Option<&str>) -> Operation {
    Operation::Create {
        key: Key::child(Kind::EventSource, Id::new("esb_1"), Id::new(id)),
        spec: Arc::new(EventSource { r#type: id.to_owned() }),
        claim: owner.map(claim),
        token: None,
    }
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
    Rights { scope, origin, stated: &BTreeSet::new() }.check(current, operations).map_err(|_| Code::Forbidden)
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
    assert_eq!(allowed(kinds(&["IpRestriction"]), ChangeOrigin::Request, &[delete(restriction("ipx_free"))]), Ok(()));
    assert_eq!(allowed(kinds(&["*"]), ChangeOrigin::Request, &[delete(edge("edghts_identity"))]), NO);
}

#[test]
fn children_and_parents_of_others_are_out_of_reach() {
    // The edge is of `shop`, but one of its routes is not.
    let rights = Rights { scope: &shop(), origin: ChangeOrigin::Plan, stated: &BTreeSet::new() };
    let denied = Denied::Source("delete HttpsEdgeRoute edghtsrt_1 of".to_owned(), "identity".to_owned());
    let edge_of_shop = edge("edghts_shop");
    assert_eq!(rights.check(&world(), &[delete(edge_of_shop.clone())]), Err((edge_of_shop, denied)));
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
fn a_route_that_loses_its_source_needs_the_source_of_its_edge() {
    let operations = [
        create(route("edghts_shop", "edghtsrt_own"), Some("shop")),
        create(route("edghts_identity", "edghtsrt_guest"), Some("shop")),
        create(route("edghts_free", "edghtsrt_free"), Some("shop")),
    ];
    let current = world().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0;
    let release = |scope: &KeyScope, edge: &str, id: &str| {
        let operations = [Operation::Claim { key: route(edge, id), claim: None }];
        let rights = Rights { scope, origin: ChangeOrigin::Plan, stated: &BTreeSet::new() };
        rights.check(&current, &operations).map_err(|(_, denied)| denied)
    };
    let routes = kinds(&["HttpsEdgeRoute"]);
    assert_eq!(release(&routes, "edghts_shop", "edghtsrt_own"), Ok(()));
    assert_eq!(
        release(&routes, "edghts_identity", "edghtsrt_guest"),
        Err(Denied::Source("update resources of".to_owned(), "identity".to_owned()))
    );
    // Without one, whoever can adopt it can release it.
    assert_eq!(release(&routes, "edghts_free", "edghtsrt_free"), Ok(()));
    let denied = Err(Denied::Unowned("create", Kind::HttpsEdgeRoute));
    assert_eq!(release(&kinds(&["HttpsEdge"]), "edghts_free", "edghtsrt_free"), denied);
    let both = KeyScope { apply: vec!["shop".into(), "identity".into()], ..routes };
    assert_eq!(release(&both, "edghts_identity", "edghtsrt_guest"), Ok(()));
}

#[test]
fn an_edge_that_changes_hands_gets_routes_in_the_same_plan() {
    let offered = |to: Option<&str>| {
        let claim = Claim { transfer_to: to.map(str::to_owned), ..Claim::new("identity", "x") };
        let offer = Operation::Claim { key: edge("edghts_identity"), claim: Some(Arc::new(claim)) };
        let operations = [offer, create(route("edghts_identity", "edghtsrt_free"), None)];
        world().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0
    };
    let take = |key: Key| Operation::Claim { key, claim: Some(claim("shop")) };
    let taken = take(edge("edghts_identity"));
    let scope = KeyScope { secrets: true, ..kinds(&["HttpsEdgeRoute"]) };
    for more in [
        create(route("edghts_identity", "edghtsrt_new"), Some("shop")),
        take(route("edghts_identity", "edghtsrt_free")),
    ] {
        let judged =
            |to: Option<&str>, operations: &[Operation]| found(&scope, &offered(to), ChangeOrigin::Plan, operations);
        let both = [taken.clone(), more.clone()];
        assert_eq!(judged(Some("shop"), &both), Ok(()), "{more}");
        assert_eq!(judged(None, &both), NO, "it is not offered");
        assert_eq!(judged(Some("shop"), std::slice::from_ref(&more)), NO, "it is not taken: {more}");
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
        let stated = &BTreeSet::new();
        Rights { scope: &scope, origin: ChangeOrigin::Plan, stated }.check(&current, &operations)
    };
    assert!(judged(Some("shop")).is_ok());
    let of_identity = |(_, denied)| matches!(denied, Denied::Source(_, source) if source == "identity");
    assert!(judged(None).is_err_and(of_identity));
}

#[test]
fn a_subscription_with_the_sources_of_others_is_out_of_reach() {
    let current = |owner: Option<&str>| {
        Snapshot::default().apply(&[event_source("edge_created.v0", owner)], Timestamp::UNIX_EPOCH).unwrap().0
    };
    // Its event sources are included.
    let scope = kinds(&["EventSubscription"]);
    let judged = |owner: Option<&str>| {
        found(&scope, &current(owner), ChangeOrigin::Request, &[event_source("edge_deleted.v0", None)])
    };
    assert_eq!((judged(None), judged(Some("shop")), judged(Some("identity"))), (Ok(()), Ok(()), NO));
    // A source adds no type to what no source declares, either.
    let own = [event_source("edge_deleted.v0", Some("shop"))];
    assert_eq!(found(&shop(), &current(None), ChangeOrigin::Plan, &own), NO);
    assert_eq!(found(&shop(), &current(Some("shop")), ChangeOrigin::Plan, &own), Ok(()));
}

#[test]
fn a_new_subscription_that_is_stated_by_its_id_needs_its_kind() {
    let new = event_source("edge_created.v0", Some("shop"));
    let stated = BTreeSet::from([new.key().clone()]);
    let judged = |scope: &KeyScope, current: &Snapshot, stated: &BTreeSet<Key>| {
        let rights = Rights { scope, origin: ChangeOrigin::Plan, stated };
        rights.check(current, std::slice::from_ref(&new)).map_err(|(_, denied)| denied)
    };
    let empty = Snapshot::default();
    let denied = Denied::Stated(Key::new(Kind::EventSubscription, Id::new("esb_1")));
    assert_eq!(judged(&shop(), &empty, &stated), Err(denied));
    assert_eq!(judged(&shop(), &empty, &BTreeSet::new()), Ok(()), "by its name");
    assert_eq!(judged(&kinds(&["EventSubscription"]), &empty, &stated), Ok(()));
    let own = empty.apply(&[event_source("edge_deleted.v0", Some("shop"))], Timestamp::UNIX_EPOCH).unwrap().0;
    assert_eq!(judged(&shop(), &own, &stated), Ok(()), "one more type");
    let refused = |current: &Snapshot| {
        SourceScope::for_repository().refused(current, std::slice::from_ref(&new), &stated, "shop").len() == 1
    };
    assert_eq!((refused(&empty), refused(&world())), (false, true), "alone, and beside other sources");
}

#[test]
fn a_new_resource_has_no_id_that_is_or_will_be_that_of_another_source() {
    let gone = [delete(edge("edghts_identity")), delete(edge("edghts_free"))];
    let current = world().apply(&gone, Timestamp::UNIX_EPOCH).unwrap().0;
    let judged = |scope: &KeyScope, id: &str, is_stated: bool| {
        let new = create(edge(id), scope.apply.first().map(String::as_str));
        let stated = if is_stated { BTreeSet::from([new.key().clone()]) } else { BTreeSet::new() };
        let rights = Rights { scope, origin: ChangeOrigin::Plan, stated: &stated };
        rights.check(&current, std::slice::from_ref(&new)).map_err(|(_, denied)| denied)
    };
    let identity = KeyScope { apply: vec!["identity".into()], ..shop() };
    let both = KeyScope { apply: vec!["shop".into(), "identity".into()], ..shop() };
    let stated = |id: &str| Err(Denied::Stated(edge(id)));
    for (id, is_stated, expected) in [
        ("edghts_new", false, Ok(())),
        ("edghts_new", true, stated("edghts_new")),
        ("edghts_free", true, stated("edghts_free")),
    ] {
        assert_eq!(judged(&shop(), id, is_stated), expected, "{id}");
        assert_eq!(judged(&kinds(&["HttpsEdge"]), id, is_stated), Ok(()), "{id}");
    }
    // A rollback states nothing.
    for is_stated in [true, false] {
        let denied = Err(Denied::Former(edge("edghts_identity"), "identity".to_owned()));
        assert_eq!(judged(&shop(), "edghts_identity", is_stated), denied);
        assert_eq!(judged(&kinds(&["*"]), "edghts_identity", is_stated), denied, "whatever it may adopt");
    }
    for scope in [identity, both] {
        assert_eq!(judged(&scope, "edghts_identity", true), Ok(()), "{:?}", scope.apply);
    }
    let refused = |adopt: Adoption, source: &str| {
        let new = create(edge("edghts_identity"), Some(source));
        let stated = BTreeSet::from([new.key().clone()]);
        SourceScope { adopt, ..SourceScope::default() }.refused(&current, &[new], &stated, source).len()
    };
    let of = |kinds: &[Kind]| Adoption::Of(kinds.iter().copied().collect());
    let none = of(&[]);
    assert_eq!((refused(none.clone(), "shop"), refused(none, "identity")), (1, 0));
    assert_eq!((refused(of(&[Kind::HttpsEdge]), "shop"), refused(Adoption::Any, "shop")), (1, 0));
}

#[test]
fn the_id_of_a_route_stays_that_of_its_source_on_every_edge() {
    let state = |state: &Snapshot, operations: &[Operation]| state.apply(operations, Timestamp::UNIX_EPOCH).unwrap().0;
    let (there, here) = (route("edghts_shop", "edghtsrt_1"), route("edghts_free", "edghtsrt_1"));
    let judged = |current: &Snapshot, key: &Key| {
        let new = [create(key.clone(), Some("shop"))];
        let rights =
            Rights { scope: &kinds(&["*"]), origin: ChangeOrigin::Plan, stated: &BTreeSet::from([key.clone()]) };
        rights.check(current, &new).map_err(|(_, denied)| denied)
    };
    let gone = state(&world(), &[delete(there.clone())]);
    for key in [&there, &here] {
        assert_eq!(judged(&gone, key), Err(Denied::Former(key.clone(), "identity".to_owned())));
    }
    assert!(gone.was_of_another(&here, "shop") && !gone.was_of_another(&here, "identity"));
    // Whoever had it last has it.
    let given = state(&state(&gone, &[create(here.clone(), Some("shop"))]), &[delete(here.clone())]);
    assert_eq!((judged(&given, &there), judged(&given, &here)), (Ok(()), Ok(())));
    assert!(given.was_of_another(&there, "identity"));
    // One that no source had says nothing.
    let free = state(&state(&gone, &[create(here.clone(), None)]), &[delete(here.clone())]);
    assert!(free.was_of_another(&here, "shop"));
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
