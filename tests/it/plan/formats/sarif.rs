//! SARIF, as its schema and code scanning read it.

use std::collections::BTreeSet;

use edgewright::{Code, Diagnostic, report::Format};
use serde_json::Value;

use super::{invalid, keys, of_diagnostics, parsed, place, rendered, storefront, told};

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
