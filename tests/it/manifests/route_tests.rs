//! Route tests beside the manifests: what must become of requests, before anything is applied (D118).

use serde_json::{Value, json};

use crate::support::{
    manifests::edge_with,
    program::{CONFIG, Folder, REPOSITORY, Run, copy, has, until},
    sources::{in_state, shown, status},
    users::{server_that_answers, through},
};

const SHOP: &str = "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - {name: cart, match_type: path_prefix, match: /cart, backend: {backend_id: bkd_cart}}
    - name: admin
      match_type: path_prefix
      match: /admin
      backend: {backend_id: bkd_admin}
      user_agent_filter: {deny: ['bot']}
";

const TESTS: &str = "\
apiVersion: edgewright/v1
kind: RouteTest
metadata: {name: shop}
spec:
  requests:
    - url: https://shop.example.com/cart/1
      expect: {edge: shop, route: cart, backend: bkd_cart, verdict: forwarded}
    - name: robots stay out
      url: shop.example.com/admin
      user_agent: bot/1
      expect: {route: admin, verdict: blocked}
";

const FAILED: &str = "ERR_EDGEWRIGHT_ROUTE_TEST_FAILED";

fn shop() -> Folder {
    let folder = Folder::new();
    folder.write("m/shop.yaml", SHOP);
    folder.write("m/tests.yaml", TESTS);
    folder
}

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()))
}

#[test]
fn tests_that_pass_are_no_part_of_what_is_applied() {
    let folder = shop();
    folder.ok("validate m");
    let run = folder.ok("test m");
    has(&run, &["passed  m/tests.yaml:6  shop: GET https://shop.example.com/cart/1"]);
    has(&run, &["passed  m/tests.yaml:8  shop: robots stay out", "2 requests tested: 2 passed"]);
    folder.ok("reconcile m");
    assert_eq!(folder.snapshot("store").len(), 3);
    has(&folder.ok("plan m"), &["No changes"]);
    folder.ok("export out");
    has(&folder.ok("test out"), &["0 requests tested"]);
}

#[test]
fn the_tests_of_the_example_pass() {
    let folder = Folder::with_storefront();
    copy(&std::path::Path::new(REPOSITORY).join("examples/route-tests"), &folder.path("route-tests"));
    let run = folder.ok("test storefront route-tests --coverage");
    has(&run, &[" passed", "routes: ", "modules: "]);
    assert!(!run.out.contains("failed"), "{}", run.all());
}

#[test]
fn a_source_whose_test_fails_is_not_applied() {
    let folder = shop();
    folder.ok("reconcile m");
    folder.edit("m/shop.yaml", "match: /admin", "match: /staff");
    for verb in ["validate", "plan", "reconcile", "reconcile --dry-run", "test"] {
        let run = folder.run(&format!("{verb} m --format json"));
        assert_eq!(run.code, 3, "{verb}: {}", run.all());
        let found = report(&run)["diagnostics"].as_array().unwrap().clone();
        let found: Vec<&Value> = found.iter().filter(|it| it["code"] == FAILED).collect();
        let told: Vec<(&str, u64)> =
            found.iter().map(|it| (it["message"].as_str().unwrap(), it["line"].as_u64().unwrap())).collect();
        // The verdict follows from that.
        assert_eq!(told, [("robots stay out: no route takes it, not `admin`", 11)], "{verb}");
        assert_eq!(found[0]["file"], "m/tests.yaml");
        let help = found[0]["help"].as_str().unwrap();
        assert!(help.ends_with("\nway: edge `shop` by shop.example.com:443, no route matches /admin"), "{help}");
    }
    let run = folder.run("test m");
    assert_eq!(run.all().matches("the verdict is `unserved`, not `blocked`").count(), 1, "{}", run.all());
    has(&run, &["failed  m/tests.yaml:8  shop: robots stay out", "1 error"]);
    let validated = folder.run("validate m").err;
    assert!(validated.contains("\n        way: edge `shop` by shop.example.com:443"), "{validated}");
    // What is left aside is not applied either.
    folder.write("m/other.yaml", &edge_with("a", "{x: 1}"));
    assert_eq!(folder.run("reconcile m --isolate").code, 3);
    assert_eq!(folder.run("history show 1").code, 0);
    assert_ne!(folder.run("history show 2").code, 0, "there is no second revision");
    // Whoever looks for the reason is not stopped by it.
    std::fs::remove_file(folder.path("m/other.yaml")).unwrap();
    has(&folder.run("trace shop.example.com/admin --manifests m"), &["No route matches."]);
}

#[test]
fn a_failure_of_an_informing_test_is_a_warning() {
    let folder = shop();
    folder.edit("m/tests.yaml", "verdict: forwarded", "verdict: login");
    assert_eq!(folder.run("reconcile m").code, 3);
    folder.edit("m/tests.yaml", "spec:\n", "spec:\n  informing_only: true\n");
    let run = folder.ok("reconcile m");
    has(&run, &[FAILED, "the verdict is `forwarded`, not `login`"]);
    has(&folder.ok("test m"), &["warned  m/tests.yaml:7", "1 passed, 1 warned"]);
    assert_eq!(folder.snapshot("store").len(), 3);
}

#[test]
fn a_test_that_cannot_be_read_may_be_one_that_fails() {
    let folder = shop();
    folder.edit("m/tests.yaml", "user_agent:", "user_agant:");
    let run = folder.run("reconcile m --isolate");
    assert_eq!(run.code, 3, "{}", run.all());
    has(&run, &["did you mean `user_agent`?"]);
    folder.write("m/tests.yaml", &TESTS.replace("requests:", "requests: ["));
    assert_eq!(folder.run("reconcile m --isolate").code, 3);
}

#[test]
fn what_depends_on_something_unknown_does_not_pass_silently() {
    let folder = shop();
    let limit = "user_agent_filter: {deny: ['bot']}\n      ip_restriction: {ip_policy_ids: [ipp_office]}";
    folder.edit("m/shop.yaml", "user_agent_filter: {deny: ['bot']}", limit);
    folder.edit("m/tests.yaml", "user_agent: bot/1", "user_agent: app/1");
    folder.edit("m/tests.yaml", "verdict: blocked", "verdict: forwarded");
    let run = folder.run("test m");
    assert_eq!(run.code, 3, "{}", run.all());
    has(&run, &["the verdict is `depends` (on `ip_restriction`), not `forwarded`"]);
    folder.edit("m/tests.yaml", "user_agent: app/1", "user_agent: app/1\n      assumed_to_pass: [ip_restriction]");
    folder.ok("test m");
}

#[test]
fn a_test_has_the_formats_of_other_commands() {
    let folder = shop();
    folder.edit("m/tests.yaml", "verdict: blocked", "verdict: login");
    let of = |format: &str| folder.run(&format!("test m --format {format}")).out;
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    assert_eq!((json["command"].as_str(), json["plan"].is_null()), (Some("test"), true));
    let results = json["tests"]["results"].as_array().unwrap();
    let told: Vec<(&Value, &Value, &Value)> =
        results.iter().map(|it| (&it["result"], &it["verdict"], &it["line"])).collect();
    let (passed, failed) = (json!("passed"), json!("failed"));
    assert_eq!(told, [(&passed, &json!("forwarded"), &json!(6)), (&failed, &json!("blocked"), &json!(8))]);
    let junit = of("junit");
    assert!(junit.contains("<testcase name=\"shop: robots stay out\" classname=\"route\""), "{junit}");
    assert!(junit.contains("failures=\"1\""), "a failure counts once: {junit}");
    assert!(of("github").contains("::error file=m/tests.yaml,line=11"));
    assert!(of("sarif").contains(FAILED) && of("markdown").contains("2 requests tested: 1 passed, 1 failed"));
}

#[test]
fn coverage_tells_what_no_test_touches() {
    let folder = shop();
    folder.write("m/tests.yaml", TESTS.split("    - name: robots").next().unwrap());
    let run = folder.ok("test m --coverage --fail-under 30");
    has(&run, &["routes: 1 of 2 tested (50.0 %)\n  shop/admin\n", "modules: 1 of 3 tested (33.3 %)"]);
    let run = folder.run("test m --fail-under 50");
    assert_eq!(run.code, 3, "{}", run.all());
    has(&run, &["the tests touch 33.3 % of the modules, less than 50 %"]);
    assert_ne!(folder.run("test m --fail-under 101").code, 0, "no share");
}

#[test]
fn a_server_runs_the_tests_among_everything_that_it_has() {
    let (here, there) = (Folder::new(), Folder::new());
    let edge = SHOP.replace("spec:\n", "spec:\n  delegates_to: [{source: team, path_prefix: /new/}]\n");
    there.write("platform/edge.yaml", &edge);
    there.ok("reconcile platform --source platform");
    let serve = there.serve("");
    here.write(
        "team/new.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: new}\n\
         spec: {edge: shop, match_type: path_prefix, match: /new/, backend: {backend_id: bkd_new}}\n",
    );
    here.write("team/tests.yaml", &TESTS.replace("route: admin", "edge: platform/shop"));
    let run = through(&here, &serve, "test team --source team");
    assert_eq!(run.code, 0, "{}", run.all());
    has(&run, &["2 requests tested: 2 passed"]);
    here.edit("team/tests.yaml", "verdict: blocked", "verdict: forwarded");
    let run = through(&here, &serve, "reconcile team --source team");
    assert_eq!(run.code, 3, "{}", run.all());
    has(&run, &[FAILED, "the verdict is `blocked`, not `forwarded`", "team/tests.yaml:11"]);
    // Without the command line, too.
    let files =
        json!(["new.yaml", "tests.yaml"].map(|name| json!({"name": name, "text": here.read(&format!("team/{name}"))})));
    let refused = serve.call("POST", "/reconciliations", &json!({"source": "team", "files": files}).to_string());
    assert_eq!((refused.status, refused.contains(FAILED)), (400, true), "{}", refused.body);
    let dry = json!({"source": "team", "dry_run": true, "tests": true, "files": files});
    let dry = serve.call("POST", "/reconciliations", &dry.to_string()).json();
    assert_eq!(dry["tests"]["results"][1]["result"], "failed", "{dry}");
    assert_eq!(serve.get("/edges/https").json()["https_edges"][0]["routes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_followed_source_whose_test_fails_keeps_the_last_good_state() {
    let folder = shop();
    folder.write(CONFIG, "sources: [{name: shop, path: m}]\n");
    let serve = folder.serve("");
    in_state(&serve, "shop", "Synced");
    assert_eq!(serve.metric("edgewright_route_tests{source=\"shop\"}"), Some(2.0));
    folder.edit("m/tests.yaml", "verdict: blocked", "verdict: denied");
    in_state(&serve, "shop", "Invalid");
    let shown = serve.get("/sources/shop").json();
    assert_eq!((&shown["counts"]["tests"], &shown["counts"]["failed_tests"]), (&json!(2), &json!(1)));
    assert_eq!(shown["conditions"][0]["message"], "1 error in the manifests", "nobody else has changed anything");
    assert_eq!(serve.metric("edgewright_route_tests_failed{source=\"shop\"}"), Some(1.0));
    folder.edit("m/tests.yaml", "verdict: denied", "verdict: blocked");
    in_state(&serve, "shop", "Synced");
}

#[test]
fn a_followed_source_tells_that_a_change_by_others_makes_its_test_fail() {
    let folder = shop();
    folder.edit("m/shop.yaml", "spec:\n", "spec:\n  delegates_to: [{source: team, path_prefix: /cart/}]\n");
    let route = |matched: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: new}}\n\
             spec: {{edge: shop, match_type: path_prefix, match: {matched}, backend: {{backend_id: bkd_new}}}}\n"
        )
    };
    folder.write("team/new.yaml", &route("/cart/new/"));
    folder.write(CONFIG, "sources:\n- {name: shop, path: m, interval: 1s}\n- {name: team, path: team, interval: 1s}\n");
    let serve = folder.serve("");
    in_state(&serve, "team", "Synced");
    in_state(&serve, "shop", "Synced");
    let fails = |taken: &str| {
        let shown = in_state(&serve, "shop", "Invalid");
        let condition = &shown["conditions"][0];
        let said = condition["message"].as_str().unwrap();
        let (said, after) = said.rsplit_once(' ').unwrap();
        assert!(
            said.ends_with("in the manifests: route tests fail because of a change by others after revision"),
            "{said}"
        );
        assert!(after.parse::<u64>().unwrap() < condition["observed_revision"].as_u64().unwrap(), "{condition}");
        let error = &shown["diagnostics"][0];
        assert_eq!(
            (&error["code"], &error["file"], &error["line"]),
            (&json!(FAILED), &json!("m/tests.yaml"), &json!(7))
        );
        let said = error["message"].as_str().unwrap();
        assert!(said.contains(taken) && said.ends_with(" takes it, not `cart`"), "{said}");
        assert_eq!(serve.metric("edgewright_route_tests_failed{source=\"shop\"}"), Some(1.0));
    };
    // Over the API.
    let path = serve.get("/edges/https").json()["https_edges"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/edges/https/{path}/routes");
    let made = serve.call("POST", &path, &json!({"match_type": "path_prefix", "match": "/cart/1"}).to_string());
    assert_eq!(made.status, 201, "{}", made.body);
    fails("the route `edghtsrt_");
    let made = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(serve.call("DELETE", &format!("{path}/{made}"), "").status, 204);
    in_state(&serve, "shop", "Synced");
    // By another source, which is not refused.
    folder.write("team/new.yaml", &route("/cart/1"));
    fails("the route `new` of source `team`");
    serve.wait_for("Route tests fail because of a change by others after revision");
    assert_eq!(status(&serve, "team")["state"], "Synced");
    // Nothing of the source is applied meanwhile, and the manifests are others now.
    folder.edit("m/shop.yaml", "  routes:\n", "  description: changed\n  routes:\n");
    until("other manifests", || {
        (status(&serve, "shop")["conditions"][0]["message"] == "2 errors in the manifests").then_some(())
    });
    assert_eq!(shown(&serve), [""]);
    folder.write("team/new.yaml", &route("/cart/new/"));
    in_state(&serve, "shop", "Synced");
    assert_eq!(shown(&serve), ["changed"]);
}

#[test]
fn a_gateway_is_asked_what_the_tests_ask() {
    let folder = shop();
    folder.edit(
        "m/tests.yaml",
        "verdict: blocked",
        "verdict: blocked}\n    - {url: shop.example.com/cart, method: POST, expect: {route: cart}",
    );
    let gateway = server_that_answers(|line| Some((if line.contains("/cart") { 200 } else { 403 }, "{}")));
    let run = folder.ok(&format!("test m --live {gateway}"));
    has(&run, &["status 200; not compared: edge, route, backend", "status 403", "POST may change something"]);
    let open = server_that_answers(|_| Some((200, "{}")));
    let run = folder.run(&format!("test m --live {open}"));
    assert_eq!(run.code, 3, "{}", run.all());
    has(&run, &["m/tests.yaml:8  shop: robots stay out", "the gateway answers 200, which is not `blocked`"]);
}
