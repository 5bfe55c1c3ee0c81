//! The folder of mistakes: every fault is found in one run, at its exact place, and nothing else is.

use std::fs;

use edgewright::report::Format;

use crate::support::program::{Folder, REPOSITORY, run_in_repository};

/// A place: file, line and column.
type Place = (String, String, String);

/// A diagnostic, as it is expected or found.
#[derive(Debug)]
struct Fault {
    code: String,
    place: Place,
    also: Vec<Place>,
}

fn place(text: &str) -> Place {
    let mut parts = text.rsplitn(3, ':');
    let (column, line, file) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
    (file.trim_start_matches("tests/invalid/").to_owned(), line.to_owned(), column.to_owned())
}

/// `file:line:column CODE [also file:line:column] # comment`.
fn expected() -> Vec<Fault> {
    let text = fs::read_to_string(format!("{REPOSITORY}/tests/invalid/expected.txt")).unwrap();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let also = match words.get(2) {
                Some(word) => {
                    assert_eq!((*word, words.len()), ("also", 4), "{line}");
                    vec![place(words[3])]
                }
                None => Vec::new(),
            };
            Fault { code: words[1].to_owned(), place: place(words[0]), also }
        })
        .collect()
}

/// Reads diagnostics as they stand on a terminal.
fn found(stderr: &str) -> Vec<Fault> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in stderr.lines() {
        if line.starts_with("ERR_EDGEWRIGHT_") {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
    }
    blocks.iter().map(|block| fault(block)).collect()
}

fn fault(block: &[&str]) -> Fault {
    let header = |line: &&str| Some(place(line.split_once("─[")?.1.strip_suffix(']')?));
    let mut places = block.iter().filter_map(header);
    let code = block[0].trim().to_owned();
    let Some(first) = places.next() else { panic!("no place:\n{}", block.join("\n")) };
    let mut also: Vec<Place> = places.collect();
    also.extend(first_here(block).map(|(line, column)| (first.0.clone(), line, column)));
    Fault { code, place: first, also }
}

/// The second place of a diagnostic, when it is in the same file: a label in the same frame.
fn first_here(block: &[&str]) -> Option<(String, String)> {
    let label = block.iter().position(|line| line.ends_with("╰── first here"))?;
    let (above, number) = (0..label).rev().find_map(|at| {
        let number = block[at].split_once('│')?.0.trim();
        number.parse::<u32>().is_ok().then(|| (at, number.to_owned()))
    })?;
    let marks = block[above + 1].split_once("· ")?.1;
    let column = marks.chars().position(|c| !c.is_whitespace())? + 1;
    Some((number, column.to_string()))
}

fn agree(expected: &Fault, found: &Fault) -> bool {
    let column = expected.place.2 == "*" || expected.place.2 == found.place.2;
    column
        && (&expected.place.0, &expected.place.1) == (&found.place.0, &found.place.1)
        && expected.code == found.code
        && expected.also == found.also
}

#[test]
fn one_run_finds_every_mistake_at_its_place_and_nothing_else() {
    let run = run_in_repository("validate tests/invalid");
    let expected = expected();
    let mut found = found(&run.err);
    let count = found.len();
    let mut differences = Vec::new();
    for fault in &expected {
        match found.iter().position(|it| agree(fault, it)) {
            Some(at) => drop(found.remove(at)),
            None => differences.push(format!("missing: {fault:?}")),
        }
    }
    differences.extend(found.iter().map(|fault| format!("not expected: {fault:?}")));
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert_eq!(run.code, 3);
    assert_eq!(run.out, "", "diagnostics belong on stderr");
    let last = run.err.lines().last().unwrap_or_default();
    assert!(last.ends_with(&format!(" files read: {count} errors")), "{last}");
}

#[test]
fn a_value_of_the_wrong_type_names_its_field_and_shows_the_form() {
    let run = run_in_repository("validate tests/invalid/wrong-type-forms.yaml");
    for part in [
        "each entry of `sources` must be a mapping (found a string)",
        "write `- {type: ip_policy_created.v0}`",
        "set an ID, such as `backend_id: bkd_shop`",
        "each entry of `ip_policy_ids` must be an ID (found an empty string)",
        "`tripped_duration` must be a whole number (found a string)",
        "write the number of seconds, such as `tripped_duration: 30`",
        "write a list of mappings, such as `inbound: [{expressions: …}]`",
    ] {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
}

#[test]
fn a_faulty_folder_makes_no_store() {
    let folder = Folder::new();
    let store = folder.path("store");
    for verb in ["reconcile", "reconcile --dry-run", "plan", "plan --detailed-exitcode"] {
        let run = run_in_repository(&format!("{verb} --store {} tests/invalid", store.display()));
        assert_eq!(run.code, 3, "{verb}");
        assert_eq!(run.out, "", "{verb}: there is no plan");
        assert!(run.err.contains("ERR_EDGEWRIGHT_SYNTAX"), "{verb}");
        assert!(!store.exists(), "{verb} made a store");
    }
}

#[test]
fn a_faulty_folder_leaves_an_existing_store_as_it_is() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let (plan, before) = (folder.ok("plan storefront").out, folder.snapshot("store"));
    let store = folder.path("store");
    let run = run_in_repository(&format!("reconcile --store {} tests/invalid", store.display()));
    assert_eq!(run.code, 3);
    let after = folder.snapshot("store");
    assert_eq!((after.revision, after.len()), (before.revision, before.len()));
    assert_eq!(folder.ok("plan storefront").out, plan);
}

#[test]
fn one_bad_file_beside_good_ones_changes_nothing() {
    let folder = Folder::with_storefront();
    folder.write("storefront/teams/new/route.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdgeRout\n");
    let run = folder.run("reconcile storefront");
    assert_eq!(run.code, 3, "{}", run.all());
    let help = "did you mean `HttpsEdgeRoute`?";
    assert!(run.err.contains("ERR_EDGEWRIGHT_UNKNOWN_KIND") && run.err.contains(help), "{}", run.err);
    assert!(!folder.path("store").exists());
}

#[test]
fn a_warning_is_shown_and_stops_nothing() {
    let folder = Folder::new();
    let text = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: one}\nspec:\n  hostports: [\"a.example.com:443\"]\n  mutual_tls:\n";
    folder.write("m/edge.yaml", text);
    let run = folder.ok("reconcile m");
    assert!(run.err.contains("ERR_EDGEWRIGHT_NULL_MODULE"), "{}", run.err);
    assert!(run.err.contains("m/edge.yaml:6:3"), "{}", run.err);
    assert!(run.err.contains("Applied as revision 1."), "{}", run.err);
    // An empty `mutual_tls` would admit nobody.
    let cure = "help: set its fields, such as `mutual_tls: {certificate_authority_ids: …}`, or remove the key";
    assert!(run.err.contains(cure), "{}", run.err);
    folder.write(
        "m/edge.yaml",
        &text.replace("  mutual_tls:\n", "  routes: [{match_type: path_prefix, match: /, compression: }]\n"),
    );
    let run = folder.ok("reconcile m");
    assert!(run.err.contains("help: write `compression: {}`, or remove the key"), "{}", run.err);
}

#[test]
fn what_is_no_resource_cannot_be_adopted_renamed_protected_or_moved() {
    let folder = Folder::new();
    let fields = ["id: x_1", "renamed_from: b", "prevent_destroy: true", "transfer_from: b", "transfer_to: b"];
    for (kind, spec) in [("ModuleSet", "{compression: {}}"), ("RouteTest", "{requests: []}")] {
        for field in fields {
            let text =
                format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: a, {field}}}\nspec: {spec}\n");
            folder.write("m/a.yaml", &text);
            let run = folder.run("validate m");
            let said = format!("a {kind} has no `{}`", field.split_once(':').unwrap().0);
            assert!(run.code == 3 && run.err.contains(&said), "{kind} with {field}: {}", run.all());
        }
    }
}

#[test]
fn a_null_list_that_only_manifests_have_is_a_warning() {
    let folder = Folder::new();
    let text = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: one}\nspec:\n  hostports:\n  delegates_to:\n  \
                certificates_from:\n  required_modules:\n  routes:\n  - match_type: path_prefix\n    match: /\n    modules_from:\n";
    folder.write("m/edge.yaml", text);
    let run = folder.run("validate m");
    for (place, list) in
        [("6:3", "delegates_to"), ("7:3", "certificates_from"), ("8:3", "required_modules"), ("12:5", "modules_from")]
    {
        let said = format!("`{list}` is null, so the list is empty");
        assert!(run.err.contains(&said) && run.err.contains(&format!("m/edge.yaml:{place}]")), "{list}: {}", run.err);
    }
    assert_eq!(run.err.matches("ERR_EDGEWRIGHT_NULL_MODULE").count(), 4, "{}", run.err);
    // A set can configure the module all the same.
    let set = "---\napiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: base}\nspec: {compression: {}}\n";
    let route = "  routes: [{match_type: path_prefix, match: /, modules_from: [base], compression: }]\n";
    folder.write("m/edge.yaml", &format!("{}{route}{set}", text.split_once("  delegates_to").unwrap().0));
    let run = folder.run("validate m");
    assert!(run.err.contains("`compression` is null, so it configures nothing"), "{}", run.err);
}

#[test]
fn an_id_of_another_kind_is_one_error_in_a_plan() {
    let folder = Folder::new();
    let text = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: x, id: edghtsrt_1}\n\
                spec: {hostports: ['x.example.com:443']}\n";
    folder.write("m/x.yaml", text);
    for verb in ["validate", "plan", "reconcile"] {
        let run = folder.run(&format!("{verb} m"));
        assert!(run.code == 3 && run.err.contains("use an ID that starts with `edghts_`"), "{}", run.all());
        assert!(run.err.contains("1 file read: 1 error\n"), "{verb}: {}", run.all());
    }
}

#[test]
fn a_null_entry_of_a_map_is_a_warning_at_its_key() {
    let folder = Folder::new();
    let headers = "response_headers: {add: {X-Frame-Options: , Vary: Accept}}";
    folder.write(
        "m/x.yaml",
        &format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: x, labels: {{tier: }}}}\nspec:\n  \
             hostports: ['x.example.com:443']\n  routes:\n    - match_type: path_prefix\n      match: /\n      \
             {headers}\n      modules_from: [m]\n---\napiVersion: edgewright/v1\nkind: ModuleSet\n\
             metadata: {{name: m}}\nspec:\n  request_headers: {{add: {{X-Edge: }}}}\n"
        ),
    );
    let run = folder.run("validate m");
    for (key, place) in [("tier", "3:30"), ("X-Frame-Options", "9:32"), ("X-Edge", "16:27")] {
        let message = format!("`{key}` is null, so it is left out");
        assert!(run.err.contains(&message) && run.err.contains(&format!("m/x.yaml:{place}")), "{key}: {}", run.err);
    }
    assert!(run.code == 0 && run.err.matches("so it is left out").count() == 3, "{}", run.all());
}

#[test]
fn a_fault_at_the_end_of_a_long_line_is_told_in_every_format() {
    let folder = Folder::new();
    let text = format!(
        "{{\"apiVersion\":\"edgewright/v1\",\"kind\":\"HttpsEdge\",\"metadata\":{{\"name\":\"shop\"}},\
         \"spec\":{{\"description\":\"{}\",\"ouath\":1}}}}",
        "é".repeat(100_000)
    );
    folder.write("m/shop.json", &text);
    let column = text.split_once("\"ouath\"").unwrap().0.chars().count() + 1;
    for format in Format::ALL.map(Format::as_str) {
        let run = folder.run(&format!("plan m --format {format}"));
        assert_eq!(run.code, 3, "{format}: {:.2000}", run.err);
        for part in
            ["ERR_EDGEWRIGHT_UNKNOWN_FIELD", &format!("m/shop.json:1:{column}]"), "ouath", "1 file read: 2 errors"]
        {
            assert!(run.err.contains(part), "{format}: no {part}\n{:.2000}", run.err);
        }
        assert!(run.err.lines().all(|line| line.chars().count() < 400), "{format}: {:.2000}", run.err);
        assert_eq!(run.out.contains("ERR_EDGEWRIGHT_UNKNOWN_FIELD"), format != "text", "{format}");
    }
}

#[test]
fn natural_mistakes_in_modules_are_told_with_what_to_write() {
    let folder = Folder::new();
    for (hostport, module, cure) in [
        (
            "shop.example.com:443",
            "oidc: {issuer: 'https://id.example.com', client_id: a, client_secret: '${SECRET}'}",
            "{from_env: SECRET}",
        ),
        (
            "shop.example.com:443",
            "webhook_verification: {provider: github, secret: '$HOOK_SECRET'}",
            "{from_env: HOOK_SECRET}",
        ),
        (
            "shop.example.com:443",
            "webhook_verification: {provider: github, secret: '{{ .Values.hook }}'}",
            "{from_env: NAME}",
        ),
        ("shop.example.com:443", "webhook_verification: {provider: github, secret: ' ${HOOK} '}", "{from_env: HOOK}"),
        (
            "shop.example.com:443",
            "webhook_verification: {provider: github, secret: \"${HOOK}\\n\"}",
            "{from_env: HOOK}",
        ),
        (
            "shop.example.com:443",
            "webhook_verification: {provider: github, secret: {from_env: $HOOK}}",
            "`from_env` must be only the name of a variable",
        ),
        ("shop.example.com:443", "saml: {idp_metadata: '${METADATA}'}", "{from_env: METADATA}"),
        ("shop.example.com:443", "oidc: yes", "set its fields, such as `oidc: {"),
        ("shop.example.com:443", "circuit_breaker: on", "error_threshold_percentage: …"),
        ("shop.example.com:443", "ip_restriction: true", "`ip_restriction: {ip_policy_ids: …}`"),
        ("shop.example.com:443", "oauth: no", "remove `oauth`"),
        ("shop.example.com:443", "compression: yes", "write `compression: {}`"),
        ("shop.example.com:443", "compression: false", "write `compression: {enabled: false}`"),
        ("https://shop.example.com", "compression: {}", "write `shop.example.com:443`"),
        ("http://shop.example.com:8080/path", "compression: {}", "write `shop.example.com:8080`"),
        ("shop.example.com:443", "backend: {backend_id: 'https://10.0.0.1:8080'}", "use the ID of the resource"),
        ("HTTPS://shop.example.com", "compression: {}", "write `shop.example.com:443`"),
        ("tls://shop.example.com:8443", "compression: {}", "write `shop.example.com:8443`"),
        ("https://user:pass@shop.example.com:8443", "compression: {}", "write `shop.example.com:8443`"),
        ("ftp://shop.example.com", "compression: {}", "is not a hostport: it is a URL"),
        ("shop.example.com:443", "backend: {backend_id: '10.0.0.7:8080'}", "use the ID of the resource"),
        ("shop.example.com:443", "backend: {backend_id: 'app.internal:8080'}", "use the ID of the resource"),
        ("shop.example.com:443", "ip_restriction: {ip_policy_ids: [10.0.0.0/8]}", "use the ID of the resource"),
        ("shop.example.com:443", "ip_restriction: {ip_policy_ids: [192.0.2.1]}", "use the ID of the resource"),
        ("shop.example.com:443", "ip_restriction: {ip_policy_ids: ['2001:db8::1']}", "use the ID of the resource"),
        ("shop.example.com:443", "ip_restriction: {allow: [10.0.0.0/8]}", "did you mean `ip_policy_ids`?"),
        ("shop.example.com:443", "ip_restriction: [10.0.0.0/8]", "with IDs: the gateway resolves them to addresses"),
    ] {
        let text = format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: x}}\nspec:\n  hostports: ['{hostport}']\n  routes:\n    \
             - name: a\n      match_type: path_prefix\n      match: /\n      {module}\n"
        );
        folder.write("m/x.yaml", &text);
        let run = folder.run("validate m");
        assert!(run.code == 3 && run.err.contains(cure), "{module}: {}", run.all());
    }
    // A secret may begin like a variable.
    folder.write(
        "m/x.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: x}\nspec:\n  hostports: ['shop.example.com:443']\n  \
         routes:\n    - name: a\n      match_type: path_prefix\n      match: /\n      \
         webhook_verification: {provider: github, secret: '$ecret-of-the-hook'}\n",
    );
    assert_eq!(folder.run("validate m").code, 0);
}

#[test]
fn a_field_at_the_wrong_place_is_one_error_that_names_the_right_one() {
    let folder = Folder::new();
    let document =
        |metadata: &str, spec: &str| format!("apiVersion: edgewright/v1\nkind: HttpsEdge\n{metadata}\n{spec}\n");
    let name = "metadata: {name: x}";
    let edge = "spec:\n  hostports: ['x.example.com:443']\n";
    let route = |module: &str| {
        format!(
            "{edge}  routes:\n    - name: a\n      match_type: path_prefix\n      match: /\n      \
             policies: {{inbound: [{{actions: [{{type: deny}}]}}]}}\n      {module}"
        )
    };
    for (text, cure) in [
        (document("name: x", edge), "move it into `metadata`"),
        (document("metadata: {generateName: x-}", edge), "did you mean `name`?"),
        (document(name, &edge.replace("spec:", "data:")), "did you mean `spec`?"),
        (document(name, &format!("{edge}  labels: {{a: b}}")), "move it into `metadata`, beside `spec`"),
        (document(name, &format!("{edge}  prevent_destroy: true")), "move it into `metadata`, beside `spec`"),
        (document(name, &format!("{edge}  compression: {{}}")), "move it into an entry of `routes`"),
        (document(name, &route("backend:\n      backend_id: bkd_1")), "indent it further than `backend:`"),
        (document(name, &route("oauth: {github: {organizations: [a]}}")), "did you mean `provider`?"),
        (document(name, &route("modules_from: []\n      path: /b")), "`match` is already set"),
        (document(name, &route("renamed_from: b")), "write the route as a manifest of its own"),
        (document(&format!("metadata: {{name: {}}}", "x".repeat(254)), edge), "use 1 to 253 lower-case letters"),
        (
            document("metadata: {name: x, annotations: {edgewright/lints.open-login: deny}}", edge),
            "write `edgewright/lint.NAME` for the level of a lint",
        ),
    ] {
        folder.write("m/x.yaml", &text);
        let run = folder.run("validate m");
        assert!(run.code == 3 && run.err.contains(cure), "{cure}: {text}\n{}", run.all());
        assert_eq!(run.err.lines().last(), Some("1 file read: 1 error"), "{text}\n{}", run.all());
    }
}
