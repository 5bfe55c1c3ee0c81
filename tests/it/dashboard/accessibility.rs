//! Everybody can read each page: on a desk and on a phone, in both schemes of colours, by the rules in `accessibility.js` and by
//! those of axe-core, if it is there.

use std::{env, fs};

use serde_json::{Value, json};

use super::gateway::{ERRORS, Gateway};
use super::provider_sign_in::serving;
use crate::support::{chromium::Chromium, identity_provider::IdentityProvider, program::rounds, users::through};

/// Checks the page that is shown, and returns what is wrong.
const RULES: &str = include_str!("accessibility.js");
/// The same with axe-core. It leaves out `target-size` unless it is asked for.
const AXE_RULES: &str = "axe.run({resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})
    .then((found) => found.violations.flatMap((it) => it.nodes.map((node) => `${it.help}: ${node.html.slice(0, 160)}`)))";
/// The variable with the path of `axe.min.js`. `.ci/run` installs it.
const AXE: &str = "EDGEWRIGHT_AXE";
/// A window on a desk and one of a phone, in both schemes. A usual run has the first two.
static LOOKS: [(u32, u32, &str); 4] =
    [(1280, 900, "light"), (390, 844, "dark"), (1280, 900, "dark"), (390, 844, "light")];

/// Looks at pages in a browser, and collects what is wrong.
struct Inspection {
    browser: Chromium,
    origin: String,
    axe: Option<String>,
    looks: &'static [(u32, u32, &'static str)],
    found: Vec<String>,
}

impl Inspection {
    fn new(browser: Chromium, origin: String) -> Self {
        let axe = env::var_os(AXE).map(|path| fs::read_to_string(path).unwrap());
        if axe.is_none() {
            eprintln!("skipped: the rules of axe-core, because {AXE} does not name a file");
        }
        Self { browser, origin, axe, looks: rounds(&LOOKS[..2], &LOOKS[..]), found: Vec::new() }
    }

    /// Opens a page, and looks at it.
    fn open(&mut self, page: &str, is_error: bool) {
        self.browser.open(&format!("{}/ui/{page}", self.origin));
        self.look(page, is_error);
    }

    /// Looks at the page that is open now. The console has every answer with the status of an error.
    fn look(&mut self, page: &str, is_error: bool) {
        if let Some(axe) = &self.axe {
            // The policy of the pages does not bind the tools of the browser.
            self.browser.evaluate(&format!("{axe};null"));
        }
        for (width, height, scheme) in self.looks {
            self.browser.show_in(*width, *height, scheme);
            let mut found = sentences(&self.browser.evaluate(RULES));
            if self.axe.is_some() {
                found.extend(sentences(&self.browser.evaluate(AXE_RULES)));
            }
            self.found.extend(found.into_iter().map(|it| format!("{page} ({width}, {scheme}): {it}")));
        }
        let complaints = self.browser.complaints(&self.origin);
        if complaints.len() != usize::from(is_error) {
            self.found.push(format!("{page}: {complaints:?}"));
        }
    }

    /// Nothing was wrong.
    fn end(self) {
        assert!(self.found.is_empty(), "{}", self.found.join("\n"));
    }
}

fn sentences(found: &Value) -> Vec<String> {
    found.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn everybody_can_read_every_page() {
    let Some(browser) = Chromium::start() else { return };
    let gateway = Gateway::in_trouble();
    let mut inspection = Inspection::new(browser, gateway.origin());
    gateway.sign_in(&mut inspection.browser, &gateway.serve.token);
    for page in gateway.pages() {
        inspection.open(&page, ERRORS.contains(&page.as_str()));
    }
    inspection.end();
}

#[test]
fn everybody_can_read_why_something_is_refused() {
    let Some(browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let viewer = through(&gateway.folder, &gateway.serve, "keys create --role viewer --token-file viewer.token");
    assert_eq!(viewer.code, 0, "{}", viewer.all());
    gateway.change("POST", "/edges/https", &json!({"hostports": ["by-hand.example.com:443"]}));
    let rollback = format!("rollback?to={}", gateway.revision() - 1);
    let mut inspection = Inspection::new(browser, gateway.origin());
    gateway.sign_in(&mut inspection.browser, &gateway.serve.token);

    inspection.open("sources/shop/suspend", false);
    inspection.browser.evaluate("document.querySelector('form.change').noValidate = true");
    inspection.browser.follow("form.change button");
    assert!(inspection.browser.text("[role=alert]").contains("reason is required"));
    inspection.look("a suspension without a reason", true);

    inspection.open(&rollback, false);
    inspection.browser.evaluate("document.querySelector('[name=expect]').value = 'other'");
    inspection.browser.follow("form.change button");
    assert!(inspection.browser.text("[role=alert]").contains("no longer the expected one"));
    inspection.look("a rollback after a change", true);

    inspection.browser.follow("main a[href='./']");
    inspection.browser.follow("form.user button");
    inspection.browser.enter("#token", "nonsense");
    inspection.look("a sign-in with a wrong token", true);
    gateway.sign_in(&mut inspection.browser, gateway.folder.read("viewer.token").trim());
    for page in ["sources/shop", "keys", rollback.as_str()] {
        inspection.open(page, false);
    }
    inspection.open("sources/shop/suspend", true);
    inspection.end();
}

#[test]
fn everybody_can_sign_in_through_a_provider() {
    let Some(browser) = Chromium::start() else { return };
    let provider = IdentityProvider::start();
    provider.script().claims = json!({"groups": ["strangers"]});
    let (_folder, serve) = serving(&provider);
    let mut inspection = Inspection::new(browser, format!("http://{}", serve.address));
    inspection.open("sign-in", false);
    inspection.open("login/oidc/callback?code=other&state=other", true);
    inspection.open("sign-in", false);
    inspection.browser.follow("main a.button");
    assert!(inspection.browser.text("main").contains("ada@example.com has no role on this server"));
    // The request to the provider is no fault.
    assert_eq!(inspection.browser.complaints(&inspection.origin).len(), 2);
    inspection.look("a person without a role", false);
    inspection.end();
}

#[test]
fn the_rules_find_what_is_wrong() {
    let Some(mut browser) = Chromium::start() else { return };
    browser.show_in(600, 844, "light");
    let bad = "<title></title><style>input, p { color: #999; border-color: #ccc }</style>
        <h3 id=a>Three</h3><p id=a>Faint</p><input placeholder=Name><button></button><table><tr><td>1</td></tr></table>
        <div style='width: 900px; height: 1em; overflow: visible'>Wide</div>";
    browser.evaluate(&format!("document.documentElement.innerHTML = {}", json!(bad)));
    let found = browser.evaluate(RULES).to_string();
    for part in [
        "the page has no language",
        "the page has no title",
        "in a window of 600",
        "the ID a is not unique",
        "0 main parts",
        "outside of the landmarks",
        "not exactly one heading",
        "leaves out a level",
        "no name: <input",
        "no name: <button",
        "pixels to hit",
        "a table without headers",
        "text with a contrast of 2.8",
        "a border with a contrast of 1.6",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}
