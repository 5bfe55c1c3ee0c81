//! The pages in a real browser: what somebody finds there, without a mouse and without scripts too, and the pictures of the
//! documentation.

use std::fs;

use serde_json::json;

use super::gateway::Gateway;
use crate::support::{chromium::Chromium, manifests::edge, picture::smaller, program::REPOSITORY};

/// The variable that asks for the pictures.
const PICTURES: &str = "EDGEWRIGHT_PICTURES";

/// Marks the page, so that [`is_same_page`] tells whether it was loaded again.
fn mark_page(browser: &mut Chromium) {
    browser.until_text("#live-state", "Live.");
    browser.evaluate("window.isMarked = true");
}

fn is_same_page(browser: &mut Chromium) -> bool {
    browser.evaluate("window.isMarked ?? false") == true
}

#[test]
fn somebody_finds_answers() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let origin = gateway.origin();
    browser.show_in(1280, 900, "light");

    browser.open(&origin);
    browser.enter("#token", "nonsense");
    assert!(browser.text("[role=alert]").contains("not a valid API token"));
    // The console has every answer with the status of an error.
    assert_eq!(browser.complaints(&origin).len(), 1);
    browser.enter("#token", &gateway.serve.token);
    assert_eq!(browser.address(), format!("{origin}/ui/"));

    // One route among many.
    browser.follow("nav.sections a[href$=routes]");
    browser.enter("input[name=search]", "t217.example.com /api");
    assert_eq!(browser.evaluate("document.querySelectorAll('tbody tr').length"), 1);
    browser.follow("tbody a");
    assert_eq!(browser.text("h1"), "Route tenant-217/api");
    let route = browser.text("main");
    for part in ["open to everybody", "edge/tenants.yaml:", "Ada Lovelace", "The shop and its tenants"] {
        assert!(route.contains(part), "{part}: {route}");
    }

    // Where a URL goes, from the box that each page has.
    browser.enter("header.top input[name=url]", "shop.example.com/cart/1");
    let answer = browser.text("main");
    assert!(answer.contains("bkd_cart") && answer.contains("shorter prefix than /cart"), "{answer}");

    // A saved file, without loading the page again.
    browser.open(&format!("{origin}/ui/edges"));
    mark_page(&mut browser);
    gateway.folder.write("docs/guide.yaml", &edge("guide", "Guide"));
    browser.until_text("tbody", "guide.example.com:443");
    assert!(is_same_page(&mut browser));

    // A broken commit, with its line and its author.
    browser.open(&format!("{origin}/ui/"));
    mark_page(&mut browser);
    gateway.break_shop();
    let overview = browser.until_text("#live", "edge/shop.yaml:9:19");
    assert!(overview.contains("Linus Long") && overview.contains("Invalid"), "{overview}");
    assert!(is_same_page(&mut browser));

    browser.follow("form.user button");
    assert_eq!(browser.address(), format!("{origin}/ui/sign-in"));
    browser.open(&format!("{origin}/ui/keys"));
    assert_eq!(browser.address(), format!("{origin}/ui/sign-in?next=keys"));
    assert_eq!(browser.complaints(&origin), Vec::<String>::new());
}

#[test]
fn a_page_needs_neither_a_mouse_nor_scripts() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let routes = format!("{}/ui/routes?search=%2Fapi", gateway.origin());
    gateway.sign_in(&mut browser, &gateway.serve.token);
    browser.show_in(1280, 900, "dark");
    browser.open(&routes);
    browser.press("Tab");
    browser.press("Enter");
    assert_eq!(browser.evaluate("document.activeElement.id"), "content", "the first link skips the navigation");

    // Whatever has the focus shows it, down to the last link.
    browser.open(&routes);
    let mut focused = 0;
    loop {
        browser.press("Tab");
        let found = browser.evaluate(
            "(it => it === document.body ? null : [it.outerHTML, getComputedStyle(it).outlineStyle])(document.activeElement)",
        );
        if found.is_null() {
            break;
        }
        assert_eq!(found[1], "solid", "{found}");
        focused += 1;
        assert!(focused < 200, "the focus does not come to an end");
    }
    assert!(focused > 60, "only {focused} parts can have the focus");

    browser.call("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    browser.open(&routes);
    browser.follow("a[rel=next]");
    assert!(browser.text("tbody").contains("/api") && browser.text("#live-state").is_empty());
}

#[test]
fn a_phone_shows_whole_rows_of_keys_and_certificates() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let (chain, key) = (include_str!("../data/wildcard.pem"), include_str!("../data/wildcard.key.pem"));
    gateway.change("POST", "/tls_certificates", &json!({"certificate_pem": chain, "private_key_pem": key}));
    gateway.sign_in(&mut browser, &gateway.serve.token);
    for (width, label) in [(400, true), (1280, false)] {
        browser.show_in(width, 900, "light");
        for (page, column) in [("keys", "Last use"), ("keys", "Role"), ("certificates", "Used by")] {
            browser.open(&format!("{}/ui/{page}", gateway.origin()));
            let cell = format!("document.querySelector('td[data-label=\"{column}\"]')");
            let box_of = format!("{cell}.getBoundingClientRect()");
            let is_seen = format!("{box_of}.left >= 0 && {box_of}.width > 0 && {box_of}.right <= innerWidth");
            assert_eq!(browser.evaluate(&is_seen), true, "{page} {column} in {width}");
            let height = browser.evaluate("document.querySelector('nav.sections').getBoundingClientRect().height");
            let most = if label { 90.0 } else { 60.0 };
            assert!(
                height.as_f64().unwrap() < most,
                "the navigation is one line, or two on a phone, in {width}: {height}"
            );
            let shown = browser.evaluate(&format!("getComputedStyle({cell}, '::before').content"));
            assert_eq!(shown != "none", label, "{page} {column} in {width}: {shown}");
        }
    }
}

/// `EDGEWRIGHT_PICTURES=1 cargo test --test it pictures_of_pages` takes the pictures of the documentation again.
#[test]
fn pictures_of_pages() {
    if std::env::var_os(PICTURES).is_none() {
        eprintln!("skipped: pictures are taken with {PICTURES}=1");
        return;
    }
    let mut browser = Chromium::start().expect("Chromium");
    let gateway = Gateway::in_trouble();
    gateway.sign_in(&mut browser, &gateway.serve.token);
    let edge = format!("edges/{}", gateway.id_of("shop"));
    for (name, page, width, height, scheme) in [
        ("overview", "", 1120, 772, "light"),
        ("trace", "trace?url=shop.example.com/cart/1", 1120, 900, "light"),
        ("edge-on-a-phone", edge.as_str(), 390, 844, "dark"),
    ] {
        browser.show_in(width, height, scheme);
        browser.open(&format!("{}/ui/{page}", gateway.origin()));
        let path = format!("{REPOSITORY}/docs/images/dashboard-{name}.png");
        fs::write(path, smaller(&browser.picture())).unwrap();
    }
}
