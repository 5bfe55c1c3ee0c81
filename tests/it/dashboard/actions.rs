//! What the forms of the dashboard change, who may send them, and that each does what its page has shown.

use jiff::{ToSpan, Zoned};
use serde_json::json;

use super::Browser;
use crate::security::scoped_keys::key;
use crate::support::manifests::edge;
use crate::support::server::Server;

/// An edge with a protected route, which was open one revision before. Returns that revision, the path of the routes, and the ID
/// of the route.
fn protected_since(server: &Server) -> (u64, String, String) {
    let edge = server.call("POST", "/edges/https", Some(json!({"hostports": ["shop.example.com:443"]})));
    assert_eq!(edge.status, 201, "{}", edge.text);
    let routes = format!("/edges/https/{}/routes", edge.str("/id"));
    let open = json!({"match_type": "path_prefix", "match": "/admin", "backend": {"backend_id": "bkd_1"}});
    let route = server.call("POST", &routes, Some(open));
    assert_eq!(route.status, 201, "{}", route.text);
    let before = server.store().snapshot().revision;
    let module = json!({"provider": "github", "secret": "canary"});
    let path = format!("{routes}/{}/webhook_verification", route.str("/id"));
    assert_eq!(server.call("PUT", &path, Some(module)).status, 200);
    (before, routes, route.str("/id").to_owned())
}

#[test]
fn who_may_not_sees_no_button_and_is_refused() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let viewer = Browser::signed_in(&server, &server.viewer);
    let source = viewer.page("/ui/sources/shop");
    assert!(!source.contains("Suspend") && !source.contains("Sync now"), "{source}");
    assert!(!viewer.page("/ui/keys").contains("Revoke"));
    let preview = viewer.page("/ui/rollback?to=1");
    assert!(preview.contains("HttpsEdge") && !preview.contains("Roll back to revision"), "{preview}");
    assert!(preview.contains("<b>shop</b>: held: the server does not apply"), "{preview}");
    let key = format!("keys/{}/revoke", server.key_ids[1]);
    let before = server.store().snapshot().revision;
    for form in ["sources/shop/suspend", "sources/shop/resume", "sources/shop/sync", &key] {
        assert_eq!(viewer.get(&format!("/ui/{form}")).status, 403, "{form}");
    }
    for form in ["sources/shop/suspend", "sources/shop/resume", "sources/shop/sync", "rollback?to=1", &key] {
        let answer = viewer.post_own(&format!("/ui/{form}"), "reason=x&for=3600&expect=x");
        assert_eq!(answer.status, 403, "{form}: {}", answer.text);
        assert!(answer.text.starts_with("<!DOCTYPE html>") && answer.text.contains("Go back"), "{}", answer.text);
    }
    // An editor may not administer the key of an admin.
    let editor = Browser::signed_in(&server, &server.editor);
    let admins = format!("/ui/keys/{}/revoke", server.key_ids[0]);
    assert!(!editor.page("/ui/keys").contains(&format!("{}/revoke", server.key_ids[0])));
    assert_eq!((editor.get(&admins).status, editor.post_own(&admins, "").status), (403, 403));
    assert_eq!(server.store().snapshot().revision, before);
    let shop = server.call("GET", "/sources/shop", None);
    assert!(shop.json["suspension"].is_null(), "{}", shop.text);
    assert_eq!(server.call_as(&server.editor, "GET", "/whoami", None).status, 200);
}

#[test]
fn a_form_that_is_not_from_a_page_of_the_session_changes_nothing() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let (browser, other) = (Browser::signed_in(&server, &server.admin), Browser::signed_in(&server, &server.admin));
    let own = format!("form_token={}&reason=x&for=", browser.form_token());
    let origin = format!("http://{}", server.address);
    for from in [
        vec![],
        vec![("Origin", "null")],
        vec![("Origin", "https://evil.example")],
        vec![("Origin", origin.as_str()), ("Sec-Fetch-Site", "cross-site")],
    ] {
        let answer = browser.post_from(&from, "/ui/sources/shop/suspend", &own);
        assert_eq!(answer.status, 403, "{from:?}");
    }
    let foreign = format!("form_token={}&reason=x&for=", other.form_token());
    for fields in ["reason=x&for=", "form_token=&reason=x&for=", foreign.as_str()] {
        assert_eq!(browser.post("/ui/sources/shop/suspend", fields).status, 403, "{fields}");
    }
    let nobody = Browser::new(&server).post("/ui/sources/shop/suspend", &own);
    assert_eq!((nobody.status, nobody.header("location")), (303, Some("../../sign-in?next=sources%2Fshop%2Fsuspend")));
    assert!(server.call("GET", "/sources/shop", None).json["suspension"].is_null());
    assert_eq!(browser.post("/ui/sources/shop/suspend", &own).status, 303);
}

#[test]
fn a_cookie_is_no_token_of_the_api() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.admin);
    let (_, value) = browser.cookie.split_once('=').unwrap();
    for token in [format!("Session {value}"), format!("Bearer {value}")] {
        let headers = [("Authorization".to_owned(), token), ("Service-Version".to_owned(), "2".to_owned())];
        assert_eq!(server.send("GET", "/edges/https", &headers, None).status, 401);
    }
}

#[test]
fn a_source_is_suspended_resumed_and_synced() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let browser = Browser::signed_in(&server, &server.editor);
    let page = browser.page("/ui/sources/shop");
    assert!(page.contains("sources/shop/suspend\"") && page.contains("sources/shop/sync\""), "{page}");
    assert!(browser.page("/ui/sources/shop/suspend").contains("What this does"));
    let nothing = browser.post_own("/ui/sources/shop/suspend", "reason=&for=3600");
    assert!(nothing.status == 400 && nothing.text.contains("<code>reason</code> is required"), "{}", nothing.text);
    assert_eq!(browser.post_own("/ui/sources/shop/suspend", "reason=x&for=5").status, 400);
    let answer = browser.post_own("/ui/sources/shop/suspend", "reason=Fire+%3Cb%3E&for=3600");
    assert_eq!((answer.status, answer.header("location")), (303, Some("../../sources/shop?done=suspend")));
    let page = browser.page("/ui/sources/shop?done=suspend");
    assert!(page.contains("The source is suspended") && page.contains("Fire &lt;b&gt;"), "{page}");
    assert!(page.contains("<b title=\"usr_editor\">") && page.contains("sources/shop/resume\""), "{page}");
    let suspended = server.call("GET", "/sources/shop", None);
    assert!(!suspended.str("/suspension/until").is_empty(), "{}", suspended.text);
    assert!(browser.page("/ui/sources/shop/resume").contains("Fire &lt;b&gt;"));
    assert_eq!(browser.post_own("/ui/sources/shop/resume", "").status, 303);
    assert!(server.call("GET", "/sources/shop", None).json["suspension"].is_null());
    let timeline = browser.page("/ui/revisions");
    assert!(timeline.contains(" suspended source shop") && timeline.contains(" resumed source shop"), "{timeline}");
    // The actor in the history is the same as over the API.
    let history = server.call("GET", "/history?limit=2", None);
    for record in 0..2 {
        assert_eq!(history.str(&format!("/history/{record}/key_id")), server.key_ids[1], "{}", history.text);
    }
    let answer = browser.post_own("/ui/sources/shop/sync", "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("../../sources/shop?done=sync")));
    for missing in ["sources/other/sync", "sources/other/suspend"] {
        assert_eq!(browser.get(&format!("/ui/{missing}")).status, 404, "{missing}");
        assert_eq!(browser.post_own(&format!("/ui/{missing}"), "reason=x&for=").status, 404, "{missing}");
    }
}

#[test]
fn a_rollback_applies_what_its_page_has_shown_and_nothing_else() {
    let server = Server::start();
    let (to, ..) = protected_since(&server);
    let browser = Browser::signed_in(&server, &server.editor);
    assert!(browser.page(&format!("/ui/revisions/{to}")).contains(&format!("rollback?to={to}")));
    let path = format!("/ui/rollback?to={to}");
    let preview = browser.page(&path);
    assert!(preview.contains("It opens access") && preview.contains("webhook_verification"), "{preview}");
    assert!(preview.contains("Behaviour: "), "{preview}");
    assert!(preview.contains("class=\"removed\"") && !preview.contains("canary"), "{preview}");
    assert!(!preview.contains("script.js"), "the plan stays while somebody reads it");
    let at = |text: &str| preview.find(text).unwrap_or_else(|| panic!("{text}: {preview}"));
    assert!(at("It opens access") < at("name=\"expect\"") && at("name=\"expect\"") < at("class=\"removed\""));
    let expect =
        |page: &str| page.split_once("name=\"expect\" value=\"").unwrap().1.split_once('"').unwrap().0.to_owned();
    let stale = expect(&preview);
    let added = json!({"hostports": ["other.example.com:443"]});
    assert_eq!(server.call("POST", "/edges/https", Some(added)).status, 201);
    let before = server.store().snapshot().revision;
    let refused = browser.post_own(&path, &format!("expect={stale}"));
    assert!(refused.status == 409 && refused.text.contains("no longer the expected one"), "{}", refused.text);
    assert_eq!(browser.post_own(&path, "").status, 400, "nobody applies what was not shown");
    assert_eq!(server.store().snapshot().revision, before);
    let shown = expect(&browser.page(&path));
    let applied = browser.post_own(&path, &format!("expect={shown}"));
    let page = format!("./revisions/{}", before + 1);
    assert_eq!((applied.status, applied.header("location")), (303, Some(page.as_str())), "{}", applied.text);
    let record = server.call("GET", &format!("/history/{}", before + 1), None);
    assert_eq!((record.str("/by"), record.str("/key_id")), ("rollback", server.key_ids[1].as_str()));
    assert!(browser.page(&path).contains("There is nothing to do"));
    let closing = browser.page(&format!("/ui/rollback?to={}", to + 1));
    let (_, closed) = closing.split_once("It closes access").unwrap_or_else(|| panic!("{closing}"));
    assert!(closed.contains("open → <code>webhook_verification</code> required"), "{closing}");
    let empty = browser.page("/ui/rollback");
    assert!(empty.contains("Enter a revision.") && !preview.contains("Enter a revision."), "{empty}");
    for (query, status) in [("to=99", 404), ("to=x", 400), ("to=1&max_deletes=x", 400), ("", 200)] {
        assert_eq!(browser.get(&format!("/ui/rollback?{query}")).status, status, "{query}");
    }
    // More would be deleted than the limit allows.
    let limited = browser.page("/ui/rollback?to=1&max_deletes=0");
    assert!(limited.contains("It cannot be applied") && !limited.contains("name=\"expect\""), "{limited}");
    assert!(limited.contains("raise the deletion limit above") && !limited.contains("--max-deletes"), "{limited}");
    let unknown = browser.page("/ui/rollback?to=1&source=nothing");
    assert!(unknown.contains("It cannot be applied") && !unknown.contains("There is nothing to do"), "{unknown}");
}

#[test]
fn a_rollback_names_the_sources_that_are_suspended() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let browser = Browser::signed_in(&server, &server.editor);
    // What is undone is a change by hand, not the manifests.
    let synced = server.store().snapshot().revision;
    let path = format!("/edges/https/{}", server.call("GET", "/edges/https", None).str("/https_edges/0/id"));
    assert_eq!(server.call("PATCH", &path, Some(json!({"description": "by hand"}))).status, 200);
    let preview = browser.page(&format!("/ui/rollback?to={synced}"));
    assert!(preview.contains("<b>shop</b>: in sync afterwards"), "{preview}");
    assert!(preview.contains(&format!("which undoes revision {};", synced + 1)), "{preview}");
    assert_eq!(browser.post_own("/ui/sources/shop/suspend", "reason=Fire&for=3600").status, 303);
    let preview = browser.page("/ui/rollback?to=1");
    assert!(preview.contains("<b>shop</b>: suspended by <b title=\"usr_editor\">"), "{preview}");
    assert!(preview.contains("It stops serving"), "{preview}");
}

#[test]
fn a_route_that_takes_the_requests_of_a_protected_one_opens_access() {
    let server = Server::start();
    let (_, routes, protected) = protected_since(&server);
    let rest = json!({"match_type": "path_prefix", "match": "/", "backend": {"backend_id": "bkd_2"}});
    assert_eq!(server.call("POST", &routes, Some(rest)).status, 201);
    assert_eq!(server.call("DELETE", &format!("{routes}/{protected}"), None).status, 204);
    let browser = Browser::signed_in(&server, &server.viewer);
    let revision = server.store().snapshot().revision;
    for page in ["", &format!("revisions/{revision}")] {
        let text = browser.page(&format!("/ui/{page}"));
        assert!(text.contains("takes over requests of"), "{page}: {text}");
    }
}

#[test]
fn a_key_is_revoked() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.admin);
    let path = |key: &str| format!("/ui/keys/{key}/revoke");
    assert!(browser.page("/ui/keys").contains(&format!("keys/{}/revoke", server.key_ids[2])));
    let page = browser.page(&path(&server.key_ids[2]));
    assert!(page.contains("usr_viewer") && page.contains("It cannot be undone"), "{page}");
    let answer = browser.post_own(&path(&server.key_ids[2]), "");
    assert_eq!((answer.status, answer.header("location")), (303, Some("../../keys")), "{}", answer.text);
    assert_eq!(server.call_as(&server.viewer, "GET", "/whoami", None).status, 401);
    assert_eq!(browser.get(&path(&server.key_ids[2])).status, 404);
    assert_eq!(browser.post_own(&path(&server.key_ids[2]), "").status, 404);
    assert!(browser.page(&path(&server.key_ids[0])).contains("your own session ends"));
    // Who revokes the own key is signed out.
    let editor = Browser::signed_in(&server, &server.editor);
    assert_eq!(editor.post_own(&path(&server.key_ids[1]), "").status, 303);
    assert_eq!(editor.get("/ui/keys").header("location"), Some("./sign-in?next=keys"));
}

#[test]
fn keys_are_selected_by_their_use() {
    let server = Server::start();
    let unused = server.call("POST", "/api_keys", Some(json!({"description": "unused"})));
    let browser = Browser::signed_in(&server, &server.admin);
    let shown = |choice: &str| {
        let page = browser.page(&format!("/ui/keys?use={choice}"));
        (page.contains(unused.str("/id")), page.contains(&server.key_ids[0]))
    };
    assert_eq!((shown(""), shown("never"), shown("recent")), ((true, true), (true, false), (false, true)));
}

#[test]
fn a_key_without_a_scope_is_not_shown_as_one_without_rights() {
    let server = Server::start();
    let explanation = "A key without a scope (–) may do everything that the role of its owner allows.";
    let scopes = |token: &str| {
        let page = Browser::signed_in(&server, token).page("/ui/keys");
        let cells = page.split("data-label=\"Scope\">").skip(1).map(|cell| cell.split('<').next().unwrap().to_owned());
        (cells.collect::<Vec<_>>(), page.contains(explanation))
    };
    // Only admins see the roles, and so what such a key may do.
    let (for_viewers, is_explained) = scopes(&server.viewer);
    assert!(is_explained && for_viewers.len() > 2 && for_viewers.iter().all(|scope| scope == "–"), "{for_viewers:?}");
    let (for_admins, is_explained) = scopes(&server.admin);
    assert!(!is_explained && for_admins.iter().any(|scope| scope == "reads only"), "{for_admins:?}");
    assert_eq!(for_admins.len(), for_viewers.len());
}

#[test]
fn the_rights_of_a_key_are_each_on_a_line() {
    let server = Server::start();
    let until = format!("{}T00:00:00Z", Zoned::now().date().saturating_add(12.days()));
    for scope in [json!({"plan": ["shop"], "apply": ["docs"]}), json!({"expires_at": until})] {
        key(&server, scope);
    }
    let page = Browser::signed_in(&server, &server.viewer).page("/ui/keys");
    for scope in
        ["<div>plan <code>shop</code></div><div>apply <code>docs</code></div>", "<div>reads only</div><div>ends <time"]
    {
        assert!(page.contains(scope), "{scope}: {page}");
    }
}
