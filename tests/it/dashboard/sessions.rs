//! Sessions: signing in and out, forms of other sites, what ends a session, and what roles may see.

use edgewright::resources::Role;

use super::Browser;
use crate::support::http::http;
use crate::support::program::Folder;
use crate::support::server::Server;

/// The pages that need no parameter.
const PAGES: [&str; 9] = ["", "sources", "edges", "routes", "revisions", "certificates", "trace", "keys", "server"];

#[test]
fn a_browser_at_the_root_is_led_to_the_dashboard_and_nobody_else() {
    let server = Server::start();
    let browser = Browser::new(&server);
    let root = browser.get("/");
    assert_eq!((root.status, root.header("location")), (303, Some("ui/")));
    let other = server.send("GET", "/", &[("Accept".into(), "*/*".into())], None);
    assert_eq!((other.status, other.str("/error_code")), (404, "ERR_EDGEWRIGHT_NOT_FOUND"));
    assert_eq!(server.send("POST", "/", &[("Accept".into(), "text/html".into())], None).status, 404);
}

#[test]
fn a_page_needs_a_session_and_comes_back_after_the_sign_in() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    for page in PAGES {
        let answer = browser.get(&format!("/ui/{page}"));
        let expected = format!("./sign-in?next={page}");
        assert_eq!((answer.status, answer.header("location")), (303, Some(expected.as_str())));
    }
    let form = browser.page("/ui/sign-in?next=edges%3Fsearch%3D%22shop");
    assert!(form.contains("value=\"edges?search=&quot;shop\""), "{form}");
    let answer = browser.sign_in(&server.viewer.clone(), "edges?search=%22shop");
    assert_eq!((answer.status, answer.header("location")), (303, Some("./edges?search=%22shop")));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Lax") && cookie.contains("; Path=/"), "{cookie}");
    assert!(!cookie.contains(&server.viewer) && !cookie.contains(&server.key_ids[2]), "{cookie}");
    for page in PAGES {
        let answer = browser.get(&format!("/ui/{page}"));
        assert_eq!(answer.status, 200, "{page}: {}", answer.text);
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("inline"), "{policy}");
    }
    assert_eq!(browser.sign_in(&server.viewer.clone(), "//evil.example").header("location"), Some("./"));
}

#[test]
fn only_a_valid_token_signs_in() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let wrong = format!("{}x", server.admin);
    for token in ["", "nonsense", "<script>alert(1)</script>", wrong.as_str()] {
        let answer = browser.sign_in(token, "");
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None), "{token}");
        assert!(answer.text.contains("this is not a valid API token"), "{}", answer.text);
        assert!(token.is_empty() || !answer.text.contains(token), "a token is not shown again");
    }
    let gateway = server.key_of("bot_gateway", Role::Gateway);
    let answer = browser.sign_in(&gateway, "");
    assert_eq!((answer.status, answer.header("set-cookie")), (403, None));
    for cookie in ["edgewright-dashboard=", "edgewright-dashboard=AAAA", "__Host-edgewright=AAAA"] {
        browser.cookie = cookie.to_owned();
        assert_eq!(browser.get("/ui/").status, 303);
    }
    // The same session under the name for TLS counts for nothing.
    let signed_in = Browser::signed_in(&server, &server.viewer);
    browser.cookie = signed_in.cookie.replace("edgewright-dashboard", "__Host-edgewright");
    assert_eq!(browser.get("/ui/").status, 303);
}

#[test]
fn a_form_of_another_site_does_nothing() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.admin);
    let token = format!("token={}", server.admin);
    let own = format!("http://{}", server.address);
    for from in [
        vec![],
        vec![("Origin", "null")],
        vec![("Origin", "https://evil.example")],
        vec![("Origin", own.as_str()), ("Sec-Fetch-Site", "cross-site")],
    ] {
        for path in ["/ui/sign-in", "/ui/sign-out"] {
            let answer = browser.post_from(&from, path, &token);
            assert_eq!((answer.status, answer.header("set-cookie")), (403, None), "{from:?} {path}");
        }
    }
    assert_eq!(browser.post("/ui/sign-out", "form_token=guessed").status, 403);
    assert_eq!(browser.get("/ui/").status, 200);
}

#[test]
fn who_signs_out_has_no_session() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.admin);
    let page = browser.page("/ui/");
    let token = page.split_once("name=\"form_token\" value=\"").unwrap().1.split_once('"').unwrap().0;
    let answer = browser.post("/ui/sign-out", &format!("form_token={token}"));
    assert_eq!((answer.status, answer.header("location")), (303, Some("./sign-in")));
    let removed = answer.headers.iter().filter(|(name, value)| name == "set-cookie" && value.contains("Max-Age=0"));
    assert_eq!(removed.count(), 2);
}

#[test]
fn a_browser_behind_a_proxy_of_this_machine_is_not_on_it() {
    let folder = Folder::new();
    let serve = folder.serve("--base-url https://edge.example.com --trusted-proxy 127.0.0.1");
    let (local, form) = (format!("http://{}", serve.address), format!("token={}", serve.token));
    let sign_in = |origin: &str, client: &str| {
        let headers = [("Origin", origin), ("Sec-Fetch-Site", "same-origin"), ("X-Forwarded-For", client)];
        http(&serve.address, "POST", "/ui/sign-in", &headers, &form)
    };
    let here = sign_in(&local, "127.0.0.1");
    assert_eq!(here.status, 303, "{}", here.body);
    let cookie = here.header("set-cookie")[0].split(';').next().unwrap().to_owned();
    assert!(cookie.starts_with("edgewright-dashboard="), "{cookie}");
    let status = |client: &str| {
        http(&serve.address, "GET", "/ui/", &[("Cookie", cookie.as_str()), ("X-Forwarded-For", client)], "").status
    };
    assert_eq!((status("127.0.0.1"), status("198.51.100.7")), (200, 303));
    assert_eq!(sign_in(&local, "198.51.100.7").status, 403);
    let away = sign_in("https://edge.example.com", "198.51.100.7");
    assert_eq!(away.status, 303, "{}", away.body);
    assert!(away.header("set-cookie")[0].starts_with("__Host-edgewright="), "{:?}", away.headers);
}

#[test]
fn a_revoked_key_ends_its_sessions() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.viewer);
    assert_eq!(browser.get("/ui/").status, 200);
    assert_eq!(server.call("DELETE", &format!("/api_keys/{}", server.key_ids[2]), None).status, 204);
    assert_eq!(browser.get("/ui/").header("location"), Some("./sign-in?next="));
    assert_eq!(browser.get("/ui/live").status, 401);
}

#[test]
fn a_page_shows_what_the_role_may_read() {
    let server = Server::start();
    let roles =
        |token: &str| Browser::signed_in(&server, token).page("/ui/keys").contains("<th scope=\"col\">Role</th>");
    assert!(roles(&server.admin), "an admin reads owners");
    assert!(!roles(&server.editor) && !roles(&server.viewer));
}

#[test]
fn one_option_turns_the_dashboard_off() {
    let folder = Folder::new();
    let serve = folder.serve("--no-dashboard");
    for path in ["/", "/ui", "/ui/", "/ui/sign-in", "/ui/style.css"] {
        assert_eq!(http(&serve.address, "GET", path, &[("Accept", "text/html")], "").status, 404, "{path}");
    }
}
