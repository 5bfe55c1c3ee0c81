//! Reports of any diagnostics: every SARIF result has a location, and thousands of diagnostics keep to limits.

use edgewright::{
    Code, Diagnostic,
    report::{Format, Report, Severity},
};

use super::formats::{of_diagnostics, parsed, rendered};
use crate::support::program::Folder;

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
    folder.write("m/a.yaml", "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec: {}\n");
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
