//! `/metrics` is what Prometheus accepts, `docs/reference/monitoring.md` lists it, and the alerts and the dashboard use nothing
//! else (D87).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::{Value, json};

use crate::support::{
    manifests::edge,
    program::{Folder, REPOSITORY, Serve, until},
};

type Labels = BTreeMap<String, String>;

/// A metric with its samples.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    samples: Vec<(String, Labels, f64)>,
}

impl Family {
    /// The names of all labels.
    fn labels(&self) -> BTreeSet<&str> {
        self.samples.iter().flat_map(|(_, labels, _)| labels.keys()).map(String::as_str).collect()
    }
}

fn is_name(text: &str) -> bool {
    let first = text.starts_with(|c: char| c.is_ascii_lowercase());
    first && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Reads `{a="b",c="d"}`, and returns what follows it.
fn labels(text: &str) -> (Labels, &str) {
    let mut found = Labels::new();
    let Some(mut rest) = text.strip_prefix('{') else { return (found, text) };
    loop {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{text}"));
        assert!(is_name(name), "{text}");
        let (mut value, mut end, mut escaped) = (String::new(), None, false);
        for (at, c) in after.char_indices() {
            match (escaped, c) {
                (true, _) => {
                    assert!(['\\', '"', 'n'].contains(&c), "{text}");
                    value.push(c);
                    escaped = false;
                }
                (false, '\\') => escaped = true,
                (false, '"') => {
                    end = Some(at + 1);
                    break;
                }
                (false, _) => value.push(c),
            }
        }
        assert!(found.insert(name.to_owned(), value).is_none(), "a label twice: {text}");
        rest = &after[end.unwrap_or_else(|| panic!("{text}"))..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (found, rest.strip_prefix('}').unwrap_or_else(|| panic!("{text}"))),
        }
    }
}

/// Reads a metrics page strictly: HELP, TYPE and samples of a metric together, and nothing twice.
fn families(page: &str) -> BTreeMap<String, Family> {
    let mut all: BTreeMap<String, Family> = BTreeMap::new();
    let (mut described, mut current) = (String::new(), String::new());
    let mut seen = BTreeSet::new();
    assert!(page.ends_with('\n'));
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap_or_default();
            assert!(is_name(name) && text.len() > 1, "{line}");
            described = name.to_owned();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, described, "no HELP before {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = Family { kind: kind.to_owned(), samples: Vec::new() };
            assert!(all.insert(name.to_owned(), family).is_none(), "twice: {line}");
            current = name.to_owned();
        } else {
            let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
            let (labels, value) = labels(&line[end..]);
            let value = value.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
            let value =
                if value == "+Inf" { f64::INFINITY } else { value.parse().unwrap_or_else(|_| panic!("{line}")) };
            let name = &line[..end];
            let family = all.get_mut(&current).unwrap_or_else(|| panic!("no TYPE before {line}"));
            let suffix = name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("not of {current}: {line}"));
            let suffixes: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            assert!(seen.insert((name.to_owned(), labels.clone())), "a series twice: {line}");
            family.samples.push((name.to_owned(), labels, value));
        }
    }
    all
}

/// A server that has done what there is a metric for.
fn busy(folder: &Folder) -> Serve {
    folder.write("named.yaml", "notifications: {files: [{name: audit, path: changes.jsonl}]}\n");
    let exemption = "{hosts: [nobody.example.com], owner: ops, reason: Nobody, expires: 2099-12-31}";
    folder.write(
        "storefront/invariant.yaml",
        &format!(
            "apiVersion: edgewright/v1\nkind: Invariant\nmetadata: {{name: nobody}}\nspec:\n  description: Nobody\n  \
             scope: {{hosts: [nobody.example.com]}}\n  requires_any: [oidc]\n  exemptions: [{exemption}]\n"
        ),
    );
    let serve = folder.serve_with("--manifests storefront", &[("EDGEWRIGHT_CONFIG", "named.yaml")]);
    let files = json!([{"name": "one.yaml", "text": edge("one", "first")}]);
    let body = json!({"files": files, "source": "say-\"shop\""});
    assert_eq!(serve.call("POST", "/reconciliations", &body.to_string()).status, 201);
    assert_eq!(serve.call("POST", "/edges/https", r#"{"hostports":["new.example.com:443"]}"#).status, 201);
    assert_eq!(serve.get("/nowhere").status, 404);
    until("the exemption", || serve.get("/metrics").contains("edgewright_exemption_expiry").then_some(()));
    serve
}

fn scraped(serve: &Serve) -> BTreeMap<String, Family> {
    families(&serve.get("/metrics").body)
}

fn value(all: &BTreeMap<String, Family>, name: &str, label: Option<(&str, &str)>) -> Option<f64> {
    let is_asked = |labels: &Labels| label.is_none_or(|(name, value)| labels.get(name).is_some_and(|it| it == value));
    all.get(name)?.samples.iter().find(|(_, labels, _)| is_asked(labels)).map(|(.., value)| *value)
}

#[test]
fn metrics_follow_the_conventions_of_prometheus() {
    let folder = Folder::with_storefront();
    let all = scraped(&busy(&folder));
    let mut offenders = Vec::new();
    for (name, family) in &all {
        let total = name.ends_with("_total");
        let base = name.strip_suffix("_total").unwrap_or(name);
        let reserved = ["_count", "_sum", "_bucket"].iter().any(|end| name.ends_with(end));
        let words: Vec<&str> = name.split('_').collect();
        let types = ["gauge", "counter", "histogram", "summary", "metric"].iter().any(|word| words.contains(word));
        let small = ["ms", "milliseconds", "minutes", "hours", "days", "kb", "kib", "mb", "mib", "percent"];
        let other_unit = small.iter().any(|unit| words.contains(unit));
        let unit_inside = ["seconds", "bytes"].iter().any(|unit| words.contains(unit) && !base.ends_with(unit));
        if total != (family.kind == "counter") || reserved || types || other_unit || unit_inside {
            offenders.push(format!("{name}: {}", family.kind));
        }
        assert!(name.starts_with("edgewright_") || name.starts_with("process_"), "{name}");
        assert!(!family.samples.is_empty(), "{name} has no samples");
        for (sample, labels, value) in &family.samples {
            assert!(value.is_finite() && (*value >= 0.0 || family.kind == "gauge"), "{sample} {labels:?} {value}");
        }
        if family.kind == "histogram" {
            assert_buckets(name, family);
        }
    }
    assert!(offenders.is_empty(), "{offenders:?}");
}

/// Whether the buckets of each series are cumulative, and end with the count.
fn assert_buckets(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, (f64, f64, Option<f64>)> = BTreeMap::new();
    for (sample, labels, value) in &family.samples {
        let mut own = labels.clone();
        let bound = own.remove("le");
        let (last_bound, last, infinite) = series.entry(own).or_insert((f64::NEG_INFINITY, 0.0, None));
        match (sample.strip_prefix(name), bound) {
            (Some("_bucket"), Some(bound)) => {
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() };
                assert!(bound > *last_bound && *value >= *last, "{sample} {labels:?}");
                (*last_bound, *last) = (bound, *value);
                *infinite = bound.is_infinite().then_some(*value);
            }
            (Some("_count"), None) => assert_eq!(Some(*value), *infinite, "{sample} {labels:?}"),
            (Some("_sum"), None) => {}
            _ => panic!("{sample} {labels:?}"),
        }
    }
}

#[test]
fn metrics_tell_the_state_of_the_server() {
    let folder = Folder::with_storefront();
    let serve = busy(&folder);
    let all = scraped(&serve);
    let of = |name: &str, label| value(&all, name, label);
    assert_eq!(of("edgewright_build_info", Some(("version", env!("CARGO_PKG_VERSION")))), Some(1.0));
    assert_eq!(of("edgewright_store_ready", None), Some(1.0));
    assert_eq!(of("edgewright_watchers", None), Some(0.0));
    assert_eq!(of("edgewright_notifications_failed_total", Some(("target", "audit"))), Some(0.0));
    assert_eq!(of("edgewright_sources", None), Some(2.0));
    assert_eq!(of("edgewright_revision", None), Some(4.0), "the admin, two sources and an edge");
    assert_eq!(of("edgewright_history_records", None), Some(4.0));
    assert!(of("edgewright_store_size_bytes", None).is_some_and(|bytes| bytes > 1000.0));
    assert!(of("process_resident_memory_bytes", None).is_some_and(|bytes| bytes > 1e6));
    assert!(of("process_open_fds", None).is_some_and(|open| open > 3.0));
    assert_eq!(of("edgewright_source_resources", Some(("source", "say-\"shop\""))), Some(1.0));
    for source in ["default", "say-\"shop\""] {
        let last = of("edgewright_reconcile_last_success_timestamp_seconds", Some(("source", source)));
        assert!(last.is_some_and(|time| time > 1_700_000_000.0), "{source}");
    }
    let commits = all["edgewright_store_commit_duration_seconds"].samples.iter();
    let applied = commits.filter(|(name, labels, _)| name.ends_with("_count") && labels["result"] == "applied");
    assert_eq!(applied.map(|(.., count)| *count).collect::<Vec<_>>(), [4.0], "the admin, two sources and an edge");

    let listed = |kind: &str, path: &str| serve.get(path).json()[kind].as_array().unwrap().clone();
    let mut expected = listed("tls_certificates", "/tls_certificates");
    expected.extend(listed("certificate_authorities", "/certificate_authorities"));
    let expiries = &all["edgewright_certificate_expiry_timestamp_seconds"].samples;
    assert_eq!(expiries.len(), expected.len());
    for resource in &expected {
        let (id, not_after) = (resource["id"].as_str().unwrap(), resource["not_after"].as_str().unwrap());
        let (_, labels, second) = expiries.iter().find(|(_, labels, _)| labels["id"] == id).unwrap();
        assert_eq!(*second as i64, not_after.parse::<jiff::Timestamp>().unwrap().as_second(), "{labels:?}");
        assert!(!labels["name"].is_empty(), "{labels:?}");
    }
}

#[test]
fn a_deleted_certificate_has_no_series() {
    let folder = Folder::new();
    let pem = fs::read_to_string(format!("{REPOSITORY}/examples/storefront/certs/staff-devices.pem")).unwrap();
    let serve = folder.serve("");
    let made = serve.call("POST", "/certificate_authorities", &json!({"ca_pem": pem}).to_string());
    let name = "edgewright_certificate_expiry_timestamp_seconds";
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(scraped(&serve)[name].samples[0].1["id"], id);
    assert_eq!(serve.call("DELETE", &format!("/certificate_authorities/{id}"), "").status, 204);
    assert!(!scraped(&serve).contains_key(name));
}

/// The words of a text that are names of metrics.
fn metric_words(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("edgewright_") || word.starts_with("process_")).collect()
}

#[test]
fn every_metric_is_documented() {
    let folder = Folder::with_storefront();
    let all = scraped(&busy(&folder));
    let text = fs::read_to_string(format!("{REPOSITORY}/docs/reference/monitoring.md")).unwrap();
    let exported: BTreeSet<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(metric_words(&text), exported);
    for (name, family) in &all {
        let rows = ["| `edgewright_", "| `process_"];
        let is_row = |line: &&str| rows.iter().any(|row| line.starts_with(row)) && line.contains(&format!("`{name}`"));
        let row = text.lines().find(is_row).unwrap();
        let documented: BTreeSet<&str> = row.split('|').nth(3).unwrap().split('`').skip(1).step_by(2).collect();
        let mut labels = family.labels();
        labels.remove("le");
        assert_eq!((row.contains(&format!("| {} |", family.kind)), labels), (true, documented), "{row}");
    }
}

/// The labels that Prometheus adds to each series of a target.
const OF_TARGETS: [&str; 2] = ["instance", "job"];

/// The metrics that an expression names, each with the labels of its selector.
fn selectors(expression: &str) -> Vec<(&str, Vec<&str>)> {
    let found = metric_words(expression).into_iter().flat_map(|name| {
        expression.match_indices(name).filter_map(move |(at, _)| {
            let rest = &expression[at + name.len()..];
            // Another metric may begin with this name.
            (!rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')).then_some((name, rest))
        })
    });
    let labels = |rest: &str| -> Vec<(usize, usize)> {
        let Some(inside) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return Vec::new() };
        let (mut names, mut at) = (Vec::new(), 1);
        for matcher in inside.0.split_inclusive("\",") {
            let end = matcher.find(['=', '!']).unwrap_or_else(|| panic!("{expression}"));
            let blanks = matcher.len() - matcher.trim_start().len();
            names.push((at + blanks, at + end));
            at += matcher.len();
        }
        names
    };
    found.map(|(name, rest)| (name, labels(rest).into_iter().map(|(from, to)| &rest[from..to]).collect())).collect()
}

/// The labels in `by (…)` and `on (…)`.
fn grouped(expression: &str) -> Vec<&str> {
    let lists = ["by (", "on ("].into_iter().flat_map(|word| expression.split(word).skip(1));
    let names = lists.flat_map(|rest| rest.split(')').next().unwrap_or_default().split(','));
    names.map(str::trim).collect()
}

/// The labels that a text shows, as `{{label}}` or `{{ $labels.label }}`.
fn shown(text: &str) -> Vec<&str> {
    let parts = text.split("{{").skip(1).filter_map(|part| Some(part.split_once("}}")?.0.trim()));
    parts.map(|name| name.trim_start_matches("$labels.")).collect()
}

/// The names and labels of an expression, and of the texts about it, that a server does not export.
fn unknown(all: &BTreeMap<String, Family>, expression: &str, texts: &[&str]) -> Vec<String> {
    let mut unknown = Vec::new();
    let mut known: BTreeSet<&str> = OF_TARGETS.into();
    let selectors = selectors(expression);
    if selectors.is_empty() {
        unknown.push(format!("no metric in {expression}"));
    }
    for (name, labels) in selectors {
        let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|part| name.strip_suffix(part));
        let of_histogram = parts.filter_map(|name| all.get(name)).find(|family| family.kind == "histogram");
        let plain = all.get(name).filter(|family| family.kind != "histogram");
        let Some(family) = plain.or(of_histogram) else {
            unknown.push(format!("{name} in {expression}"));
            continue;
        };
        let own = family.labels();
        let missing = labels.iter().filter(|label| !own.contains(*label) && !OF_TARGETS.contains(label));
        unknown.extend(missing.map(|label| format!("{label} of {name} in {expression}")));
        known.extend(own);
    }
    let named = grouped(expression).into_iter().chain(texts.iter().flat_map(|text| shown(text)));
    unknown.extend(named.filter(|label| !known.contains(label)).map(|label| format!("{label} in {expression}")));
    unknown
}

#[test]
fn the_alerts_and_the_dashboard_use_what_a_server_exports() {
    let folder = Folder::with_storefront();
    let all = scraped(&busy(&folder));
    let read = |name: &str| fs::read_to_string(format!("{REPOSITORY}/examples/monitoring/{name}")).unwrap();
    let mut found = Vec::new();

    let rules: Value = serde_yaml::from_str(&read("alerts.yaml")).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap().clone();
    let mut names = BTreeSet::new();
    for rule in &rules {
        let texts: Vec<&str> = rule["annotations"].as_object().unwrap().values().filter_map(Value::as_str).collect();
        assert!(rule["annotations"]["summary"].is_string() && rule["labels"]["severity"].is_string(), "{rule}");
        assert!(names.insert(rule["alert"].as_str().unwrap()), "{rule}");
        found.extend(unknown(&all, rule["expr"].as_str().unwrap(), &texts));
    }
    assert!(rules.len() >= 8);

    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()) && panel["title"].is_string(), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            let legend = target["legendFormat"].as_str().unwrap();
            found.extend(unknown(&all, target["expr"].as_str().unwrap(), &[legend]));
        }
    }
    assert!(panels.len() > 10);
    assert!(found.is_empty(), "{}", found.join("\n"));

    // What these checks would find.
    for (expression, text) in [
        ("edgewright_nothing", ""),
        ("edgewright_drift{sauce=\"a\"}", ""),
        ("sum by (sauce) (edgewright_drift)", ""),
        ("edgewright_drift", "{{ $labels.sauce }}"),
        ("edgewright_store_commit_duration_seconds", ""),
        ("up", ""),
    ] {
        assert_eq!(unknown(&all, expression, &[text]).len(), 1, "{expression}");
    }
}
