//! `edgewright trace`: which route takes a request, and what it passes (D42).

use serde_json::{Value, json};

use crate::support::{
    program::{Folder, Run, finish},
    users::through,
};

/// The lines of a trace with single blanks.
fn lines(run: &Run) -> Vec<String> {
    run.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn assert_line(run: &Run, start: &str) {
    assert!(lines(run).iter().any(|line| line.starts_with(start)), "{start}\n{}", run.all());
}

/// The modules of a trace, in their order.
fn modules(run: &Run) -> Vec<String> {
    let lines = lines(run);
    let from = lines.iter().position(|line| line.starts_with("modules")).map_or(lines.len(), |at| at + 1);
    lines[from..].iter().filter_map(|line| Some(line.split_once(' ')?.1.to_owned())).collect()
}

#[test]
fn manifests_alone_tell_the_edge_the_route_and_the_modules() {
    let folder = Folder::with_storefront();
    let line = "trace GET https://SHOP.example.com/checkout/pay?from=/account --manifests storefront --user-agent";
    let run = folder.ok(&format!("{line} Mozilla/5.0"));
    assert!(run.out.starts_with("GET shop.example.com:443/checkout/pay\n"), "{}", run.out);
    assert_line(&run, "edge storefront by shop.example.com:443 edghts_");
    assert_line(&run, "tls shop certificate cert_");
    assert_line(&run, "route checkout by path_prefix /checkout edghtsrt_");
    assert_line(&run, "* checkout path_prefix /checkout handles the request edghtsrt_");
    assert_line(&run, "- home exact_path / path differs edghtsrt_");
    let expected = [
        "user_agent_filter passes no pattern denies it",
        "policies inbound depends only-known-methods",
        "request_headers passes +X-Checkout-Flow, +X-Edge, -X-Debug, -X-Internal-User",
        "backend passes bkd_2f9XkQcheckout000000000001",
    ];
    assert_eq!(modules(&run)[..4], expected, "{}", run.out);
    assert!(modules(&run)[4].starts_with("response_headers passes +Content-Security-Policy"), "{}", run.out);
    assert_eq!(modules(&run)[5..], ["policies outbound depends log-failures"]);

    let refused = folder.ok(&format!("{line} curl/8.1"));
    assert_eq!(modules(&refused), ["user_agent_filter refused denied by ^curl/"], "a refused request goes no further");
    let allowed = folder.ok(&format!("{line} Shop-Synthetic-Check/bot"));
    assert!(modules(&allowed)[0].starts_with("user_agent_filter passes allowed by"), "{}", allowed.out);
    assert!(!folder.path("store").exists(), "looking must not make a store");
}

#[test]
fn logins_and_tokens_are_told() {
    let folder = Folder::with_storefront();
    let trace = |rest: &str| folder.ok(&format!("trace --manifests storefront {rest}"));
    let account = "https://shop.example.com/account/orders";
    assert_line(&trace(account), "1 oidc depends requires a session or a login with https://id.shop.example.com");
    assert_line(&trace(&format!("options {account}")), "1 oidc passes OPTIONS requires no login");
    let api = "https://shop.example.com/api/v1/cart";
    assert_line(&trace(api), "1 jwt_validation depends no token in the header Authorization");
    let mut command = folder.command(&format!("trace --manifests storefront {api}"));
    let output = command.args(["--header", "authorization: Bearer abc"]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("the token in the header Authorization must be valid"), "{out}");
    assert_line(
        &trace("POST https://shop.example.com/hooks/stripe"),
        "1 webhook_verification depends requires a signature",
    );
    let staff = trace("https://admin.example.com/ --client-ip 203.0.113.7");
    assert_line(&staff, "1 mutual_tls depends requires a client certificate issued by ca_");
    assert_line(&staff, "2 ip_restriction depends 203.0.113.7: policies decide: ipp_");
    let deployments = trace("https://admin.example.com/deployments");
    assert_line(&deployments, "2 oauth depends requires a session or a login with github");
    assert_line(&deployments, "- dashboard path_prefix / shorter prefix than /deployments edghtsrt_");
}

#[test]
fn an_edge_that_passes_tls_through_goes_by_the_host() {
    let folder = Folder::with_storefront();
    let run = folder.ok("trace https://pay.example.com/any/path --manifests storefront");
    assert_line(&run, "edge payments by pay.example.com:443; TLS is passed through edghts_");
    assert!(!run.out.contains("\ntls ") && !run.out.contains("No certificate"), "{}", run.out);
    assert_line(&run, "route cards by path_prefix pay.example.com edghtsrt_");
    assert_line(&run, "- card-vault path_prefix vault.example.com host differs");
}

#[test]
fn what_nobody_takes_ends_with_one() {
    let folder = Folder::with_storefront();
    let trace = |url: &str| folder.run(&format!("trace {url} --manifests storefront"));
    let run = trace("https://shop.example.com/nowhere");
    assert_eq!(run.code, 1, "{}", run.all());
    assert_line(&run, "No route matches.");
    let run = trace("http://shop.example.com/");
    assert_eq!((run.code, run.out.contains("No edge serves shop.example.com:80.")), (1, true), "{}", run.all());
    assert_line(&run, "Edge storefront serves shop.example.com:443.");
    let mut command = folder.command("trace --manifests storefront");
    command.arg("GET https://shop.example.com/");
    let quoted = finish(command, "");
    assert!(quoted.code == 1 && quoted.err.contains("the method and the URL are two arguments"), "{}", quoted.all());
    for bad in ["ftp://shop.example.com", "https://", "GE7 https://shop.example.com"] {
        let run = trace(bad);
        assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_INVALID_FORMAT")), (1, true), "{bad}: {}", run.all());
    }
    let alone = trace("GET");
    assert!(alone.code == 1 && alone.err.contains("a URL is required after the method `GET`"), "{}", alone.all());
    assert_eq!(folder.run("trace https://shop.example.com/").code, 1, "there is no store");
}

fn edge(name: &str, hostport: &str, routes: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: [\"{hostport}\"]\n  routes: [{routes}]\n---\n"
    )
}

fn route(name: &str, match_type: &str, selector: &str) -> String {
    format!("{{name: {name}, match_type: {match_type}, match: \"{selector}\", backend: {{backend_id: bkd_1}}}}, ")
}

#[test]
fn the_closest_host_the_exact_path_and_the_longest_prefix_win() {
    let folder = Folder::new();
    let all = route("all", "path_prefix", "/");
    let edges = [
        ("short", "*.example.com:443"),
        ("long", "*.eu.example.com:443"),
        ("literal", "a.eu.example.com:443"),
        ("plain", "a.eu.example.com:80"),
    ];
    folder.write("m/edges.yaml", &edges.map(|(name, hostport)| edge(name, hostport, &all)).concat());
    let takes = |url: &str, start: &str| assert_line(&folder.ok(&format!("trace {url} --manifests m")), start);
    takes("https://a.eu.example.com", "edge literal by a.eu.example.com:443");
    takes("https://b.eu.example.com", "edge long by *.eu.example.com:443, a wildcard");
    takes("https://x.y.example.com", "edge short by");
    takes("http://A.eu.example.com", "edge plain by");
    assert_eq!(folder.run("trace https://example.com --manifests m").code, 1, "a wildcard stands for a label at least");

    let routes = [
        ("all", "path_prefix", "/"),
        ("x", "path_prefix", "/x"),
        ("xy", "path_prefix", "/x/y"),
        ("only-x", "exact_path", "/x"),
        ("host", "path_prefix", "b.example.com"),
        ("host-x", "path_prefix", "B.example.com/x"),
    ];
    let routes = routes.map(|(name, match_type, selector)| route(name, match_type, selector)).concat();
    folder.write("m/edges.yaml", &edge("one", "*.example.com:443", &routes));
    takes("https://a.example.com/x", "route only-x");
    takes("https://a.example.com/x", "- x path_prefix /x exact_path wins");
    takes("https://a.example.com/xenon", "route x ");
    takes("https://a.example.com/x/y/z", "route xy ");
    takes("https://a.example.com/x/y/z", "- x path_prefix /x shorter prefix than /x/y");
    takes("https://a.example.com/X", "route all ");
    takes("https://b.example.com/x", "route host-x ");
    takes("https://b.example.com/x", "- only-x exact_path /x a more specific host wins");
    takes("https://b.example.com/y", "route host ");
}

#[test]
fn a_plan_is_followed_before_it_is_applied() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    assert_line(&folder.ok("trace https://shop.example.com/catalog/1"), "route catalog by path_prefix /catalog");
    folder.edit("storefront/shop/storefront.yaml", "match: /catalog", "match: /products");
    let run = folder.ok("trace https://shop.example.com/products/1 --manifests storefront --after");
    let (before, after) = run.out.split_once("\nafter the plan\n").unwrap();
    assert!(before.contains("\nbefore the plan\n") && before.contains("No route matches."), "{before}");
    assert!(after.contains("path_prefix /products") && after.contains("The plan changes the handling"), "{after}");
    let same = folder.ok("trace https://shop.example.com/checkout --manifests storefront --after");
    assert!(same.out.contains("The plan does not change the handling of this request."), "{}", same.out);
    assert_eq!(folder.snapshot("store").revision, 1, "nothing was applied");
    let gone = folder.run("trace https://shop.example.com/catalog/1 --manifests storefront --after");
    assert_eq!(gone.code, 1, "what counts is how it will be: {}", gone.all());
}

#[test]
fn manifests_are_traced_as_if_a_store_that_is_named_had_them() {
    let folder = Folder::new();
    let all = route("all", "path_prefix", "/");
    folder.write("a/edges.yaml", &edge("wide", "y.example.com:443", &all));
    folder.ok("reconcile a --source a");
    folder.write("b/edges.yaml", &edge("narrow", "x.example.com:443", &all));
    let line = "trace https://y.example.com/ --manifests b --source b";
    assert_eq!(folder.run(line).code, 1, "the files only");
    assert_line(&folder.ok(&format!("{line} --store store")), "edge wide by y.example.com:443");
    let narrow = "trace https://x.example.com/ --manifests b --source b --store store";
    let run = folder.ok(narrow);
    assert_line(&run, "edge narrow by x.example.com:443");
    assert!(!run.out.contains("before the plan"), "{}", run.out);
    assert_eq!(folder.snapshot("store").revision, 1, "nothing was applied");
}

#[test]
fn a_plan_changes_a_request_also_where_no_step_shows_it() {
    let folder = Folder::new();
    folder.write("m/secret", "s");
    let write = |edge: Value, modules: Value| {
        let mut route = json!({"name": "r", "match_type": "path_prefix", "match": "/"});
        route["backend"] = json!({"backend_id": "bkd_1"});
        let mut spec = json!({"hostports": ["a.example.com:443"]});
        route.as_object_mut().unwrap().extend(modules.as_object().unwrap().clone());
        spec["routes"] = json!([route]);
        spec.as_object_mut().unwrap().extend(edge.as_object().unwrap().clone());
        let manifest = json!({
            "apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": {"name": "e"}, "spec": spec,
        });
        folder.write("m/e.json", &manifest.to_string());
    };
    let none = || json!({});
    let tls = |version: &str| json!({"tls_termination": {"min_version": version}});
    let policies = |action: &str| {
        let inbound = [json!({"name": "p", "actions": [{"type": action}]})];
        json!({"policies": {"inbound": inbound}})
    };
    let oidc = |client: &str, lenient: bool| {
        let login = json!({"issuer": "https://id.example.com", "client_id": client,
            "client_secret": {"from_file": "secret"}, "options_passthrough": lenient});
        json!({"oidc": login})
    };
    let agents = |deny: &[&str]| json!({"user_agent_filter": {"deny": deny}});
    let changed = "The plan changes the handling of this request: ";
    for (before, after, words) in [
        ((none(), policies("deny")), (none(), policies("log")), "opens access: `policies` required → open"),
        ((tls("1.2"), none()), (tls("1.3"), none()), ""),
        ((none(), oidc("a", false)), (none(), oidc("b", false)), "opens access: `oidc` may admit others"),
        ((none(), oidc("a", false)), (none(), oidc("a", true)), "opens access: `oidc` admits more"),
        (
            (none(), agents(&["bot"])),
            (none(), agents(&["bot", "spider"])),
            "`user_agent_filter` configured differently",
        ),
    ] {
        write(before.0, before.1);
        folder.ok("reconcile m");
        let line = "trace https://a.example.com/ --manifests m --after";
        let same = folder.ok(line);
        assert!(same.out.ends_with("The plan does not change the handling of this request.\n"), "{}", same.out);
        write(after.0, after.1);
        let told = folder.ok(line);
        assert!(told.out.contains(&format!("{changed}{words}")), "{words}\n{}", told.out);
    }
    let serve = folder.serve("");
    let told = through(&folder, &serve, "trace https://a.example.com/ --manifests m --after");
    assert!(told.out.contains(&format!("{changed}`user_agent_filter` configured differently")), "{}", told.all());
}

#[test]
fn a_pattern_of_any_length_is_traced() {
    let folder = Folder::new();
    let spec = json!({
        "apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": {"name": "e"},
        "spec": {"hostports": ["a.example.com:443"], "routes": [{
            "name": "r", "match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_1"},
            "user_agent_filter": {"deny": [format!("{}a{}", "(".repeat(40_000), ")".repeat(40_000))]},
        }]},
    });
    folder.write("m/e.json", &spec.to_string());
    let run = folder.ok("trace https://a.example.com/x --user-agent abc --manifests m");
    assert!(run.out.len() < 5_000 && run.out.contains("too costly to evaluate"), "{:.500}", run.out);
}

#[test]
fn an_empty_method_is_an_error_and_an_empty_user_agent_is_one() {
    let folder = Folder::with_storefront();
    let url = "https://shop.example.com/checkout";
    let trace = |arguments: &[&str]| {
        let mut command = folder.command("trace --manifests storefront");
        command.args(arguments);
        finish(command, "")
    };
    let wrong = trace(&["", url]);
    assert_eq!(wrong.code, 1, "{}", wrong.all());
    assert!(
        wrong.err.contains("`` is not an HTTP method") && wrong.err.contains("put the method first"),
        "{}",
        wrong.err
    );
    assert_eq!(
        modules(&trace(&[url]))[0],
        "user_agent_filter depends depends on the User-Agent; set it with --user-agent"
    );
    assert_eq!(modules(&trace(&[url, "--user-agent", ""]))[0], "user_agent_filter passes no pattern denies it");
}
