//! What a plan opens is said first, in every format and in the log.

use crate::support::program::{Folder, until};

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
    for (before, after) in [(LOGIN, OTHER_LOGIN), (RESTRICTED, both.as_str()), ("", RESTRICTED)] {
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
fn every_format_and_the_log_say_what_is_opened() {
    let folder = Folder::new();
    folder.write("m/shop.yaml", &manifest(RESTRICTED));
    folder.ok("reconcile m");
    folder.write("m/shop.yaml", &manifest(""));
    for format in ["text", "json", "markdown", "github", "sarif", "junit"] {
        let run = folder.run(&format!("plan m --format {format}"));
        let said = run.all().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("opens access") && run.all().contains("ERR_EDGEWRIGHT_OPENS_ACCESS"), "{format}: {said}");
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
        ("an exception", edge("shop", &[all, guarded, ("health", "/admin/health/", "")])),
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
