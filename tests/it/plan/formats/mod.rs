//! Every format of a report (docs/reference/formats.md): its structure, its escaping, its limits, and that none shows a secret.

mod github;
mod junit;
mod markdown;
mod sarif;

use std::{fs, path::PathBuf, sync::Arc};

use edgewright::{
    Code, Diagnostic, Disk, Options, Plan, PlanResult, Snapshot, plan,
    report::{Format, Place, RedactedPlan, Report, SourceFile, render},
    resources::MASK,
};
use jiff::Timestamp;
use serde_json::Value;

use crate::support::program::{Folder, REPOSITORY};

fn planned(path: impl Into<PathBuf>, snapshot: &Snapshot) -> PlanResult {
    let tree = Disk::new([path]);
    plan(&Options::new(tree), snapshot)
}

// Tests run in the repository, so these paths are what a user would write there.
fn storefront() -> PlanResult {
    let planned = planned("examples/storefront", &Snapshot::default());
    assert!(planned.plan.is_some(), "{:?}", planned.diagnostics);
    planned
}

fn invalid() -> PlanResult {
    let planned = planned("tests/invalid", &Snapshot::default());
    assert!(planned.plan.is_none() && planned.diagnostics.len() > 50, "{}", planned.diagnostics.len());
    planned
}

pub(crate) fn of_diagnostics(diagnostics: &[Diagnostic]) -> Report {
    Report { command: "validate", diagnostics: diagnostics.to_vec(), files: 1, ..Report::default() }
}

fn of_plan(plan: &Plan) -> Report {
    let (plan, refusals) = (Some(RedactedPlan::from_plan(plan).unwrap()), plan.refusals.clone());
    Report { command: "plan", plan, refusals, files: 1, ..Report::default() }
}

pub(crate) fn rendered(format: Format, report: &Report) -> String {
    render(format, report).unwrap()
}

fn told(format: Format, planned: &PlanResult) -> String {
    rendered(format, &planned.report("plan"))
}

fn place(name: &str, text: &str, marked: &str) -> Place {
    let start = text.find(marked).unwrap();
    let file = Arc::new(SourceFile::new(name.to_owned(), text.to_owned()));
    Place { file, span: start..start + marked.len() }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn every_format_has_a_name_and_tells_the_same_twice() {
    let (good, bad) = (storefront(), invalid());
    for format in Format::ALL {
        assert_eq!(Format::from_name(format.as_str()), Some(format));
        for planned in [&good, &bad] {
            let told_once = told(format, planned);
            assert_eq!(told_once, told(format, planned), "{format:?}");
            assert!(format == Format::Text || !told_once.contains('\u{1b}'), "{format:?} has colour");
            assert!(told_once.is_empty() || told_once.ends_with('\n'), "{format:?} ends inside of a line");
        }
    }
    assert_eq!(Format::from_name("xml"), None);
    let (text, plan) = (told(Format::Text, &good), good.plan.as_ref().unwrap());
    assert!(text.contains(&plan.summary().to_string()), "{text}");
    assert!(plan.changes.iter().all(|change| text.contains(change.key.id.as_str())), "{text}");
    assert_eq!(told(Format::Text, &bad), "", "diagnostics are printed elsewhere");
}

#[test]
fn every_format_is_described() {
    let text = fs::read_to_string(format!("{REPOSITORY}/docs/reference/formats.md")).unwrap();
    for format in Format::ALL {
        assert!(text.contains(&format!("\n## {}\n", format.as_str())), "{format:?}");
    }
    let version = parsed(&told(Format::Json, &storefront()))["format"].as_str().unwrap().to_owned();
    let markdown = told(Format::Markdown, &storefront());
    let marker = markdown.lines().next().unwrap();
    for fixed in [version.as_str(), marker, "limited to 65,000 characters"] {
        assert!(text.contains(fixed), "{fixed}");
    }
}

#[test]
fn no_format_shows_a_secret() {
    let folder = Folder::with_storefront();
    let path = folder.path("storefront");
    let (mut secrets, mut files): (Vec<String>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path.join("secrets")).unwrap() {
        let file = entry.unwrap().path();
        secrets.push(fs::read_to_string(&file).unwrap().trim().to_owned());
        files.push(file);
    }
    let key = folder.read("storefront/certs/shop.key.pem");
    secrets.push(key.lines().nth(1).unwrap().to_owned());
    assert!(secrets.len() > 2 && secrets.iter().all(|secret| secret.len() > 8), "{}", secrets.len());

    let first = planned(&path, &Snapshot::default());
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let (snapshot, _) = Snapshot::default().apply(&first.plan.as_ref().unwrap().operations(), now).unwrap();
    for (at, file) in files.iter().enumerate() {
        let secret = format!("another-secret-{at}");
        fs::write(file, &secret).unwrap();
        secrets.push(secret);
    }
    let second = planned(&path, &snapshot);
    assert!(!second.plan.as_ref().unwrap().is_empty());
    for format in Format::ALL {
        for planned in [&first, &second] {
            let told = told(format, planned);
            let shown = secrets.iter().filter(|secret| told.contains(secret.as_str())).count();
            assert_eq!(shown, 0, "{format:?} shows secrets");
        }
    }
    assert!(told(Format::Json, &first).contains(MASK));
    assert!(told(Format::Markdown, &second).contains("(secret, changed)"));
}

#[test]
fn json_has_its_keys() {
    let (good, bad) = (storefront(), invalid());
    for planned in [&good, &bad] {
        let value = parsed(&told(Format::Json, planned));
        assert_eq!(
            keys(&value),
            ["format", "command", "summary", "diagnostics", "refusals", "plan", "applied"],
            "a key more is a new field for docs/reference/formats.md; a key less is a new version"
        );
        let counts = ["create", "change", "replace", "adopt", "delete", "unchanged", "errors", "warnings", "files"];
        assert_eq!(keys(&value["summary"]), counts);
        assert_eq!(value["format"], "edgewright/report/v1");
        assert_eq!(value["command"], "plan");
        assert_eq!(value["summary"]["files"], planned.files.len());
    }

    let value = parsed(&told(Format::Json, &bad));
    assert!(value["plan"].is_null() && value["applied"].is_null());
    let diagnostics = value["diagnostics"].as_array().unwrap();
    assert_eq!(diagnostics.len(), bad.diagnostics.len());
    assert_eq!(value["summary"]["errors"], bad.diagnostics.len());
    for (told, it) in diagnostics.iter().zip(&bad.diagnostics) {
        let expected = "code severity message help file line column end_line end_column related";
        assert_eq!(keys(told).join(" "), expected);
        let (file, line, column) = it.position().unwrap();
        assert_eq!(told["file"], file);
        assert_eq!(told["line"], line);
        assert_eq!(told["column"], column);
        let end = (told["end_line"].as_u64().unwrap(), told["end_column"].as_u64().unwrap());
        assert!(end >= (line as u64, column as u64), "{told}");
        assert_eq!(told["related"].as_array().unwrap().len(), it.related.len());
    }

    let value = parsed(&told(Format::Json, &good));
    let changes = value["plan"]["changes"].as_array().unwrap();
    assert_eq!(value["summary"]["create"], changes.len());
    assert_eq!(changes.len(), good.plan.as_ref().unwrap().changes.len());
    for change in changes {
        assert_eq!(keys(change), ["effect", "kind", "name", "id", "notes", "calls"]);
        assert_eq!(change["effect"], "create");
        for call in change["calls"].as_array().unwrap() {
            assert_eq!(keys(call), ["method", "path", "body", "lines"]);
            assert!(call["body"].is_object() && call["path"].as_str().unwrap().starts_with('/'), "{call}");
        }
    }
}

#[test]
fn json_tells_refusals_and_the_revision() {
    let refusal = Diagnostic::error(Code::PreventDestroy, "it is kept").help("remove the mark");
    let plan = Plan { base: 7, refusals: vec![refusal], ..Plan::default() };
    let value = parsed(&rendered(Format::Json, &of_plan(&plan)));
    assert_eq!(value["plan"]["base"], 7);
    assert_eq!(value["summary"]["errors"], 0);
    assert_eq!(value["refusals"][0]["code"], "ERR_EDGEWRIGHT_PREVENT_DESTROY");
    assert!(value["refusals"][0]["file"].is_null() && value["refusals"][0]["end_column"].is_null());
    let applied = Report { applied: Some(8), ..of_plan(&plan) };
    assert_eq!(parsed(&rendered(Format::Json, &applied))["applied"], 8);
}

#[test]
fn a_place_ends_behind_its_text() {
    let text = "schlüssel: wert\r\nlist:\n  - ä\n\n  \nnext: 1\n";
    for (marked, start, end) in [
        ("schlüssel", (1, 1), (1, 10)),
        ("wert\r\nlist", (1, 12), (2, 5)),
        ("- ä\n\n  \n", (3, 3), (3, 6)),
        ("\n\n", (3, 6), (3, 6)),
        (" ", (1, 11), (1, 12)),
    ] {
        let place = place("a.yaml", text, marked);
        assert_eq!((place.line_column(), place.end_line_column()), (start, end), "{marked:?}");
    }
}
