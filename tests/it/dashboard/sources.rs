//! What the overview and the pages of sources say of refused attempts and of rollbacks.

use serde_json::{Value, json};

use super::Browser;
use crate::support::manifests::edge;
use crate::support::program::until;
use crate::support::server::{Answer, Server};

/// Applies an edge as a source that the server does not follow.
fn apply(server: &Server, spec: Value) -> Answer {
    let manifest = json!({
        "apiVersion": "edgewright/v1", "kind": "HttpsEdge", "metadata": {"name": "partner"}, "spec": spec,
    });
    let files = json!([{"name": "a.json", "text": manifest.to_string()}]);
    server.call("POST", "/reconciliations", Some(json!({"source": "partner", "files": files})))
}

#[test]
fn a_refused_attempt_is_no_change() {
    let server = Server::start();
    let applied = apply(&server, json!({"hostports": ["partner.example.com:443"]}));
    assert_eq!(applied.status, 201, "{}", applied.text);
    let refused = apply(&server, json!({format!("hostprots{}", "x".repeat(100)): []}));
    assert!(refused.status >= 400, "{}", refused.text);
    let history = server.call("GET", "/history?source=partner", None);
    let [newest, first] = [0, 1].map(|at| history.json["history"][at].clone());
    assert_eq!((&newest["outcome"], &first["outcome"]), (&json!("refused"), &json!("applied")), "{}", history.text);
    let browser = Browser::signed_in(&server, &server.viewer);
    let overview = browser.page("/ui/");
    let (_, source) = overview.split_once("sources/partner\">partner</a>").unwrap_or_else(|| panic!("{overview}"));
    let (_, change) = source.split_once("Last change <time datetime=\"").unwrap_or_else(|| panic!("{source}"));
    assert!(change.starts_with(first["created_at"].as_str().unwrap()), "{source}");
    assert!(source.contains("<span class=\"badge bad\">last attempt refused</span>"), "{source}");
    // The overview has the beginning of the message, and a link to all of it.
    let next = newest["id"].as_str().unwrap().parse::<u64>().unwrap() + 1;
    assert!(overview.contains(&format!("revisions?before={next}\"")), "{overview}");
    let of = |page: &str| {
        let (_, rest) = page.split_once("<p class=\"message\">").unwrap_or_else(|| panic!("{page}"));
        rest.split_once("</p>").unwrap().0.to_owned()
    };
    let whole = of(&browser.page(&format!("/ui/revisions?before={next}")));
    assert!(of(&overview).ends_with('…') && !whole.ends_with('…') && whole.contains("hostprots"), "{whole}");
}

#[test]
fn a_source_that_a_rollback_holds_says_so_and_is_not_changed_by_hand() {
    let server = Server::following("shop", &edge("store", "Shop"));
    let before = server.store().snapshot().revision;
    let rolled_back = server.call("POST", "/rollbacks", Some(json!({"to": before - 1, "source": "shop"})));
    assert_eq!(rolled_back.status, 201, "{}", rolled_back.text);
    let browser = Browser::signed_in(&server, &server.viewer);
    let held = "<span class=\"badge warning\">Held by a rollback</span>";
    until("the state", || browser.page("/ui/sources/shop").contains(held).then_some(()));
    let made = before + 1;
    let undo = format!("rollback?to={before}&amp;source=shop\">undo the rollback</a>");
    for page in ["", "sources", "sources/shop"] {
        let text = browser.page(&format!("/ui/{page}"));
        assert!(text.contains(held) && text.contains(&undo), "{page}: {text}");
        assert!(text.contains(&format!("revisions/{made}\">revision {made}</a>")), "{page}: {text}");
        for wrong in ["1 changed by hand", "edgewright rollback", ">OutOfSync<"] {
            assert!(!text.contains(wrong), "{wrong}, {page}: {text}");
        }
    }
    let overview = browser.page("/ui/");
    assert!(
        overview.contains(">1 held by a rollback</span>") && overview.contains(">0 of 1 source live<"),
        "{overview}"
    );
}
