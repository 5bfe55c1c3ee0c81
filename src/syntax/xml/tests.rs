//! Well-formed and malformed documents, and hostile sizes: refused within a moment, or read in linear time (D46).
#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use super::*;

const NS: &str = "xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\"";

/// An EntityDescriptor with this inside.
fn with(inside: &str) -> String {
    format!("<EntityDescriptor {NS}>{inside}</EntityDescriptor>")
}

/// An EntityDescriptor with these attributes.
fn attributed(attributes: &str) -> String {
    format!("<EntityDescriptor {NS} {attributes}/>")
}

fn error(text: &str) -> String {
    check_entity_descriptor(text).err().unwrap_or_default()
}

#[test]
fn well_formed_descriptors_pass() {
    for good in [
        format!("<?xml version=\"1.0\"?>\n{}\n", with("<a>x &amp; y</a>")),
        format!("\u{feff}<?xml version='1.0' encoding='ISO-8859-1' standalone = \"yes\" ?>{}", with("")),
        format!("<!-- a -->\n<?xml-stylesheet href='a'?>{}<!-- b --> <?end?>\n", with("")),
        "<md:EntitiesDescriptor xmlns:md='urn:x'\n\t><md:a md:b = 'c'></md:a ></md:EntitiesDescriptor\n>".into(),
        with("<a:b c:d='1' e='2' xmlns:a='urn:a' xmlns:c='urn:c'><a:b/></a:b><a xmlns:a='urn:b'><a:b/></a>"),
        with("<![CDATA[ <&]]]]><![CDATA[>]]>&#10;&#x1F600;&lt;&gt;&quot;&apos; ]] > 'üñ' <?a?><?b c>?>"),
        with("<x xml:lang='de' xmlns:xml='http://www.w3.org/XML/1998/namespace'/><über.é-1_/>"),
        attributed("a='>' b=\"'\" c='&lt;\"' d='\n'"),
        attributed("xmlns:p='urn:1' xmlns:q='urn:2' p:a='' q:a='' a=''"),
        with("<a xmlns=''/>"),
    ] {
        assert_eq!(check_entity_descriptor(&good).err(), None, "{good}");
    }
}

#[test]
fn what_is_not_well_formed_is_refused() {
    let long = "http://www.w3.org/XML/1998/namespace";
    for bad in [
        String::new(),
        " \n".into(),
        "not xml".into(),
        "<".into(),
        "<>".into(),
        "</a>".into(),
        format!("<EntityDescriptor {NS}>"),
        format!("<EntityDescriptor {NS}"),
        format!("{}</a>", with("")),
        format!("{0}{0}", with("")),
        format!("x{}", with("")),
        format!("{}x", with("")),
        format!("{}&amp;", with("")),
        format!("{}<![CDATA[]]>", with("")),
        with("<a></b>"),
        with("<a><b></a></b>"),
        with("<a></ a>"),
        with("<a></a b='c'>"),
        with("< a/>"),
        with("<1/>"),
        with("<a/ >"),
        with("<a!/>"),
        with("<a:b/>"),
        with("<:a/>"),
        with("<a:/>"),
        with("<a:b:c xmlns:a='urn:a'/>"),
        with("<a xmlns:a='urn:a' a:1='x'/>"),
        with("<xmlns:a/>"),
        with("<a b:c='x'/>"),
        // A prefix is gone with the element that declares it.
        with("<a:b xmlns:a='urn:a'/><a:b/>"),
        attributed("a"),
        attributed("a="),
        attributed("a=b"),
        attributed("a='b"),
        attributed("a='b'c='d'"),
        attributed("a='<'"),
        attributed("a='&x;'"),
        attributed("a='&'"),
        attributed("a='&#xFFFE;'"),
        attributed("a='1' a='2'"),
        attributed("xmlns='urn:x'"),
        attributed("xmlns:a='1' xmlns:a='2'"),
        attributed("xmlns:n='urn:x' xmlns:m='urn:&#120;' n:a='' m:a=''"),
        attributed("xmlns:a=''"),
        attributed("xmlns:xmlns='urn:x'"),
        attributed("xmlns:a='http://www.w3.org/2000/xmlns/'"),
        attributed("xmlns:xml='urn:x'"),
        attributed(&format!("xmlns:a='{long}'")),
        format!("<EntityDescriptor xmlns='{long}'/>"),
        "<md:EntityDescriptor/>".into(),
        with("&e;"),
        with("&nbsp;"),
        with("&amp"),
        with("&;"),
        with("& "),
        with("&#;"),
        with("&#x;"),
        with("&#+9;"),
        with("&#0;"),
        with("&#xD800;"),
        with("&#x110000;"),
        with("&#99999999999;"),
        with("\u{1}"),
        with("\u{b}"),
        with("\u{fffe}"),
        with("\u{ffff}"),
        with("<a\u{0}/>"),
        attributed("a='\u{1f}'"),
        with("<!-- \u{8} -->"),
        with("<![CDATA[\u{ffff}]]>"),
        with("]]>"),
        with("<!-- a -- b -->"),
        with("<!-- a --->"),
        with("<!-->"),
        with("<!-- a"),
        with("<![CDATA[ a"),
        with("<![cdata[]]>"),
        with("<!ELEMENT a ANY>"),
        with("<?xml version='1.0'?>"),
        with("<?XML a?>"),
        with("<??>"),
        with("<? a?>"),
        with("<?a"),
        format!(" <?xml version='1.0'?>{}", with("")),
        format!("<?xml?>{}", with("")),
        format!("<?xml encoding='UTF-8'?>{}", with("")),
        format!("<?xml encoding='UTF-8' version='1.0'?>{}", with("")),
        format!("<?xml version='1.0' version='1.0'?>{}", with("")),
        format!("<?xml version='1.0' a='1'?>{}", with("")),
        format!("<?xml version=1.0?>{}", with("")),
    ] {
        assert!(check_entity_descriptor(&bad).is_err(), "{bad}");
    }
}

#[test]
fn the_error_names_the_line_and_the_fault() {
    assert_eq!(error(&with("\n<a>\n</b>")), "not well-formed XML at line 3: `</b>` cannot close `<a>`");
    assert_eq!(error(&attributed("\na='' a=''")), "not well-formed XML at line 1: duplicate attribute `a`");
    assert_eq!(error("<Other/>"), "the root element is `Other`, not a SAML EntityDescriptor (line 1)");
    let dtd = "a document type declaration (DTD) is not accepted (line 2)";
    for declaration in ["<!DOCTYPE x [<!ENTITY e \"x\">]>", "<!DOCTYPE x", "<!doctype>"] {
        assert_eq!(error(&format!("\n{declaration}{}", with("&e;"))), dtd);
    }
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
    assert_eq!(check_entity_descriptor(text).err(), None, "{text:.200}");
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
    // Namespaces of closed elements do not count.
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

#[test]
fn metadata_without_what_a_login_needs_has_a_gap() {
    let gap = |text: &str| check_entity_descriptor(text).unwrap().gap().unwrap_or_default();
    let role = "<IDPSSODescriptor><KeyDescriptor/><SingleSignOnService/></IDPSSODescriptor>";
    for good in [
        format!("<EntityDescriptor {NS} entityID='a'>{role}</EntityDescriptor>"),
        format!(
            "<EntitiesDescriptor {NS}><EntityDescriptor entityID='a'>{role}</EntityDescriptor></EntitiesDescriptor>"
        ),
        "<m:EntityDescriptor entityID='a' xmlns:m='urn:oasis:names:tc:SAML:2.0:metadata'><m:IDPSSODescriptor>\
         <m:KeyDescriptor/><m:SingleSignOnService/></m:IDPSSODescriptor></m:EntityDescriptor>"
            .to_owned(),
    ] {
        assert_eq!(gap(&good), "", "{good}");
    }
    for (bad, part) in [
        (format!("<EntityDescriptor entityID='a'>{role}</EntityDescriptor>"), "namespace"),
        (format!("<EntityDescriptor xmlns='urn:x' entityID='a'>{role}</EntityDescriptor>"), "namespace"),
        (with(role), "entityID"),
        (format!("<EntityDescriptor {NS} entityID=' '>{role}</EntityDescriptor>"), "entityID"),
        (format!("<EntityDescriptor {NS} entityID='a'><SPSSODescriptor/></EntityDescriptor>"), "IDPSSODescriptor"),
        (
            format!("<EntityDescriptor {NS} entityID='a'><a:IDPSSODescriptor xmlns:a='b'/></EntityDescriptor>"),
            "IDPSSODescriptor",
        ),
        (format!("<EntitiesDescriptor {NS}/>"), "entityID"),
    ] {
        assert!(gap(&bad).contains(part), "{bad}: {}", gap(&bad));
    }
}
