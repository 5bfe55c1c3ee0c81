//! Manifests read only the environment variables that they may: none of the program, and those that the entry of a configured
//! source lists (D28).

use crate::support::{
    git::git,
    program::{CONFIG, Folder, Run, Serve, finish, has, until},
    sources::{in_state, replace, status},
};

const OWN: &str = "which edgewright itself uses";
const VARIABLES: [(&str, &str); 3] = [
    ("HOOK_SECRET", "one-secret-of-a-webhook"),
    ("FETCH_PASSWORD", "a-password-to-fetch"),
    ("EDGEWRIGHT_TOKEN", "a-token-of-the-server"),
];

fn edge(name: &str, variable: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  \
         hostports: ['{name}.example.com:443']\n  routes:\n    - match_type: path_prefix\n      match: /\n      \
         backend: {{backend_id: bkd_1}}\n      webhook_verification: {{provider: github, secret: {{from_env: {variable}}}}}\n"
    )
}

/// Two repositories of teams, whose manifests read a variable.
fn teams(variable: &str) -> Folder {
    let folder = Folder::new();
    for team in ["docs", "shop"] {
        folder.write(&format!("{team}/edge.yaml"), &edge(team, variable));
        for line in ["init -q -b main", "add .", "commit -q -m first"] {
            git(&folder, &format!("-C {team} {line}"));
        }
    }
    folder
}

fn followed(docs: &str, shop: &str) -> String {
    format!("sources:\n- {{name: docs, repository: docs{docs}}}\n- {{name: shop, repository: shop{shop}}}\n")
}

/// The first error of a source, which is in its manifest.
fn refused(serve: &Serve, source: &str, parts: &[&str]) {
    let found = in_state(serve, source, "Invalid").to_string();
    for part in parts.iter().chain(&["edge.yaml", "FORBIDDEN"]) {
        assert!(found.contains(part), "{part}: {found}");
    }
    let all = format!("{found}{}", serve.said());
    assert!(VARIABLES.iter().all(|(_, value)| !all.contains(value)), "{all}");
}

#[test]
fn a_configured_source_reads_only_the_variables_that_its_entry_lists() {
    let folder = teams("HOOK_SECRET");
    folder.write(CONFIG, &followed("", ", variables: [OTHER_SECRET]"));
    let serve = folder.serve_with("", &VARIABLES);
    refused(&serve, "docs", &["add `variables: [HOOK_SECRET]` to the source in the configuration file"]);
    refused(&serve, "shop", &["add `HOOK_SECRET` to `variables` of the source in the configuration file"]);
    replace(&folder, &followed(", variables: [HOOK_SECRET]", ""));
    in_state(&serve, "docs", "Synced");
    refused(&serve, "shop", &["source `shop` cannot read the environment variable `HOOK_SECRET`"]);
    // The platform decides that both may, and later that one may not. What is applied stays.
    replace(&folder, &followed(", variables: [HOOK_SECRET]", ", variables: [HOOK_SECRET]"));
    in_state(&serve, "shop", "Synced");
    replace(&folder, &followed("", ", variables: [HOOK_SECRET]"));
    refused(&serve, "docs", &["cannot read the environment variable `HOOK_SECRET`"]);
    until("shop", || (status(&serve, "shop")["state"] == "Synced").then_some(()));
    serve.stop();
    // What an earlier process has remembered does not count.
    let serve = folder.serve_with("", &VARIABLES);
    refused(&serve, "docs", &["cannot read the environment variable `HOOK_SECRET`"]);
    in_state(&serve, "shop", "Synced");
}

#[test]
fn a_variable_of_a_module_set_that_surrounds_a_source_counts_as_well() {
    let folder = Folder::new();
    let set = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: hooks}\n\
               spec: {webhook_verification: {provider: github, secret: {from_env: HOOK_SECRET}}}\n";
    folder.write("shared/sets.yaml", set);
    folder.write("shared/other.yaml", &edge("other", "EDGEWRIGHT_TOKEN"));
    let module = "webhook_verification: {provider: github, secret: {from_env: HOOK_SECRET}}";
    folder.write("docs/edge.yaml", &edge("docs", "HOOK_SECRET").replace(module, "modules_from: [hooks]"));
    folder.write(CONFIG, "sources: [{name: docs, path: docs, with: [shared]}]\n");
    let serve = folder.serve_with("", &VARIABLES);
    let found = in_state(&serve, "docs", "Invalid").to_string();
    assert!(found.contains("variable `HOOK_SECRET` is not set, or the source cannot read it"), "{found}");
    // What others declare around it, and it does not use, is no error of it.
    assert!(!found.contains("EDGEWRIGHT_TOKEN"), "{found}");
    replace(&folder, "sources: [{name: docs, path: docs, with: [shared], variables: [HOOK_SECRET]}]\n");
    in_state(&serve, "docs", "Synced");
}

#[test]
fn no_manifest_reads_a_variable_of_the_program_in_any_way_of_running() {
    let folder = teams("EDGEWRIGHT_TOKEN");
    let run = |line: &str| -> Run {
        let mut command = folder.command(line);
        command.envs(VARIABLES);
        finish(command, "")
    };
    let check = |line: &str| {
        let found = run(line);
        assert_eq!(found.code, 3, "{line}\n{}", found.all());
        has(&found, &["FORBIDDEN", OWN]);
        assert!(VARIABLES.iter().all(|(_, value)| !found.all().contains(value)), "{}", found.all());
    };
    for line in ["plan docs", "reconcile docs", "validate docs", "diff docs shop", "plan --secrets=assume docs"] {
        check(line);
    }
    for name in ["PGPASSWORD", "OTEL_EXPORTER_OTLP_HEADERS"] {
        folder.write("docs/edge.yaml", &edge("docs", name));
        check("plan docs");
    }
    folder.write("docs/edge.yaml", &edge("docs", "EDGEWRIGHT_TOKEN"));
    let serve = folder.serve_with("--manifests docs --source docs", &VARIABLES);
    refused(&serve, "docs", &[OWN]);
    serve.stop();
    folder.write(CONFIG, &followed("", ""));
    let serve = folder.serve_with("", &VARIABLES);
    refused(&serve, "docs", &[OWN]);
    serve.stop();
    // A variable that the configuration file names is one of the program, too, and no other.
    folder.write("docs/edge.yaml", &edge("docs", "FETCH_PASSWORD"));
    folder.write(CONFIG, &followed("", ""));
    assert_eq!(run("plan docs").code, 0);
    let remote = "- {name: far, repository: 'https://git.example.com/e', password_env: FETCH_PASSWORD}\n";
    folder.write(CONFIG, &(followed("", "") + remote));
    check("plan docs");
    // Nor can an entry list it.
    for (name, words) in [
        ("FETCH_PASSWORD", OWN),
        ("EDGEWRIGHT_MASTER_KEY", OWN),
        ("PGPASSWORD", OWN),
        ("HOOK_*", "must list names of environment variables"),
    ] {
        folder.write(CONFIG, &(followed(&format!(", variables: [HOOK_SECRET, '{name}']"), "") + remote));
        let found = run("validate shop");
        has(&found, &["at /sources/0/variables/1", words]);
    }
}
