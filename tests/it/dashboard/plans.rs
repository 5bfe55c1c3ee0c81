//! The plan of a dry run has a page: its address opens it for those who may plan the source, and for nobody else.

use serde_json::{Value, json};

use super::Browser;
use crate::security::scoped_keys::{key, manifest, start};
use crate::support::{
    http::http,
    manifests::{bare_edge, edge},
    program::Folder,
    server::{Answer, BASE_URL, Server},
    users::through,
};

/// Plans a manifest of `shop` with a page.
fn planned(server: &Server, token: &str, text: &str, more: &Value) -> Answer {
    let files = json!([{"name": "edge.yaml", "text": text}]);
    let mut body = json!({"source": "shop", "dry_run": true, "page": true, "files": files});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.call_as(token, "POST", "/reconciliations", Some(body))
}

/// The path of the page.
fn path(answer: &Answer) -> &str {
    answer.str("/page").strip_prefix(BASE_URL).unwrap_or_else(|| panic!("{}", answer.text))
}

#[test]
fn the_address_of_a_plan_opens_it() {
    let server = start();
    let before = server.store().snapshot().revision;
    let text = manifest("shop", "shop-secret-2", "second");
    let more = json!({"behaviour": true, "commit": "0123456789abcdef", "commit_message": "Say second"});
    let made = planned(&server, &server.admin, &text, &more);
    assert_eq!((made.status, server.store().snapshot().revision), (200, before), "{}", made.text);
    let viewer = Browser::signed_in(&server, &server.viewer);
    let page = viewer.page(path(&made));
    for part in [
        "Plan of shop",
        "the first usr_admin",
        "01234567</code>",
        "<q>Say second</q>",
        "1 to change",
        &format!("Planned on revision {before}, which is the current one"),
        "<span class=\"added\">+ description: second\n</span>",
        "(secret, changed)",
    ] {
        assert!(page.contains(part), "no {part}: {page}");
    }
    assert!(!page.contains("shop-secret"), "{page}");
    assert!(!made.text.contains("shop-secret"), "{}", made.text);

    let added = server.call("POST", "/edges/https", Some(json!({"hostports": ["other.example.com:443"]})));
    assert_eq!(added.status, 201, "{}", added.text);
    let page = viewer.page(path(&made));
    let moved = format!("Planned on revision {before}; the store is now at revision {}", before + 1);
    assert!(page.contains(&moved), "{page}");

    // What stands in the way is part of it.
    let refused = planned(&server, &server.admin, &bare_edge("another", ""), &json!({"max_deletes": "0"}));
    let page = viewer.page(path(&refused));
    assert!(page.contains("It cannot be applied") && page.contains("\">delete</span>"), "{page}");
    // A large plan has several pages.
    let many: String = (0..120).map(|number| format!("---\n{}", bare_edge(&format!("many{number}"), ""))).collect();
    let many = planned(&server, &server.admin, &(text + &many), &json!({}));
    let first = viewer.page(path(&many));
    assert!(first.contains("More changes") && !first.contains("First page"), "{first}");
    let last = viewer.page(&format!("{}?from=100", path(&many)));
    assert!(!last.contains("More changes") && last.contains("First page"), "{last}");

    let unknown = viewer.get("/ui/plans/plan_0");
    assert!(unknown.status == 404 && unknown.text.contains("not kept any more: plan again"), "{}", unknown.text);
    let nobody = Browser::new(&server).get(path(&made));
    assert_eq!(nobody.status, 303, "{}", nobody.text);
}

#[test]
fn whoever_may_not_plan_the_source_does_not_see_its_plan() {
    let server = start();
    let made = planned(&server, &server.admin, &manifest("shop", "shop-secret-2", "second"), &json!({}));
    for (scope, status) in [
        (json!({"role": "planner", "plan": ["shop"]}), 200),
        (json!({"apply": ["shop"]}), 200),
        (json!({"role": "planner", "plan": ["identity"]}), 403),
        (json!({"apply": ["identity"]}), 403),
    ] {
        let (_, token) = key(&server, scope.clone());
        let answer = Browser::signed_in(&server, &token).get(path(&made));
        assert_eq!(answer.status, status, "{scope}: {}", answer.text);
        assert_eq!(answer.text.contains("second"), status == 200, "{scope}: {}", answer.text);
        // The same keys may make such a dry run, and others may not.
        let own = planned(&server, &token, &manifest("shop", "shop-secret-1", "third"), &json!({}));
        assert_eq!(own.status, status, "{scope}: {}", own.text);
    }
}

#[test]
fn a_key_for_one_source_is_led_to_the_rollbacks_that_it_may_plan() {
    let server = start();
    let revision = |source: &str| {
        let history = server.call("GET", &format!("/history?source={source}"), None);
        history.json["history"][0]["revision"].as_u64().unwrap()
    };
    let (own, other) = (revision("shop"), revision("identity"));
    let (_, token) = key(&server, json!({"role": "planner", "plan": ["shop"]}));
    let browser = Browser::signed_in(&server, &token);
    let page = browser.page(&format!("/ui/revisions/{own}"));
    for to in [own - 1, own] {
        assert!(page.contains(&format!("rollback?to={to}&amp;source=shop\"")), "{to}: {page}");
        browser.page(&format!("/ui/rollback?to={to}&source=shop"));
    }
    let page = browser.page(&format!("/ui/revisions/{other}"));
    assert!(page.contains("Trace a request at this revision") && !page.contains("rollback?"), "{page}");
    // Whoever enters the address is told why not, and can go on.
    let refused = browser.get("/ui/rollback?to=1");
    assert!(refused.status == 403 && refused.text.contains("<nav class=\"sections\""), "{}", refused.text);
}

#[test]
fn only_a_dry_run_that_asks_for_a_page_has_one() {
    let server = start();
    let text = manifest("shop", "shop-secret-1", "second");
    let without = planned(&server, &server.admin, &text, &json!({"page": false}));
    assert!(without.status == 200 && without.json.get("page").is_none(), "{}", without.text);
    let unchanged = planned(&server, &server.admin, &manifest("shop", "shop-secret-1", "first"), &json!({}));
    assert!(unchanged.status == 200 && unchanged.json.get("page").is_none(), "{}", unchanged.text);
    let invalid = planned(&server, &server.admin, &text.replace("hostports", "hostprots"), &json!({}));
    assert!(invalid.status == 200 && invalid.json.get("page").is_none(), "{}", invalid.text);
    for more in [json!({"dry_run": false}), json!({"compare": true})] {
        let refused = planned(&server, &server.admin, &text, &more);
        assert_eq!((refused.status, refused.str("/details/field")), (400, "/page"), "{}", refused.text);
    }
}

#[test]
fn the_command_line_prints_the_address_of_a_plan() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", "First"));
    let serve = folder.serve("");
    let address = |err: &str| err.lines().find_map(|line| Some(line.strip_prefix("Page: ")?.to_owned()));
    let text = through(&folder, &serve, "plan m");
    let page = address(&text.err).unwrap_or_else(|| panic!("{}", text.all()));
    let path = page.strip_prefix(&format!("http://{}", serve.address)).unwrap_or_else(|| panic!("{page}"));
    assert_eq!(http(&serve.address, "GET", path, &[("Accept", "text/html")], "").status, 303, "{path}");
    let markdown = through(&folder, &serve, "plan m --format markdown");
    let page = address(&markdown.err).unwrap_or_else(|| panic!("{}", markdown.all()));
    assert!(markdown.out.contains(&format!("\n[This plan in the dashboard]({page})\n")), "{}", markdown.all());
    let report = through(&folder, &serve, "reconcile --dry-run m --format json");
    let report_page = serde_json::from_str::<Value>(&report.out).unwrap()["page"].as_str().map(str::to_owned);
    assert!(report_page.is_some() && report_page == address(&report.err), "{}", report.all());
    let applied = through(&folder, &serve, "reconcile m");
    assert_eq!((applied.code, address(&applied.err)), (0, None), "{}", applied.all());

    let other = Folder::new();
    let serve = other.serve("--no-dashboard");
    let without = through(&folder, &serve, "plan m --format json");
    assert_eq!((without.code, address(&without.err)), (0, None), "{}", without.all());
    assert!(!without.out.contains("\"page\""), "{}", without.out);
}
