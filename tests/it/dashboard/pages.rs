//! What the pages show: edges, routes, revisions, traces and sources, with the texts of others escaped and without secrets.

use serde_json::{Value, json};

use super::Browser;
use crate::support::manifests::{edge, edge_with};
use crate::support::program::until;
use crate::support::server::{BASE_URL, Server};

/// A text that would be markup and code, and that would show what follows in the other direction.
pub(super) const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\u{202e}";
const SECRET: &str = "canary-of-the-dashboard";

/// Creates an edge with a route, and returns both IDs.
pub(super) fn edge_with_route(server: &Server, host: &str, route: Value) -> (String, String) {
    let body = json!({"description": HOSTILE, "metadata": HOSTILE, "hostports": [format!("{host}:443")]});
    let edge = server.call("POST", "/edges/https", Some(body));
    assert_eq!(edge.status, 201, "{}", edge.text);
    let edge = edge.str("/id").to_owned();
    let route = server.call("POST", &format!("/edges/https/{edge}/routes"), Some(route));
    assert_eq!(route.status, 201, "{}", route.text);
    (edge, route.str("/id").to_owned())
}

pub(super) fn protected() -> Value {
    json!({
        "match_type": "path_prefix",
        "match": "/cart",
        "description": HOSTILE,
        "metadata": HOSTILE,
        "backend": {"backend_id": "bkd_1"},
        "webhook_verification": {"provider": "github", "secret": SECRET},
    })
}

/// All pages about an edge and its route.
fn pages_of(edge: &str, route: &str) -> Vec<String> {
    let named = [
        "".to_owned(),
        "edges?search=shop".to_owned(),
        format!("edges/{edge}"),
        format!("edges/{edge}/routes/{route}"),
        "routes".to_owned(),
        "routes?access=protected".to_owned(),
        "revisions".to_owned(),
        "revisions/2".to_owned(),
        "revisions/3".to_owned(),
        "rollback?to=3".to_owned(),
        "trace?url=shop.example.com%2Fcart%2F1".to_owned(),
        "keys".to_owned(),
        "server".to_owned(),
    ];
    named.iter().map(|page| format!("/ui/{page}")).collect()
}

#[test]
fn no_page_has_markup_of_others_or_a_secret() {
    let server = Server::start();
    let (edge, route) = edge_with_route(&server, "shop.example.com", protected());
    let changed = json!({"description": format!("{HOSTILE} again")});
    assert_eq!(server.call("PATCH", &format!("/edges/https/{edge}"), Some(changed)).status, 200);
    server.call(
        "PUT",
        &format!("/edges/https/{edge}/routes/{route}/webhook_verification"),
        Some(json!({"provider": "github", "secret": format!("{SECRET}-2")})),
    );
    let key = server.call("POST", "/api_keys", Some(json!({"description": HOSTILE})));
    assert_eq!(key.status, 201, "{}", key.text);
    let manifest = json!({
        "apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": {"name": "planned"},
        "spec": {"description": HOSTILE, "hostports": ["planned.example.com:443"]},
    });
    let files = json!([{"name": "a.json", "text": manifest.to_string()}]);
    let plan = json!({"source": "planned", "dry_run": true, "page": true, "commit_message": HOSTILE, "files": files});
    let planned = server.call("POST", "/reconciliations", Some(plan));
    let planned = planned.str("/page").strip_prefix(BASE_URL).unwrap_or_else(|| panic!("{}", planned.text));
    for token in [&server.admin, &server.viewer] {
        let browser = Browser::signed_in(&server, token);
        for page in pages_of(&edge, &route).into_iter().chain([planned.to_owned()]) {
            let text = browser.page(&page);
            assert!(!text.contains("<script>alert") && !text.contains("<img"), "{page}: {text}");
            assert!(!text.contains(SECRET) && !text.contains(key.str("/token")), "{page}: {text}");
            assert!(!text.contains("style=\"") && !text.contains("onclick"), "{page} has inline code");
            assert!(!text.contains('\u{202e}'), "{page}: {text}");
        }
        let text = browser.page(&format!("/ui/edges/{edge}/routes/{route}"));
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{text}");
        let planned = browser.page("/ui/rollback?to=3");
        assert!(planned.contains("onerror=alert(2)&gt;\\u{202e}"), "{planned}");
    }
    // What somebody enters is text, too.
    let browser = Browser::signed_in(&server, &server.viewer);
    let encoded: String = form_urlencoded::byte_serialize(HOSTILE.as_bytes()).collect();
    for page in [
        "edges?search=",
        "routes?search=",
        "revisions?source=",
        "trace?url=",
        "keys?search=",
        "trace?url=a.example&method=",
    ] {
        let text = browser.page(&format!("/ui/{page}{encoded}"));
        assert!(!text.contains("<script>alert") && !text.contains("<img"), "{page}: {text}");
        assert!(!text.contains('\u{202e}'), "{page}: {text}");
    }
    for missing in ["edges/x", "edges/x/routes/y", "sources/x", "plans/x", "revisions/99", "revisions/x"] {
        let answer = browser.get(&format!("/ui/{missing}"));
        assert!(answer.status == 404 && answer.text.starts_with("<!DOCTYPE html>"), "{missing}: {}", answer.text);
        assert!(answer.text.contains("<nav class=\"sections\""), "{missing} leads on: {}", answer.text);
    }
    let nothing = browser.get("/ui/nope/at/all");
    assert!(nothing.status == 404 && nothing.text.contains("page not found"), "{}", nothing.text);
    assert!(nothing.text.contains("href=\"../../\""), "it leads to the overview: {}", nothing.text);
    let program = server.send("GET", "/ui/nope", &[("Accept".into(), "*/*".into())], None);
    assert_eq!((program.status, program.str("/error_code")), (404, "ERR_EDGEWRIGHT_NOT_FOUND"));
}

#[test]
fn an_edge_shows_what_is_protected_and_what_is_open() {
    let server = Server::start();
    let (edge, route) = edge_with_route(&server, "shop.example.com", protected());
    let open = json!({"match_type": "exact_path", "match": "/admin", "backend": {"backend_id": "bkd_1"}});
    let open = server.call("POST", &format!("/edges/https/{edge}/routes"), Some(open)).str("/id").to_owned();
    let browser = Browser::signed_in(&server, &server.viewer);
    let page = browser.page(&format!("/ui/edges/{edge}"));
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(at(&open) < at(&route), "the exact path is tried first");
    assert!(!page.contains("open to everybody") && page.contains("</svg>webhook_verification</span>"), "{page}");
    let access = |page: &str, id: &str| {
        let (_, row) = page.split_once(&format!("/routes/{id}\"")).unwrap_or_else(|| panic!("{id}: {page}"));
        row.split_once("data-label=\"Access\">").unwrap().1.split_once("</td>").unwrap().0.to_owned()
    };
    for page in [&page, &browser.page("/ui/routes")] {
        assert!(access(page, &open).ends_with("restricts access\">open</span>"), "{page}");
        assert!(!access(page, &route).contains(">open<"), "{page}");
    }
    assert!(browser.page(&format!("/ui/edges/{edge}/routes/{open}")).contains("open to everybody"));
    let only = |access: &str| browser.page(&format!("/ui/routes?access={access}"));
    assert!(only("open").contains(&open) && !only("open").contains(&route));
    assert!(only("protected").contains(&route) && !only("protected").contains(&open));
    let overview = browser.page("/ui/");
    assert!(overview.contains("new open route") && !overview.contains("are in sync"), "{overview}");
    // The revision that takes the protection says so.
    let gone = server.call("DELETE", &format!("/edges/https/{edge}/routes/{route}/webhook_verification"), None);
    assert_eq!(gone.status, 204);
    for page in ["", "revisions/5", &format!("edges/{edge}/routes/{route}")] {
        let text = browser.page(&format!("/ui/{page}"));
        assert!(text.contains("opens access: without webhook_verification"), "{page}: {text}");
    }
}

#[test]
fn a_trace_shows_the_way_and_who_lost() {
    let server = Server::start();
    let (edge, route) = edge_with_route(&server, "shop.example.com", protected());
    let rest = json!({"match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_2"}});
    let rest = server.call("POST", &format!("/edges/https/{edge}/routes"), Some(rest)).str("/id").to_owned();
    let browser = Browser::signed_in(&server, &server.viewer);
    let page =
        browser.page("/ui/trace?method=GET&url=https%3A%2F%2Fshop.example.com%2Fcart%2F1&client_ip=&user_agent=&at=");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(at(&route) < at(&rest) && page.contains("shorter prefix than /cart"), "{page}");
    let before = browser.page("/ui/trace?url=shop.example.com%2Fcart&at=2");
    assert!(
        before.contains("No route handles the request: it is answered 404.") && before.contains("at revision 2"),
        "{before}"
    );
    let is_open = |page: &str| page.contains("<details open>");
    assert!(is_open(&before) && !is_open(&page), "what is asked for is shown, and nothing else");
    assert!(
        browser.page("/ui/trace?url=other.example.com").contains("No edge serves <code>other.example.com:443</code>.")
    );
    let malformed = browser.page("/ui/trace?url=ftp%3A%2F%2Fx");
    assert!(malformed.contains("role=\"alert\"") && malformed.contains("write a host and a path"), "{malformed}");
    assert!(malformed.contains("aria-describedby=\"help\"") && malformed.contains("id=\"help\""), "{malformed}");
    assert_eq!(browser.get("/ui/trace?url=shop.example.com&at=99").status, 404);
}

#[test]
fn a_misspelt_parameter_is_refused_rather_than_ignored() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.viewer);
    for (page, message) in [
        ("routes?acces=open", "unknown query parameter <code>acces</code>; did you mean <code>access</code>?"),
        ("edges?at=1", "unknown query parameter <code>at</code>"),
        ("server?x=1", "unknown query parameter <code>x</code>"),
        ("rollback?to=1&to=2", "duplicate query parameter <code>to</code>"),
    ] {
        let answer = browser.get(&format!("/ui/{page}"));
        assert!(answer.status == 400 && answer.text.starts_with("<!DOCTYPE html>"), "{page}: {}", answer.text);
        assert!(answer.text.contains(message), "{page}: {}", answer.text);
    }
}

#[test]
fn edges_are_searched_sorted_and_paged_on_the_server() {
    let server = Server::start();
    for number in 0..120 {
        let body =
            json!({"description": format!("number {number}"), "hostports": [format!("h{number}.example.com:443")]});
        assert_eq!(server.call("POST", "/edges/https", Some(body)).status, 201);
    }
    let browser = Browser::signed_in(&server, &server.viewer);
    for sort in ["newest", "oldest", "name"] {
        let (mut address, mut seen, mut pages) = (format!("?sort={sort}"), Vec::new(), 0);
        loop {
            let page = browser.page(&format!("/ui/edges{address}"));
            seen.extend(page.split("<code>h").skip(1).map(|rest| rest.split('.').next().unwrap().to_owned()));
            pages += 1;
            let Some((_, next)) = page.split_once("rel=\"next\" href=\"") else { break };
            address = next.split('"').next().unwrap().replace("&amp;", "&");
            assert!(pages < 10, "the pages end");
        }
        let mut sorted = seen.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!((seen.len(), sorted.len(), pages), (120, 120, 3), "{sort}");
        match sort {
            "newest" => assert_eq!((seen[0].as_str(), seen[119].as_str()), ("119", "0")),
            "oldest" => assert_eq!((seen[0].as_str(), seen[119].as_str()), ("0", "119")),
            _ => {}
        }
    }
    let found = browser.page("/ui/edges?search=H77.example");
    assert!(found.contains("h77.example.com:443") && !found.contains("h78."), "{found}");
    assert!(browser.page("/ui/edges?search=nowhere").contains("No matching edge."));
    let many = format!("{}nowhere", "h7+".repeat(5000));
    for page in ["edges?sort=name", "edges?sort=newest", "routes?sort=host", "keys?use="] {
        let page = browser.page(&format!("/ui/{page}&search={many}"));
        assert!(page.contains("Only the first 8 words and 200 characters are searched for."), "{page}");
    }
    assert!(!browser.page("/ui/edges?search=h7").contains("Only the first"));
}

#[test]
fn a_source_is_shown_with_its_state() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let browser = Browser::signed_in(&server, &server.viewer);
    for page in ["", "sources", "sources/shop"] {
        let text = browser.page(&format!("/ui/{page}"));
        assert!(text.contains("shop"), "{page}: {text}");
    }
    assert!(browser.page("/ui/sources").contains("<span class=\"badge good\">Synced</span>"));
    assert!(browser.page("/ui/edges").contains(">store</a>"));
    let first = "<ul class=\"status\" aria-label=\"State\"><li><a href=\"#sources\"><span class=\"badge good\">1 of 1 source live";
    assert!(browser.page("/ui/").contains(first), "{}", browser.page("/ui/"));
}

#[test]
fn a_source_has_one_state_on_all_pages() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let suspend = json!({"reason": "the provider is down"});
    assert_eq!(server.call("POST", "/sources/shop/suspend", Some(suspend)).status, 200);
    let browser = Browser::signed_in(&server, &server.viewer);
    for page in ["", "sources", "sources/shop"] {
        let text = browser.page(&format!("/ui/{page}"));
        assert!(text.contains("<span class=\"badge warning\">Suspended</span>"), "{page}: {text}");
    }
    let overview = browser.page("/ui/");
    assert!(overview.contains("<span class=\"badge warning\">0 of 1 source live</span>"), "{overview}");
    assert!(
        overview.contains("<a href=\"#sources\"><span class=\"badge warning\">1 suspended</span></a>"),
        "{overview}"
    );
}

#[test]
fn a_source_shows_its_last_revision_and_its_last_sync() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let browser = Browser::signed_in(&server, &server.viewer);
    let applied = server.call("GET", "/history?source=shop", None).json["history"][0].clone();
    // A sync that applies nothing, at a later revision.
    assert_eq!(server.call("POST", "/edges/https", Some(json!({"hostports": ["other.example.com:443"]}))).status, 201);
    let begun = server.call("POST", "/sources/shop/sync", None).json["syncs_begun"].as_u64().unwrap();
    let ended = || server.call("GET", "/sources/shop", None).json["syncs_ended"].as_u64().unwrap();
    until("the sync", || (ended() > begun).then_some(()));
    let page = browser.page("/ui/sources/shop");
    let fact = |name: &str| {
        let (_, rest) = page.split_once(&format!("<dt>{name}</dt>")).unwrap_or_else(|| panic!("{name}: {page}"));
        rest.split_once("</dd>").unwrap().0
    };
    let (revision, at) = (applied["revision"].as_u64().unwrap(), applied["created_at"].as_str().unwrap());
    assert!(fact("Last applied").contains(&format!("datetime=\"{at}\"")), "{page}");
    assert!(fact("Last applied").contains(&format!("revisions/{revision}\">revision {revision}</a>")), "{page}");
    assert!(fact("Last sync").contains("<time ") && !page.contains("Last in sync"), "{page}");
}

#[test]
fn a_change_by_hand_is_shown_at_once_with_when_it_is_put_back() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let browser = Browser::signed_in(&server, &server.viewer);
    assert!(browser.page("/ui/").contains("Nobody has changed what a followed source owns."));
    assert!(browser.page("/ui/sources/shop").contains("Nothing was changed by hand."));
    let edges = server.call("GET", "/edges/https", None);
    let path = format!("/edges/https/{}", edges.str("/https_edges/0/id"));
    assert_eq!(server.call("PATCH", &path, Some(json!({"description": "by hand"}))).status, 200);
    let link = format!("HttpsEdge <a href=\"../edges/{}\">store</a>", path.rsplit_once('/').unwrap().1);
    let text = browser.page("/ui/sources/shop");
    assert!(text.contains(&format!("<h3>{link}</h3>")) && text.contains("<code>/description</code> changed"), "{text}");
    assert!(text.contains("<p>Declared <code>Shop</code> → now <code>by hand</code></p>"), "{text}");
    assert!(text.contains("Put back at the next sync, "), "{text}");
    // The overview has a line of it, and as many as its state says.
    let text = browser.page("/ui/");
    assert!(text.contains(&format!("<li>{}: <code>/description</code>", link.replace("../", "./"))), "{text}");
    assert!(text.contains(">1 changed by hand<") && text.contains(">0 of 1 source live<"), "{text}");
    assert!(!text.contains("Declared <code>") && !text.contains("Put back"), "{text}");
    for page in ["", "sources/shop"] {
        let text = browser.page(&format!("/ui/{page}"));
        assert!(text.contains(">Drifted</span>"), "{text}");
        assert!(
            !text.contains("Nobody has")
                && !text.contains("Nothing was changed")
                && !text.contains("All followed sources are in sync"),
            "{text}"
        );
    }
    let own = browser.page(&format!("/ui{path}").replace("/edges/https/", "/edges/"));
    assert!(own.contains("<h2>Changed by hand</h2>") && own.contains("→ now <code>by hand</code></p>"), "{own}");
    let suspend = json!({"reason": "the provider is down"});
    assert_eq!(server.call("POST", "/sources/shop/suspend", Some(suspend)).status, 200);
    let text = browser.page("/ui/sources/shop");
    assert!(text.contains("Put back when the source is resumed."), "{text}");
    let text = Browser::signed_in(&server, &server.editor).page("/ui/sources/shop/resume");
    assert!(text.contains("changed by hand: 1 resource: store <code>/description</code>."), "{text}");
    // What others changed of a module is a diff.
    let module = server.call("PUT", &format!("{path}/tls_termination"), Some(json!({"min_version": "1.3"})));
    assert!(module.status < 300, "{}", module.text);
    let text = browser.page("/ui/sources/shop");
    assert!(text.contains("<code>/tls_termination</code> changed"), "{text}");
    assert!(text.contains("<span class=\"added\">+ min_version: '1.3'\n</span>"), "{text}");
}

#[test]
fn routes_are_sorted_by_host_and_those_changed_by_hand_are_marked() {
    let route = |name: &str| {
        format!(
            "    - {{name: {name}, match_type: exact_path, match: /{name}, backend: {{backend_id: bkd_1}}, \
             compression: {{}}}}\n"
        )
    };
    let edge = |name: &str, host: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  \
             hostports: ['{host}.example.com:443']\n  routes:\n{}",
            route("one") + &route("two")
        )
    };
    let server = Server::following("shop", &format!("{}---\n{}", edge("first", "zebra"), edge("second", "ant")));
    let browser = Browser::signed_in(&server, &server.viewer);
    let page = browser.page("/ui/routes");
    let at = |page: &str, text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(at(&page, "ant.example.com:443") < at(&page, "zebra.example.com:443"), "{page}");
    assert!(page.contains("<p>4 routes</p>") && page.contains("<a href=\"./sources/shop\">shop</a></td>"), "{page}");
    let by_edge = browser.page("/ui/routes?sort=edge&source=shop");
    assert!(by_edge.contains(">first/one</a>") && !by_edge.contains("<p>4 routes</p>"), "{by_edge}");
    assert!(!page.contains("changed by hand"), "{page}");
    let edges = server.call("GET", "/edges/https", None);
    let routes = format!("/edges/https/{}/routes", edges.str("/https_edges/0/id"));
    let listed = server.call("GET", &routes, None);
    let (id, by_hand) = (listed.str("/routes/0/id"), json!({"description": "by hand"}));
    assert_eq!(server.call("PATCH", &format!("{routes}/{id}"), Some(by_hand)).status, 200);
    let page = browser.page("/ui/routes");
    assert_eq!(page.matches("changed by hand").count(), 1, "{page}");
    let own = browser.page(&format!("/ui{routes}/{id}").replace("/edges/https/", "/edges/"));
    assert!(own.contains("<code>/description</code> changed") && own.contains("Put back at the next sync"), "{own}");
    let (_, row) = page.split_once(&format!("/routes/{id}\"")).unwrap();
    assert!(row.split_once("</tr>").unwrap().0.contains("changed by hand"), "{page}");
}

#[test]
fn a_route_without_a_source_that_takes_requests_is_marked_and_so_is_the_declared_one() {
    let home = "{name: home, match_type: path_prefix, match: /home, backend: {backend_id: bkd_1}}";
    let shop = format!("{{hostports: ['shop.example.com:443'], routes: [{home}]}}");
    let server = Server::following("shop", &edge_with("shop", &shop));
    let browser = Browser::signed_in(&server, &server.viewer);
    let edges = server.call("GET", "/edges/https", None);
    let routes = format!("/edges/https/{}/routes", edges.str("/https_edges/0/id"));
    let (takes, loses) = ("takes requests from a declared route", "loses requests to a route without a source");
    let page = browser.page("/ui/routes");
    assert!(!page.contains(takes) && !page.contains(loses), "{page}");
    let sale = json!({"match_type": "path_prefix", "match": "/home/sale"});
    let id = server.call("POST", &routes, Some(sale)).str("/id").to_owned();
    let page = browser.page("/ui/routes");
    assert_eq!([takes, loses].map(|text| page.matches(text).count()), [1, 1], "{page}");
    let own = browser.page(&format!("/ui{routes}/{id}").replace("/edges/https/", "/edges/"));
    let taken = "which no source owns, takes requests from <a ";
    assert!(own.contains(taken) && own.contains(">shop/home</a>"), "{own}");
    let traced = |path: &str| browser.page(&format!("/ui/trace?url=shop.example.com{path}"));
    let page = traced("/home/sale");
    assert!(page.contains(taken) && page.contains("of no source: it was made over the API"), "{page}");
    assert!(traced("/home/other").contains("of source <a href=\"./sources/shop\">shop</a>"));
}

#[test]
fn the_history_of_an_edge_has_the_changes_of_its_routes() {
    let server = Server::start();
    let (edge, route) = edge_with_route(&server, "shop.example.com", protected());
    let (other, _) = edge_with_route(&server, "other.example.com", protected());
    let path = format!("/edges/https/{edge}/routes/{route}");
    assert_eq!(server.call("PATCH", &path, Some(json!({"description": "changed"}))).status, 200);
    assert_eq!(server.call("DELETE", &path, None).status, 204);
    let page = Browser::signed_in(&server, &server.viewer).page(&format!("/ui/edges/{edge}"));
    let (_, history) = page.split_once("<h2>History</h2>").unwrap();
    for event in ["created", "changed", "deleted"] {
        let entry = format!(">{event}</span> HttpsEdgeRoute {edge}/{route}</h3>");
        assert_eq!(history.matches(&entry).count(), 1, "{event}: {history}");
    }
    assert!(history.contains(">created</span> HttpsEdge <a ") && !history.contains(&other), "{history}");
}

#[test]
fn a_revision_names_a_key_by_its_description() {
    let server = Server::start();
    let key = server.call("POST", "/api_keys", Some(json!({"description": "CI of the shop"})));
    assert_eq!(key.status, 201, "{}", key.text);
    let (revision, browser) = (server.store().snapshot().revision, Browser::signed_in(&server, &server.viewer));
    assert!(browser.page("/ui/revisions").contains("ApiKey CI of the shop created"));
    let page = browser.page(&format!("/ui/revisions/{revision}"));
    assert!(page.contains(">created</span> ApiKey CI of the shop</h3>") && page.contains(key.str("/id")), "{page}");
    // Whoever made the key has chosen its description: the page of a revision also says which key it is, and whose.
    let edge = json!({"hostports": ["made.example.com:443"]});
    assert_eq!(server.call_as(key.str("/token"), "POST", "/edges/https", Some(edge)).status, 201);
    let page = browser.page(&format!("/ui/revisions/{}", revision + 1));
    let of = format!("<small>key <code>{}</code> of <code>{}</code></small>", key.str("/id"), key.str("/owner_id"));
    assert!(page.contains("CI of the shop</b>") && page.contains(&of), "{page}");
    assert_eq!(server.call("DELETE", &format!("/api_keys/{}", key.str("/id")), None).status, 204);
    assert!(browser.page("/ui/").contains("ApiKey CI of the shop deleted"));
}

#[test]
fn what_opened_access_is_told_in_every_list_and_on_the_overview_after_many_changes() {
    let server = Server::start();
    let (edge, route) = edge_with_route(&server, "shop.example.com", protected());
    let module = format!("/edges/https/{edge}/routes/{route}/webhook_verification");
    assert_eq!(server.call("DELETE", &module, None).status, 204);
    let opened = server.store().snapshot().revision;
    for number in 0..25 {
        let hostports = json!({"hostports": [format!("h{number}.example.com:443")]});
        assert_eq!(server.call("POST", "/edges/https", Some(hostports)).status, 201);
    }
    let browser = Browser::signed_in(&server, &server.viewer);
    let overview = browser.page("/ui/");
    let (openings, recent) = overview.split_once("What changed last?").unwrap();
    assert!(!recent.contains("opens access") && recent.matches("<li class=\"attempt\">").count() == 10, "{recent}");
    assert!(recent.contains(" more in the last hour"), "{recent}");
    assert!(recent.contains("HttpsEdge edghts_") && recent.contains(" created"), "{recent}");
    assert!(
        openings.contains("<a href=\"#opened\"><span class=\"badge bad\">1 change opened access</span></a>"),
        "{openings}"
    );
    let (_, openings) = openings.split_once("Opened access in the last 24 hours").unwrap();
    let link = format!("revisions/{opened}\"");
    assert!(openings.contains(&link) && openings.contains("opens access: without webhook_verification"), "{openings}");
    assert!(openings.contains(&format!("HttpsEdgeRoute {edge}/{route}")), "{openings}");
    assert!(browser.page("/ui/revisions").contains("opens access: without webhook_verification"));
    // What others wrote since does not hide it from its own list.
    let listed = browser.page(&format!("/ui/revisions?resource=/edges/https/{edge}/routes/{route}"));
    assert!(listed.contains("opens access: without webhook_verification"), "{listed}");
}
