//! From files alone, an answer is certain only if nothing that they do not show could change it: neither a refutation, nor a proof, nor
//! that a plan is a safe refactoring (D107, D113, D120).

use super::guessed_identities::{DERIVED, PEM, edge, expecting, inline, route};
use super::invariants::said;
use super::surrounding_proofs::answers;
use crate::support::program::{Folder, has};

/// Every request to `/admin` reaches the backend `bkd_ok`.
const ADMIN: &str = "scope: {path_prefixes: [/admin]}, backends: [bkd_ok]";
/// Every request to this host does.
const HOST_A: &str = "scope: {hosts: [a.example.com]}, backends: [bkd_ok]";
const A: &str = "a.example.com:443";
const ALL: &str = "*.example.com:443";

/// What surrounds the manifests of the source `own`, by the names of their folders.
type Others = Vec<(&'static str, String)>;

fn delegating(sources: &[&str]) -> String {
    let entries = sources.iter().map(|source| format!("{{source: {source}, path_prefix: /}}"));
    format!("  delegates_to: [{}]\n", entries.collect::<Vec<_>>().join(", "))
}

/// An edge that the invariants do not mind.
fn elsewhere() -> String {
    edge("name: own", "z.example.org:443", &inline("bkd_ok"))
}

fn document(kind: &str, name: &str, spec: &str) -> String {
    format!("---\napiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
}

fn authority() -> String {
    document("CertificateAuthority", "x", &format!("ca_pem: {PEM:?}"))
}

fn folder(own: &str, others: &[(&str, String)]) -> Folder {
    let folder = Folder::new();
    folder.write("own/own.yaml", own);
    for (name, text) in others {
        folder.write(&format!("{name}/{name}.yaml"), text);
    }
    folder
}

/// The answer about an invariant of the source `own`, beside other folders in their order.
#[track_caller]
fn assert_answer(invariant: &str, own: &str, others: &Others, expected: &str, on: &str) {
    let folder = folder(own, others);
    folder.write("own/invariant.yaml", &document("Invariant", "holds", &format!("description: it holds, {invariant}")));
    let with: Vec<String> = others.iter().map(|(name, _)| format!(" --with {name}")).collect();
    let found = answers(&folder, &format!("own --source own{}", with.concat()));
    let (_, answer, unseen) = found.first().cloned().unwrap_or_default();
    assert!(answer == expected && unseen.contains(on), "{with:?}: {answer}, not {expected}: {unseen}");
}

/// The answer beside other folders in their order and in the opposite one.
#[track_caller]
fn assert_answer_in_any_order(invariant: &str, own: &str, mut others: Others, expected: &str, on: &str) {
    assert_answer(invariant, own, &others, expected, on);
    others.reverse();
    assert_answer(invariant, own, &others, expected, on);
}

/// An edge of the source with a host, which breaks the invariants and leaves all of its paths to `q` and `r`.
fn open(name: &str, hostport: &str) -> String {
    edge(&format!("name: {name}"), hostport, &(delegating(&["q", "r"]) + &inline("bkd_bad")))
}

/// Two folders with a surrounding edge `shop`, on the first of which all is well.
fn shops(first: &str, second: &str) -> Others {
    let shop = |hostport: &str| edge("name: shop", hostport, &inline("bkd_ok"));
    vec![("q", shop(first)), ("r", shop(second))]
}

/// A surrounding route to `/admin` that an edge `shop` of another folder has, too.
fn of_either_shop(named: &str) -> Others {
    let other = edge("name: shop", "b.example.com:443", &delegating(&["r"]));
    vec![("q", route("name: adm", named, "/admin", "bkd_ok")), ("r", other)]
}

/// A route of one name in two folders, of which the state has the first one.
fn doubled_route() -> Others {
    let guest = |path: &str| route("name: g", "shop", path, "bkd_ok");
    vec![("q", guest("/b")), ("r", guest("/admin"))]
}

#[test]
fn nothing_is_refuted_by_a_request_that_something_unseen_could_take() {
    let shop = open("shop", A);
    let by_name = "which of the edges with the name `shop` has the route `adm`";
    assert_answer(ADMIN, &shop, &of_either_shop("shop"), "depends", by_name);
    assert_answer(ADMIN, &shop, &of_either_shop(DERIVED), "depends", "which edge has the ID");
    assert_answer(ADMIN, &shop, &doubled_route(), "depends", "HttpsEdgeRoute `shop/g`, which the surrounding");
    let wild = open("wild", ALL);
    assert_answer(HOST_A, &wild, &shops("z.example.com:443", A), "depends", "HttpsEdge `shop`, which the surrounding");
    let guest = route("name: g", "edghts_zz", "/x", "bkd_ok");
    assert_answer(HOST_A, &(wild + &guest), &Vec::new(), "depends", "the edge `edghts_zz`, which no manifest");
    let restriction = |enforced: bool| {
        let spec = format!("type: endpoints, enforced: {enforced}, ip_policy_ids: [ipp_o]");
        document("IpRestriction", "x", &spec)
    };
    let both = vec![("q", restriction(false)), ("r", restriction(true))];
    assert_answer("only_from: [ipp_o]", &elsewhere(), &both, "depends", "IpRestriction `x`");
}

#[test]
fn a_request_that_nothing_unseen_could_take_still_refutes() {
    let shop = open("shop", A);
    // The unseen routes have other paths, and the unseen edges other hosts, or hosts that are less close.
    let other_paths = "scope: {path_prefixes: [/other]}, backends: [bkd_ok]";
    assert_answer_in_any_order(other_paths, &shop, of_either_shop("shop"), "refuted", "");
    assert_answer_in_any_order(other_paths, &shop, doubled_route(), "refuted", "");
    assert_answer_in_any_order(HOST_A, &open("own", A), shops("y.example.org:443", "z.example.org:443"), "refuted", "");
    assert_answer_in_any_order(HOST_A, &open("own", A), shops("z.example.org:443", ALL), "refuted", "");
    // Of the hosts that one route takes, only one is unsure.
    for hosts in [[A, "z.example.com:443"], ["0.example.com:443", A]] {
        let both = open("own", &hosts.join("', '"));
        assert_answer("backends: [bkd_ok]", &both, &shops("x.example.org:443", A), "refuted", "");
    }
}

#[test]
fn nothing_is_proven_by_a_surrounding_route_that_may_lack_consent() {
    let others = |delegates: &str| {
        let shop = edge("name: qa", A, &(delegates.to_owned() + &inline("bkd_bad")));
        vec![("q", shop), ("r", route("name: adm", "qa", "/admin", "bkd_ok"))]
    };
    let on = "the surrounding route `adm`, which the edge `qa` delegates to no other folder of --with";
    let to_pub = "  delegates_to: [{source: r, path_prefix: /pub/}]\n";
    for delegates in ["", to_pub, delegating(&["own"]).as_str()] {
        assert_answer_in_any_order(ADMIN, &elsewhere(), others(delegates), "depends", on);
    }
    assert_answer_in_any_order(ADMIN, &elsewhere(), others(&delegating(&["r"])), "proven", "");
    // One folder is taken for one source.
    let together = others("").into_iter().map(|(_, text)| text).collect();
    assert_answer_in_any_order(ADMIN, &elsewhere(), vec![("q", together)], "proven", "");
}

#[test]
fn nothing_is_proven_by_surrounding_edges_that_overlap_without_consent() {
    let others = |hostport: &str, delegates: &str| {
        let wide = edge("name: qw", hostport, &(delegates.to_owned() + &inline("bkd_bad")));
        vec![("q", wide), ("r", edge("name: ra", A, &inline("bkd_ok")))]
    };
    let on = "has the hosts that both have, as neither delegates `/`";
    assert_answer_in_any_order(HOST_A, &elsewhere(), others(ALL, ""), "depends", on);
    assert_answer_in_any_order(HOST_A, &elsewhere(), others(ALL, &delegating(&["own"])), "depends", on);
    assert_answer_in_any_order(HOST_A, &elsewhere(), others(ALL, &delegating(&["r"])), "proven", "");
    // Hosts belong to one source on all ports.
    let other_port = others("a.example.com:8443", "");
    assert_answer_in_any_order(HOST_A, &elsewhere(), other_port, "depends", on);
    let together = others(ALL, "").into_iter().map(|(_, text)| text).collect();
    assert_answer_in_any_order(HOST_A, &elsewhere(), vec![("q", together)], "proven", "");
}

#[test]
fn nothing_is_proven_by_a_surrounding_edge_whose_certificate_authority_is_ambiguous() {
    let mutual = "  mutual_tls: {certificate_authority_ids: [x]}\n".to_owned();
    let locked = edge("name: e1", A, &(mutual + &inline("bkd_ok")));
    let others = |count: usize| {
        let mut others = vec![("q", locked.clone()), ("r", authority()), ("r2", authority())];
        others.truncate(1 + count);
        others
    };
    let on = "HttpsEdge `e1`, which refers to the CertificateAuthority `x` of several sources";
    assert_answer_in_any_order(HOST_A, &open("o", ALL), others(2), "depends", on);
    assert_answer_in_any_order(HOST_A, &open("o", ALL), others(1), "proven", "");
    // Its own one comes first.
    let mut own_one = others(2);
    own_one[0].1 += &authority();
    assert_answer_in_any_order(HOST_A, &open("o", ALL), own_one, "proven", "");
}

#[test]
fn surrounding_manifests_may_be_of_no_source_in_the_scope() {
    let others = || vec![("q", edge("name: shop", A, &inline("bkd_ok")))];
    let of = |source: &str| format!("scope: {{sources: [{source}]}}, backends: [bkd_ok]");
    let on = "whether the surrounding manifests are of a source in its scope";
    assert_answer_in_any_order(&of("q"), &elsewhere(), others(), "depends", on);
    assert_answer_in_any_order(&of("own"), &elsewhere(), others(), "proven", "");
}

#[test]
fn a_test_of_a_request_that_something_unseen_could_take_is_skipped() {
    let bad = edge("name: qa", A, &inline("bkd_bad"));
    let without_consent = || vec![("q", bad.clone()), ("r", route("name: adm", "qa", "/admin", "bkd_ok"))];
    for (own, others, on) in [
        (elsewhere(), without_consent(), "depends on the surrounding route `adm`"),
        // The host is that of the source alone, and yet one of the routes is on its edge.
        (open("shop", A), doubled_route(), "depends on HttpsEdgeRoute `shop/g`"),
    ] {
        let folder = folder(&own, &others);
        let run = |path: &str| {
            folder.write("own/test.yaml", &expecting(&format!("https://a.example.com{path}"), "bkd_bad"));
            folder.ok("test own --source own --with q --with r")
        };
        has(&run("/admin"), &["skipped", on, "0 passed, 1 skipped"]);
        has(&run("/other"), &["1 passed"]);
    }
}

#[test]
fn a_behaviour_diff_says_what_it_depends_on() {
    let shop = |hostport: &str| edge("name: shop", hostport, &(delegating(&["own"]) + &inline("bkd_ok")));
    let others = vec![("q", shop(A)), ("r", shop("b.example.com:443"))];
    let own = |name: &str, backend: &str| route(&format!("name: {name}"), "shop", "/admin", backend);
    let folder = folder(&own("adm", "bkd_ok"), &others);
    let diff = |new: &str, with: &str| {
        folder.write("new/own.yaml", new);
        folder.ok(&format!("diff own new --source own --behaviour{with}")).out
    };
    let on = "depends on which of the edges with the name `shop` has the route";
    let (one, both) = (" --with q", " --with q --with r");
    for (new, told) in [
        (own("adm", "bkd_bad"), "1 change in how requests are treated."),
        (own("renamed", "bkd_ok"), "no request is treated differently."),
    ] {
        let guessed = diff(&new, both);
        for part in [told, "That depends on what the manifests do not show.", on] {
            assert!(guessed.contains(part), "{part}: {guessed}");
        }
        assert!(!guessed.contains("refactoring"), "{guessed}");
        let sure = diff(&new, one);
        assert!(sure.contains(told) && !sure.contains("depends on"), "{sure}");
    }
    assert!(diff(&own("renamed", "bkd_ok"), one).contains("a safe refactoring"));
    // What changes elsewhere depends on none of that.
    let more = own("adm", "bkd_ok") + &elsewhere();
    let apart = diff(&more, both);
    assert!(apart.contains("1 change in how") && !apart.contains("depends on"), "{apart}");
}

#[test]
fn a_route_that_may_be_on_an_edge_with_tls_has_all_modules() {
    let shop = |hostport: &str, more: &str| edge("name: shop", hostport, &(delegating(&["own"]) + more));
    let passing = "  tls_termination: {terminate_at: upstream}\n";
    let others = [("q", shop(A, passing)), ("r", shop("b.example.com:443", ""))];
    for named in ["shop", "other/shop", DERIVED] {
        let own = route("name: r", &format!("{named}, compression: {{}}"), "/x", "bkd_ok");
        let folder = folder(&own, &others);
        folder.ok("validate own --source own --with q --with r");
        let alone = folder.run("validate own --source own --with q");
        assert!(alone.code == 3 && alone.err.contains("NOT_ALLOWED"), "{named}: {}", alone.all());
    }
}

#[test]
fn an_edge_that_delegates_to_its_own_source_has_no_consent_to_surrounding_hosts() {
    let own = |source: &str| edge("name: own", ALL, &(delegating(&[source]) + &inline("bkd_ok")));
    let others = [("q", edge("name: qa", "a.example.com:8443", &inline("bkd_ok")))];
    folder(&own("q"), &others).ok("validate own --source own --with q");
    let refused = folder(&own("own"), &others).run("validate own --source own --with q");
    assert!(refused.code == 3 && refused.err.contains("NOT_DELEGATED"), "{}", refused.all());
}

#[test]
fn messages_call_surrounding_manifests_another_folder() {
    let id = "id: edghts_6U2onPIxc8W2vkFZqNaMucAdGt5";
    for (own, other) in [
        (edge(&format!("name: own, {id}"), "z.example.com:443", ""), edge(&format!("name: shop, {id}"), A, "")),
        (edge("name: shop", A, ""), edge("name: shop", A, "")),
    ] {
        let run = folder(&own, &[("q", other)]).run("validate own --source own --with q");
        let told = said(&run.err);
        assert!(run.code == 3 && told.contains("another folder of `--with`"), "{}", run.all());
        assert!(!told.contains("(surrounding)"), "{told}");
    }
}
