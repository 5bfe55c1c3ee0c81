//! The pages in a real browser: what somebody does there, what holds for each page in both schemes of colours and on a phone,
//! and the pictures of the documentation.

use std::fs;

use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};

use crate::{
    security::tls::authority_until,
    support::{
        chromium::Chromium,
        git::{commit_as, git, head},
        manifests::edge,
        picture::smaller,
        program::{CONFIG, Folder, REPOSITORY, Serve, rounds, until},
        sources::{in_state, status},
        users::through,
    },
};

/// Checks the page that is shown, and returns what is wrong.
const RULES: &str = include_str!("accessibility.js");
/// The variable that asks for the pictures.
const PICTURES: &str = "EDGEWRIGHT_PICTURES";
const TENANTS: usize = 300;
const SOURCES: &str = "sources:
- {name: shop, repository: repo, ref: main, path: edge}
- {name: docs, path: docs}
- {name: payments, path: payments, drift: warn, interval: 1s}
";
const SHOP: &str = "apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  description: The shop
  hostports: ['shop.example.com:443']
  routes:
    - name: cart
      match_type: path_prefix
      match: /cart
      backend: {backend_id: bkd_cart}
      webhook_verification: {provider: github, secret: not-for-your-eyes}
      compression: {}
    - name: admin
      match_type: path_prefix
      match: /admin
      backend: {backend_id: bkd_admin}
      ip_restriction: {ip_policy_ids: [ipp_office]}
    - name: home
      match_type: path_prefix
      match: /
      backend: {backend_id: bkd_home}
";
const LOCK: &str = "      ip_restriction: {ip_policy_ids: [ipp_office]}\n";
/// Texts that are markup, change the direction, or have no place to break.
const HOSTILE: [&str; 3] = [
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>",
    "\u{202e}evil\u{202c} \u{639}\u{646}\u{648}\u{627}\u{646}",
    "long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long-long",
];
/// The pages without a parameter.
const PAGES: [&str; 9] = ["", "sources", "edges", "routes", "revisions", "certificates", "trace", "keys", "server"];
/// A window on a desk and one of a phone, in both schemes. A usual run has the first two.
const LOOKS: [(u32, u32, &str); 4] =
    [(1280, 900, "light"), (390, 844, "dark"), (1280, 900, "dark"), (390, 844, "light")];

/// A server that follows three sources.
struct Gateway {
    // It is dropped before the folder that it works in.
    serve: Serve,
    folder: Folder,
}

impl Gateway {
    /// All sources are in sync.
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("repo/edge/shop.yaml", SHOP);
        folder.write("repo/edge/tenants.yaml", &(0..TENANTS).map(tenant).collect::<String>());
        folder.write("docs/docs.yaml", &edge("docs", "Documentation"));
        folder.write("payments/payments.yaml", &edge("payments", "Payments"));
        folder.write(CONFIG, SOURCES);
        git(&folder, "init -q -b main repo");
        commit_as(&folder, "repo", "Ada Lovelace", "The shop and its tenants");
        let serve = folder.serve("");
        for source in ["shop", "docs", "payments"] {
            in_state(&serve, source, "Synced");
        }
        Self { serve, folder }
    }

    /// The gateway of a bad night: texts of people who mean no good, an authority that expires, an admin page that is open, a
    /// change by hand, a source that is suspended, two that are broken, and a data plane that is behind.
    fn in_trouble() -> Self {
        let gateway = Self::new();
        let Self { serve, folder } = &gateway;
        for (number, text) in HOSTILE.iter().enumerate() {
            gateway.change("POST", "/api_keys", &json!({"description": text}));
            let hostports = [format!("{}{number}.example.com:443", "hostile-".repeat(6))];
            let body = json!({"description": text, "metadata": text, "hostports": hostports});
            let edge = gateway.change("POST", "/edges/https", &body);
            let route = json!({
                "description": text,
                "match_type": "path_prefix",
                "match": format!("/{}", "long-".repeat(40)),
                "backend": {"backend_id": "bkd_1"},
            });
            gateway.change("POST", &format!("/edges/https/{}/routes", edge["id"].as_str().unwrap()), &route);
        }
        let soon = Zoned::now().date().saturating_add(9.days());
        let authority = json!({"description": "Devices of the staff", "ca_pem": authority_until(soon)});
        gateway.change("POST", "/certificate_authorities", &authority);
        assert_eq!(through(folder, serve, "keys create --role gateway --token-file gateway.token").code, 0);
        let token = folder.read("gateway.token");
        assert_eq!(serve.call_as(token.trim(), "GET", "/gateway/configuration", "").status, 200);

        folder.edit("repo/edge/shop.yaml", LOCK, "");
        commit_as(folder, "repo", "Grace Hopper", "Open the admin pages for the audit");
        until("the open admin page", || {
            (status(serve, "shop")["last_applied"]["commit"] == head(folder, "repo")).then_some(())
        });
        let payments = gateway.id_of("payments");
        gateway.change("PATCH", &format!("/edges/https/{payments}"), &json!({"description": "Changed at night"}));
        until("the drift", || (status(serve, "payments")["counts"]["drifted"] == 1).then_some(()));
        gateway.change("POST", "/sources/payments/suspend", &json!({"reason": "the provider of cards is down"}));
        gateway.break_shop();
        folder.edit("docs/docs.yaml", "hostports", "hostprots");
        for source in ["shop", "docs"] {
            in_state(serve, source, "Invalid");
        }
        gateway
    }

    /// Commits a mistake in line 9.
    fn break_shop(&self) {
        let (from, to) = ("match_type: path_prefix\n      match: /cart", "match_type: prefix\n      match: /cart");
        self.folder.edit("repo/edge/shop.yaml", from, to);
        commit_as(&self.folder, "repo", "Linus Long", "A prefix is shorter than path_prefix");
    }

    fn change(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.serve.call(method, path, &body.to_string());
        assert!([200, 201].contains(&answer.status), "{path}: {}", answer.body);
        answer.json()
    }

    /// The ID of an edge of a source.
    fn id_of(&self, edge: &str) -> String {
        let list = self.serve.get(&format!("/edges/https?name={edge}")).json();
        list["https_edges"][0]["id"].as_str().unwrap().to_owned()
    }

    fn origin(&self) -> String {
        format!("http://{}", self.serve.address)
    }

    /// The addresses of all pages, below the dashboard.
    fn pages(&self) -> Vec<String> {
        let edge = self.serve.get(&format!("/edges/https/{}", self.id_of("shop"))).json();
        let of_edge = |edge: &Value| {
            let id = edge["id"].as_str().unwrap();
            let routes = edge["routes"].as_array().unwrap().iter();
            let routes = routes.map(|route| format!("edges/{id}/routes/{}", route["id"].as_str().unwrap()));
            routes.chain([format!("edges/{id}")]).collect::<Vec<_>>()
        };
        let mut pages: Vec<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
        pages.extend(of_edge(&edge));
        let newest = self.serve.get("/edges/https?limit=3").json();
        newest["https_edges"].as_array().unwrap().iter().for_each(|edge| pages.extend(of_edge(edge)));
        let revision = status(&self.serve, "shop")["last_applied"]["revision"].as_u64().unwrap();
        pages.extend([format!("revisions/{revision}"), format!("revisions/{}", revision - 1)]);
        let others = [
            "sign-in",
            "sources/shop",
            "sources/docs",
            "sources/payments",
            "edges?search=tenant-27&sort=name",
            "edges?search=nowhere",
            "routes?access=protected",
            "routes?search=nowhere",
            "revisions?source=shop",
            "revisions?source=nowhere",
            "trace?url=shop.example.com/cart/1",
            "trace?url=shop.example.com/cart&at=4",
            "trace?url=nowhere.example.com",
            "trace?url=ftp://x",
            "keys?search=nowhere",
            MISSING,
        ];
        pages.extend(others.map(str::to_owned));
        pages
    }
}

/// A page that does not exist: the browser says so on its console.
const MISSING: &str = "edges/nowhere";

fn tenant(number: usize) -> String {
    let route = |name: &str, path: &str| {
        format!("    - {{name: {name}, match_type: path_prefix, match: {path}, backend: {{backend_id: bkd_{name}}}}}\n")
    };
    format!(
        "---\napiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: tenant-{number}}}\nspec:\n  \
         hostports: ['t{number}.example.com:443']\n  routes:\n{}{}",
        route("api", "/api"),
        route("all", "/"),
    )
}

/// Signs in as the admin.
fn sign_in(browser: &mut Chromium, gateway: &Gateway) {
    browser.open(&format!("{}/ui/sign-in", gateway.origin()));
    browser.enter("#token", &gateway.serve.token);
    assert_eq!(browser.address(), format!("{}/ui/", gateway.origin()));
}

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
fn everybody_can_read_every_page() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::in_trouble();
    let origin = gateway.origin();
    sign_in(&mut browser, &gateway);
    let looks = rounds(&LOOKS[..2], &LOOKS[..]);
    let mut offenders = Vec::new();
    for page in gateway.pages() {
        for (width, height, scheme) in looks {
            browser.show_in(*width, *height, scheme);
            browser.open(&format!("{origin}/ui/{page}"));
            let found = browser.evaluate(RULES);
            let mut found: Vec<String> =
                found.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect();
            let complaints = browser.complaints(&origin);
            if page != MISSING {
                found.extend(complaints);
            }
            offenders.extend(found.into_iter().map(|it| format!("{page} ({width}, {scheme}): {it}")));
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}

#[test]
fn a_page_needs_neither_a_mouse_nor_scripts() {
    let Some(mut browser) = Chromium::start() else { return };
    let gateway = Gateway::new();
    let routes = format!("{}/ui/routes?search=%2Fapi", gateway.origin());
    sign_in(&mut browser, &gateway);
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

/// `EDGEWRIGHT_PICTURES=1 cargo test --test it pictures_of_pages` takes the pictures of the documentation again.
#[test]
fn pictures_of_pages() {
    if std::env::var_os(PICTURES).is_none() {
        eprintln!("skipped: pictures are taken with {PICTURES}=1");
        return;
    }
    let mut browser = Chromium::start().expect("Chromium");
    let gateway = Gateway::in_trouble();
    sign_in(&mut browser, &gateway);
    let edge = format!("edges/{}", gateway.id_of("shop"));
    for (name, page, width, height, scheme) in [
        ("overview", "", 1120, 772, "light"),
        ("trace", "trace?url=shop.example.com/cart/1", 1120, 620, "light"),
        ("edge-on-a-phone", edge.as_str(), 390, 844, "dark"),
    ] {
        browser.show_in(width, height, scheme);
        browser.open(&format!("{}/ui/{page}", gateway.origin()));
        let path = format!("{REPOSITORY}/docs/images/dashboard-{name}.png");
        fs::write(path, smaller(&browser.picture())).unwrap();
    }
}
