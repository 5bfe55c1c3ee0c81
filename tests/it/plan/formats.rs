//! Every format of a report (docs/reference/formats.md): its structure, its escaping, its limits, and that none shows a secret.

use std::{collections::BTreeSet, fs, path::PathBuf, sync::Arc};

use edgewright::{
    Code, Diagnostic, Disk, Options, Plan, PlanResult, Snapshot, plan,
    report::{Format, Place, RedactedPlan, Report, Severity, SourceFile, render},
    resources::{Id, IpRestriction, Key, Kind, MASK, Operation},
};
use jiff::Timestamp;
use quick_xml::{Reader, events::Event};
use serde_json::Value;

use crate::support::program::{Folder, REPOSITORY};

/// The limit of a Markdown report.
const MOST_CHARACTERS: usize = 65_000;

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

/// A plan that creates restrictions, each with the given description.
fn restrictions(count: usize, description: &str) -> Plan {
    let sample = storefront().plan.unwrap().changes[0].clone();
    let change = |at: usize| {
        let key = Key::new(Kind::IpRestriction, Id::derived("ipx_", [at.to_string().as_bytes()]));
        let spec = Arc::new(IpRestriction { description: description.to_owned(), ..IpRestriction::default() });
        let mut change = sample.clone();
        change.operations = vec![Operation::Create { key: key.clone(), spec, claim: None, token: None }];
        (change.key, change.name) = (key, format!("office-{at}"));
        change
    };
    Plan { changes: (0..count).map(change).collect(), ..Plan::default() }
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

/// Whether every fence is closed, and by none of the lines inside of it.
fn assert_fences(markdown: &str) {
    let mut open: Option<usize> = None;
    for line in markdown.lines() {
        let text = line.trim_start();
        let run = text.len() - text.trim_start_matches('`').len();
        let fence = run >= 3 && line.len() - text.len() < 4;
        match open {
            None if fence => {
                assert_eq!(&text[run..], "diff");
                open = Some(run);
            }
            Some(length) if fence && run >= length && text.len() == run => open = None,
            Some(_) => assert!(line.starts_with(['+', '-', ' ']), "{line}"),
            None => {}
        }
    }
    assert_eq!(open, None, "a fence stays open");
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("</details>").count());
}

#[test]
fn markdown_is_a_comment() {
    let good = told(Format::Markdown, &storefront());
    let mut lines = good.lines();
    assert_eq!(lines.next(), Some("<!-- edgewright -->"));
    let heading = lines.next().unwrap();
    assert!(heading.starts_with("## edgewright plan: changes are pending — "), "{heading}");
    assert!(heading.ends_with("24 to create, 0 to change, 0 to replace, 0 to delete, 0 unchanged"), "{heading}");
    assert_eq!(good.matches("<details>").count(), 24);
    assert!(good.contains("<details><summary>+ HttpsEdge storefront — POST /edges/https</summary>\n"), "{good}");
    assert_fences(&good);

    let planned = invalid();
    let bad = told(Format::Markdown, &planned);
    assert!(bad.lines().nth(1).unwrap().contains("the manifests are invalid"));
    assert_eq!(bad.matches("\n- **error** <code>").count(), planned.diagnostics.len());
    assert!(bad.contains("<code>tests/invalid/alias.yaml:14:9</code> <code>ERR_EDGEWRIGHT_UNKNOWN_FIELD</code>: "));
}

#[test]
fn markdown_is_cut_between_two_changes() {
    let plan = restrictions(5_000, "first\n```\n````diff\nlast");
    let text = rendered(Format::Markdown, &of_plan(&plan));
    let length = text.chars().count();
    assert!((60_000..=MOST_CHARACTERS).contains(&length), "{length}");
    assert_fences(&text);
    assert!(text.contains("\n`````diff\n"), "a fence is longer than those inside of it");
    let shown = text.matches("<details>").count();
    let last = format!("</details>\n\n… and {} more changes: see the job's log\n", 5_000 - shown);
    assert!(text.ends_with(&last), "{}", &text[text.len() - 200..]);

    let many: Vec<Diagnostic> = (0..5_000).map(|at| Diagnostic::error(Code::Syntax, format!("fault {at}"))).collect();
    let text = rendered(Format::Markdown, &of_diagnostics(&many));
    assert!(text.chars().count() <= MOST_CHARACTERS);
    let shown = text.matches("**error**").count();
    assert!(text.ends_with(&format!("… and {} more diagnostics: see the job's log\n", 5_000 - shown)));
    let both = Report { diagnostics: many, ..of_plan(&plan) };
    let text = rendered(Format::Markdown, &both);
    assert!(text.chars().count() <= MOST_CHARACTERS && text.contains("<details>"));
}

#[test]
fn markdown_cannot_be_broken_out_of() {
    let message = "`<b>|` and @team, #1, <script>, **bold**, [a](b)\n# title";
    let diagnostic = Diagnostic::error(Code::Syntax, message).help("odd ` one").at(place("a|<b>.yaml", "x", "x"));
    let text = rendered(Format::Markdown, &of_diagnostics(&[diagnostic]));
    let item = text.lines().find(|line| line.starts_with("- ")).unwrap();
    assert!(item.ends_with("<br>help: odd &#96; one"), "{item}");
    for raw in ["<b>", "<script>", "@team", " #1", "**bold**", "[a]", "|"] {
        assert!(!item.contains(raw), "{raw}: {item}");
    }
    assert!(item.contains("<code>&#60;b&#62;&#124;</code> and @<!-- -->team"), "{item}");
    assert_eq!(text.matches("\n#").count(), 1, "only the heading is one");
}

#[test]
fn github_annotations_are_escaped() {
    let text = "0123456789\nabc: def\n";
    let escaped = place("./a,b:c.yaml", text, "234");
    let diagnostics = [
        Diagnostic::error(Code::Syntax, "100% wrong\r\nnext: a,b").help("mend it").at(escaped),
        Diagnostic {
            severity: Severity::Warning,
            related: vec![(place("b.yaml", text, "def"), "first here".to_owned())],
            ..Diagnostic::error(Code::Tag, "over two lines").at(place("a.yaml", text, "9\nab"))
        },
        Diagnostic::error(Code::EmptySource, "no manifest"),
    ];
    let told = rendered(Format::Github, &of_diagnostics(&diagnostics));
    let expected = [
        "::error file=a%2Cb%3Ac.yaml,line=1,col=3,endLine=1,endColumn=5,title=ERR_EDGEWRIGHT_SYNTAX::100%25 wrong\\r\\nnext: a,b%0Amend it",
        "::warning file=a.yaml,line=1,endLine=2,title=ERR_EDGEWRIGHT_TAG::over two lines%0Ab.yaml:2:6: first here",
        "::error title=ERR_EDGEWRIGHT_EMPTY_SOURCE::no manifest",
        "::notice title=edgewright validate::the manifests are invalid: 1 file, 2 errors, 1 warning",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn github_has_a_line_for_each_diagnostic() {
    let planned = invalid();
    let told = told(Format::Github, &planned);
    assert_eq!(told.lines().count(), planned.diagnostics.len() + 1);
    let errors = told.lines().filter(|line| line.starts_with("::error file=tests/invalid/")).count();
    assert_eq!(errors, planned.diagnostics.len());
}

/// What the schema of SARIF 2.1.0 and code scanning ask of a physical location.
fn assert_location(location: &Value) {
    let uri = location["artifactLocation"]["uri"].as_str().unwrap();
    assert!(!uri.is_empty() && !uri.starts_with('/') && !uri.contains([' ', '\\', ':']), "{uri}");
    let number = |name: &str| location["region"][name].as_u64().unwrap_or_else(|| panic!("{name}: {location}"));
    let start = (number("startLine"), number("startColumn"));
    let end = (number("endLine"), number("endColumn"));
    assert!(start.0 >= 1 && start.1 >= 1 && end.1 >= 1 && end >= start, "{location}");
}

#[test]
fn sarif_keeps_to_its_schema() {
    let planned = invalid();
    let value = parsed(&told(Format::Sarif, &planned));
    assert_eq!(keys(&value), ["$schema", "version", "runs"]);
    assert_eq!(value["version"], "2.1.0");
    assert!(value["$schema"].as_str().unwrap().ends_with("/sarif-schema-2.1.0.json"));
    assert_eq!(value["runs"].as_array().unwrap().len(), 1);
    let run = &value["runs"][0];
    assert_eq!(keys(run), ["tool", "columnKind", "results"]);
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    let driver = &run["tool"]["driver"];
    assert_eq!(keys(driver), ["name", "version", "rules"]);
    assert_eq!(driver["name"], "edgewright");
    assert_eq!(driver["version"], env!("CARGO_PKG_VERSION"));

    let levels = ["none", "note", "warning", "error"];
    let rules = driver["rules"].as_array().unwrap();
    let ids: BTreeSet<&str> = rules.iter().map(|rule| rule["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), rules.len(), "a rule stands there twice");
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(!rule[text]["text"].as_str().unwrap().is_empty(), "{rule}");
        }
        assert!(levels.contains(&rule["defaultConfiguration"]["level"].as_str().unwrap()), "{rule}");
    }

    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), planned.diagnostics.len());
    let mut fingerprints = BTreeSet::new();
    for (result, it) in results.iter().zip(&planned.diagnostics) {
        assert_eq!(result["ruleId"].as_str(), Some(it.code.to_string().as_str()));
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        assert!(levels.contains(&result["level"].as_str().unwrap()), "{result}");
        assert!(result["message"]["text"].as_str().unwrap().starts_with(&it.message), "{result}");
        let locations = result["locations"].as_array().unwrap();
        assert_eq!(locations.len(), 1);
        assert_location(&locations[0]["physicalLocation"]);
        let related = result.get("relatedLocations").and_then(Value::as_array).cloned().unwrap_or_default();
        assert_eq!(related.len(), it.related.len());
        for (at, location) in related.iter().enumerate() {
            assert_eq!(location["id"], at + 1);
            assert!(location["message"]["text"].is_string());
            assert_location(&location["physicalLocation"]);
        }
        let fingerprint = result["partialFingerprints"]["edgewrightFault/v1"].as_str().unwrap();
        assert!(fingerprints.insert(fingerprint), "{fingerprint} is there twice");
    }
    let good = storefront();
    let value = parsed(&told(Format::Sarif, &good));
    let results = value["runs"][0]["results"].as_array().unwrap();
    assert_eq!(results.len(), good.diagnostics.len(), "changes are no results");
}

#[test]
fn sarif_encodes_paths() {
    for (name, uri) in [
        ("./a b/ü%.yaml", "a%20b/%C3%BC%25.yaml"),
        ("c:d.yaml", "c%3Ad.yaml"),
        ("/tmp/x y.yaml", "file:///tmp/x%20y.yaml"),
        ("../up.yaml", "../up.yaml"),
    ] {
        let diagnostic = Diagnostic::error(Code::Tag, "a tag").at(place(name, "x", "x"));
        let value = parsed(&rendered(Format::Sarif, &of_diagnostics(&[diagnostic])));
        let location = &value["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], uri);
    }
}

/// The numbers that a suite gives, and the cases and failures that it has.
fn suite(xml: &str) -> ((usize, usize), (usize, usize)) {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let (mut given, mut cases, mut failures, mut open) = ((0, 0), 0, 0, 0i32);
    loop {
        let event = reader.read_event().unwrap_or_else(|error| panic!("{error}\n{xml}"));
        if let Event::Start(element) | Event::Empty(element) = &event {
            let number = |name: &str| {
                let value = element.try_get_attribute(name).unwrap().unwrap().value;
                String::from_utf8_lossy(&value).parse::<usize>().unwrap()
            };
            assert!(element.attributes().all(|attribute| attribute.is_ok()), "{xml}");
            match element.name().as_ref() {
                b"testsuite" => given = (number("tests"), number("failures")),
                b"testcase" => cases += 1,
                b"failure" => failures += 1,
                _ => {}
            }
        }
        match event {
            Event::Start(_) => open += 1,
            Event::End(_) => open -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "an element stays open");
    (given, (cases, failures))
}

#[test]
fn junit_counts_its_cases() {
    let planned = invalid();
    let xml = told(Format::Junit, &planned);
    let (given, found) = suite(&xml);
    assert_eq!(given, found);
    let files: BTreeSet<&str> = planned.diagnostics.iter().map(|it| it.position().unwrap().0).collect();
    assert_eq!(found, (files.len() + 1, files.len()), "a case for each file at fault, and one for the others");
    assert!(xml.contains("<testsuite name=\"edgewright.plan\" "));

    let xml = told(Format::Junit, &storefront());
    let (given, found) = suite(&xml);
    assert_eq!((given, found.1), (found, 0), "{xml}");
    assert!(xml.contains("<testcase name=\"plan\" classname=\"plan\" "), "{xml}");

    let plan = Plan { refusals: vec![Diagnostic::error(Code::PreventDestroy, "it is kept")], ..Plan::default() };
    let xml = rendered(Format::Junit, &of_plan(&plan));
    assert_eq!(suite(&xml), ((2, 1), (2, 1)), "{xml}");
    assert!(xml.contains("<failure message=\"it is kept\" type=\"ERR_EDGEWRIGHT_PREVENT_DESTROY\">"), "{xml}");
}

#[test]
fn junit_holds_any_text() {
    let text = "<a> & \"b\" 'c' \u{0}\u{1b}[31m\u{ffff} \r\n]]>";
    let error = Diagnostic::error(Code::Syntax, text).at(place("<&\">.yaml", "x", "x"));
    let warning = Diagnostic { severity: Severity::Warning, ..Diagnostic::error(Code::Tag, text) };
    let xml = rendered(Format::Junit, &of_diagnostics(&[error, warning]));
    assert_eq!(suite(&xml), ((2, 1), (2, 1)), "{xml}");
    assert!(!xml.contains(['\u{0}', '\u{1b}', '\u{ffff}', '\r']), "{xml:?}");
    assert!(xml.contains("name=\"&lt;&amp;&quot;&gt;.yaml\""), "{xml}");
    assert!(xml.contains("<system-out>warning ERR_EDGEWRIGHT_TAG: &lt;a&gt; &amp; "), "{xml}");
    assert!(xml.contains("\\r\\n]]&gt;\" type="), "{xml}");
}
