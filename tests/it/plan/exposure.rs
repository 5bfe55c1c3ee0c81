//! What a plan opens is said first, in every format and in the log.

use serde_json::Value;

use crate::support::{
    program::{Folder, Run, finish, until},
    users::{through, url},
};

const SAID: &str = "this opens access: HttpsEdgeRoute shop/admin loses";

fn manifest(modules: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n  \
         hostports: ['shop.example.com:443']\n  routes:\n    - name: admin\n      match_type: path_prefix\n      match: /\n      \
         backend: {{backend_id: bkd_shop}}\n{modules}"
    )
}

const RESTRICTED: &str = "      ip_restriction: {enabled: true, ip_policy_ids: [ipp_office]}\n";
const LOGIN: &str =
    "      oidc: {issuer: 'https://id.example.com', client_id: shop, client_secret: {from_file: secret}}\n";
const OTHER_LOGIN: &str = "      oauth: {provider: {google: {client_id: shop, client_secret: {from_file: secret}, \
                           email_domains: [example.com]}}}\n";

#[test]
fn a_route_that_loses_what_restricts_it_is_told_first() {
    let folder = Folder::new();
    folder.write("m/secret", "hidden-secret");
    let plan = |before: &str, after: &str| {
        folder.write("m/shop.yaml", &manifest(before));
        folder.ok("reconcile m");
        folder.write("m/shop.yaml", &manifest(after));
        let run = folder.run("plan m");
        assert_eq!(run.code, 0, "{}", run.all());
        run.all().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let both = [RESTRICTED, LOGIN].concat();
    let last = plan(RESTRICTED, "");
    assert!(last.contains(&format!("{SAID} `ip_restriction`, and nothing else restricts it")), "{last}");
    let one = plan(&both, RESTRICTED);
    assert!(one.contains(&format!("{SAID} `oidc`; `ip_restriction` stays")), "{one}");
    let disabled = plan(&both, &both.replace("{enabled: true, ip", "{enabled: false, ip"));
    assert!(disabled.contains(&format!("{SAID} `ip_restriction`; `oidc` stays")), "{disabled}");
    let swapped = plan(LOGIN, OTHER_LOGIN);
    assert!(swapped.contains("this opens access: HttpsEdgeRoute shop/admin: `oauth` may admit others"), "{swapped}");
    for (before, after) in [(RESTRICTED, both.as_str()), ("", RESTRICTED)] {
        let kept = plan(before, after);
        assert!(!kept.contains("opens access"), "{kept}");
    }
    // A route that goes opens nothing.
    folder.write("m/shop.yaml", &manifest(RESTRICTED));
    folder.ok("reconcile m");
    folder.write("m/shop.yaml", manifest("").split("  routes:").next().unwrap());
    assert!(!folder.ok("plan m").all().contains("opens access"));
}

#[test]
fn the_lint_finds_what_the_behaviour_diff_marks() {
    let folder = Folder::new();
    for side in ["old", "new"] {
        folder.write(&format!("{side}/secret"), "hidden-secret");
        folder.write(&format!("{side}/other"), "another-secret");
    }
    let tls_edge = |policies: &str| {
        format!(
            "---\napiVersion: edgewright/v1\nkind: TlsEdge\nmetadata: {{name: mail, id: edgtls_mail1}}\nspec:\n  \
             backend: {{backend_id: bkd_mail}}\n  ip_restriction: {{ip_policy_ids: [{policies}]}}\n"
        )
    };
    let (office, login, other_login) = (manifest(RESTRICTED), manifest(LOGIN), manifest(OTHER_LOGIN));
    let hook = manifest("      webhook_verification: {provider: github, secret: {from_file: secret}}\n");
    for (before, after, words) in [
        (other_login.clone(), other_login.replace("[example.com]", "[]"), Some("`oauth` admits more")),
        (login.clone(), login.replace("id.example.com", "id.example.org"), Some("`oidc` may admit others")),
        (office.clone(), office.replace("[ipp_office]", "[ipp_office, ipp_vpn]"), Some("`ip_restriction` admits more")),
        (login.clone(), other_login, Some("`oauth` may admit others")),
        (office.clone(), hook.clone(), Some("`webhook_verification` required instead")),
        (
            office.clone() + &tls_edge("ipp_office"),
            office.clone() + &tls_edge("ipp_office, ipp_vpn"),
            Some("`ip_restriction` admits more"),
        ),
        (office.replace("[ipp_office]", "[ipp_office, ipp_vpn]"), office.clone(), None),
        (login.clone(), login.replace("from_file: secret", "from_file: other"), None),
        (hook.clone(), hook.replace("from_file: secret", "from_file: other"), None),
    ] {
        folder.write("old/shop.yaml", &before);
        folder.write("new/shop.yaml", &after);
        let run = folder.run("diff old new --behaviour --deny access-opened");
        let told = run.all().split_whitespace().collect::<Vec<_>>().join(" ");
        let is_marked = told.contains(": opens access: ");
        assert_eq!((run.code, is_marked), if words.is_some() { (4, true) } else { (0, false) }, "{told}");
        assert!(words.is_none_or(|words| told.matches(words).count() >= 2), "in the mark and the lint: {told}");
        assert!(!told.contains("`webhook_verification` stays"), "{told}");
        let mut allowed = after;
        for name in ["shop", "mail"] {
            let annotations = "annotations: {edgewright/lint.access-opened: allow (intended)}";
            allowed = allowed.replace(&format!("{{name: {name}"), &format!("{{name: {name}, {annotations}"));
        }
        folder.write("new/shop.yaml", &allowed);
        folder.ok("diff old new --deny access-opened");
    }
}

#[test]
fn every_format_and_the_log_say_what_is_opened() {
    let folder = Folder::new();
    folder.write("m/shop.yaml", &manifest(RESTRICTED));
    folder.ok("reconcile m");
    folder.write("m/shop.yaml", &manifest(""));
    for format in ["text", "json", "markdown", "github", "sarif", "junit"] {
        let run = folder.run(&format!("plan m --format {format}"));
        let said = run.all().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("opens access") && run.all().contains("access-opened"), "{format}: {said}");
    }
    let serve = folder.serve("--manifests m");
    until("the change", || {
        (serve.get("/metrics").body.contains("edgewright_drift") && !restricts(&folder)).then_some(())
    });
    let log = serve.stop().err;
    assert!(log.contains(SAID), "{log}");
    // A rollback that opens says so, too.
    folder.write("m/shop.yaml", &manifest(RESTRICTED));
    folder.ok("reconcile m");
    let back = folder.run("rollback --to 3 --dry-run");
    assert!(back.all().contains("opens access"), "{}", back.all());
}

/// The manifest of an edge with routes: name, match and modules.
fn edge(name: &str, routes: &[(&str, &str, &str)]) -> String {
    let head = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: ['shop.example.com:443']\n  \
         routes:\n"
    );
    let route = |(name, matched, modules): &(&str, &str, &str)| {
        format!(
            "    - name: {name}\n      match_type: path_prefix\n      match: {matched}\n      backend: {{backend_id: bkd_shop}}\n{modules}"
        )
    };
    head + &routes.iter().map(route).collect::<String>()
}

#[test]
fn requests_that_change_hands_are_told_if_less_restricts_them() {
    let folder = Folder::new();
    let plan = |before: &str, after: &str| {
        folder.write("m/shop.yaml", before);
        folder.ok("reconcile m --max-deletes 100%");
        folder.write("m/shop.yaml", after);
        let run = folder.run("plan m --max-deletes 100%");
        assert_eq!(run.code, 0, "{}", run.all());
        run.all().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let all = ("all", "/", "");
    let guarded = ("admin", "/admin/", RESTRICTED);
    let before = edge("shop", &[all, guarded]);
    let of_route =
        "takes over requests of HttpsEdgeRoute shop/admin, without `ip_restriction`, and nothing else restricts it";
    for (what, after, successor) in [
        ("another name", edge("shop", &[all, ("intern", "/admin/", "")]), "shop/intern"),
        ("gone", edge("shop", &[all]), "shop/all"),
        ("another match", edge("shop", &[all, ("admin", "/intern/", RESTRICTED)]), "shop/all"),
        ("another edge", edge("market", &[all]), "market/all"),
        ("an exception", edge("shop", &[all, guarded, ("health", "/admin/health/", "")]), "shop/health"),
    ] {
        let told = plan(&before, &after);
        assert!(told.contains(&format!("this opens access: HttpsEdgeRoute {successor} {of_route}")), "{what}: {told}");
        assert_eq!(told.matches("this opens access").count(), 1, "{what}: {told}");
    }
    for (what, after) in [
        ("another name", edge("shop", &[all, ("intern", "/admin/", RESTRICTED)])),
        ("as restricted", edge("shop", &[("all", "/", RESTRICTED)])),
        ("nobody", edge("shop", &[("other", "/other/", "")])),
        ("another edge", edge("market", &[all, guarded])),
    ] {
        let told = plan(&before, &after);
        assert!(!told.contains("opens access"), "{what}: {told}");
    }
}

#[test]
fn a_tls_edge_without_its_manifest_is_open() {
    let folder = Folder::new();
    folder.write(
        "m/a.yaml",
        "apiVersion: edgewright/v1\nkind: TlsEdge\nmetadata: {name: mail, id: edgtls_mail1}\nspec:\n  \
         backend: {backend_id: bkd_mail}\n  ip_restriction: {enabled: true, ip_policy_ids: [ipp_office]}\n",
    );
    folder.write("m/b.yaml", &manifest(""));
    folder.ok("reconcile m");
    std::fs::remove_file(folder.path("m/a.yaml")).unwrap();
    let told = folder.run("plan m --max-deletes 100%").all();
    assert!(told.contains("this opens access: TlsEdge mail loses `ip_restriction`"), "{told}");
}

fn restricts(folder: &Folder) -> bool {
    folder.run("export").out.contains("ip_restriction")
}

#[test]
fn a_restriction_that_is_no_longer_enforced_is_told() {
    let folder = Folder::new();
    let restriction = |enforced: bool| {
        format!(
            "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: offices}}\nspec: {{enforced: {enforced}, \
             type: endpoints, ip_policy_ids: [ipp_office]}}\n"
        )
    };
    folder.write("m/a.yaml", &restriction(true));
    folder.ok("reconcile m");
    folder.write("m/a.yaml", &restriction(false));
    let said = "this opens access: IpRestriction offices no longer restricts anything";
    assert!(folder.run("plan m").all().contains(said), "{}", folder.run("plan m").all());
    folder.write("m/a.yaml", "# nothing is left\n");
    folder.write("m/b.yaml", &manifest(""));
    assert!(folder.run("plan m").all().contains(said), "{}", folder.run("plan m").all());
}

#[test]
fn a_restriction_with_policies_of_another_one_takes_its_place() {
    let folder = Folder::new();
    let restriction = |name: &str, traffic: &str, policy: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: {name}}}\nspec: {{enforced: true, type: {traffic}, \
             ip_policy_ids: [{policy}]}}\n---\n"
        )
    };
    let both = |traffic: &str, [one, other]: [(&str, &str); 2]| {
        restriction(one.0, traffic, one.1) + &restriction(other.0, traffic, other.1)
    };
    for traffic in ["endpoints", "api"] {
        folder.write("old/a.yaml", &both(traffic, [("office", "ipp_office"), ("vpn", "ipp_vpn")]));
        let (gone, others) = ("office no longer restricts anything", "office: `ip_restriction` may admit others");
        for (new, opened) in [
            ([("office-2", "ipp_office"), ("vpn", "ipp_vpn")], None),
            ([("office-2", "ipp_home"), ("vpn", "ipp_vpn")], Some(gone)),
            // The policies of `office` restrict nothing any longer.
            ([("office", "ipp_vpn"), ("other", "ipp_home")], Some(others)),
            ([("office", "ipp_office, ipp_home"), ("vpn", "ipp_vpn")], Some("office: `ip_restriction` admits more")),
            ([("office", "ipp_vpn"), ("vpn", "ipp_office")], None),
        ] {
            folder.write("new/a.yaml", &both(traffic, new));
            let run = folder.run("diff old new --behaviour --deny access-opened");
            let told = run.all().split_whitespace().collect::<Vec<_>>().join(" ");
            let said = opened.map(|how| format!("this opens access: IpRestriction {how}"));
            assert_eq!(run.code, if opened.is_some() { 4 } else { 0 }, "{traffic}: {told}");
            assert!(said.is_none_or(|said| told.contains(&said)), "{traffic}: {told}");
            // The behaviour diff says the same of endpoints, and compares no other traffic.
            let is_marked = told.contains("! all hosts: opens access");
            assert_eq!(is_marked, opened.is_some() && traffic == "endpoints", "{told}");
        }
    }
}

#[test]
fn requests_that_were_refused_are_opened_by_a_backend_that_nothing_restricts() {
    let folder = Folder::new();
    let (all, admin) = (("all", "/", ""), ("admin", "/admin/", ""));
    let enabled = edge("shop", &[all, admin]);
    let (start, end) = enabled.rsplit_once("bkd_shop}").unwrap();
    let disabled = format!("{start}bkd_shop, enabled: false}}{end}");
    folder.write("m/shop.yaml", &disabled);
    folder.ok("reconcile m");
    let route = "HttpsEdgeRoute shop/admin";
    for (after, said) in [
        (edge("shop", &[all]), format!("HttpsEdgeRoute shop/all takes over requests that {route} refused")),
        (enabled, format!("{route} has a backend for requests that it refused")),
    ] {
        folder.write("m/shop.yaml", &after);
        let run = folder.run("plan m --behaviour --deny access-opened --max-deletes 100%");
        let told = run.all().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(run.code == 4 && told.contains(&format!("this opens access: {said}, without a")), "{told}");
        assert!(told.contains("opens access: backend none → bkd_shop"), "{told}");
    }
    folder.write("m/shop.yaml", &edge("shop", &[("all", "/", RESTRICTED)]));
    folder.ok("plan m --deny access-opened --max-deletes 100%");
}

#[test]
fn what_is_opened_can_be_denied_and_allowed_with_a_reason() {
    let folder = Folder::new();
    folder.write("m/shop.yaml", &edge("shop", &[("admin", "/admin/", RESTRICTED)]));
    folder.ok("reconcile m");
    let open = edge("shop", &[("admin", "/admin/", "")]);
    folder.write("m/shop.yaml", &open);
    for command in ["plan m --deny access-opened", "reconcile m --deny access-opened"] {
        let run = folder.run(command);
        assert!(run.code == 4 && run.all().contains("access-opened"), "{}", run.all());
    }
    assert!(restricts(&folder));
    let annotated = |level: &str| {
        let metadata = format!("{{name: shop, annotations: {{edgewright/lint.access-opened: {level}}}}}");
        folder.write("m/shop.yaml", &open.replace("{name: shop}", &metadata));
    };
    annotated("allow");
    let run = folder.run("plan m --deny access-opened");
    assert!(run.code == 3 && run.all().contains("a reason is required"), "{}", run.all());
    annotated("allow (the admin page is public now)");
    let plan = folder.ok("plan m --deny access-opened");
    assert!(!plan.all().contains("opens access"), "{}", plan.all());
    folder.ok("reconcile m --deny access-opened");
    assert!(!restricts(&folder));
}

#[test]
fn a_difference_that_opens_access_is_denied_with_and_without_a_server() {
    let (folder, there) = (Folder::new(), Folder::new());
    folder.write("old/shop.yaml", &edge("shop", &[("admin", "/admin/", RESTRICTED)]));
    folder.write("new/shop.yaml", &edge("shop", &[("admin", "/admin/", "")]));
    let serve = there.serve("");
    for server in ["", " --server"] {
        let run = |line: &str| {
            let at = if server.is_empty() { String::new() } else { format!("{server} {}", url(&serve)) };
            let mut command = folder.command(&format!("{line}{at}"));
            command.env("EDGEWRIGHT_TOKEN", &serve.token);
            finish(command, "")
        };
        let told = run("diff old new");
        assert!(told.code == 0 && told.all().contains("this opens access"), "{}", told.all());
        let denied = run("diff old new --deny access-opened --detailed-exitcode");
        assert!(denied.code == 4 && denied.all().contains("× this opens access"), "{}", denied.all());
        let closed = run("diff new old --deny access-opened");
        assert_eq!(closed.code, 0, "{}", closed.all());
    }
}

#[test]
fn a_plan_says_which_requests_it_treats_differently() {
    let folder = Folder::new();
    let (all, admin) = (("all", "/", ""), ("admin", "/admin/", RESTRICTED));
    folder.write("m/shop.yaml", &edge("shop", &[all, admin]));
    folder.ok("reconcile m");
    folder.write("m/shop.yaml", &edge("shop", &[all]));
    let line = "`https://shop.example.com/admin/*`: opens access: `ip_restriction` required → open";
    let text = folder.ok("plan m --behaviour").out;
    assert!(text.contains(&format!("! {line}")), "{text}");
    assert!(!folder.ok("plan m").out.contains("Behaviour:"));
    let json = folder.ok("plan m --behaviour --format json").out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let change = &json["plan"]["behaviour"]["changes"][0];
    assert_eq!(change["opens"], true, "{json}");
    assert_eq!(change["example"], "https://shop.example.com/admin/");
    assert_eq!(change["requests"][0]["path"], "/admin/*");
    let comment = folder.ok("plan m --behaviour --format markdown").out;
    assert!(comment.contains("opens access"), "{comment}");
    folder.write("m/shop.yaml", &edge("shop", &[all, ("intern", "/admin/", RESTRICTED)]));
    let renamed = folder.ok("plan m --behaviour").out;
    assert!(renamed.contains("no request is treated differently. The plan is a safe refactoring."), "{renamed}");
}

#[test]
fn what_weakens_tls_is_marked_and_not_a_matter_of_the_lint() {
    let folder = Folder::new();
    let with_tls = |routes: &[(&str, &str, &str)], module: &str| {
        let tls = format!("  tls_termination: {{{module}}}\n  routes:");
        folder.write("m/shop.yaml", &edge("shop", routes).replacen("  routes:", &tls, 1));
    };
    // An edge without a route answers requests, too.
    for routes in [&[][..], &[("all", "/", "")]] {
        with_tls(routes, "min_version: '1.2'");
        folder.ok("reconcile m");
        for (module, end) in [
            ("min_version: '1.0'", "TLS 1.0 or newer"),
            ("enabled: false", "none at this edge"),
            ("terminate_at: upstream", "passes through"),
        ] {
            with_tls(routes, module);
            let weaker = folder.ok("plan m --behaviour --deny access-opened").out;
            let line = format!("! `https://shop.example.com/*`: weakens TLS: TLS 1.2 or newer → {end}");
            assert!(weaker.contains(&line) && weaker.contains("of which 1 weakens TLS."), "{weaker}");
        }
        with_tls(routes, "min_version: '1.3'");
        let newer = folder.ok("plan m --behaviour").out;
        assert!(newer.contains("  `https://shop.example.com/*`: TLS 1.2 or newer → TLS 1.3 or newer"), "{newer}");
        assert!(!newer.contains("weakens"), "{newer}");
    }
}

#[test]
fn a_change_without_manifests_says_it_too() {
    let folder = Folder::new();
    let (all, admin) = (("all", "/", ""), ("admin", "/admin/", RESTRICTED));
    for routes in [vec![all], vec![all, admin]] {
        folder.write("m/shop.yaml", &edge("shop", &routes));
        folder.ok("reconcile m");
    }
    let lines = [
        ("rollback --to 1", "`https://shop.example.com/admin/*`: opens access: `ip_restriction` required → open"),
        (
            "transfer --all --from default --to shop",
            "no request is treated differently. The plan is a safe refactoring.",
        ),
        ("destroy --source default", "Behaviour: "),
    ];
    for (line, text) in lines {
        let told = folder.ok(&format!("{line} --dry-run --behaviour")).out;
        assert!(told.contains(text), "{line}\n{told}");
        assert!(!folder.ok(&format!("{line} --dry-run")).out.contains("Behaviour:"), "{line}");
    }
    let serve = folder.serve("");
    for (line, text) in lines {
        let told = through(&folder, &serve, &format!("{line} --dry-run --behaviour"));
        assert!(told.out.contains(text), "{line}\n{}", told.all());
    }
}

#[test]
fn what_changes_for_requests_of_no_class_is_told_in_words() {
    let folder = Folder::new();
    let head =
        |kind: &str, metadata: &str| format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {metadata}\nspec: ");
    let tls_edge = |spec: &str| folder.write("m/a.yaml", &(head("TlsEdge", "{name: mail, id: edgtls_mail1}") + spec));
    let restriction = |name: &str, spec: &str| {
        folder.write(&format!("m/{name}.yaml"), &(head("IpRestriction", &format!("{{name: {name}}}")) + spec));
    };
    tls_edge("{backend: {backend_id: bkd_a}, ip_restriction: {ip_policy_ids: [ipp_office]}}\n");
    restriction("all", "{type: endpoints, enforced: true, ip_policy_ids: [ipp_office]}\n");
    restriction("people", "{type: dashboard, enforced: true, ip_policy_ids: [ipp_office]}\n");
    folder.ok("reconcile m");
    let plan = || {
        let told = folder.ok("plan m --behaviour --max-deletes 100%").out;
        folder.ok("reconcile m --max-deletes 100%");
        told
    };
    tls_edge("{backend: {backend_id: bkd_b}, ip_restriction: {ip_policy_ids: [ipp_vpn]}}\n");
    let told = plan();
    let line = "! all hosts of TlsEdge mail: opens access: `ip_restriction` may admit others; backend bkd_a → bkd_b";
    assert!(told.contains(line) && !told.contains("refactoring"), "{told}");
    restriction("all", "{type: endpoints, enforced: true, ip_policy_ids: [ipp_vpn]}\n");
    let told = plan();
    let line = "! all hosts: opens access: `ip_restriction` by ipp_office → `ip_restriction` by ipp_vpn";
    assert!(told.contains(line), "{told}");
    std::fs::remove_file(folder.path("m/all.yaml")).unwrap();
    let told = plan();
    assert!(told.contains("! all hosts: opens access: `ip_restriction` by ipp_vpn → open"), "{told}");
    std::fs::remove_file(folder.path("m/a.yaml")).unwrap();
    let told = plan();
    let line = "! all hosts of TlsEdge mail: opens access: `ip_restriction` required → open; backend bkd_b → none";
    assert!(told.contains(line), "{told}");
    restriction("people", "{type: dashboard, enforced: true, ip_policy_ids: [ipp_vpn]}\n");
    let told = plan();
    assert!(told.contains("What changes of IpRestriction is not compared."), "{told}");
}

#[test]
fn a_plan_that_an_invariant_refuses_says_what_it_would_do_to_requests() {
    const OFFICES: &str = "apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {name: offices}\n\
                           spec: {description: From the offices only, only_from: [ipp_office]}\n";
    const BEHAVIOUR: &str = "Behaviour: 1 change in how requests are treated, of which 1 opens access.";
    let folder = Folder::new();
    for (name, modules) in [("m", RESTRICTED), ("open", "")] {
        folder.write(&format!("{name}/shop.yaml"), &manifest(modules));
        folder.write(&format!("{name}/invariant.yaml"), OFFICES);
    }
    folder.ok("reconcile m");
    let refused = |run: Run| {
        assert_eq!(run.code, 3, "{}", run.all());
        assert!(run.err.contains("INVARIANT_BROKEN"), "{}", run.all());
        let line = "! `https://shop.example.com";
        assert!(run.out.starts_with(BEHAVIOUR) && run.out.contains(line), "{}", run.all());
        // There is no plan to apply.
        assert!(!run.out.contains("HttpsEdgeRoute"), "{}", run.all());
    };
    for line in ["plan open", "reconcile open", "diff m open"] {
        refused(folder.run(&format!("{line} --behaviour")));
    }
    let of = |format: &str| folder.run(&format!("plan open {format}")).out;
    for format in ["markdown", "github"] {
        assert!(of(&format!("--behaviour --format {format}")).contains(BEHAVIOUR), "{format}");
    }
    let json = |line: &str| serde_json::from_str::<Value>(&of(line)).unwrap();
    let report = json("--behaviour --format json");
    let plan = &report["refused_plan"];
    assert!(report["plan"].is_null() && plan["behaviour"]["changes"][0]["opens"] == true, "{report}");
    assert_eq!(plan["changes"][0]["calls"], Value::Array(Vec::new()), "{report}");
    assert!(json("--format json")["refused_plan"].is_null(), "it was not asked for");
    assert_eq!(of(""), "");

    let serve = folder.serve("");
    for line in ["plan open", "diff m open"] {
        refused(through(&folder, &serve, &format!("{line} --behaviour")));
    }
}
