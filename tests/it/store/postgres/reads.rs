//! What a server answers while its database is away: everything but the history.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    http::{HttpAnswer, http},
    manifests::edge,
    postgres::Postgres,
    program::{Folder, Serve, has, until},
    users::{client, signed_in},
};

const SHOP: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  \
    hostports: ['shop.example.com:443']\n  routes:\n    - {name: cart, match_type: path_prefix, match: /cart, \
    backend: {backend_id: bkd_1}}\n";
/// The notice in place of the history on a page.
const NOTICE: &str = "The history is unavailable: no connection to the database";

/// A server whose database is away. It has an edge with a route, which a source has applied.
struct Outage {
    serve: Serve,
    folder: Folder,
    postgres: Postgres,
    /// The IDs of the edge and of the route.
    edge: String,
    route: String,
    /// The cookie of a session of the dashboard.
    cookie: String,
}

impl Outage {
    /// Starts one, where PostgreSQL is installed.
    fn begin() -> Option<Self> {
        let postgres = Postgres::start()?;
        let (folder, options) = (Folder::new(), postgres.options(&postgres.database()));
        folder.write("m/shop.yaml", SHOP);
        folder.ok(&format!("reconcile m {options}"));
        let id = |name: &str| {
            let shown = folder.ok(&format!("get {name} -o json {options}")).out;
            let shown: Value = serde_json::from_str(&shown).unwrap();
            shown["id"].as_str().unwrap().to_owned()
        };
        let (edge, route) = (id("edge shop"), id("route shop/cart"));
        let serve = folder.serve(&options);
        let cookie = signed_in(&serve, &serve.token);
        postgres.kill();
        Some(Self { serve, folder, postgres, edge, route, cookie })
    }

    fn page(&self, path: &str) -> HttpAnswer {
        http(&self.serve.address, "GET", path, &[("Cookie", self.cookie.as_str())], "")
    }
}

#[test]
fn a_resource_is_found_without_what_the_history_has_of_it() {
    let Some(outage) = Outage::begin() else { return };
    let Outage { serve, folder, postgres, route, .. } = &outage;
    let path = format!("/resources/{route}");
    let shown = ["source", "name", "file", "applied_revision", "changed_revision", "history_unavailable"];
    let origin = || {
        let answer = serve.get(&path);
        assert_eq!(answer.status, 200, "{}", answer.body);
        let found = answer.json();
        shown.map(|field| found[field].clone())
    };
    let unknown = [json!("default"), json!("cart"), json!(""), Value::Null, Value::Null, json!(true)];
    assert_eq!(origin(), unknown);
    for line in ["get routes", "get edge shop", "get route shop/cart", format!("get {route}").as_str()] {
        let run = client(folder, serve, line);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{line}\n{}", run.all());
        assert!(run.out.contains("shop"), "{line}\n{}", run.out);
    }
    let wide = client(folder, serve, "get routes -o wide");
    assert_eq!(wide.code, 0, "{}", wide.all());
    has(&wide, &["shop/cart", " default", NOTICE, "Files and commits are not shown."]);
    postgres.run();
    let known = [json!("default"), json!("cart"), json!("m/shop.yaml"), json!(1), json!(1), json!(false)];
    until("the history", || (origin() == known).then_some(()));
}

#[test]
fn pages_of_the_dashboard_have_one_notice_in_place_of_the_history() {
    let Some(outage) = Outage::begin() else { return };
    let Outage { postgres, edge, route, .. } = &outage;
    let (edge, route) = (format!("/ui/edges/{edge}"), format!("/ui/edges/{edge}/routes/{route}"));
    let pages = ["/ui/", "/ui/sources", "/ui/sources/default", edge.as_str(), route.as_str(), "/ui/revisions"];
    let notices = |page: &str| {
        let shown = outage.page(page);
        assert_eq!(shown.status, 200, "{page}: {}", shown.body);
        shown.body.matches(NOTICE).count()
    };
    for page in pages {
        assert_eq!(notices(page), 1, "{page}");
    }
    let shown = outage.page(&route).body;
    assert!(shown.contains("/cart") && !shown.contains("Declared at"), "{shown}");
    postgres.run();
    for page in pages {
        until(page, || (notices(page) == 0).then_some(()));
    }
}

#[test]
fn a_list_with_origins_asks_a_silent_database_once() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, options) = (Folder::new(), postgres.options(&postgres.database()));
    (0..6).for_each(|number| folder.write(&format!("m/{number}.yaml"), &edge(&format!("edge-{number}"), "x")));
    folder.ok(&format!("reconcile m {options}"));
    let serve = folder.serve(&options);
    let frozen = postgres.freeze();
    let began = Instant::now();
    let wide = client(&folder, &serve, "get edges -o wide");
    // Each question takes about four seconds to fail.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    drop(frozen);
    has(&wide, &[NOTICE]);
    assert_eq!((wide.code, wide.out.matches("  default  ").count()), (0, 6), "{}", wide.all());
}

#[test]
fn what_needs_the_database_says_that_it_does_not_answer_and_that_reads_do() {
    let Some(outage) = Outage::begin() else { return };
    let message = "the database of the store does not answer: changes and the history are unavailable until it is \
                   back; other reads are answered";
    let serve = &outage.serve;
    let created = serve.call("POST", "/ip_restrictions", r#"{"type":"api","description":"a"}"#);
    for refused in [created, serve.get("/history"), serve.get("/history/1")] {
        assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_STORE_UNAVAILABLE"));
        assert_eq!((refused.json()["msg"].as_str(), refused.header("retry-after")), (Some(message), vec!["5"]));
    }
    let page = outage.page("/ui/revisions/1");
    assert!(page.status == 503 && page.body.contains(message), "{}", page.body);
}

#[test]
fn the_page_of_a_server_says_that_it_only_reads() {
    let Some(outage) = Outage::begin() else { return };
    let shows = |badge: &str, other: &str| {
        let shown = outage.page("/ui/server");
        assert_eq!(shown.status, 200, "{}", shown.body);
        (shown.body.contains(badge) && !shown.body.contains(other)).then_some(())
    };
    let (writable, away) = (">writable<", ">reads only: no connection to the database<");
    until("the outage", || shows(away, writable));
    outage.postgres.run();
    until("the database", || shows(writable, away));
}
