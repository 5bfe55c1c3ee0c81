//! Secrets that are replaced: the new ones reach what API keys apply that do not see the former ones (D101, D103).

use serde_json::{Value, json};

use super::limits::{DOCS, SHOP};
use super::manifest;
use crate::support::{
    program::{Folder, Run, Serve},
    users::run_with_token,
};

const UNCOMPARED: &str = "ERR_EDGEWRIGHT_UNCOMPARED_SECRETS";

/// A server and its folder.
struct Team {
    // It is dropped before the folder that it works in.
    serve: Serve,
    folder: Folder,
}

impl Team {
    fn new() -> Self {
        let folder = Folder::new();
        Self { serve: folder.serve(""), folder }
    }

    /// A new key with a scope: its token.
    fn token(&self, scope: Value) -> String {
        let made = self.serve.call("POST", "/api_keys", &json!({"owner_id": "bot_team", "scope": scope}).to_string());
        assert_eq!(made.status, 201, "{}", made.body);
        made.json()["token"].as_str().unwrap().to_owned()
    }

    fn run(&self, token: &str, line: &str) -> Run {
        run_with_token(&self.folder, &self.serve, token, line)
    }

    /// Writes the manifests of a source, and applies them.
    #[track_caller]
    fn apply(&self, token: &str, source: &str, text: &str) -> Run {
        self.folder.write(&format!("{source}.yaml"), text);
        let run = self.run(token, &format!("reconcile {source}.yaml --source {source}"));
        assert_eq!(run.code, 0, "{}", run.all());
        assert!(run.err.contains("Applied as revision"), "{}", run.all());
        run
    }

    /// The secrets of the only route.
    fn secrets(&self) -> [String; 2] {
        let edges = self.serve.get("/edges/https").json();
        let route = &edges["https_edges"][0]["routes"][0];
        let secret = |module: &str, field: &str| route[module][field].as_str().unwrap_or_default().to_owned();
        [secret("webhook_verification", "secret"), secret("oidc", "client_secret")]
    }
}

/// The edge requires a secret of the team's route, and has just replaced it.
fn with_rotated_secret() -> (Team, String) {
    let team = Team::new();
    let token = team.token(json!({"apply": ["docs"]}));
    team.apply(&team.serve.token, "shop", SHOP);
    team.apply(&token, "docs", DOCS);
    team.apply(&team.serve.token, "shop", &SHOP.replace("shop-secret-1", "shop-secret-2"));
    assert_eq!(team.secrets(), ["shop-secret-1", "docs-secret-1"]);
    (team, token)
}

#[test]
fn a_team_applies_the_secret_that_its_edge_has_replaced_and_its_own() {
    let (team, token) = with_rotated_secret();
    let plan = |options: &str| team.run(&token, &format!("plan docs.yaml --source docs {options}"));
    let planned = plan("--detailed-exitcode");
    assert_eq!(planned.code, 2, "{}", planned.all());
    assert!(planned.out.contains("/webhook_verification") && !planned.out.contains("/oidc"), "{}", planned.all());
    assert!(!planned.all().contains("-secret-") && !planned.err.contains(UNCOMPARED), "{}", planned.all());
    let applied = team.apply(&token, "docs", DOCS);
    assert_eq!(applied.calls(), planned.calls());
    assert_eq!(team.secrets(), ["shop-secret-2", "docs-secret-1"]);
    assert_eq!(plan("--detailed-exitcode").code, 0);
    // Its own, with other changes, and as a plan that was reviewed.
    let own = DOCS.replace("docs-secret-1", "docs-secret-2");
    team.folder.write("docs.yaml", &own.replace("bkd_1", "bkd_2"));
    assert_eq!(plan("--out plan.json").code, 0);
    let reviewed = team.run(&token, "reconcile docs.yaml --source docs --plan plan.json");
    assert_eq!(reviewed.code, 0, "{}", reviewed.all());
    assert_eq!(team.secrets(), ["shop-secret-2", "docs-secret-2"]);
    assert_eq!(plan("--detailed-exitcode").code, 0);
}

#[test]
fn a_replaced_secret_is_applied_after_a_review_that_did_not_see_it() {
    let (team, token) = with_rotated_secret();
    let reviewer = team.token(json!({"role": "planner", "plan": ["docs"]}));
    // Only what is compared counts as a change.
    let planned = team.run(&reviewer, "plan docs.yaml --source docs --out plan.json --detailed-exitcode");
    assert!(planned.code == 0 && planned.err.contains(UNCOMPARED), "{}", planned.all());
    // A run that could not compare everything does not end as if nothing had to be done.
    let refused = team.run(&reviewer, "reconcile docs.yaml --source docs");
    assert!(refused.code == 1 && refused.err.contains("ERR_EDGEWRIGHT_FORBIDDEN"), "{}", refused.all());
    let applied = team.run(&token, "reconcile docs.yaml --source docs --plan plan.json");
    assert!(applied.code == 0 && applied.err.contains("UNREVIEWED_SECRETS"), "{}", applied.all());
    assert_eq!(team.secrets(), ["shop-secret-2", "docs-secret-1"]);
}

#[test]
fn a_rollback_brings_back_a_secret_that_its_dry_run_does_not_compare() {
    let team = Team::new();
    let token = team.token(json!({"apply": ["shop"]}));
    let text = |secret: &str| manifest("shop", secret, "first");
    team.apply(&token, "shop", &text("shop-secret-1"));
    let before = team.serve.get("/reconciliations").json()["reconciliations"][0]["revision"].as_u64().unwrap();
    team.apply(&token, "shop", &text("shop-secret-2"));
    let rollback = |options: &str| team.run(&token, &format!("rollback --to {before} --source shop {options}"));
    let dry = rollback("--dry-run");
    assert!(dry.code == 0 && dry.err.contains(UNCOMPARED), "{}", dry.all());
    assert!(dry.err.contains("1 secret field of HttpsEdgeRoute shop/hook"), "{}", dry.all());
    assert_eq!(team.secrets()[0], "shop-secret-2");
    // The plan that was applied is told, too.
    let applied = rollback("--output report.txt");
    assert_eq!(applied.code, 0, "{}", applied.all());
    assert_eq!(team.secrets()[0], "shop-secret-1");
    assert_eq!(applied.calls().len(), 1, "{}", applied.all());
    let report = team.folder.read("report.txt");
    assert!(report.contains("/webhook_verification") && !report.contains("No changes"), "{report}");
    // What is the same already makes no revision.
    let again = rollback("--format json");
    assert!(again.code == 0 && again.err.contains("Nothing was applied"), "{}", again.all());
    let report: Value = serde_json::from_str(&again.out).unwrap();
    assert!(report["applied"].is_null() && report["plan"]["changes"] == json!([]), "{report:#}");
}
