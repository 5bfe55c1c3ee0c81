//! Invariants of one source count for all: for manifests of others, requests and rollbacks (D120).

use edgewright::resources::now;
use serde_json::{Value, json};

use crate::support::{
    program::{CONFIG, Folder, REPOSITORY, Run, finish, until},
    sources::{in_state, status},
    users::{through, url},
};

/// The invariants of the platform team.
pub(super) fn platform(more: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {{name: admin-login}}\nspec:\n  \
         description: Nobody opens an admin page without a login\n  \
         scope: {{hosts: ['*.example.com'], path_prefixes: [/admin]}}\n  requires_any: [oidc, saml]\n{more}"
    )
}

/// An edge with an admin page; `modules` are those of its route.
pub(super) fn shop(modules: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  \
         hostports: ['shop.example.com:443']\n  routes:\n    - name: admin\n      match_type: path_prefix\n      \
         match: /admin\n      backend: {{backend_id: bkd_shop}}\n{modules}"
    )
}

pub(super) const LOGIN: &str =
    "      oidc: {issuer: 'https://id.example.com', client_id: shop, client_secret: {from_file: secret}}\n";

const POLICY: &str =
    "      policies: {inbound: [{name: staff, expressions: [\"req.Method == 'GET'\"], actions: [{type: deny}]}]}\n";

pub(super) fn said(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Two folders: that of the platform team, and that of the shop with a login.
pub(super) fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("platform/invariants.yaml", &platform(""));
    folder.write("shop/secret", "hidden-secret");
    folder.write("shop/shop.yaml", &shop(LOGIN));
    folder
}

#[test]
fn a_plan_that_breaks_the_invariant_of_another_source_is_refused_at_its_line() {
    let folder = folder();
    folder.ok("reconcile platform --source platform");
    folder.ok("reconcile shop --source shop");
    folder.write("shop/shop.yaml", &shop(""));
    for verb in ["plan", "reconcile"] {
        let run = folder.run(&format!("{verb} shop --source shop"));
        assert_eq!(run.code, 3, "{}", run.all());
        let said = said(&run.err);
        for part in [
            "ERR_EDGEWRIGHT_INVARIANT_BROKEN",
            "shop/shop.yaml:7:7",
            "`GET https://shop.example.com/admin` reaches the backend `bkd_shop` without `oidc` or `saml`",
            "this breaks the invariant `admin-login` of source `platform` (Nobody opens an admin page without a login): `GET",
            "add `oidc` or `saml` to the route, or ask the owner of source `platform` for an exemption",
            "way: edge `shop` → route `shop/admin` (path_prefix /admin) → backend `bkd_shop`",
        ] {
            assert!(said.contains(part), "{part}\n{said}");
        }
        assert!(!said.contains("hidden-secret"));
    }
    // The deletion of the invariant is a matter of its source.
    folder.ok("destroy --source platform --confirm platform");
    folder.ok("reconcile shop --source shop");
}

#[test]
fn an_invariant_that_does_not_hold_is_refused_at_its_line() {
    let folder = folder();
    folder.write("shop/shop.yaml", &shop(""));
    folder.ok("reconcile shop --source shop");
    let run = folder.run("reconcile platform --source platform");
    assert_eq!(run.code, 3, "{}", run.all());
    let said = said(&run.err);
    assert!(said.contains("INVARIANT_BROKEN") && said.contains("platform/invariants.yaml:5:3"), "{said}");
    assert!(said.contains("or add an entry to `exemptions` way: edge `shop`"), "{said}");
    let alone = folder.run("validate platform");
    assert_eq!(alone.code, 0, "{}", alone.all());
    // Together, the manifests show it without a store.
    let both = folder.run("validate platform shop");
    assert_eq!((both.code, both.err.contains("shop/shop.yaml")), (3, true), "{}", both.all());
    let with = folder.run("validate shop --with platform");
    assert_eq!((with.code, with.err.contains("INVARIANT_BROKEN")), (3, true), "{}", with.all());
}

#[test]
fn a_request_and_a_rollback_that_break_an_invariant_are_refused() {
    let folder = folder();
    folder.write("shop/shop.yaml", &shop(""));
    folder.ok("reconcile shop --source shop");
    folder.write("shop/shop.yaml", &shop(LOGIN));
    folder.ok("reconcile shop --source shop");
    folder.ok("reconcile platform --source platform");
    let rollback = folder.run("rollback --to 1 --source shop");
    assert_eq!(rollback.code, 3, "{}", rollback.all());
    assert!(rollback.all().contains("INVARIANT_BROKEN"), "{}", rollback.all());
    // The state before the invariant is one without it.
    assert_eq!(folder.run("rollback --to 1 --dry-run").code, 0);
    let serve = folder.serve("");
    let edge = serve.get("/edges/https").json()["https_edges"][0].clone();
    let route =
        format!("/edges/https/{}/routes/{}", edge["id"].as_str().unwrap(), edge["routes"][0]["id"].as_str().unwrap());
    let refused = serve.call("DELETE", &format!("{route}/oidc"), "");
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(refused.body.contains("INVARIANT_BROKEN") && refused.body.contains("admin-login"), "{}", refused.body);
    let proofs: Value = serve.get("/proofs").json();
    assert_eq!(proofs["invariants"][0]["answer"], json!("proven"), "{proofs}");
}

#[test]
fn changes_of_one_edge_at_a_time_are_all_judged_and_made() {
    const CLIENTS: usize = 8;
    const ROUTES: usize = 5;
    let folder = folder();
    folder.ok("reconcile platform --source platform");
    let serve = folder.serve("");
    let made = serve.call("POST", "/edges/https", r#"{"hostports": ["wiki.example.com:443"]}"#);
    let edge = format!("/edges/https/{}", made.json()["id"].as_str().unwrap());
    let add = |path: String, more: &str| {
        let body = format!(r#"{{"match_type": "exact_path", "match": "{path}"{more}}}"#);
        serve.call("POST", &format!("{edge}/routes"), &body)
    };
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (add, edge, serve) = (&add, &edge, &serve);
            scope.spawn(move || {
                for number in 0..ROUTES {
                    let made = add(format!("/{client}/{number}"), "");
                    assert_eq!(made.status, 201, "{}", made.body);
                    // Each verdict on the edge and its routes depends on it.
                    let described = format!(r#"{{"description": "{client} {number}"}}"#);
                    assert_eq!(serve.call("PATCH", edge, &described).status, 200);
                }
            });
        }
    });
    let refused = add("/admin/x".to_owned(), r#", "backend": {"backend_id": "bkd_1"}"#);
    assert!(refused.status == 409 && refused.body.contains("INVARIANT_BROKEN"), "{}", refused.body);
    assert_eq!(serve.get(&edge).json()["routes"].as_array().map(Vec::len), Some(CLIENTS * ROUTES));
}

#[test]
fn a_server_says_which_invariants_a_commit_breaks_and_which_are_not_proven() {
    let folder = folder();
    let exemption = "  exemptions: [{hosts: [docs.example.com], owner: docs, reason: Public, expires: 2099-12-31}]\n";
    folder.write("platform/invariants.yaml", &platform(exemption));
    folder.write(CONFIG, "sources: [{name: platform, path: platform}, {name: shop, path: shop}]\n");
    let serve = folder.serve("");
    let until_answer = |answer: &str| {
        let series = format!("edgewright_invariants{{answer=\"{answer}\"}}");
        until(answer, || (serve.metric(&series) == Some(1.0)).then_some(()));
    };
    in_state(&serve, "platform", "Synced");
    in_state(&serve, "shop", "Synced");
    until_answer("proven");
    assert!(serve.get("/metrics").contains("name=\"admin-login\"} 4102444800"), "the end of the exemption");

    folder.write("shop/shop.yaml", &shop(""));
    let invalid = in_state(&serve, "shop", "Invalid");
    let broken = &invalid["diagnostics"][0];
    assert_eq!(broken["code"], "ERR_EDGEWRIGHT_INVARIANT_BROKEN", "{invalid}");
    let told = through(&folder, &serve, "status").all();
    for text in ["`GET https://shop.example.com/admin`", "the invariant `admin-login` of source `platform`"] {
        assert!(broken["message"].as_str().unwrap().contains(text) && told.contains(text), "{text}\n{told}");
    }

    folder.write("shop/shop.yaml", &shop(POLICY));
    until_answer("depends");
    let unproven = status(&serve, "platform");
    let message = "the invariant `admin-login` is not proven: GET https://shop.example.com/admin depends on the effect of \
                   `policies`";
    let is_listed = unproven["diagnostics"].as_array().unwrap().iter().any(|it| it["message"] == message);
    assert!(unproven["state"] == "Synced" && is_listed, "{unproven}");
    assert!(through(&folder, &serve, "status").all().contains(message));
}

#[test]
fn an_exemption_is_warned_about_and_then_an_error() {
    let folder = folder();
    folder.write("shop/shop.yaml", &shop(""));
    let exempt = |days: i64| {
        let day = now() + jiff::SignedDuration::from_hours(24 * days);
        let day = day.to_string().chars().take(10).collect::<String>();
        folder.write("platform/invariants.yaml", &platform(&format!(
            "  exemptions:\n    - hosts: [shop.example.com]\n      owner: shop\n      reason: The new portal\n      expires: {day}\n"
        )));
        folder.run("validate platform shop")
    };
    let far = exempt(90);
    assert_eq!((far.code, far.err.contains("exemption")), (0, false), "{}", far.all());
    let near = exempt(10);
    assert_eq!((near.code, near.err.contains("expiring-exemption")), (0, true), "{}", near.all());
    let over = exempt(-2);
    assert_eq!((over.code, over.err.contains("expired-exemption")), (3, true), "{}", over.all());
}

#[test]
fn prove_shows_each_answer() {
    let folder = folder();
    let proven = folder.ok("prove platform shop");
    assert!(
        said(&proven.out).contains(
            "proven default/admin-login: Nobody opens an admin page without a login over 1 class of requests"
        ),
        "{}",
        proven.out
    );
    assert!(proven.out.ends_with("1 invariant: 1 proven\n"), "{}", proven.out);
    folder.write("shop/shop.yaml", &shop(POLICY));
    let depends = folder.ok("prove platform shop");
    assert!(depends.out.contains("depends") && depends.out.contains("the effect of `policies`"), "{}", depends.out);
    // An answer has its place and its cure, and is told once.
    let cure = "shop/shop.yaml:11: check what this depends on, or add an entry to the `exemptions` of the invariant";
    assert!(depends.out.contains(cure) && !depends.err.contains("INVARIANT"), "{}", depends.all());
    assert!(folder.ok("prove platform shop --format github").out.contains("INVARIANT_UNPROVEN"));
    folder.edit("platform/invariants.yaml", "  requires_any", "  unproven: deny\n  requires_any");
    assert_eq!(folder.run("prove platform shop").code, 3);
    folder.write("platform/invariants.yaml", &platform(""));
    folder.write("shop/shop.yaml", &shop(""));
    let refuted = folder.run("prove platform shop --format json");
    assert_eq!(refuted.code, 3, "{}", refuted.all());
    let report: Value = serde_json::from_str(&refuted.out).unwrap();
    let proof = &report["proofs"]["invariants"][0];
    assert_eq!(
        (&proof["answer"], &proof["requests"][0]["url"]),
        (&json!("refuted"), &json!("https://shop.example.com/admin"))
    );
    let junit = folder.run("prove platform shop --format junit");
    assert!(junit.out.contains("INVARIANT_BROKEN") && junit.out.contains("classname=\"invariant\""), "{}", junit.out);
    // Of a store.
    folder.write("shop/shop.yaml", &shop(LOGIN));
    folder.ok("reconcile platform --source platform");
    folder.ok("reconcile shop --source shop");
    assert!(folder.ok("prove").out.contains("proven   platform/admin-login"));
}

#[test]
fn an_invariant_about_a_mistyped_host_is_unused_and_not_proven() {
    let folder = folder();
    folder.write("platform/invariants.yaml", &platform("").replace("*.example.com", "*.exmaple.com"));
    let unused = folder.ok("prove platform shop");
    let told = said(&unused.out);
    for part in [
        "unused default/admin-login: Nobody opens an admin page without a login",
        "no edge serves requests in its scope: is `*.exmaple.com` right?",
        "1 invariant: 0 proven, 1 unused",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(said(&unused.err).contains("unserved-scope"), "{}", unused.err);
    let junit = folder.ok("prove platform shop --format junit").out;
    assert!(junit.contains("failures=\"0\"") && junit.contains("is `*.exmaple.com` right?"), "{junit}");
    // The platform team has no edges: only a plan among those of others can tell.
    assert!(!folder.ok("validate platform").all().contains("unserved-scope"));
    folder.ok("reconcile shop --source shop");
    let plan = folder.ok("plan platform --source platform");
    assert!(plan.err.contains("unserved-scope") && plan.err.contains("no edge serves `*.exmaple.com`"), "{}", plan.err);
}

#[test]
fn prove_judges_manifests_among_what_a_store_or_server_has_if_one_is_named() {
    let folder = folder();
    folder.write("shop/shop.yaml", &shop(""));
    folder.ok("reconcile platform --source platform");
    let nothing = folder.run("prove shop --source shop");
    assert_eq!(nothing.code, 1, "{}", nothing.all());
    let told = said(&nothing.err);
    assert!(told.contains("no invariants were judged: the manifests declare none"), "{told}");
    assert!(
        told.contains("--server") && told.contains("--with") && nothing.out == "0 invariants: 0 proven\n",
        "{told}"
    );
    let json = folder.run("prove shop --source shop --format json");
    assert!(json.code == 1 && json.out.contains("no invariants were judged"), "{}", json.all());

    let breaks = |run: &Run| {
        assert_eq!(run.code, 3, "{}", run.all());
        assert!(run.out.contains("refuted  platform/admin-login"), "{}", run.all());
        assert!(
            run.out.contains("shop/shop.yaml:7: add `oidc` or `saml` to the route, or ask the owner"),
            "{}",
            run.all()
        );
        assert!(!run.err.contains("INVARIANT_BROKEN"), "told once: {}", run.all());
    };
    breaks(&folder.run("prove shop --source shop --store store"));
    let beside = folder.run("prove shop --source shop --with platform");
    assert!(beside.code == 3 && beside.out.contains("1 refuted"), "{}", beside.all());
    assert_eq!(folder.run("prove shop --source shop --store nowhere.db").code, 1);

    let serve = folder.serve("");
    let mut by_variable = folder.command("prove shop --source shop");
    by_variable.env("EDGEWRIGHT_SERVER", url(&serve)).env("EDGEWRIGHT_TOKEN", &serve.token);
    breaks(&finish(by_variable, ""));
    // Invariants beside the manifests count, too, wherever these are judged.
    folder.write("beside/invariants.yaml", &platform("").replace("admin-login", "beside"));
    let counts = |run: &Run, place: &str| {
        breaks(run);
        assert!(run.out.contains("refuted  beside (--with)"), "{}", run.all());
        assert!(said(&run.err).contains(&format!("Judging the manifests among the resources of the {place}")));
    };
    let mut by_variable = folder.command("prove shop --source shop --with beside");
    by_variable.env("EDGEWRIGHT_SERVER", url(&serve)).env("EDGEWRIGHT_TOKEN", &serve.token);
    counts(&finish(by_variable, ""), &format!("server `{}`.", url(&serve)));
    drop(serve);
    counts(&folder.run("prove shop --source shop --with beside --store store"), "store `store`.");

    folder.edit("shop/shop.yaml", "backend_id:", "backend:");
    let invalid = folder.run("prove shop --source shop --store store");
    assert_eq!((invalid.code, &*invalid.out), (3, "not judged: the manifests have errors\n"), "{}", invalid.all());
    folder.write("shop/shop.yaml", &shop(""));

    folder.ok("destroy --source platform --confirm platform");
    let empty = folder.run("prove");
    assert!(empty.code == 1 && empty.err.contains("no invariants were judged: the store has none"), "{}", empty.all());
}

#[test]
fn an_invariant_that_a_plan_breaks_by_what_it_keeps_is_refuted() {
    let folder = folder();
    folder.write("platform/invariants.yaml", &platform("").replace("requires_any: [oidc, saml]", "keeps: [oidc]"));
    folder.ok("reconcile platform --source platform");
    folder.ok("reconcile shop --source shop");
    let kept = folder.ok("prove shop --source shop --store store");
    assert!(kept.out.contains("kept at each change: oidc\n1 invariant: 1 proven\n"), "{}", kept.all());
    folder.write("shop/shop.yaml", &shop(""));
    let breaks = |run: &Run| {
        assert_eq!(run.code, 3, "{}", run.all());
        assert!(
            !run.err.contains("INVARIANT_BROKEN") && run.out.contains("shop/shop.yaml:7: keep `oidc`"),
            "{}",
            run.all()
        );
        let told = said(&run.out);
        assert!(told.contains("refuted platform/admin-login") && told.contains("loses `oidc`"), "{}", run.all());
        assert!(told.ends_with("1 invariant: 0 proven, 1 refuted"), "{}", run.all());
    };
    breaks(&folder.run("prove shop --source shop --store store"));
    let json = folder.run("prove shop --source shop --store store --format json");
    let report: Value = serde_json::from_str(&json.out).unwrap();
    let proof = &report["proofs"]["invariants"][0];
    let answered = [&proof["answer"], &proof["refuses"], &proof["keeps_compared"], &proof["requests"][0]["url"]];
    let refuted = [json!("refuted"), json!(true), json!(true), json!("https://shop.example.com/admin")];
    assert_eq!(answered, refuted.each_ref(), "{}", json.out);
    let junit = folder.run("prove shop --source shop --store store --format junit").out;
    let case = junit.split("classname=\"invariant\"").nth(1).unwrap();
    assert!(case.contains("<failure") && case.contains("INVARIANT_BROKEN"), "{junit}");
    let serve = folder.serve("");
    let mut on_server = folder.command("prove shop --source shop");
    on_server.env("EDGEWRIGHT_SERVER", url(&serve)).env("EDGEWRIGHT_TOKEN", &serve.token);
    breaks(&finish(on_server, ""));
    drop(serve);

    // Files have no earlier state, so nothing about it is proven.
    let unseen = "depends on a revision to compare with, for what it keeps (oidc): add --store or --server";
    let alone = folder.ok("prove shop --source shop --with platform");
    assert!(alone.out.contains(unseen) && alone.out.ends_with("1 invariant: 0 proven, 1 depends\n"), "{}", alone.all());
    let junit = folder.ok("prove shop --source shop --with platform --format junit").out;
    assert!(junit.contains(unseen) && junit.contains("failures=\"0\""), "{junit}");
    folder.edit("platform/invariants.yaml", "  keeps", "  unproven: deny\n  keeps");
    assert_eq!(folder.run("prove shop --source shop --with platform").code, 3);
    assert_eq!(folder.run("validate shop --source shop --with platform").code, 0, "no change is refused");
    let junit = folder.run("prove shop --source shop --with platform --format junit").out;
    assert!(junit.contains("INVARIANT_UNPROVEN") && junit.contains(unseen), "{junit}");
}

#[test]
fn a_refusal_says_how_to_meet_the_invariant() {
    let folder = folder();
    let refused = |shop: &str| {
        folder.write("shop/shop.yaml", shop);
        let run = folder.run("validate shop --with platform");
        assert_eq!(run.code, 3, "{}", run.all());
        said(&run.err)
    };
    let disabled = refused(&shop(&LOGIN.replace("{issuer", "{enabled: false, issuer")));
    for part in [
        "shop/shop.yaml:11:",
        "this breaks the invariant `admin-login` in `--with` (Nobody opens an admin page without a login): `GET https://",
        "enable `oidc`, or ask the owner of the manifests in `--with` for an exemption",
    ] {
        assert!(disabled.contains(part), "{part}\n{disabled}");
    }
    let wildcard = refused(&shop("").replace("shop.example.com:443", "*.example.com:443"));
    assert!(wildcard.contains("`GET https://any.example.com/admin`, for example, reaches"), "{wildcard}");
    let three = platform("").replace("[oidc, saml]", "[oidc, saml, mutual_tls]");
    folder.write("platform/invariants.yaml", &three);
    let listed = refused(&shop(""));
    assert!(listed.contains("without any of `oidc`, `saml`, `mutual_tls`"), "{listed}");
    let offices = platform("").replace("requires_any: [oidc, saml]", "only_from: [ipp_offices, ipp_vpn]");
    folder.write("platform/invariants.yaml", &offices);
    let open = refused(&shop(""));
    assert!(open.contains("add `ip_restriction: {ip_policy_ids: [ipp_offices, ipp_vpn]}` to the route, or"), "{open}");
    // The route takes other requests, too, which nobody wants to close.
    let whole = refused(&shop("").replace("match: /admin", "match: /"));
    let closing = "add a route for `/admin` with `ip_restriction: {ip_policy_ids: [ipp_offices, ipp_vpn]}`, or restrict the \
                   whole route, or ask";
    assert!(whole.contains(closing), "{whole}");
    let hosts = refused(&shop("").replace("shop.example.com:443", "*.com:443"));
    assert!(hosts.contains("add a route for `*.example.com/admin` with `ip_restriction"), "{hosts}");
    let other = refused(&shop("      ip_restriction: {ip_policy_ids: [ipp_home]}\n"));
    assert!(other.contains("remove `ipp_home` from `ip_restriction` of route `shop/admin`, or ask"), "{other}");
    let tls = platform("").replace("requires_any: [oidc, saml]", "min_tls_version: '1.2'");
    folder.write("platform/invariants.yaml", &tls);
    let old = refused(&shop("  tls_termination: {min_version: '1.0'}\n"));
    assert!(old.contains("set `min_version` to 1.2, or remove it, or ask the owner"), "{old}");
}

#[test]
fn the_author_of_an_invariant_gets_one_error_about_it() {
    let folder = folder();
    let edges: Vec<String> = (1..=7).map(|n| shop("").replace("shop", &format!("shop{n}"))).collect();
    folder.write("shop/shop.yaml", &edges.join("---\n"));
    folder.ok("reconcile shop --source shop");
    let run = folder.run("plan platform --source platform");
    assert_eq!(run.code, 3, "{}", run.all());
    assert_eq!(run.err.matches("INVARIANT_BROKEN\n").count(), 1, "{}", run.err);
    let text = said(&run.err);
    for part in [
        "7 kinds of requests break the invariant `admin-login` of source `platform` (Nobody opens an admin page",
        "`, which reaches the backend `bkd_shop",
        "correct these edges and routes, or add an entry to `exemptions` way: edge `shop",
        "and 2 more",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(run.err.matches("\n        way: edge").count(), 5, "{}", run.err);
    // Whoever declares both corrects either.
    let both = said(&folder.run("validate platform shop").err);
    assert!(both.contains("or add an entry to the `exemptions` of the invariant way:"), "{both}");
}

#[test]
fn a_plan_that_weakens_an_invariant_says_so_and_can_be_refused() {
    let folder = folder();
    folder.ok("reconcile platform --source platform");
    let weaker = platform("").replace("[oidc, saml]", "[oidc, saml, compression]");
    folder.write("platform/invariants.yaml", &weaker);
    let plan = folder.ok("plan platform --source platform --behaviour");
    let told = said(&plan.err);
    assert!(told.contains("Invariant `admin-login` refuses less: `requires_any` admits more"), "{told}");
    assert!(!plan.out.contains("refactoring") && plan.out.contains("Invariants change"), "{}", plan.out);
    let denied = folder.run("reconcile platform --source platform --deny invariant-weakened");
    assert!(denied.code == 4 && denied.err.contains("platform/invariants.yaml"), "{}", denied.all());
    let allow = |level: &str| {
        let named = format!("name: admin-login, annotations: {{edgewright/lint.invariant-weakened: {level}}}");
        folder.write("platform/invariants.yaml", &weaker.replace("name: admin-login", &named));
        folder.run("plan platform --source platform --deny invariant-weakened")
    };
    assert_eq!(allow("allow").code, 3, "without a reason");
    assert_eq!(allow("allow (agreed on)").code, 0);

    let stricter = platform("").replace("[oidc, saml]", "[oidc]");
    folder.write("platform/invariants.yaml", &stricter);
    let plan = folder.ok("plan platform --source platform --behaviour --deny invariant-weakened");
    assert!(!plan.err.contains("invariant-weakened") && !plan.out.contains("refactoring"), "{}", plan.all());
    let removed = folder.ok("destroy --source platform --dry-run --behaviour");
    let told = said(&removed.all());
    assert!(told.contains("Invariant `admin-login` is removed: nothing refuses any longer what breaks it"), "{told}");
    assert!(!told.contains("refactoring"), "{told}");
}

/// The three invariants of the example, and a line of its edges without which each is broken.
#[test]
fn the_example_holds_until_a_line_is_missing() {
    let folder = Folder::new();
    for file in ["invariants.yaml", "edges.yaml"] {
        let text = std::fs::read_to_string(format!("{REPOSITORY}/examples/invariants/{file}")).unwrap();
        folder
            .write(&format!("bank/{file}"), &text.replace("{from_env: WIKI_CLIENT_SECRET}", "'a-secret-of-the-wiki'"));
    }
    let proven = folder.ok("prove bank");
    assert!(proven.out.ends_with("3 invariants: 3 proven\n"), "{}", proven.out);
    let edges = folder.read("bank/edges.yaml");
    for (line, without, invariant) in [
        ("oidc:", "", "internal-login"),
        ("ip_restriction: {ip_policy_ids: [ipp_offices]}", "", "admin-from-offices"),
        ("hostports: ['portal", "  tls_termination: {min_version: '1.1'}", "modern-tls"),
    ] {
        let edited = edges.lines().map(|it| match (it.contains(line), without) {
            (false, _) => it.to_owned(),
            (true, "") => String::new(),
            (true, more) => format!("{it}\n{more}"),
        });
        folder.write("bank/edges.yaml", &edited.collect::<Vec<_>>().join("\n"));
        let refuted = folder.run("validate bank");
        assert_eq!(refuted.code, 3, "{}", refuted.all());
        let said = said(&refuted.err);
        assert!(said.contains("INVARIANT_BROKEN") && said.contains(&format!("the invariant `{invariant}`")), "{said}");
    }
}
