//! Reports of any diagnostics: every SARIF result has a location, and thousands of diagnostics keep to limits.

use edgewright::{
    Code, Diagnostic,
    report::{Format, Report, Severity},
};

use super::formats::{of_diagnostics, parsed, rendered};
use crate::support::{
    manifests::{edge_with, edges},
    program::{Folder, finish},
};

#[test]
fn every_sarif_result_has_a_location() {
    let diagnostic = || Diagnostic::error(Code::EmptySource, "no manifest");
    let located = |report: &Report, uri: &str| {
        let value = parsed(&rendered(Format::Sarif, report));
        let results = value["runs"][0]["results"].as_array().unwrap().clone();
        assert!(!results.is_empty());
        for result in &results {
            let location = &result["locations"][0]["physicalLocation"];
            assert_eq!(
                (&location["artifactLocation"]["uri"], &location["region"]["startLine"]),
                (&uri.into(), &1.into())
            );
        }
    };
    located(&of_diagnostics(&[diagnostic()]), "edgewright.config.yaml");
    let first_file = Some("./m/a b.yaml".to_owned());
    located(&Report { first_file: first_file.clone(), ..of_diagnostics(&[diagnostic()]) }, "m/a%20b.yaml");
    located(&Report { refusals: vec![diagnostic()], first_file, ..Report::default() }, "m/a%20b.yaml");

    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder.write("empty/readme.txt", "");
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    for line in ["validate storefront", "validate missing", "validate empty", "plan m", "plan empty", "reconcile m"] {
        let run = folder.run(&format!("{line} --format sarif"));
        let results = match run.out.is_empty() {
            true => Vec::new(),
            false => parsed(&run.out)["runs"][0]["results"].as_array().unwrap().clone(),
        };
        for result in results {
            let uri = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            assert!(uri.is_string(), "{line}: {result}");
        }
    }
}

#[test]
fn reports_of_very_many_diagnostics_keep_to_limits_and_drop_no_error_for_a_warning() {
    let warning =
        |at: usize| Diagnostic { severity: Severity::Warning, ..Diagnostic::error(Code::Tag, format!("warning {at}")) };
    let mut many: Vec<Diagnostic> = (0..26_000).map(warning).collect();
    many.push(Diagnostic::error(Code::Syntax, "the error"));
    let report = of_diagnostics(&many);
    let run = parsed(&rendered(Format::Sarif, &report))["runs"][0].clone();
    assert_eq!(run["results"].as_array().unwrap().len(), 25_000);
    assert_eq!(run["results"][24_999]["message"]["text"], "the error");
    let note = run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"].as_str().unwrap();
    assert!(note.starts_with("1001 more results"), "{note}");
    let github = rendered(Format::Github, &report);
    assert_eq!(github.lines().filter(|line| line.starts_with("::warning")).count(), 999);
    assert!(github.contains("::the error\n… and 25001 more: use --format json"), "{}", github.len());
    let json = parsed(&rendered(Format::Json, &report));
    assert_eq!(json["diagnostics"].as_array().unwrap().len(), many.len());
}

#[test]
fn a_large_plan_is_an_overview_and_its_whole_text_is_asked_for() {
    let folder = Folder::new();
    folder.write("m/e.yaml", &edges("e", 200));
    assert_eq!(folder.ok("plan m").calls().len(), 200);
    folder.write("m/e.yaml", &edges("e", 201));
    let plan = folder.ok("plan m").out;
    assert!(plan.starts_with("HttpsEdge  201 to create\n\n+ HttpsEdge e"), "{plan}");
    assert_eq!((plan.lines().count(), plan.contains("POST")), (17, false), "{plan}");
    assert!(plan.contains("\n+ … and 191 more\n\nNot every change is shown: add --full"), "{plan}");
    assert!(plan.ends_with("\n201 to create, 0 to change, 0 to replace, 0 to delete, 0 unchanged\n"), "{plan}");
    let full = folder.ok("plan m --full");
    assert_eq!((full.calls().len(), full.summary()), (201, plan.lines().last().unwrap()));

    // What programs read, and files, are whole.
    let json = parsed(&folder.ok("plan m --format json").out);
    assert_eq!(json["plan"]["changes"].as_array().unwrap().len(), 201);
    assert_eq!(folder.ok("plan m --output plan.txt").out, plan);
    assert_eq!(folder.read("plan.txt"), full.out);

    // A reviewer sees deletions before what is new, also of a plan that a server makes.
    let applied = folder.ok("reconcile m");
    assert!(applied.out.contains("… and 191 more") && applied.err.contains("Applied as revision 1."));
    folder.write("m/e.yaml", &(edges("e", 199) + &edges("f", 250)));
    let plan = folder.ok("plan m").out;
    assert!(plan.starts_with("HttpsEdge  250 to create, 2 to delete\n\n- HttpsEdge e"), "{plan}");
    let server = folder.serve("");
    let mut command = folder.command(&format!("plan m --server http://{}", server.address));
    command.env("EDGEWRIGHT_TOKEN", &server.token).env_remove("EDGEWRIGHT_STORE");
    let through = finish(command, "").out;
    let without_ids = |text: &str| {
        let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect::<Vec<_>>()
    };
    assert_eq!(without_ids(&through), without_ids(&plan));
}
