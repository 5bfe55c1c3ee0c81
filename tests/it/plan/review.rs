//! Reviews in CI: what a pull request shows of one team's folder, without the rest of the repository and without secrets.

use crate::support::{
    git::git,
    manifests::bare_edge,
    program::{Folder, REPOSITORY, Run, finish, has},
    users::through,
};

#[test]
fn the_comments_of_two_sources_do_not_replace_each_other() {
    let folder = Folder::new();
    folder.write("a/a.yaml", &bare_edge("a", ""));
    folder.write("b/b.yaml", &bare_edge("b", ""));
    let first = |line: &str| {
        let run = folder.run(&format!("{line} --format markdown"));
        run.out.lines().next().unwrap_or_default().to_owned()
    };
    for verb in ["plan", "validate", "reconcile --dry-run", "diff b"] {
        let marks = [format!("{verb} a"), format!("{verb} a --source team-a"), format!("{verb} a --source team-a--b")];
        let marks: Vec<String> = marks.iter().map(|line| first(line)).collect();
        assert_eq!(
            marks,
            ["<!-- edgewright -->", "<!-- edgewright:team-a -->", "<!-- edgewright:team-a%2D%2Db -->"],
            "{verb}"
        );
    }
    // What is remembered of a run is the same comment.
    folder.ok("reconcile a --source team-a");
    for _ in 0..2 {
        assert_eq!(first("plan a --source team-a"), "<!-- edgewright:team-a -->");
    }
    // So is a report that has nothing but an error in the configuration.
    folder.write("edgewright.config.yaml", "lints: {no-such-lint: deny}\n");
    assert_eq!(first("plan a --source team-a"), "<!-- edgewright:team-a -->");
}

#[test]
fn a_plan_shows_which_field_is_cleared() {
    let folder = Folder::new();
    let described = bare_edge("a", "").replace("spec: {", "spec: {description: hand, ");
    let plan = |text: &str| {
        folder.write("a/a.yaml", text);
        let out = folder.ok("reconcile a").out;
        let is_changed = |line: &&str| line.starts_with("+ ") || line.starts_with("- ");
        out.lines().map(str::trim_start).filter(is_changed).map(str::to_owned).collect::<Vec<String>>()
    };
    plan(&bare_edge("a", ""));
    assert_eq!(plan(&described), ["+ description: hand"]);
    assert_eq!(plan(&bare_edge("a", "")), ["- description: hand", "+ description: ''"]);
}

/// A shared folder with module sets and an edge, and a team's folder that uses them.
fn teams() -> Folder {
    let folder = Folder::new();
    folder.write(
        "shared/sets.yaml",
        "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: usual}\nspec: {compression: {enabled: false}}\n---\n\
         apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: spare}\nspec: {compression: {}}\n",
    );
    let delegates = "hostports: ['shop.example.com:443'], delegates_to: [{source: team, path_prefix: /}, \
                     {source: default, path_prefix: /}]";
    folder
        .write("shared/edge.yaml", &bare_edge("shop", "").replace("hostports: [\"shop.example.com:443\"]", delegates));
    folder.write("team/cart.yaml", &route("usual"));
    folder
}

/// A route of the shared edge with a module set.
fn route(set: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: cart}}\n\
         spec: {{edge: shop, match_type: path_prefix, match: /cart, backend: {{backend_id: bkd_1}}, modules_from: [{set}]}}\n"
    )
}

#[test]
fn a_folder_of_a_team_is_validated_with_what_it_shares() {
    let folder = teams();
    let alone = folder.run("validate team");
    assert_eq!(alone.code, 3);
    has(&alone, &["unknown ModuleSet `usual`", "unknown HttpsEdge `shop`", "--with"]);
    let aside = Folder::new();
    std::os::unix::fs::symlink(folder.path(""), aside.path("linked")).unwrap();
    let linked = format!("--with {}", aside.path("linked").display());
    // Nothing in surrounding manifests is counted or linted, and neither are its module sets called unused.
    for with in ["--with shared", "--with shared/edge.yaml --with shared/sets.yaml", "--with .", &linked] {
        let run = folder.ok(&format!("validate team {with}"));
        has(&run, &["1 file"]);
        assert!(!run.all().contains("unused-module-set") && !run.all().contains("disabled-module"), "{}", run.all());
    }
    // The owner of the sets has no routes, so its sets are for others; and those that routes of others use are used.
    assert!(!folder.ok("validate shared").all().contains("unused-module-set"));
    folder.write("shared/home.yaml", &route("usual").replace("cart", "home").replace("[usual]", "[]"));
    let owner = folder.ok("validate shared --with team");
    has(&owner, &["no route uses the module set `spare`"]);
    assert!(!owner.all().contains("the module set `usual`"), "{}", owner.all());
}

#[test]
fn errors_in_surrounding_manifests_are_reported_where_they_are() {
    let folder = teams();
    folder.edit("shared/sets.yaml", "{enabled: false}", "{enable: false}");
    for verb in ["validate", "plan"] {
        let run = folder.run(&format!("{verb} team --with shared"));
        assert_eq!(run.code, 3);
        has(&run, &["in the surrounding manifests: unknown field `enable`", "shared/sets.yaml:4:"]);
        // The faulty set is known.
        assert!(!run.all().contains("unknown ModuleSet"), "{}", run.all());
    }
    // Two sets with one name are an error only where they are used.
    let twice = teams();
    twice.write("other/sets.yaml", &twice.read("shared/sets.yaml"));
    let run = twice.run("validate team --with shared --with other");
    assert_eq!(run.code, 3);
    has(&run, &["in the surrounding manifests: duplicate ModuleSet `usual`"]);
    assert!(!run.all().contains("`spare`"), "{}", run.all());
    let mistyped = teams();
    mistyped.edit("team/cart.yaml", "[usual]", "[usuall]");
    has(&mistyped.run("validate team --with shared"), &["unknown ModuleSet `usuall`", "did you mean `usual`?"]);
}

#[test]
fn a_team_applies_what_it_has_validated_and_owns_nothing_that_surrounds_it() {
    let folder = teams();
    let early = folder.run("plan team --source team --with shared");
    assert_eq!(early.code, 3);
    has(&early, &["unknown HttpsEdge `shop`", "apply the surrounding manifests first"]);
    folder.ok("reconcile shared --source shared");
    let applied = folder.ok("reconcile team --source team --with shared --out plan.json");
    has(
        &applied,
        &["+ HttpsEdgeRoute shop/cart", "1 to create, 0 to change, 0 to replace, 0 to delete", "enabled: false"],
    );
    // A run with surrounding manifests is not one without it, whatever is remembered.
    for _ in 0..2 {
        has(&folder.ok("plan team --source team --with shared"), &["No changes: 1 unchanged."]);
        assert_eq!(folder.run("plan team shared --source team").code, 3);
        has(&folder.ok("plan shared --source shared --with team"), &["No changes: 1 unchanged."]);
        assert_eq!(folder.run("plan team --source team").code, 3);
    }
    // A change of a shared set is a change of the routes that use it.
    folder.edit("shared/sets.yaml", "{enabled: false}", "{enabled: true}");
    has(&folder.ok("plan team --source team --with shared"), &["~ HttpsEdgeRoute shop/cart", "+ enabled: true"]);
    has(&folder.ok("plan shared --source shared"), &["No changes"]);
}

#[test]
fn a_server_plans_and_applies_with_surrounding_manifests() {
    let folder = teams();
    let there = Folder::new();
    let serve = there.serve("");
    let run = |line: &str| through(&folder, &serve, line);
    assert_eq!(run("reconcile shared --source shared").code, 0);
    let applied = run("reconcile team --source team --with shared");
    assert_eq!(applied.code, 0, "{}", applied.all());
    has(&applied, &["+ HttpsEdgeRoute shop/cart", "1 to create"]);
    has(&run("plan team --source team --with shared"), &["No changes: 1 unchanged."]);
    // Surrounding manifests alone are no source: nothing is deleted.
    let body = r##"{"source": "team", "files": [{"name": "a.yaml", "text": "# nothing", "surrounding": true}]}"##;
    let answer = serve.call("POST", "/reconciliations", body);
    assert!(answer.code() == "ERR_EDGEWRIGHT_EMPTY_SOURCE", "{}", answer.body);
}

#[test]
fn two_revisions_of_a_team_are_compared_with_surrounding_manifests() {
    let folder = teams();
    git(&folder, "init -q -b main");
    git(&folder, "add .");
    git(&folder, "commit -q -m first");
    folder.edit("shared/sets.yaml", "{enabled: false}", "{enabled: true}");
    folder.write("extra/more.yaml", &bare_edge("more", ""));
    folder.write("team/cart.yaml", &(route("usual") + "---\n" + &bare_edge("own", "")));
    git(&folder, "add .");
    git(&folder, "commit -q -m second");
    assert_eq!(folder.run("diff --rev HEAD~1..HEAD team").code, 3);
    for range in ["HEAD~1..HEAD", "HEAD~1"] {
        let run = folder.ok(&format!("diff --rev {range} team --with shared"));
        has(&run, &["~ HttpsEdgeRoute shop/cart", "+ enabled: true", "+ HttpsEdge own", "1 to create, 1 to change"]);
    }
    has(&folder.ok("diff --rev HEAD~1..HEAD team shared"), &["1 to create, 1 to change, 0 to replace"]);
    // Everything around the folder, however it is given.
    let top = folder.path("");
    let top = top.display();
    for with in [".".to_owned(), "./".to_owned(), "team/..".to_owned(), format!("{top}"), format!("{top}/shared/..")] {
        for team in ["team", "./team"] {
            let run = folder.ok(&format!("diff --rev HEAD~1..HEAD {team} --with {with}"));
            has(&run, &["~ HttpsEdgeRoute shop/cart", "1 to create, 1 to change"]);
        }
    }
    // A path that is new is empty before, also one without manifests and a surrounding one.
    has(&folder.ok("diff --rev HEAD~1..HEAD extra"), &["+ HttpsEdge more", "1 to create, 0 to change"]);
    has(&folder.ok("diff --rev HEAD~1..HEAD team extra --with ."), &["2 to create, 1 to change"]);
    has(&folder.ok("diff --rev HEAD~1..HEAD team --with shared --with extra"), &["1 to create, 1 to change"]);
    let mistyped = folder.run("diff --rev HEAD~1..HEAD team extr --with .");
    assert_eq!(mistyped.code, 3);
    has(&mistyped, &["extr cannot be read: no such file or folder"]);
    let traced = folder.ok("trace https://shop.example.com/cart --manifests team --with shared");
    has(&traced, &["cart", "path_prefix"]);
}

/// A folder with a secret from a variable and an authority from a file, neither of which is there.
fn fork() -> Folder {
    let folder = Folder::new();
    folder.write(
        "m/shop.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  hostports: ['shop.example.com:443']\n  \
         routes:\n    - name: hooks\n      match_type: exact_path\n      match: /hooks\n      description: Hooks\n      \
         backend: {backend_id: bkd_1}\n      webhook_verification: {provider: sendgrid, secret: {from_env: HOOK_SECRET}}\n---\n\
         apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {name: partners}\n\
         spec: {ca_pem: {from_file: ca.pem}}\n",
    );
    folder
}

/// Runs a line with the values of [`fork`].
fn with_values(folder: &Folder, line: &str) -> Run {
    let authority = format!("{REPOSITORY}/examples/storefront/certs/partner-devices.pem");
    std::fs::copy(authority, folder.path("m/ca.pem")).unwrap();
    let mut command = folder.command(line);
    command.env("HOOK_SECRET", "correct-horse");
    let run = finish(command, "");
    std::fs::remove_file(folder.path("m/ca.pem")).unwrap();
    run
}

#[test]
fn a_fork_without_secrets_is_reviewed() {
    let folder = fork();
    for verb in ["validate m", "plan m", "diff m m"] {
        let run = folder.run(verb);
        assert_eq!(run.code, 3, "{verb}");
        has(&run, &["ENV_UNSET", "FILE_UNREADABLE"]);
        let run = folder.ok(&format!("{verb} --secrets=assume"));
        has(
            &run,
            &["ERR_EDGEWRIGHT_ASSUMED_VALUES", "2 unset values are assumed: variable `HOOK_SECRET`, file `ca.pem`"],
        );
        has(&run, &["(0 fields unchanged, 2 unknown)", "not checked because of 2 unknown fields", "`webhook-secret`"]);
    }
    let created = folder.ok("plan m --secrets=assume");
    has(&created, &["+ HttpsEdgeRoute shop/hooks", "secret: (unknown)", "ca_pem: (unknown)", "3 to create"]);
    for format in ["json", "markdown", "github", "sarif", "junit"] {
        let run = folder.ok(&format!("plan m --secrets=assume --format {format}"));
        assert!(run.out.contains("HOOK_SECRET") && run.out.contains("2 unset values"), "{format}: {}", run.out);
        let shows = run.out.contains("(unknown)") && !run.out.contains("********");
        assert!(shows || !["json", "markdown"].contains(&format), "{format}: {}", run.out);
    }
    // An empty variable is what a workflow of a fork has.
    let mut command = folder.command("validate m --secrets=assume");
    command.env("HOOK_SECRET", "");
    assert_eq!(finish(command, "").code, 0);
}

#[test]
fn a_secret_that_only_the_store_has_is_not_judged() {
    let folder = fork();
    let authority = format!("{REPOSITORY}/examples/storefront/certs/partner-devices.pem");
    std::fs::copy(authority, folder.path("m/ca.pem")).unwrap();
    let mut command = folder.command("reconcile m");
    command.env("HOOK_SECRET", " correct-horse ");
    let applied = finish(command, "");
    has(&applied, &["starts or ends with white space"]);
    let run = folder.ok("plan m --secrets=assume");
    has(&run, &["(1 field unchanged, 0 unknown)", "not checked because of 1 unset field: the lint `secret-with-"]);
    assert!(!run.all().contains("starts or ends"), "{}", run.all());
}

#[test]
fn values_that_the_store_has_are_unchanged() {
    let folder = fork();
    assert_eq!(with_values(&folder, "reconcile m").code, 0);
    for _ in 0..2 {
        let run = folder.ok("plan m --secrets=assume");
        has(&run, &["No changes: 3 unchanged.", "(2 fields unchanged, 0 unknown)"]);
        has(&run, &["not checked because of 1 unset field: the lint `secret-with-white-space`"]);
        // An assumed run is not remembered as a real one, nor answered from one.
        assert_eq!(folder.run("plan m").code, 3);
        let real = with_values(&folder, "plan m");
        assert!(real.out.contains("No changes: 3 unchanged.") && !real.all().contains("assumed"), "{}", real.all());
    }
    folder.edit("m/shop.yaml", "description: Hooks", "description: All hooks");
    let run = folder.ok("plan m --secrets=assume");
    has(&run, &["+ description: All hooks", "0 to create, 1 to change, 0 to replace, 0 to delete, 2 unchanged"]);
    assert!(!run.out.contains("secret"), "{}", run.out);
}

#[test]
fn nothing_assumed_is_ever_applied() {
    let folder = fork();
    for line in ["reconcile m --secrets=assume", "reconcile m --plan plan.json --secrets=assume"] {
        let run = folder.run(line);
        assert_eq!(
            (run.code, run.err.contains("`--secrets=assume` cannot be used to apply")),
            (1, true),
            "{}",
            run.all()
        );
    }
    let saved = folder.run("plan m --secrets=assume --out plan.json");
    assert_eq!((saved.code, saved.err.contains("cannot be saved")), (1, true), "{}", saved.all());
    assert!(!folder.path("plan.json").exists() && !folder.path("store").exists());
    let mut command = folder.command("reconcile m");
    command.env("EDGEWRIGHT_SECRETS", "assume");
    assert_eq!(finish(command, "").code, 1);
    // Nobody can write what stands for an unknown value.
    folder.edit("m/shop.yaml", "{from_env: HOOK_SECRET}", "\"\\uF5EDfrom_env HOOK_SECRET\\uF5ED\"");
    has(&folder.run("validate m --secrets=assume"), &["a value cannot start with the character U+F5ED"]);
}

#[test]
fn a_server_compares_assumed_values_with_what_it_has() {
    let folder = fork();
    let there = Folder::new();
    let serve = there.serve("");
    let line = |line: &str| through(&folder, &serve, line);
    let run = line("plan m --secrets=assume");
    assert_eq!(run.code, 0, "{}", run.all());
    has(&run, &["secret: (unknown)", "(0 fields unchanged, 2 unknown)", "3 to create"]);
    let text = folder.read("m/shop.yaml").replace("{from_env: HOOK_SECRET}", "correct-horse").replace(
        "{from_file: ca.pem}",
        &serde_json::json!(
            std::fs::read_to_string(format!("{REPOSITORY}/examples/storefront/certs/partner-devices.pem")).unwrap()
        )
        .to_string(),
    );
    let body = serde_json::json!({"files": [{"name": "shop.yaml", "text": text}]}).to_string();
    assert_eq!(serve.call("POST", "/reconciliations", &body).status, 201);
    let run = line("plan m --secrets=assume");
    has(&run, &["No changes: 3 unchanged.", "(2 fields unchanged, 0 unknown)"]);
    let body =
        serde_json::json!({"assume_values": true, "files": [{"name": "shop.yaml", "text": "# nothing"}]}).to_string();
    assert_eq!(serve.call("POST", "/reconciliations", &body).code(), "ERR_EDGEWRIGHT_NOT_ALLOWED");
    let body = serde_json::json!({"assume_values": true, "dry_run": true, "files": [
        {"name": "shop.yaml", "text": folder.read("m/shop.yaml")}
    ]});
    let planned = serve.call("POST", "/reconciliations", &body.to_string()).json();
    assert!(planned["saved_plan"].is_null() && planned["outcome"] == "", "{planned}");
}

#[test]
fn values_of_surrounding_manifests_matter_only_where_they_are_used() {
    let folder = teams();
    folder.write(
        "shared/certs.yaml",
        "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {name: partners}\n\
         spec: {ca_pem: {from_file: missing.pem}}\n",
    );
    folder.ok("validate team --with shared");
    folder.edit(
        "shared/sets.yaml",
        "spec: {compression: {enabled: false}}",
        "spec: {oidc: {issuer: 'https://id.example.com', client_id: shop, client_secret: {from_env: SSO_SECRET}}}",
    );
    let run = folder.run("validate team --with shared");
    assert_eq!(run.code, 3, "{}", run.all());
    has(&run, &["in the surrounding manifests: variable `SSO_SECRET` is not set", "shared/sets.yaml:4:"]);
    has(&run, &["help: set it in edgewright's environment"]);
    let run = folder.ok("validate team --with shared --secrets=assume");
    has(&run, &["1 unset value is assumed: variable `SSO_SECRET`"]);
}
