//! Manifests that would cost hours or gigabytes are refused in seconds, at their places (D48).

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    time::{Duration, Instant},
};

use crate::support::program::{Folder, Run, rounds};

const HEAD: &str = "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {name: a}\nspec:\n";

/// Validates one manifest, which must not take long.
fn validate(text: &str) -> Run {
    let folder = Folder::new();
    folder.write("m/a.yaml", text);
    let began = Instant::now();
    let run = folder.run("validate m --format json");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(run.err.len() < 1_000_000, "{} bytes of output", run.err.len());
    run
}

#[track_caller]
fn refused(text: &str, code: &str, said: &str) {
    let run = validate(text);
    let all = run.all();
    let shown: String = all.chars().take(2000).collect();
    assert_eq!(run.code, 3, "{shown}");
    assert!(all.contains(&format!("ERR_EDGEWRIGHT_{code}")) && all.contains(said), "{code}, {said}: {shown}");
}

#[test]
fn nesting_is_refused_before_it_costs_time() {
    for (open, close) in [("[", "]"), ("[", ""), ("{a: ", "}"), ("- ", "")] {
        refused(&format!("{HEAD}  {}1{}\n", open.repeat(100_000), close.repeat(100_000)), "SYNTAX", "128 levels");
    }
    refused(&format!("{HEAD}  x: {}\n", "[".repeat(300_000)), "SYNTAX", "m/a.yaml:5:132]");
}

#[test]
fn aliases_are_refused_before_they_cost_memory() {
    let mut text = format!("{HEAD}  a0: &a0 [x, x, x, x, x, x, x, x]\n");
    for level in 1..30 {
        text += &format!("  a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 8].join(", "));
    }
    refused(&text, "TOO_LARGE", "with this alias");
    // What people write with aliases is far from the limit.
    let routes: String =
        (0..2_000).map(|at| format!("    - {{<<: *usual, match_type: exact_path, match: /{at}}}\n")).collect();
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: a}}\nspec:\n  routes:\n    - &usual {{match_type: path_prefix, match: /, backend: {{backend_id: bkd_1}}, compression: {{}}, request_headers: {{add: {{a: b}}}}}}\n{routes}"
    );
    let run = validate(&text);
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_list_of_millions_is_not_read() {
    // Lists in lists are values, too, and are read in a fifth of the time.
    let values = rounds("[[[[[[]]]]]],".repeat(1_000_001 / 6 + 1), "1,".repeat(2_000_000));
    refused(&format!("{HEAD}  ip_policy_ids: [{values}1]\n"), "TOO_LARGE", "1000000 values");
}

#[test]
fn a_file_of_thousands_of_routes_is_read() {
    let route = |at: usize| {
        format!(
            "    - name: route-{at}\n      match_type: exact_path\n      match: /{at}\n      description: \"of team {at}, see [1]\"\n      metadata: '{{\"a\": 1}}'\n      backend:\n        backend_id: bkd_{at}\n      compression: {{enabled: true}}\n      request_headers:\n        add: {{X-Route: \"{at}\", X-Team: shop}}\n        remove: [X-A, X-B]\n      circuit_breaker:\n        enabled: true\n        error_threshold_percentage: 0.5\n"
        )
    };
    let routes: String = (0..rounds(2_000, 10_000)).map(route).collect();
    let folder = Folder::new();
    folder.write(
        "m/a.yaml",
        &format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: a}}\nspec:\n  hostports: [\"a.example.com:443\"]\n  routes:\n{routes}"),
    );
    let run = folder.run("validate m");
    assert!(!run.err.contains("ERR_EDGEWRIGHT_"), "{:.2000}", run.err);
}

#[test]
fn very_many_faults_are_counted_and_the_first_hundred_reported() {
    let many = rounds(1_000, 5_000);
    let same: String = "  k: 1\n".repeat(many);
    refused(&format!("{HEAD}{same}"), "DUPLICATE_KEY", "m/a.yaml:6:3");
    let keys: String = (0..10 * many).map(|at| format!("  k{at}: 1\n  k{at}: 2\n")).collect();
    refused(&format!("{HEAD}{keys}"), "DUPLICATE_KEY", "more faults in this document");
    let documents = "apiVersion: edgewright/v2\n---\n".repeat(4 * many);
    refused(&documents, "API_VERSION", "more errors in this file");
    let modules: String = (0..5 * many).map(|at| format!("  k{at}: 1\n")).collect();
    let set = HEAD.replace("IpRestriction", "ModuleSet");
    refused(&format!("{set}{modules}"), "UNKNOWN_FIELD", "more errors in this file");
}

#[test]
fn long_keys_and_lines_are_not_echoed() {
    let length = rounds(400_000, 2_000_000);
    let long = "k".repeat(length);
    refused(&format!("{HEAD}  ? {long}\n  : 1\n"), "TOO_LONG", &format!("{length} bytes"));
    refused(&format!("{HEAD}  type: {long}\n"), "UNKNOWN_VALUE", "kkk…");
    refused(&format!("{HEAD}  ? {}\n  : 1\n", &long[..4000]), "UNKNOWN_FIELD", "kkk…");
    refused(&HEAD.replace("IpRestriction", &long), "UNKNOWN_KIND", "kkk…");
}

#[test]
fn numbers_without_a_form_in_json_are_faults() {
    refused(&format!("{HEAD}  description: .inf\n"), "WRONG_TYPE", "m/a.yaml:5:16");
    refused(&format!("{HEAD}  ip_policy_ids: [-.INF, .nan]\n"), "WRONG_TYPE", "m/a.yaml:5:19");
}

#[test]
fn integers_that_would_lose_digits_are_faults() {
    refused(&format!("{HEAD}  description: 12345678901234567890123\n"), "OUT_OF_RANGE", "m/a.yaml:5:16");
    refused(&format!("{HEAD}  ip_policy_ids: [1e22, -9223372036854775809]\n"), "OUT_OF_RANGE", "m/a.yaml:5:25");
    let folder = Folder::new();
    let head = r#"{"apiVersion": "edgewright/v1", "kind": "IpRestriction", "metadata": {"name": "a"},"#;
    folder
        .write("m/a.json", &format!("{head}\n\"spec\": {{\"type\": \"api\", \"metadata\": 18446744073709551616}}}}\n"));
    let all = folder.run("validate m --format json").all();
    assert!(all.contains("ERR_EDGEWRIGHT_OUT_OF_RANGE") && all.contains("m/a.json:2:37"), "{all}");
}

#[test]
fn a_folder_that_is_too_deep_is_an_error() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &format!("{HEAD}  type: dashboard\n"));
    fs::create_dir_all(folder.path("m").join("d/".repeat(99))).unwrap();
    let run = folder.run("validate m");
    assert_eq!(run.code, 0, "{}", run.all());
    fs::create_dir_all(folder.path("m").join("d/".repeat(100))).unwrap();
    let all = folder.run("validate m --format json").all();
    assert!(all.contains("ERR_EDGEWRIGHT_UNREADABLE") && all.contains("more than 100 folders deep"), "{all}");
    assert!(all.contains("list folders without any in its `.edgewrightignore`"), "{all}");
    folder.write("m/.edgewrightignore", "d/\n");
    let run = folder.run("validate m");
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_file_whose_name_is_not_utf8_is_an_error() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &format!("{HEAD}  type: dashboard\n"));
    fs::write(folder.path("m").join(OsStr::from_bytes(b"caf\xe9.yaml")), "x").unwrap();
    fs::write(folder.path("m").join(OsStr::from_bytes(b"caf\xe9.txt")), "x").unwrap();
    let run = folder.run("validate m");
    assert_eq!((run.code, run.err.matches("ERR_EDGEWRIGHT_UNREADABLE").count()), (3, 1), "{}", run.err);
    assert!(run.err.contains("caf\u{fffd}.yaml"), "{}", run.err);
}

#[test]
fn a_folder_whose_name_is_not_utf8_is_an_error() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &format!("{HEAD}  type: dashboard\n"));
    for name in [b"caf\xe9".as_slice(), b".caf\xe9"] {
        let path = folder.path("m").join(OsStr::from_bytes(name));
        fs::create_dir(&path).unwrap();
        fs::write(path.join("b.yaml"), format!("{HEAD}  type: dashboard\n").replace("name: ", "name: b")).unwrap();
    }
    let run = folder.run("validate m");
    assert_eq!((run.code, run.err.matches("ERR_EDGEWRIGHT_").count()), (3, 1), "only the visible one: {}", run.err);
    let said = run.err.contains("ERR_EDGEWRIGHT_UNREADABLE") && run.err.contains("folder name is not UTF-8");
    assert!(said && run.err.contains("m/caf\u{fffd}"), "{}", run.err);
}

#[test]
fn aliases_of_a_long_text_are_refused_before_they_cost_memory() {
    let text = format!("a: &a {}\nb: [{}]\n", "x".repeat(150_000), "*a,".repeat(50_000));
    refused(&text, "TOO_LARGE", "alias");
}

#[test]
fn lints_of_a_file_are_capped() {
    let patterns: String = (0..3_000).map(|at| format!("\"((a{at}\",")).collect();
    let text = format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: a}}\nspec:\n  hostports: [\"a.example.com:443\"]\n  routes:\n    - {{match_type: path_prefix, match: /, backend: {{backend_id: bkd_1}}, user_agent_filter: {{deny: [{patterns}]}}}}\n"
    );
    let run = validate(&text);
    assert!(run.out.contains("(and 2900 more warnings in this file)"), "{:.3000}", run.out);
    assert!(run.err.contains("… and 2980 more in m/a.yaml"), "{:.3000}", run.err);
    assert!(run.err.matches("invalid-user-agent-pattern").count() <= 100, "{}", run.err.len());
}
