//! JUnit: the numbers of a suite are those of its cases, and it holds any text.

use std::collections::BTreeSet;

use edgewright::{
    Code, Diagnostic, Plan,
    report::{Format, Severity},
};
use quick_xml::{Reader, events::Event};

use super::{invalid, of_diagnostics, of_plan, place, rendered, storefront, told};

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
