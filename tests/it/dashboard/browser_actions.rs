//! What somebody changes in a real browser, and how people sign in and out there: no complaint on the console, and no request to
//! others.

use serde_json::json;

use super::gateway::Gateway;
use super::provider_sign_in::serving;
use crate::support::{
    chromium::Chromium, identity_provider::IdentityProvider, manifests::edge, program::until, sources::status,
};

/// The button that does what a page has shown.
const BUTTON: &str = "form.change button";

#[test]
fn a_source_is_suspended_resumed_and_synced() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let source = format!("{}/ui/sources/docs", gateway.origin());
    gateway.sign_in(&mut browser, &gateway.serve.token);
    browser.open(&source);
    browser.follow(".actions a[href$=suspend]");
    assert!(browser.text("main").contains("Nothing of the source is applied"));
    browser.evaluate("document.querySelector('#for').value = '3600'");
    browser.enter("#reason", "The <b>provider</b> is down");
    assert_eq!(browser.address(), format!("{source}?done=suspend"));
    let page = browser.text("main");
    for part in ["The source is suspended", "The <b>provider</b> is down", "ends in"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(status(&gateway.serve, "docs")["suspension"]["reason"], "The <b>provider</b> is down");

    // What is written meanwhile waits.
    browser.until_text("#live-state", "Live.");
    gateway.folder.write("docs/guide.yaml", &edge("guide", "Guide"));
    browser.until_text("#live", "Waiting to be applied");
    browser.follow(".actions a[href$=resume]");
    assert!(browser.text("main").contains("Waiting since the last sync: 1 to create."));
    browser.follow(BUTTON);
    assert_eq!(browser.address(), format!("{source}?done=resume"));
    assert!(browser.text("[role=status].done").contains("The source is resumed"));
    let is_applied = || gateway.serve.get("/edges/https?name=guide").json()["https_edges"][0].is_object();
    until("the guide", || is_applied().then_some(()));

    let begun = || status(&gateway.serve, "docs")["syncs_begun"].as_u64().unwrap();
    let before = begun();
    browser.follow(".actions a[href$=sync]");
    assert!(browser.text("main").contains("All manifests are read again now"));
    browser.follow(BUTTON);
    assert_eq!(browser.address(), format!("{source}?done=sync"));
    until("the sync", || (begun() > before).then_some(()));
    assert_eq!(browser.complaints(&gateway.origin()), Vec::<String>::new());
}

#[test]
fn a_rollback_is_shown_then_made_and_a_key_is_revoked() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let origin = gateway.origin();
    let edge = gateway.change("POST", "/edges/https", &json!({"hostports": ["by-hand.example.com:443"]}));
    let edge = edge["id"].as_str().unwrap();
    let made = gateway.revision();
    gateway.sign_in(&mut browser, &gateway.serve.token);
    browser.open(&format!("{origin}/ui/revisions/{made}"));
    browser.follow(&format!("main a[href$='rollback?to={}']", made - 1));
    let preview = browser.text("main");
    for part in ["1 to delete", edge, "by-hand.example.com:443"] {
        assert!(preview.contains(part), "{part}: {preview}");
    }
    assert_eq!(gateway.revision(), made);
    browser.follow(BUTTON);
    assert_eq!(browser.address(), format!("{origin}/ui/revisions/{}", made + 1));
    let shown = browser.text("main");
    assert!(shown.contains(&format!("rolled back to revision {}", made - 1)) && shown.contains(edge), "{shown}");
    assert_eq!(gateway.serve.get(&format!("/edges/https/{edge}")).status, 404);

    let key = gateway.change("POST", "/api_keys", &json!({"description": "leaked"}));
    let [id, token] = ["id", "token"].map(|field| key[field].as_str().unwrap());
    browser.open(&format!("{origin}/ui/keys?search=leaked"));
    browser.follow(&format!("tbody a[href$='keys/{id}/revoke']"));
    assert!(browser.text("main").contains("It cannot be undone"));
    assert_eq!(gateway.serve.call_as(token, "GET", "/whoami", "").status, 200);
    browser.follow(BUTTON);
    assert_eq!(browser.address(), format!("{origin}/ui/keys"));
    assert!(!browser.text("tbody").contains(id));
    assert_eq!(gateway.serve.call_as(token, "GET", "/whoami", "").status, 401);
    assert_eq!(browser.complaints(&origin), Vec::<String>::new());
}

#[test]
fn a_rollback_to_what_the_manifests_declare_holds_no_source() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let before = gateway.revision();
    let payments = format!("/edges/https/{}", gateway.id_of("payments"));
    gateway.change("PATCH", &payments, &json!({"description": "By hand"}));
    let syncs = |field: &str| status(&gateway.serve, "payments")[field].as_u64().unwrap();
    let begun = syncs("syncs_begun");
    until("a sync that leaves the drift", || (syncs("syncs_ended") > begun).then_some(()));
    gateway.sign_in(&mut browser, &gateway.serve.token);
    browser.open(&format!("{}/ui/rollback?to={before}", gateway.origin()));
    let preview = browser.text("main");
    assert!(preview.contains("payments: in sync afterwards"), "{preview}");
}

#[test]
fn a_person_signs_in_through_the_provider_and_out() {
    let Some(mut browser) = Chromium::start() else { return };
    let provider = IdentityProvider::start();
    let (_folder, serve) = serving(&provider);
    let origin = format!("http://{}", serve.address);
    browser.open(&format!("{origin}/ui/edges?search=shop"));
    browser.follow("main a.button");
    assert_eq!(browser.address(), format!("{origin}/ui/edges?search=shop"));
    assert!(browser.text("form.user").contains("ada@example.com"));
    let complaints = browser.complaints(&origin);
    let is_of_provider = |it: &String| it.contains(&format!("{}/authorize?", provider.issuer()));
    assert!(complaints.len() == 1 && complaints.iter().all(is_of_provider), "{complaints:?}");

    browser.follow("form.user button");
    assert_eq!(browser.address(), format!("{origin}/ui/sign-in"));
    browser.open(&format!("{origin}/ui/edges"));
    assert_eq!(browser.address(), format!("{origin}/ui/sign-in?next=edges"));
    assert_eq!(browser.complaints(&origin), Vec::<String>::new());
}
