//! XML of hostile sizes: refused within a moment, or read in linear time (D46).

use std::time::{Duration, Instant};

use edgewright::xml::check_entity_descriptor;

fn with(inside: &str) -> String {
    format!("<EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\">{inside}</EntityDescriptor>")
}

/// Checks that a text is refused in a moment, for this reason.
fn refused(text: &str, reason: &str) {
    let began = Instant::now();
    let error = check_entity_descriptor(text).unwrap_err();
    let took = began.elapsed();
    assert!(error.contains(reason), "{error}");
    assert!(took < Duration::from_secs(2), "{took:?}: {error}");
}

/// Checks that a text is accepted in a moment.
fn accepted(text: &str) {
    let began = Instant::now();
    assert_eq!(check_entity_descriptor(text), Ok(()), "{text:.200}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}: {text:.200}");
}

#[test]
fn elements_nest_64_levels_deep() {
    let nested = |depth: usize| with(&("<a>".repeat(depth) + &"</a>".repeat(depth)));
    accepted(&nested(63));
    refused(&nested(64), "at most 64 levels");
    refused(&nested(4_000), "at most 64 levels");
    refused(&"<EntityDescriptor>".repeat(50_000), "at most 64 levels");
}

#[test]
fn an_element_has_256_attributes() {
    let attributes = |count: usize| {
        let all: String = (0..count).map(|n| format!(" a{n}=''")).collect();
        with(&format!("<a{all}/>"))
    };
    accepted(&attributes(256));
    refused(&attributes(257), "at most 256 attributes");
    refused(&attributes(60_000), "at most 256 attributes");
}

#[test]
fn a_thousand_namespaces_are_in_scope() {
    let prefixes: String = (0..200).map(|n| format!(" xmlns:p{n}='urn:{n}'")).collect();
    let scopes = |count: usize| with(&(format!("<a{prefixes}>").repeat(count) + &"</a>".repeat(count)));
    accepted(&scopes(4));
    refused(&scopes(5), "at most 1000 namespaces");
    // Those of elements that are closed do not count.
    accepted(&with(&format!("<a{prefixes}/>").repeat(100)));
}

#[test]
fn a_document_has_one_mebibyte() {
    let most = 1024 * 1024;
    let rest = most - with("").len();
    accepted(&with(&"x".repeat(rest)));
    refused(&with(&"x".repeat(rest + 1)), "at most 1048576 bytes");
}

#[test]
fn reading_takes_time_in_proportion_to_the_text() {
    let long = "x".repeat(500_000);
    accepted(&with(&format!("<a xmlns:p='{long}' xmlns:q='urn:q'>{}</a>", "<p:b p:c='' q:c=''/>".repeat(20_000))));
    accepted(&with(&"&amp;".repeat(100_000)));
    accepted(&with(&"<!---->".repeat(100_000)));
    accepted(&with(&"<![CDATA[]]>".repeat(50_000)));
    accepted(&with(&"<a/>".repeat(200_000)));
    accepted(&with(&format!("<a b='{}'/>", "&amp;".repeat(100_000))));
    accepted(&with(&format!("<!--{}-->", "- ".repeat(300_000))));
}
