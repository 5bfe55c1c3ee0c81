//! The folder of one team is reviewed alone, among what a server has of the others (D111).

use serde_json::{Value, json};

use crate::support::{
    git::git,
    program::{Folder, Run, Serve, finish, has},
    users::{assert_refused, login, run_as_user, server_that_answers, through, url},
};

/// A server with the edge of a platform team, and the folder of a team that has routes on it. The folder of the platform is
/// only where the server is.
struct Teams {
    here: Folder,
    // It is dropped before the folder that it works in.
    serve: Serve,
    there: Folder,
}

impl Teams {
    fn new() -> Self {
        let (here, there) = (Folder::new(), Folder::new());
        there.write("platform/edge.yaml", EDGE);
        there.ok("reconcile platform --source platform");
        let serve = there.serve("");
        here.write("team/cart.yaml", &route("cart", "/cart/", "first"));
        Self { here, serve, there }
    }

    fn run_as(&self, token: &str, line: &str) -> Run {
        let mut command = self.here.command(&format!("{line} --source team --server {}", url(&self.serve)));
        command.env("EDGEWRIGHT_TOKEN", token);
        finish(command, "")
    }

    /// Runs a line about the source of the team through the server, as the admin.
    fn run(&self, line: &str) -> Run {
        self.run_as(&self.serve.token, line)
    }

    fn ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        run
    }

    /// The token of a new key.
    fn key(&self, options: &str) -> String {
        let mut command = self.here.command(&format!("keys create {options} --server {}", url(&self.serve)));
        command.env("EDGEWRIGHT_TOKEN", &self.serve.token);
        let run = finish(command, "");
        assert_eq!(run.code, 0, "{}", run.all());
        run.out.trim().to_owned()
    }

    fn commit(&self) {
        git(&self.here, "add .");
        git(&self.here, "commit -q -m change");
    }
}

const EDGE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\n\
    spec: {hostports: ['shop.example.com:443'], delegates_to: [{source: team, path_prefix: /cart/}]}\n";

fn route(name: &str, path: &str, description: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: {name}}}\n\
         spec: {{edge: shop, match_type: path_prefix, match: {path}, description: {description}, backend: {{backend_id: bkd_1}}}}\n"
    )
}

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()))
}

#[test]
fn a_folder_is_validated_among_what_a_server_has() {
    let teams = Teams::new();
    let alone = teams.here.run("validate team --source team");
    has(&alone, &["unknown HttpsEdge `shop`", "or add --server or --with FOLDER if another source declares it"]);
    // The names of everything can be read.
    for options in ["--role viewer", "--role planner --plan team", "--apply team"] {
        let run = teams.run_as(&teams.key(options), "validate team");
        assert_eq!(run.code, 0, "{options}: {}", run.all());
        has(&run, &["1 file"]);
        assert!(!run.all().contains("to create"), "{}", run.all());
    }
    let other = teams.key("--role planner --plan other");
    assert_refused(&teams.run_as(&other, "validate team"), "`team`");
    // The faults are those of a plan, at the same places.
    let cart = teams.here.read("team/cart.yaml");
    let edge = EDGE.replace("name: shop", "name: rival").replace("team", "docs");
    for (text, fault) in [
        (route("cart", "/checkout/", "first"), "ERR_EDGEWRIGHT_NOT_DELEGATED"),
        (cart.replace("edge: shop", "edge: shoop"), "ERR_EDGEWRIGHT_UNKNOWN_REFERENCE"),
        (cart.replace(", backend: {backend_id: bkd_1}", ""), "route-without-backend"),
        (format!("{cart}---\n{edge}"), "ERR_EDGEWRIGHT_NOT_DELEGATED"),
    ] {
        teams.here.write("team/cart.yaml", &text);
        let (validated, planned) = (teams.run("validate team --format json"), teams.run("plan team --format json"));
        let (validated, planned) = (report(&validated), report(&planned));
        assert_eq!(validated["diagnostics"], planned["diagnostics"]);
        assert!(validated["diagnostics"].to_string().contains(fault), "{fault}: {validated}");
        assert!(validated["command"] == "validate" && validated["plan"].is_null(), "{validated}");
        assert!(validated["diagnostics"].to_string().contains("team/cart.yaml"), "{validated}");
    }
}

#[test]
fn values_that_a_server_has_are_not_unknown() {
    let teams = Teams::new();
    let hook = |secret: &str| {
        let module = format!("webhook_verification: {{provider: github, secret: {secret}}}, backend:");
        route("cart", "/cart/", "first").replace("backend:", &module)
    };
    teams.here.write("team/cart.yaml", &hook("correct-horse-battery"));
    teams.ok("reconcile team");
    teams.here.write("team/cart.yaml", &hook("{from_env: HOOK_SECRET}"));
    assert_eq!(teams.run("validate team").code, 3, "it is not set");
    has(&teams.ok("validate team --secrets=assume"), &["(1 field unchanged, 0 unknown)"]);
    let planner = teams.key("--role planner --plan team");
    let assumed = teams.run_as(&planner, "validate team --secrets=assume");
    has(&assumed, &["(1 field unchanged, 0 unknown)"]);

    // A comparison has only the values that are sent: one with the value of the store would confirm a guess.
    let file = |secret: &str, older: bool| json!({"name": "a.yaml", "text": hook(secret), "older": older});
    let compared = |older: &str, newer: &str| {
        let files = json!([file(older, true), file(newer, false)]);
        let body = json!({"source": "team", "dry_run": true, "compare": true, "assume_values": true, "files": files});
        let answer = teams.serve.call_as(&planner, "POST", "/reconciliations", &body.to_string());
        assert_eq!(answer.status, 200, "{}", answer.body);
        let run = answer.json();
        assert!(run["saved_plan"].is_null() && run["outcome"] == "", "{run}");
        run["plan"].clone()
    };
    let unset = "{from_env: HOOK_SECRET}";
    let changes = |plan: &Value| plan["changes"].as_array().map(Vec::len);
    for guess in ["correct-horse-battery", "wrong-horse-battery"] {
        assert_eq!(changes(&compared(guess, unset)), Some(1), "{guess}");
        assert_eq!(changes(&compared(unset, guess)), Some(1), "{guess}");
        assert_eq!(changes(&compared(guess, guess)), Some(0), "{guess}");
    }
}

#[test]
fn two_revisions_are_compared_among_what_a_server_has() {
    let teams = Teams::new();
    git(&teams.here, "init -q -b main");
    teams.here.write("README.md", "nothing\n");
    git(&teams.here, "add README.md");
    git(&teams.here, "commit -q -m empty");
    teams.commit();
    teams.here.write("team/cart.yaml", &route("cart", "/cart/", "second"));
    teams.here.write("team/pay.yaml", &route("pay", "/cart/pay/", "first"));
    teams.commit();
    assert_eq!(teams.here.run("diff --rev HEAD~1..HEAD team --source team").code, 3);
    // What is applied at the time has no part in the difference.
    for revision in ["", "HEAD~1", "HEAD"] {
        if !revision.is_empty() {
            git(&teams.here, &format!("checkout -q {revision} -- team"));
            if revision == "HEAD~1" {
                std::fs::remove_file(teams.here.path("team/pay.yaml")).unwrap();
            }
            teams.ok("reconcile team");
        }
        let run = teams.ok("diff --rev main~1..main team");
        has(
            &run,
            &[
                "~ HttpsEdgeRoute shop/cart",
                "+ HttpsEdgeRoute shop/pay",
                "1 to create, 1 to change, 0 to replace, 0 to delete",
            ],
        );
        let back = teams.ok("diff --rev main..main~1 team");
        has(&back, &["- HttpsEdgeRoute shop/pay", "0 to create, 1 to change, 0 to replace, 1 to delete"]);
        // A path that is new is empty before.
        has(&teams.ok("diff --rev main~2..main team"), &["2 to create, 0 to change"]);
        assert_eq!(teams.run("diff --rev main~1..main team --detailed-exitcode").code, 2);
        assert_eq!(teams.run("diff --rev main..main team --detailed-exitcode").code, 0);
        let planner = teams.key("--role planner --plan team");
        assert_eq!(teams.run_as(&planner, "diff --rev main~1..main team").out, run.out);
    }
    // An error names the side that has it.
    teams.here.write("team/pay.yaml", &route("pay", "/checkout/", "first"));
    teams.commit();
    let newer = teams.run("diff --rev main~1..main team --format json");
    assert_eq!(newer.code, 3);
    has(&newer, &["NOT_DELEGATED", "\"team/pay.yaml\""]);
    let older = teams.run("diff --rev main..main~1 team --format json");
    assert_eq!(older.code, 3);
    has(&older, &["NOT_DELEGATED", "\"main:team/pay.yaml\""]);
}

#[test]
fn module_sets_come_from_a_folder_and_edges_from_a_server() {
    let teams = Teams::new();
    teams.here.write(
        "sets/sets.yaml",
        "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: usual}\nspec: {compression: {}}\n",
    );
    let cart = teams.here.read("team/cart.yaml");
    teams.here.write("old/cart.yaml", &cart);
    teams.here.write("team/cart.yaml", &cart.replace("spec: {", "spec: {modules_from: [usual], "));
    let run = teams.run("validate team");
    assert_eq!(run.code, 3);
    has(&run, &["unknown ModuleSet `usual`"]);
    assert!(!run.all().contains("unknown HttpsEdge"), "{}", run.all());
    teams.ok("validate team --with sets");
    has(&teams.ok("diff old team --with sets"), &["~ HttpsEdgeRoute shop/cart", "1 to change"]);
    let traced = teams.ok("trace https://shop.example.com/cart/1 --manifests team --with sets");
    has(&traced, &["compression"]);
}

#[test]
fn manifests_are_traced_as_if_a_server_had_applied_them() {
    let teams = Teams::new();
    let line = "trace https://shop.example.com/cart/1";
    assert_eq!(teams.here.run(&format!("{line} --manifests team --source team")).code, 3);
    let traced = teams.ok(&format!("{line} --manifests team"));
    has(&traced, &["shop", "cart", "by path_prefix /cart/"]);
    let after = teams.ok(&format!("{line} --manifests team --after"));
    has(&after, &["before the plan", "No route matches.", "after the plan", "changes the handling of this request"]);
    let now = |line: &str| through(&teams.here, &teams.serve, line);
    assert_eq!(now(line).code, 1, "nothing was applied");
    teams.ok("reconcile team");
    has(&teams.ok(&format!("{line} --manifests team --after")), &["does not change the handling"]);
    assert_eq!(now(line).out, traced.out, "what was traced is what was applied");

    teams.here.write("team/cart.yaml", &route("cart", "/checkout/", "first"));
    let invalid = teams.run(&format!("{line} --manifests team"));
    assert_eq!((invalid.code, invalid.out.as_str()), (3, ""), "{}", invalid.all());
    has(&invalid, &["team/cart.yaml:4:"]);
    // A plan that is refused leaves nothing to trace.
    let kept = route("cart", "/cart/", "first").replace("{name: cart}", "{name: cart, prevent_destroy: true}");
    teams.here.write("team/cart.yaml", &kept);
    teams.ok("reconcile team");
    teams.here.write("team/cart.yaml", &route("other", "/cart/other/", "first"));
    let refused = teams.run(&format!("{line} --manifests team"));
    assert_eq!((refused.code, refused.out.as_str()), (4, ""), "{}", refused.all());
    has(&refused, &["would be deleted"]);
}

#[test]
fn only_a_server_that_a_flag_names_is_asked() {
    let teams = Teams::new();
    assert_eq!(login(&teams.here, &teams.serve, "prod --source team").code, 0);
    let trace = "trace https://shop.example.com/cart/1 --manifests team";
    for line in ["validate team", "diff team team", trace] {
        let alone = run_as_user(&teams.here, &format!("{line} --source team"));
        assert_eq!(alone.code, 3, "{line}: {}", alone.all());
        assert!(!alone.err.contains("Using context"), "{}", alone.all());
        // The source is that of the context.
        let named = run_as_user(&teams.here, &format!("{line} --context prod"));
        assert_eq!(named.code, 0, "{line}: {}", named.all());
        assert!(named.err.contains("Using context prod"), "{}", named.all());
        let mut of_variables = teams.here.command(&format!("{line} --source team"));
        of_variables.env("EDGEWRIGHT_SERVER", url(&teams.serve)).env("EDGEWRIGHT_TOKEN", &teams.serve.token);
        let of_variables = finish(of_variables, "");
        assert_eq!(of_variables.code, 3, "{line}: {}", of_variables.all());
    }
    let comment = run_as_user(&teams.here, "validate team --context prod --format markdown");
    assert!(comment.out.starts_with("<!-- edgewright:team -->"), "{}", comment.all());
    assert!(!teams.there.path("edgewright.db").exists() && !teams.here.path("edgewright.db").exists());
}

#[test]
fn a_server_that_cannot_answer_is_an_error_and_never_a_plain_success() {
    let folder = Folder::new();
    folder.write("team/edge.yaml", EDGE);
    let lines = ["validate team", "diff team team", "trace https://shop.example.com/cart/1 --manifests team"];
    let run = |line: &str, url: &str| {
        let mut command = folder.command(&format!("{line} --server {url}"));
        command.env("EDGEWRIGHT_TOKEN", "token");
        finish(command, "")
    };
    let (half, foreign) = (server_that_answers(|_| None), server_that_answers(|_| Some((200, "{}"))));
    let refused =
        server_that_answers(|_| Some((403, r#"{"error_code": "ERR_EDGEWRIGHT_FORBIDDEN", "msg": "not allowed"}"#)));
    for line in lines {
        assert_refused(&run(line, "http://127.0.0.1:1"), "cannot reach http://127.0.0.1:1/");
        assert_refused(&run(line, &half), "no usable response from http");
        assert_refused(&run(line, &foreign), "not an edgewright server");
        assert_refused(&run(line, &refused), "rejected by the server: not allowed");
    }
    let [_, diff, trace] = lines;
    assert_refused(
        &run(diff, &server_that_answers(|_| Some((400, NO_COMPARE)))),
        "is too old: it cannot compare manifests",
    );
    assert_refused(
        &run(trace, &server_that_answers(|_| Some((400, NO_TRACE)))),
        "is too old: it cannot trace manifests",
    );
}

const NO_COMPARE: &str =
    r#"{"details":{"field":"/compare"},"error_code":"ERR_EDGEWRIGHT_UNKNOWN_FIELD","msg":"unknown field"}"#;
const NO_TRACE: &str =
    r#"{"details":{"field":"/trace"},"error_code":"ERR_EDGEWRIGHT_UNKNOWN_FIELD","msg":"unknown field"}"#;

#[test]
fn an_error_in_the_files_adds_no_names_that_only_a_server_knows() {
    let teams = Teams::new();
    let good = teams.here.read("team/cart.yaml");
    teams.here.write("old/cart.yaml", &good);
    let cart = route("cart", "/cart/", "first").replace("spec: {", "spec: {modules_from: [usual], ");
    let broken = route("broken", "/cart/broken/", "first").replace("match_type: path_prefix", "match_type: nothing");
    teams.here.write("team/cart.yaml", &format!("{cart}---\n{broken}"));
    let trace = "trace https://shop.example.com/cart/1 --manifests team";
    for line in ["plan team", "validate team", "diff old team", trace] {
        let run = teams.run(line);
        assert_eq!(run.code, 3, "{line}: {}", run.all());
        // No server has module sets.
        has(&run, &["match_type", "unknown ModuleSet `usual`"]);
        assert!(!run.all().contains("unknown HttpsEdge"), "{line}: {}", run.all());
    }
    // Without a server, there is nothing else to look in.
    has(&teams.here.run("validate team --source team"), &["match_type", "unknown HttpsEdge `shop`"]);
}
