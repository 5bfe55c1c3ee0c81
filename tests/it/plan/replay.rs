//! `edgewright replay`: what a change does to the requests of logs (D119).

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::program::{Folder, Run};
use crate::support::users::through;

/// A shop whose route for `/admin/` has more modules, and other routes.
fn shop(admin: &str, more: &str) -> String {
    let route = |name: &str, prefix: &str, modules: &str| {
        format!(
            "    - {{name: {name}, match_type: path_prefix, match: {prefix}, backend: {{backend_id: bkd_{name}}}{modules}}}\n"
        )
    };
    let (home, admin) = (route("home", "/", ""), route("admin", "/admin/", admin));
    let hostports = "  hostports: ['shop.example.com:443', '*.shop.example.com:443']\n  routes:\n";
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: shop}}\nspec:\n{hostports}{home}{admin}{more}"
    )
}

const RESTRICTED: &str = ", ip_restriction: {ip_policy_ids: [ipp_office]}";
const CART: &str = "    - {name: cart, match_type: path_prefix, match: /cart/, backend: {backend_id: bkd_cart}}\n";

/// A store with the shop, and the folder `next` with a change that opens `/admin/` and adds a route.
fn changed() -> Folder {
    let folder = Folder::new();
    folder.write("now/shop.yaml", &shop(RESTRICTED, ""));
    folder.write("next/shop.yaml", &shop("", CART));
    folder.ok("reconcile now");
    folder
}

fn line(client: &str, request: &str, bytes: u32) -> String {
    format!("{client} - - [10/Oct/2026:13:55:36 +0000] \"{request}\" 200 {bytes} \"-\" \"shop-app/1\"\n")
}

/// A log in the combined format: 5 requests that the change concerns, 3 others, and 2 lines that are no requests.
fn log() -> String {
    let mut log = String::new();
    for (client, request, bytes) in [
        ("192.0.2.1", "GET /admin/users?token=s3cret HTTP/1.1", 100),
        ("192.0.2.2", "POST /admin/users HTTP/1.1", 200),
        ("192.0.2.1", "GET /cart/1 HTTP/1.1", 1000),
        ("192.0.2.3", "GET /cart/anna.smith HTTP/1.1", 1000),
        ("192.0.2.3", "GET /cart/2 HTTP/1.1", 1000),
        ("192.0.2.1", "GET / HTTP/1.1", 10),
        ("192.0.2.4", "GET /about HTTP/1.1", 10),
        ("192.0.2.5", "GET /cartoon HTTP/1.1", 10),
    ] {
        log.push_str(&line(client, request, bytes));
    }
    log + "this is no request\n" + &line("192.0.2.6", r"\x16\x03\x01", 0)
}

#[track_caller]
fn document(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}\n{}", run.all()))
}

#[test]
fn requests_that_a_change_concerns_are_counted_in_classes() {
    let folder = changed();
    folder.write("access.log", &log());
    let line = "replay access.log --host shop.example.com --against next";
    let run = folder.ok(line);
    for text in [
        "8 requests, 3.3 kB, 5 clients in 10 lines",
        "1 line cannot be read",
        "access.log:9: not in the format of the file",
        "1 line without a request",
        "Treated differently: 5 requests, 3.3 kB, 3 clients (62.5 %)",
        "1. 2 requests, 300 B, 2 clients  OPENS ACCESS",
        "depends on ip_restriction; then forwarded to bkd_admin",
        "loses   ip_restriction",
        "2. 3 requests, 3.0 kB, 2 clients",
        "before  shop/home  /",
        "after   shop/cart  /cart/",
        "access.log:3",
    ] {
        assert!(run.out.contains(text), "{text}\n{}", run.all());
    }
    for personal in ["192.0.2", "s3cret", "anna", "users", "shop-app"] {
        assert!(!run.out.contains(personal), "{personal}\n{}", run.out);
    }
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
    assert_eq!(folder.run(&format!("{line} --detailed-exitcode")).code, 2);
    assert_eq!(folder.run(&format!("{line} --detailed-exitcode")).out, run.out, "the same log, the same report");

    let shown = folder.ok(&format!("{line} --show-urls --show-clients"));
    assert!(
        shown.out.contains("access.log:4  GET https://shop.example.com/cart/anna.smith  192.0.2.3"),
        "{}",
        shown.out
    );
    assert!(!shown.out.contains("s3cret"), "{}", shown.out);

    let report = document(&folder.ok(&format!("{line} --format json --top 1")));
    assert_eq!(report["all"], json!({"requests": 8, "bytes": 3330, "clients": 5, "clients_estimated": false}));
    assert_eq!(
        (report["differing"]["requests"].as_u64(), report["differing"]["all_classes"].as_u64()),
        (Some(5), Some(2))
    );
    let class = &report["differing"]["classes"][0];
    assert_eq!((&class["opens_access"], &class["lost_modules"]), (&json!(true), &json!(["ip_restriction"])));
    assert_eq!((&class["before"]["verdict"], &class["after"]["backend_id"]), (&json!("depends"), &json!("bkd_admin")));
    assert_eq!(report["differing"]["classes"][1], Value::Null);
}

#[test]
fn nothing_differs_in_a_plan_that_treats_requests_alike() {
    let folder = changed();
    folder.write("access.log", &log());
    folder.write(
        "same/shop.yaml",
        &shop(RESTRICTED, "").replace("metadata: {name: shop}", "metadata: {name: shop, labels: {a: b}}"),
    );
    let run = folder.ok("replay access.log --host shop.example.com --against same --detailed-exitcode");
    assert!(run.out.contains("Every request would be treated as before."), "{}", run.all());
    folder.write("same/shop.yaml", "kind: [");
    assert_eq!(folder.run("replay access.log --host shop.example.com --against same").code, 3);
    assert_eq!(folder.run("replay access.log --host shop.example.com --against missing").code, 3);
}

#[test]
fn requests_to_hosts_that_no_edge_serves_are_not_said_to_be_treated_as_before() {
    let folder = changed();
    folder.write("access.log", &log());
    let mistyped = "replay access.log --host shpo.example.com --against next";
    let run = folder.ok(&format!("{mistyped} --detailed-exitcode"));
    assert!(run.out.contains("No edge serves the host and port of any request, before or after"), "{}", run.all());
    assert!(!run.out.contains("treated as before"), "{}", run.all());
    assert!(run.out.lines().all(|line| line.chars().count() <= 80), "{}", run.out);
    assert_eq!(document(&folder.ok(&format!("{mistyped} --format json")))["without_edge"], json!(8));
    let served = "replay access.log --host shop.example.com --against next --format json";
    assert_eq!(document(&folder.ok(served))["without_edge"], json!(0));
    // Without a change, too, and if it is only some of the requests.
    let alone = "replay access.log --host shpo.example.com --format json";
    assert_eq!(document(&folder.ok(alone))["without_edge"], json!(8));
    let of_host = |host: &str| format!("{host} {}", line("192.0.2.1", "GET / HTTP/1.1", 10));
    folder.write("vhosts.log", &[of_host("shop.example.com"), of_host("shpo.example.com")].concat());
    let some = folder.ok("replay vhosts.log --log-format vhost-combined --against next");
    for text in ["Served by no edge, before or after: 1 request (50.0 %)", "Every request would be treated as before."]
    {
        assert!(some.out.contains(text), "{text}\n{}", some.all());
    }
}

#[test]
fn what_a_plan_that_breaks_an_invariant_would_do_is_shown_with_its_errors() {
    let folder = changed();
    folder.write("access.log", &log());
    folder.write(
        "rules/invariants.yaml",
        "apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {name: office}\nspec:\n  description: Only the office\n  \
         scope: {path_prefixes: [/admin/]}\n  requires_any: [ip_restriction]\n",
    );
    folder.ok("reconcile rules --source rules");
    assert_eq!(folder.run("reconcile next").code, 3);
    let shows = |run: &Run, text: &str| {
        assert!(run.code == 0 && run.out.contains(text), "{text}\n{}", run.all());
        assert!(run.err.contains("INVARIANT_BROKEN"), "{}", run.all());
    };
    let replay = "replay access.log --host shop.example.com --against next";
    let trace = "trace https://shop.example.com/admin/ --manifests next";
    shows(&folder.run(replay), "OPENS ACCESS");
    shows(&folder.run(&format!("{trace} --store store")), "bkd_admin");
    let serve = folder.serve("");
    for (line, text) in [(replay, "OPENS ACCESS"), (trace, "bkd_admin")] {
        shows(&through(&folder, &serve, line), text);
    }
}

#[test]
fn a_plan_and_a_replay_agree_on_what_opens() {
    let folder = Folder::new();
    folder.write("access.log", &line("192.0.2.1", "GET /admin/users HTTP/1.1", 100));
    for name in ["now/secret", "next/secret"] {
        folder.write(name, "s");
    }
    let from = |ids: &str| format!(", ip_restriction: {{ip_policy_ids: [{ids}]}}");
    let oidc = |more: &str| {
        let login = "issuer: 'https://id.example.com', client_id: shop, client_secret: {from_file: secret}";
        format!(", oidc: {{{login}{more}}}")
    };
    let deny = |more: &str| format!(", policies: {{inbound: [{{{more}actions: [{{type: deny}}]}}]}}");
    let some = "expressions: [\"req.URL == '/x'\"], ";
    for (before, after, opens) in [
        (from("ipp_a"), from("ipp_a, ipp_b"), true),
        (from("ipp_a, ipp_b"), from("ipp_a"), false),
        (oidc(""), oidc(", options_passthrough: true"), true),
        (oidc(""), oidc(", inactivity_timeout: 60"), false),
        (from("ipp_a"), oidc(""), true),
        (from("ipp_a"), deny(""), false),
        (deny(""), deny(some), true),
        (", user_agent_filter: {deny: ['.*']}".to_owned(), oidc(""), false),
    ] {
        folder.write("now/shop.yaml", &shop(&before, ""));
        folder.write("next/shop.yaml", &shop(&after, ""));
        folder.ok("reconcile now");
        let plan = folder.ok("plan next --behaviour");
        let replay = folder.ok("replay access.log --host shop.example.com --against next");
        let told = format!("{before} → {after}\n{}\n{}", plan.all(), replay.all());
        assert!(
            plan.out.contains("Behaviour: 1 change") && replay.out.contains("Treated differently: 1 request"),
            "{told}"
        );
        let found = (plan.out.contains("of which 1 opens access"), replay.out.contains("OPENS ACCESS"));
        assert_eq!(found, (opens, opens), "{told}");
    }
}

#[test]
fn revisions_are_compared_and_one_is_counted_by_route() {
    let folder = changed();
    folder.write("access.log", &log());
    folder.ok("reconcile next");
    let against = folder.ok("replay access.log --host shop.example.com --from 1 --against 2");
    assert!(against.out.contains("Treated differently: 5 requests"), "{}", against.all());
    let back = folder.ok("replay access.log --host shop.example.com --against 1");
    assert!(back.out.contains("gains   ip_restriction") && !back.out.contains("OPENS"), "{}", back.all());
    let counted = folder.ok("replay access.log --host shop.example.com --from 1");
    let rows: Vec<Vec<&str>> = counted.out.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in ["6 3.0 kB 4 shop/home /", "2 300 B 2 shop/admin /admin/"] {
        assert!(rows.iter().any(|words| words.join(" ") == row), "{row}\n{}", counted.out);
    }
    let elsewhere = folder.ok("replay access.log --host elsewhere.example.com");
    for text in ["(no edge)", "Without a request: 3 routes"] {
        assert!(elsewhere.out.contains(text), "{text}\n{}", elsewhere.out);
    }
}

#[test]
fn every_format_and_compression_gives_the_same_counts() {
    let folder = changed();
    let requests = [("/admin/a", "192.0.2.1"), ("/cart/b", "192.0.2.2"), ("/", "192.0.2.2")];
    let each = |line: &dyn Fn(&str, &str) -> String| requests.map(|(path, client)| line(path, client)).concat();
    let common = each(&|path, client| format!("{client} - - [x] \"GET {path} HTTP/1.1\" 200 5\n"));
    let vhost =
        each(&|path, client| format!("a.Shop.example.com:443 {client} - - [x] \"GET {path} HTTP/1.1\" 200 5\n"));
    let nginx = each(&|path, client| {
        let fields = json!({"remote_addr": client, "request": format!("GET {path} HTTP/1.1"), "body_bytes_sent": "5",
            "host": "shop.example.com", "scheme": "https"});
        format!("{fields}\n")
    });
    let envoy = each(&|path, client| {
        let fields = json!({"method": "GET", "path": path, "authority": "shop.example.com", "bytes_sent": 5,
            "downstream_remote_address": format!("{client}:1234")});
        format!("{fields}\r\n")
    });
    for (name, text) in [("common", &common), ("vhost", &vhost), ("nginx", &nginx), ("envoy", &envoy)] {
        folder.write(name, text);
    }
    let mut names = vec!["common", "vhost", "nginx", "envoy"];
    for (program, extension) in [("gzip", "gz"), ("zstd", "zst")] {
        let packed = Command::new(program).args(["-c", "-q"]).arg(folder.path("common")).output();
        // Not every machine has zstd.
        if let Some(packed) = packed.ok().filter(|packed| packed.status.success()) {
            let name = format!("common.{extension}");
            fs::write(folder.path(&name), packed.stdout).unwrap();
            names.push(if program == "gzip" { "common.gz" } else { "common.zst" });
        }
    }
    let line = "--host shop.example.com --against next --format json";
    let sums = |run: &Run| {
        let report = document(run);
        let of =
            |at: &str| ["requests", "bytes", "clients"].map(|field| report.pointer(&format!("{at}/{field}")).cloned());
        (of("/all"), of("/differing"))
    };
    let expected = sums(&folder.ok(&format!("replay common {line}")));
    assert_eq!(expected.0, [3, 15, 2].map(|number| Some(json!(number))));
    assert_eq!(expected.1, [2, 10, 2].map(|number| Some(json!(number))));
    for name in &names {
        assert_eq!(sums(&folder.ok(&format!("replay {name} {line}"))), expected, "{name}");
    }
    assert_eq!(sums(&folder.run_with(&format!("replay - {line}"), &nginx)), expected);
    let twice = sums(&folder.ok(&format!("replay {} common {line}", names.join(" ")))).0;
    assert_eq!(twice[0], Some(json!(3 * (names.len() + 1))), "files of several formats");
    fs::write(folder.path("torn.gz"), &fs::read(folder.path("common.gz")).unwrap()[..40]).unwrap();
    let torn = folder.run(&format!("replay torn.gz {line}"));
    assert!(torn.code == 1 && torn.err.contains("cut off"), "{}", torn.all());
}

#[test]
fn logs_that_say_too_little_are_errors() {
    let folder = changed();
    folder.write("access.log", &log());
    folder.write("notes.txt", "one\ntwo\n");
    folder.write("empty.log", "");
    for (line, text) in [
        ("replay access.log --against next", "set --host"),
        ("replay notes.txt", "set --log-format"),
        ("replay empty.log --against next", "the logs are empty"),
        ("replay missing.log", "cannot read the log `missing.log`"),
        ("replay access.log --log-format xml", "expected one of combined, vhost-combined, json"),
        ("replay access.log --host shop.example.com:443", "--port"),
        ("replay access.log --host shop.example.com --log-format json", "no line of the logs is a request"),
        ("replay access.log --host shop.example.com --store elsewhere", "no store found"),
    ] {
        let run = folder.run(line);
        assert!(run.code == 1 && run.err.contains(text) && run.out.is_empty(), "{line}: {text}\n{}", run.all());
    }
    folder.ok("replay empty.log access.log --host shop.example.com --against next");
}

#[test]
fn a_server_has_both_states() {
    let folder = Folder::new();
    folder.write("now/shop.yaml", &shop(RESTRICTED, ""));
    folder.write("next/shop.yaml", &shop("", CART));
    folder.write("access.log", &log());
    let serve = folder.serve("");
    assert_eq!(through(&folder, &serve, "reconcile now").code, 0);
    let logs = "replay access.log --host shop.example.com";
    let planned = through(&folder, &serve, &format!("{logs} --against next"));
    assert_eq!(planned.code, 0, "{}", planned.all());
    assert!(
        planned.out.contains("OPENS ACCESS") && planned.out.contains("after   shop/cart  /cart/"),
        "{}",
        planned.out
    );
    assert_eq!(through(&folder, &serve, "reconcile next").code, 0);
    let counted = through(&folder, &serve, logs);
    assert!(counted.out.contains("shop/cart"), "{}", counted.all());
    let revision = serve.get("/routing").json()["revision"].as_u64().unwrap();
    let earlier = through(&folder, &serve, &format!("{logs} --from {} --against {revision}", revision - 1));
    assert_eq!(earlier.out, planned.out, "{}", earlier.all());
    let both = through(&folder, &serve, &format!("{logs} --from 1 --against next"));
    assert!(both.code == 1 && both.err.contains("--from"), "{}", both.all());
    let offices = "kind: IpRestriction\nmetadata: {name: offices}\nspec: {type: endpoints, enforced: true, ip_policy_ids: [ipp_1]}\n";
    folder.write("next/offices.yaml", &format!("apiVersion: edgewright/v1\n{offices}"));
    let restricted = through(&folder, &serve, &format!("{logs} --against next"));
    assert!(restricted.out.contains("gains   ip_restriction endpoints"), "{}", restricted.all());
}
