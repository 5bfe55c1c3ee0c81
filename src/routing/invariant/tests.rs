//! What invariants are, by example: estates in a few lines, and the answers about them.

mod exemptions;
mod keeps;
mod many_scopes;
mod policies;
mod property;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Breach, Proof, ProofAnswer, enforce, prove};
use crate::model::{Claim, Entry, Id, Key, Kind, Snapshot};
use crate::routing::tests::{edge_key, route_key, spec_of, with};
use crate::routing::trace;

/// A resource of an example: its key, its source, and its Spec.
type Given = (Key, &'static str, Value);

fn edge(name: &str, source: &'static str, hostport: &str, more: Value) -> Given {
    (edge_key(name), source, with(json!({"hostports": [hostport]}), more))
}

/// A route of an edge by a path prefix, to the backend `bkd_1` unless `more` has another one.
fn route(edge: &str, source: &'static str, prefix: &str, more: Value) -> Given {
    (route_key(edge, &format!("{edge}{prefix}")), source, crate::routing::tests::route(prefix, more))
}

fn invariant(more: Value) -> Given {
    (Key::new(Kind::Invariant, Id::new("inv_1")), "platform", with(json!({"description": "It holds"}), more))
}

fn state(given: &[Given]) -> Snapshot {
    let entries = given.iter().zip(0..).map(|((key, source, spec), order)| {
        let claim = Claim::new(*source, key.id.to_string());
        let entry = Entry::new(key.clone(), spec_of(key.kind, spec), Timestamp::UNIX_EPOCH, order);
        (key.clone(), Ok(Entry { claim: Some(Arc::new(claim)), ..entry }))
    });
    Snapshot::default().advance(1, 100, entries)
}

fn now() -> Timestamp {
    "2027-01-15T12:00:00Z".parse().unwrap_or_default()
}

/// Describes a certain or possible breach.
fn told(breach: &Breach<'_>) -> String {
    format!("{} {}", breach.request_text(), breach.flaw.clause)
}

/// The answer about the only invariant of a state, and what breaks it or may. Each request does what a trace shows.
fn answer(given: &[Given]) -> (ProofAnswer, Vec<String>) {
    let state = state(given);
    let proofs = prove(&state, now());
    let Some(proof) = proofs.first() else { return (ProofAnswer::Depends, Vec::new()) };
    for breach in &proof.breaches {
        let traced = trace(&state, &breach.request);
        assert_eq!(traced.edge.map(|it| it.edge.key), breach.fate.edge.map(|it| it.key.clone()));
    }
    (proof.answer(), proof.breaches.iter().map(told).collect())
}

fn proven() -> (ProofAnswer, Vec<String>) {
    (ProofAnswer::Proven, Vec::new())
}

fn refuted(by: &str) -> (ProofAnswer, Vec<String>) {
    (ProofAnswer::Refuted, vec![by.to_owned()])
}

fn depends(on: &str) -> (ProofAnswer, Vec<String>) {
    (ProofAnswer::Depends, vec![on.to_owned()])
}

fn login() -> Value {
    json!({"oidc": {"issuer": "https://login.example.com", "client_id": "edge"}})
}

fn needs_login() -> Given {
    let scope = json!({"hosts": ["*.internal.example.com"], "path_prefixes": ["/admin"]});
    invariant(json!({"scope": scope, "requires_any": ["oidc", "mutual_tls"]}))
}

#[test]
fn every_request_in_the_scope_must_pass_a_module() {
    let wiki = || edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
    let one = |more: Value| answer(&[needs_login(), wiki(), route("wiki", "shop", "/", more)]);
    assert_eq!(one(login()), proven());
    let open =
        "`GET https://wiki.internal.example.com/admin` reaches the backend `bkd_1` without `oidc` or `mutual_tls`";
    assert_eq!(one(json!({})), refuted(open));
    assert_eq!(one(json!({"oidc": {"enabled": false}})), refuted(&format!("{open}: `oidc` is disabled")));
    // What reaches no backend is closed.
    assert_eq!(one(json!({"backend": null})), proven());
    assert_eq!(answer(&[needs_login(), wiki(), route("wiki", "shop", "/docs", json!({}))]), proven());
    // Another host, and a path that only begins alike.
    let public = [needs_login(), edge("a", "shop", "a.example.com:443", json!({})), route("a", "shop", "/", json!({}))];
    assert_eq!(answer(&public).0, ProofAnswer::Unused);
    let closer =
        [needs_login(), wiki(), route("wiki", "shop", "/", login()), route("wiki", "shop", "/admin/x", json!({}))];
    let closer = answer(&closer);
    assert_eq!(closer, refuted(&open.replace("/admin`", "/admin/x`")));
    let certificates = json!({"mutual_tls": {"certificate_authority_ids": ["ca_1"]}});
    let edge = edge("wiki", "shop", "*.internal.example.com:443", certificates);
    assert_eq!(answer(&[needs_login(), edge, route("wiki", "shop", "/", json!({}))]), proven());
}

#[test]
fn a_login_that_lets_options_pass_does_not_check_every_request() {
    let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
    let lenient = || route("wiki", "shop", "/", json!({"oidc": {"options_passthrough": true}}));
    let (answered, told) = answer(&[needs_login(), wiki.clone(), lenient()]);
    assert_eq!(answered, ProofAnswer::Refuted);
    let is_preflight = |it: &String| it.starts_with("`OPTIONS https://") && it.contains("options_passthrough");
    assert!(told.iter().all(is_preflight), "{told:?}");
    let of_get = invariant(json!({"scope": {"methods": ["get", "POST"]}, "requires_any": ["oidc"]}));
    assert_eq!(answer(&[of_get, wiki, lenient()]), proven());
}

/// A policy that denies what matches expressions.
fn denying(expressions: Value) -> Value {
    json!({"policies": {"inbound": [{"expressions": expressions, "actions": [{"type": "deny"}]}]}})
}

#[test]
fn what_a_policy_with_expressions_does_is_unknown() {
    let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
    let policy = denying(json!(["req.URL == '/'"]));
    let on = depends("`GET https://wiki.internal.example.com/admin` the effect of `policies`");
    assert_eq!(answer(&[needs_login(), wiki.clone(), route("wiki", "shop", "/", policy.clone())]), on);
    assert_eq!(answer(&[needs_login(), wiki.clone(), route("wiki", "shop", "/", with(policy, login()))]), proven());
    // A certificate that no authority issued is one of everybody or of nobody.
    let empty = edge("wiki", "shop", "wiki.internal.example.com:443", json!({"mutual_tls": {}}));
    let on = depends("`GET https://wiki.internal.example.com/admin` the effect of `mutual_tls`");
    assert_eq!(answer(&[needs_login(), empty, route("wiki", "shop", "/", json!({}))]), on);
    let disabled =
        edge("wiki", "shop", "wiki.internal.example.com:443", json!({"tls_termination": {"enabled": false}}));
    let (answered, told) = answer(&[needs_login(), disabled, route("wiki", "shop", "/", login())]);
    assert_eq!(answered, ProofAnswer::Depends);
    assert!(told.iter().all(|it| it.contains("does not terminate TLS for `oidc`")), "{told:?}");
}

#[test]
fn a_policy_that_cannot_refuse_somebody_changes_no_answer() {
    let office = || invariant(json!({"only_from": ["ipp_office"]}));
    let one = |invariant: Given, action: &str| {
        let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
        let policies = json!({"policies": {"inbound": [{"expressions": ["a"], "actions": [{"type": action}]}]}});
        answer(&[invariant, wiki, route("wiki", "shop", "/", policies)]).0
    };
    for action in ["log", "add-headers", "remove-headers", "compress-response", "rate-limit", "circuit-breaker"] {
        assert_eq!(one(needs_login(), action), ProofAnswer::Refuted, "{action}");
        assert_eq!(one(office(), action), ProofAnswer::Refuted, "{action}");
    }
    for action in ["deny", "jwt-validation", "custom-response"] {
        assert_eq!(one(needs_login(), action), ProofAnswer::Depends, "{action}");
        assert_eq!(one(office(), action), ProofAnswer::Depends, "{action}");
    }
    let policies = || invariant(json!({"requires_any": ["policies"]}));
    assert_eq!(one(policies(), "add-headers"), ProofAnswer::Refuted);
    assert_eq!(one(policies(), "rate-limit"), ProofAnswer::Refuted);
    assert_eq!(one(policies(), "deny"), ProofAnswer::Depends);
}

#[test]
fn an_edge_that_passes_tls_through_applies_no_login() {
    let through = json!({"tls_termination": {"terminate_at": "upstream"}});
    let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", through);
    let open =
        "`GET https://wiki.internal.example.com/admin` reaches the backend `bkd_1` without `oidc` or `mutual_tls`";
    assert_eq!(answer(&[needs_login(), wiki, route("wiki", "shop", "/", json!({}))]), refuted(open));
}

#[test]
fn addresses_outside_of_the_policies_must_not_reach_a_backend() {
    let office = || invariant(json!({"only_from": ["ipp_office", "ipp_vpn"]}));
    let shop = || edge("shop", "shop", "shop.example.com:443", json!({}));
    let from = |ids: Value| json!({"ip_restriction": {"ip_policy_ids": ids}});
    let one = |more: Value| answer(&[office(), shop(), route("shop", "shop", "/", more)]);
    assert_eq!(one(from(json!(["ipp_office"]))), proven());
    let at = "`GET https://shop.example.com/` reaches the backend `bkd_1` from";
    assert_eq!(one(json!({})), refuted(&format!("{at} any address")));
    let other = format!("{at} the addresses of the IP policy `ipp_home`");
    assert_eq!(one(from(json!(["ipp_office", "ipp_home"]))), refuted(&other));
    let (answered, told) = one(from(json!([])));
    assert_eq!((answered, told.len()), (ProofAnswer::Depends, 1));
    // A restriction of all endpoints restricts this one.
    let all = |enforced: bool| {
        let spec = json!({"type": "endpoints", "enforced": enforced, "ip_policy_ids": ["ipp_vpn"]});
        (Key::new(Kind::IpRestriction, Id::new("ipx_1")), "platform", spec)
    };
    assert_eq!(answer(&[office(), all(true), shop(), route("shop", "shop", "/", json!({}))]), proven());
    let (key, source, spec) = all(true);
    let wider = (key, source, with(spec, json!({"ip_policy_ids": ["ipp_vpn", "ipp_home"]})));
    let added = refuted(&format!("{other}, which an `IpRestriction` admits"));
    assert_eq!(answer(&[office(), wider, shop(), route("shop", "shop", "/", json!({}))]), added);
    assert_eq!(answer(&[office(), all(false), shop(), route("shop", "shop", "/", json!({}))]).0, ProofAnswer::Refuted);
}

#[test]
fn routes_of_a_source_end_at_its_backends() {
    let own = || invariant(json!({"scope": {"sources": ["shop"]}, "backends": ["bkd_shop*", "bkd_cdn"]}));
    let to = |source: &'static str, backend: &str| {
        let route = route("shop", source, "/", json!({"backend": {"backend_id": backend}}));
        answer(&[own(), edge("shop", "platform", "shop.example.com:443", json!({})), route])
    };
    assert_eq!((to("shop", "bkd_shop_1"), to("shop", "bkd_cdn")), (proven(), proven()));
    assert_eq!(to("other", "bkd_1").0, ProofAnswer::Unused);
    let other = "`GET https://shop.example.com/` reaches the backend `bkd_cdn2`, not `bkd_shop*` or `bkd_cdn`";
    assert_eq!(to("shop", "bkd_cdn2"), refuted(other));
    // A policy decides whether requests reach it.
    let policy = denying(json!(["a"]));
    let shop = edge("shop", "platform", "shop.example.com:443", json!({}));
    let on = depends("`GET https://shop.example.com/` the effect of `policies`");
    assert_eq!(answer(&[own(), shop, route("shop", "shop", "/", policy)]), on);
}

#[test]
fn every_host_has_a_version_of_tls() {
    let newer = || invariant(json!({"min_tls_version": "1.2"}));
    let one =
        |hostport: &str, tls: Value| answer(&[newer(), edge("a", "shop", hostport, json!({"tls_termination": tls}))]);
    assert_eq!((one("a.example.com:443", json!({})), one("a.example.com:443", Value::Null)), (proven(), proven()));
    assert_eq!(one("a.example.com:443", json!({"min_version": "1.3"})), proven());
    let old = "`GET https://a.example.com/` can use TLS 1.1, which is older than 1.2";
    assert_eq!(one("a.example.com:443", json!({"min_version": "1.1"})), refuted(old));
    assert_eq!(one("a.example.com:80", json!({})).0, ProofAnswer::Refuted);
    let both = edge("a", "shop", "", json!({"hostports": ["a.example.com:443", "a.example.com:80"]}));
    assert_eq!(change(&[], &[newer(), both]), ["a/hostports/1"]);
    for unknown in [json!({"enabled": false}), json!({"terminate_at": "upstream"})] {
        assert_eq!(one("a.example.com:443", unknown).0, ProofAnswer::Depends);
    }
}

#[test]
fn requests_that_no_url_is_known_for_are_not_proven() {
    let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
    let of = |matched: &str| {
        let state = state(&[needs_login(), wiki.clone(), route("wiki", "shop", matched, json!({}))]);
        let proofs = prove(&state, now());
        let told: Vec<String> = proofs.iter().flat_map(|proof| &proof.breaches).map(told).collect();
        (proofs.iter().map(Proof::answer).collect::<Vec<_>>(), told)
    };
    let reaches = "reaches the backend `bkd_1` without `oidc` or `mutual_tls`";
    // Clients encode these letters, and resolve segments of dots.
    for path in ["/admin/a b", "/admin/é", "/admin/{id}", "/admin/../b"] {
        let request = format!("`GET https://wiki.internal.example.com{path}*`");
        let told = format!("{request} whether a client can send such a request, which {reaches}");
        assert_eq!(of(path), (vec![ProofAnswer::Depends], vec![told]), "{path}");
    }
    // They send these as they are.
    for path in ["/admin/caf%C3%A9", "/admin/a|b"] {
        let told = format!("`GET https://wiki.internal.example.com{path}` {reaches}");
        assert_eq!(of(path), (vec![ProofAnswer::Refuted], vec![told]), "{path}");
    }
}

#[test]
fn an_exemption_counts_until_it_expires() {
    let wiki = edge("wiki", "shop", "*.internal.example.com:443", json!({}));
    let exempt = |expires: &str| {
        let exemption =
            json!({"hosts": ["status.internal.example.com"], "owner": "o", "reason": "r", "expires": expires});
        let scope = json!({"hosts": ["*.internal.example.com"]});
        let spec = json!({"scope": scope, "requires_any": ["oidc"], "exemptions": [exemption]});
        let route = route("wiki", "shop", "status.internal.example.com/", json!({}));
        answer(&[invariant(spec), wiki.clone(), route])
    };
    assert_eq!(exempt("2027-01-15"), proven());
    let open = "`GET https://status.internal.example.com/` reaches the backend `bkd_1` without `oidc`";
    assert_eq!(exempt("2027-01-14"), refuted(open));
}

/// Judges a change of some resources. What is given later replaces what is given first.
fn change(before: &[Given], after: &[Given]) -> Vec<String> {
    let changed: BTreeSet<Key> = before
        .iter()
        .chain(after)
        .filter(|given| before.contains(given) != after.contains(given))
        .map(|(key, ..)| key.clone())
        .collect();
    let (before, after) = (state(before), state(after));
    match enforce(&before, &after, &changed, now()) {
        Ok(doubts) => {
            doubts.into_iter().map(|(key, fault)| format!("{}? {}", key.id, fault.code.info().name)).collect()
        }
        Err((first, others)) => {
            let all = [vec![first], others].concat().into_iter();
            all.map(|refusal| {
                format!(
                    "{}{}",
                    refusal.key.id,
                    refusal.faults.first().map(|it| it.path.to_string()).unwrap_or_default()
                )
            })
            .collect()
        }
    }
}

#[test]
fn a_change_is_refused_if_it_breaks_an_invariant() {
    let wiki = edge("wiki", "docs", "wiki.internal.example.com:443", json!({}));
    let (all, admin) = (route("wiki", "docs", "/", json!({})), route("wiki", "docs", "/admin", login()));
    let good = vec![needs_login(), wiki.clone(), all.clone(), admin.clone()];
    assert!(change(&[], &good).is_empty() && change(&good, &good).is_empty());
    let open = route("wiki", "docs", "/admin", json!({}));
    assert_eq!(change(&good, &[needs_login(), wiki.clone(), all.clone(), open.clone()]), ["wiki/admin"]);
    // The route that takes the requests of a deleted one is to blame.
    assert_eq!(change(&good, &[needs_login(), wiki.clone(), all.clone()]), ["wiki/"]);
    // An invariant that does not hold is not accepted.
    let broken = [wiki.clone(), all.clone(), open.clone()];
    assert_eq!(change(&broken, &[needs_login(), wiki.clone(), all.clone(), open.clone()]), ["inv_1"]);
    // Without the invariant, nothing is refused.
    assert!(change(&good, &broken).is_empty());
    // An edge moves into the scope.
    let outside = edge("wiki", "docs", "wiki.example.com:443", json!({}));
    let before = [needs_login(), outside, all.clone(), open.clone()];
    assert_eq!(change(&before, &[needs_login(), wiki, all, open]), ["wiki"]);
}

#[test]
fn what_was_broken_before_does_not_stop_a_change() {
    let exemption = json!({"path_prefixes": ["/admin"], "owner": "o", "reason": "r", "expires": "2027-01-01"});
    let expired = invariant(json!({"requires_any": ["oidc"], "exemptions": [exemption]}));
    let wiki = edge("wiki", "docs", "wiki.example.com:443", json!({}));
    let routes = |first: Value, second: Value| {
        let routes = [route("wiki", "docs", "/admin/a", first), route("wiki", "docs", "/admin/b", second)];
        [vec![expired.clone(), wiki.clone()], routes.to_vec()].concat()
    };
    let broken = routes(json!({}), json!({}));
    assert!(change(&broken, &routes(login(), json!({}))).is_empty(), "one after the other");
    assert!(change(&broken, &routes(json!({"description": "d"}), json!({}))).is_empty());
    assert_eq!(change(&routes(login(), json!({})), &routes(json!({}), json!({}))), ["wiki/admin/a"]);
}

#[test]
fn what_was_broken_before_does_not_get_worse() {
    let shop =
        |tls: &str| edge("shop", "shop", "shop.example.com:443", json!({"tls_termination": {"min_version": tls}}));
    let change = |requires: Value, before: Given, after: Given| {
        let with = |given: Given| match given.0.kind {
            Kind::HttpsEdge => vec![invariant(requires.clone()), given, route("shop", "shop", "/", json!({}))],
            _ => vec![invariant(requires.clone()), shop("1.2"), given],
        };
        change(&with(before), &with(after)).len()
    };
    let from = |ids: Value| route("shop", "shop", "/", json!({"ip_restriction": {"ip_policy_ids": ids}}));
    let any = || route("shop", "shop", "/", json!({}));
    let office = || json!({"only_from": ["ipp_office"]});
    let (partner, both) = (|| from(json!(["ipp_partner"])), || from(json!(["ipp_partner", "ipp_home", "ipp_office"])));
    assert_eq!(change(office(), partner(), any()), 1);
    assert_eq!(change(office(), partner(), both()), 1);
    assert_eq!(change(office(), partner(), from(json!(["ipp_home"]))), 1);
    assert_eq!(change(office(), partner(), from(json!([]))), 1, "nobody can tell that it is no worse");
    assert_eq!(change(office(), any(), both()) + change(office(), both(), partner()), 0, "half of a repair");
    let to = |backend: &str| route("shop", "shop", "/", json!({"backend": {"backend_id": backend}}));
    let own = || json!({"backends": ["bkd_shop"]});
    assert_eq!(change(own(), to("bkd_1"), to("bkd_2")), 1);
    let described = route("shop", "shop", "/", json!({"compression": {}}));
    assert_eq!(change(own(), to("bkd_1"), described), 0);
    let newer = || json!({"min_tls_version": "1.3"});
    assert_eq!(change(newer(), shop("1.1"), shop("1.0")), 1);
    assert_eq!(change(newer(), shop("1.1"), shop("1.2")), 0, "half of a repair");
}

#[test]
fn what_was_broken_for_preflights_alone_is_not_opened_for_all_others() {
    let wiki = edge("wiki", "docs", "wiki.internal.example.com:443", json!({}));
    let with = |more: Value| vec![needs_login(), wiki.clone(), route("wiki", "docs", "/", more)];
    let lenient = with(json!({"oidc": {"options_passthrough": true}}));
    assert_eq!(change(&lenient, &with(json!({}))), ["wiki/"]);
    assert!(change(&with(json!({})), &lenient).is_empty(), "half of a repair");
}

#[test]
fn a_doubt_is_told_or_refused() {
    let policy = denying(json!(["a"]));
    let wiki = edge("wiki", "docs", "wiki.example.com:443", json!({}));
    let with = |unproven: &str, more: Value| {
        let invariant = invariant(json!({"requires_any": ["oidc"], "unproven": unproven}));
        vec![invariant, wiki.clone(), route("wiki", "docs", "/", more)]
    };
    assert_eq!(change(&with("warn", login()), &with("warn", policy.clone())), ["wiki/? INVARIANT_UNPROVEN"]);
    assert_eq!(change(&with("deny", login()), &with("deny", policy.clone())), ["wiki//policies"]);
    assert!(change(&with("deny", policy.clone()), &with("deny", policy)).is_empty());
}

#[test]
fn a_restriction_of_all_endpoints_concerns_every_route() {
    let office = invariant(json!({"only_from": ["ipp_office"]}));
    let shop = edge("shop", "shop", "shop.example.com:443", json!({}));
    let all = |ids: Value| {
        let spec = json!({"type": "endpoints", "enforced": true, "ip_policy_ids": ids});
        let restriction = (Key::new(Kind::IpRestriction, Id::new("ipx_1")), "platform", spec);
        vec![office.clone(), restriction, shop.clone(), route("shop", "shop", "/", json!({}))]
    };
    let wider = change(&all(json!(["ipp_office"])), &all(json!(["ipp_office", "ipp_home"])));
    assert_eq!(wider, ["ipx_1"]);
    assert_eq!(change(&all(json!(["ipp_office"])), &all(json!(["ipp_home"]))), ["ipx_1"], "another policy");
}

#[test]
fn only_an_effective_restriction_of_endpoints_concerns_every_route() {
    let office = || invariant(json!({"only_from": ["ipp_office"]}));
    let with = |spec: Value| {
        let restriction = (Key::new(Kind::IpRestriction, Id::new("ipx_1")), "platform", spec);
        let shop = edge("shop", "shop", "shop.example.com:443", json!({}));
        vec![office(), restriction, shop, route("shop", "shop", "/", json!({}))]
    };
    let of = |traffic: &str, enforced: bool, description: &str| {
        let ids = json!(["ipp_office"]);
        with(json!({"type": traffic, "enforced": enforced, "ip_policy_ids": ids, "description": description}))
    };
    assert!(change(&of("api", true, ""), &of("api", false, "")).is_empty());
    assert!(change(&of("endpoints", false, ""), &of("endpoints", false, "d")).is_empty());
    assert_eq!(change(&of("endpoints", true, ""), &of("endpoints", false, "d")), ["ipx_1"]);
}

#[test]
fn a_route_that_no_longer_takes_requests_is_to_blame_for_what_becomes_of_them() {
    let wiki = edge("wiki", "docs", "wiki.internal.example.com:443", json!({}));
    let policy = denying(json!(["a"]));
    let strict = || {
        let scope = json!({"path_prefixes": ["/admin"]});
        invariant(json!({"scope": scope, "requires_any": ["oidc"], "unproven": "deny"}))
    };
    let with = |admin: Value| {
        let all = route("wiki", "docs", "/", policy.clone());
        vec![strict(), wiki.clone(), all, route("wiki", "docs", "/admin", with(login(), admin))]
    };
    // The flaw is at a field of the other route, which does not change.
    assert_eq!(change(&with(json!({})), &with(json!({"match": "/other"}))), ["wiki/admin"]);
    let deleted: Vec<Given> = with(json!({})).into_iter().take(3).collect();
    assert_eq!(change(&with(json!({})), &deleted), ["wiki/"]);
}

#[test]
fn an_edge_that_moves_to_a_source_meets_the_invariants_about_it() {
    let tls = invariant(json!({"scope": {"sources": ["bank"]}, "min_tls_version": "1.2"}));
    let edge = |source: &'static str| {
        edge("old", source, "old.example.com:443", json!({"tls_termination": {"min_version": "1.1"}}))
    };
    assert_eq!(change(&[tls.clone(), edge("shop")], &[tls, edge("bank")]), ["old/tls_termination/min_version"]);
}

#[test]
fn each_of_many_invariants_is_judged_for_its_requests_alone() {
    let many = ["/", "/a", "/a/b", "/b"].map(|prefix| {
        let spec = json!({"description": "d", "scope": {"path_prefixes": [prefix]}, "requires_any": ["oidc"]});
        (Key::new(Kind::Invariant, Id::new(prefix)), "platform", spec)
    });
    let wiki = || [edge("wiki", "shop", "*.example.com:443", json!({})), route("wiki", "shop", "/b", login())];
    let with = |more: Value| [many.to_vec(), wiki().to_vec(), vec![route("wiki", "shop", "/a/b", more)]].concat();
    let (open, closed) = (with(json!({})), with(login()));
    let opened = state(&open);
    let answers = prove(&opened, now()).into_iter().map(|it| (it.entry.key.id.to_string(), it.answer()));
    let expected = [("/", true), ("/a", true), ("/a/b", true), ("/b", false)]
        .map(|(prefix, is_open)| (prefix.to_owned(), if is_open { ProofAnswer::Refuted } else { ProofAnswer::Proven }));
    assert_eq!(answers.collect::<Vec<_>>(), expected);
    assert_eq!(change(&closed, &open), ["wiki/a/b"]);
}

#[test]
fn a_proof_counts_classes() {
    let scope = json!({"hosts": ["*.internal.example.com"], "path_prefixes": ["/admin"]});
    let exemption = json!({"path_prefixes": ["/admin/health"], "owner": "o", "reason": "r", "expires": "2027-12-31"});
    let spec = json!({"scope": scope, "requires_any": ["oidc"], "exemptions": [exemption]});
    let wiki = edge("wiki", "shop", "wiki.internal.example.com:443", json!({}));
    let state = state(&[invariant(spec), wiki, route("wiki", "shop", "/", login())]);
    let counts: Vec<_> = prove(&state, now()).iter().map(|it: &Proof<'_>| (it.classes, it.exempt)).collect();
    assert_eq!(counts, [(1, 1)]);
}

#[test]
fn a_change_that_is_too_large_to_judge_is_refused_and_one_that_only_adds_matches_is_judged() {
    let needs_login = invariant(json!({"scope": {"hosts": ["*.example.com"]}, "requires_any": ["oidc"]}));
    let given = |of_hosts: &str, count: usize| {
        let all = (0..200).map(|n| route("wiki", "shop", &format!("/a{n}"), login()));
        let own = (0..count).map(|n| route("wiki", "shop", &format!("h{n}.example.com{of_hosts}"), login()));
        let wiki = edge("wiki", "shop", "*.example.com:443", json!({}));
        [needs_login.clone(), wiki].into_iter().chain(all).chain(own).collect::<Vec<Given>>()
    };
    let before = given("/a", 0);
    assert!(change(&before, &given("/b", 200)).is_empty(), "each host has its own match and nothing else");
    let large = given("/a", 200);
    assert_eq!(answer(&large), proven(), "one state has few classes");
    let refused = change(&before, &large);
    assert!(refused.len() == 1 && refused.iter().all(|it| it.starts_with("wiki")), "{refused:?}");
}
