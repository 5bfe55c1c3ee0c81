//! A gateway for tests in a browser: on a good day and in a bad night, and the addresses of all of its pages.

use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};

use crate::{
    security::tls::authority_until,
    support::{
        chromium::Chromium,
        git::{commit_as, git, head},
        manifests::edge,
        program::{CONFIG, Folder, Serve, until},
        sources::{in_state, status},
        users::through,
    },
};

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
const PAGES: [&str; 10] =
    ["", "sources", "edges", "routes", "revisions", "certificates", "trace", "keys", "server", "rollback"];
/// Pages that are answered with an error.
pub(super) const ERRORS: [&str; 5] =
    ["edges/nowhere", "rollback?to=x", "sources/nowhere/sync", "plans/nowhere", "login/oidc"];

/// A server that follows three sources.
pub(super) struct Gateway {
    // It is dropped before the folder that it works in.
    pub(super) serve: Serve,
    pub(super) folder: Folder,
}

impl Gateway {
    /// All sources are in sync.
    pub(super) fn new() -> Self {
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
    pub(super) fn in_trouble() -> Self {
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
    pub(super) fn break_shop(&self) {
        let (from, to) = ("match_type: path_prefix\n      match: /cart", "match_type: prefix\n      match: /cart");
        self.folder.edit("repo/edge/shop.yaml", from, to);
        commit_as(&self.folder, "repo", "Linus Long", "A prefix is shorter than path_prefix");
    }

    pub(super) fn change(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.serve.call(method, path, &body.to_string());
        assert!([200, 201].contains(&answer.status), "{path}: {}", answer.body);
        answer.json()
    }

    /// The ID of an edge of a source.
    pub(super) fn id_of(&self, edge: &str) -> String {
        let list = self.serve.get(&format!("/edges/https?name={edge}")).json();
        list["https_edges"][0]["id"].as_str().unwrap().to_owned()
    }

    pub(super) fn origin(&self) -> String {
        format!("http://{}", self.serve.address)
    }

    /// The current revision.
    pub(super) fn revision(&self) -> u64 {
        self.serve.metric("edgewright_revision").unwrap() as u64
    }

    /// Signs in with a token.
    pub(super) fn sign_in(&self, browser: &mut Chromium, token: &str) {
        browser.open(&format!("{}/ui/sign-in", self.origin()));
        browser.enter("#token", token);
        assert_eq!(browser.address(), format!("{}/ui/", self.origin()));
    }

    /// The addresses of all pages, below the dashboard.
    pub(super) fn pages(&self) -> Vec<String> {
        let edge = self.serve.get(&format!("/edges/https/{}", self.id_of("shop"))).json();
        let of_edge = |edge: &Value| {
            let id = edge["id"].as_str().unwrap();
            let routes = edge["routes"].as_array().unwrap().iter();
            let routes = routes.map(|route| format!("edges/{id}/routes/{}", route["id"].as_str().unwrap()));
            routes.chain([format!("edges/{id}")]).collect::<Vec<_>>()
        };
        let mut pages: Vec<String> = PAGES.iter().chain(&ERRORS).map(|page| (*page).to_owned()).collect();
        pages.extend(of_edge(&edge));
        let newest = self.serve.get("/edges/https?limit=3").json();
        newest["https_edges"].as_array().unwrap().iter().for_each(|edge| pages.extend(of_edge(edge)));
        let applied = status(&self.serve, "shop")["last_applied"]["revision"].as_u64().unwrap();
        pages.extend([format!("revisions/{applied}"), format!("revisions/{}", applied - 1)]);
        pages.extend([format!("rollback?to={}", applied - 1), format!("rollback?to={}", self.revision())]);
        let files = json!([{"name": "shop.yaml", "text": SHOP.replace(LOCK, "").replace("/cart", "/basket")}]);
        let plan = json!({"source": "shop", "dry_run": true, "page": true, "behaviour": true, "files": files});
        let planned = self.change("POST", "/reconciliations", &plan);
        pages.push(planned["page"].as_str().unwrap().split_once("/ui/").unwrap().1.to_owned());
        let keys = self.serve.get("/api_keys").json();
        pages.push(format!("keys/{}/revoke", keys["keys"][0]["id"].as_str().unwrap()));
        let others = [
            "sign-in",
            "sources/shop",
            "sources/docs",
            "sources/payments",
            "sources/payments?done=suspend",
            "sources/shop/suspend",
            "sources/shop/resume",
            "sources/shop/sync",
            "sources/payments/suspend",
            "sources/payments/resume",
            "sources/payments/sync",
            "edges?search=tenant-27&sort=name",
            "edges?search=nowhere",
            "routes?access=protected",
            "routes?search=nowhere",
            "revisions?source=shop",
            "revisions?source=nowhere",
            "rollback?to=1",
            "trace?url=shop.example.com/cart/1",
            "trace?url=shop.example.com/cart&at=4",
            "trace?url=nowhere.example.com",
            "trace?url=ftp://x",
            "keys?search=nowhere",
        ];
        pages.extend(others.map(str::to_owned));
        pages
    }
}

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
