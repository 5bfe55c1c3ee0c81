//! The page of the server: whether the invariants hold, and what the server does.

use jiff::{ToSpan, Zoned, civil::Date};
use serde_json::json;

use super::Browser;
use super::pages::{HOSTILE, edge_with_route, protected};
use crate::support::server::Server;

#[test]
fn invariants_are_shown_with_their_answers_and_the_ends_of_exemptions() {
    let server = Server::start();
    edge_with_route(&server, "shop.example.com", protected());
    let browser = Browser::signed_in(&server, &server.viewer);
    let prove = || assert_eq!(server.call("GET", "/proofs", None).status, 200);
    prove();
    assert!(browser.page("/ui/").contains("There are no invariants."));
    let last_day = Zoned::now().date().saturating_add(9.days());
    let exemption = |host: &str, last_day: Date| json!({"hosts": [host], "owner": "ops", "reason": HOSTILE, "expires": last_day.to_string()});
    let ended = Zoned::now().date().saturating_sub(9.days());
    let exemptions = [exemption("old.example.com", last_day), exemption("older.example.com", ended)];
    let body = json!({"description": HOSTILE, "min_tls_version": "1.2", "exemptions": exemptions});
    let invariant = server.call("POST", "/invariants", Some(body));
    assert_eq!(invariant.status, 201, "{}", invariant.text);
    prove();
    for page in ["", "server"] {
        let text = browser.page(&format!("/ui/{page}"));
        for (tone, state, host) in [("warning", "ends", "old"), ("bad", "ended", "older")] {
            let (_, row) = text.split_once(&format!("<span class=\"badge {tone}\">exemption {state}</span>")).unwrap();
            let (row, _) = row.split_once("</p>").unwrap();
            assert!(row.contains(&format!("<code>{host}.example.com</code> of ops: <q>&lt;script")), "{page}: {row}");
        }
        assert!(text.contains("<p class=\"message\">&lt;script"), "the description is shown: {page}: {text}");
        assert!(!text.contains("<img"), "{page}: {text}");
    }
    let overview = browser.page("/ui/");
    assert!(
        overview.contains("<a href=\"#invariants\"><span class=\"badge good\">1 invariant proven</span></a>"),
        "{overview}"
    );
    let server_page = browser.page("/ui/server");
    let (_, row) = server_page.split_once("<h2 id=\"invariants\">").unwrap();
    assert!(row.contains(invariant.str("/id")) && row.contains("<span class=\"badge good\">proven</span>"), "{row}");
    // A request of which nobody can tell leads to its trace.
    let body = json!({"description": "d", "scope": {"hosts": ["wiki.example.com"]}, "requires_any": ["oidc"]});
    assert_eq!(server.call("POST", "/invariants", Some(body)).status, 201);
    let policies = json!({"inbound": [{"expressions": ["req.Method == 'GET'"], "actions": [{"type": "deny"}]}]});
    let backend = json!({"backend_id": "bkd_1"});
    let route = json!({"match_type": "path_prefix", "match": "/", "backend": backend, "policies": policies});
    edge_with_route(&server, "wiki.example.com", route);
    prove();
    let page = browser.page("/ui/server");
    let link =
        "GET <a href=\"./trace?method=GET&amp;url=https%3A%2F%2Fwiki.example.com%2F\">https://wiki.example.com/</a>";
    assert!(page.contains(link) && page.contains(">not proven</span>"), "{page}");
}

#[test]
fn a_server_at_rest_has_no_table_of_zeros() {
    let server = Server::start();
    let page = Browser::signed_in(&server, &server.viewer).page("/ui/server");
    let (_, work) = page.split_once("<h2>Work</h2>").unwrap();
    let (work, _) = work.split_once("<h2>").unwrap();
    assert!(work.contains("No request waits for its turn") && !work.contains("<table"), "{work}");
    assert!(page.contains("<li>ApiKey: ") && !page.contains(": 0</li>"), "{page}");
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
    assert!(at(">Invariants</h2>") < at(">Gateways</h2>") && at(">Gateways</h2>") < at(">Work</h2>"), "{page}");
}
