//! The reasons for YAML syntax errors, which never quote the text.

/// The reason of a text whose values nest too deep for the reader.
pub(super) const TOO_DEEP: &str = "recursion limit exceeded";

/// The reader's fixed messages for syntax errors. If one is a prefix of another, the longer one comes first.
const PHRASES: &[&str] = &[
    "block sequence entries are not allowed in this context",
    "mapping keys are not allowed in this context",
    "mapping values are not allowed in this context",
    "control characters are not allowed",
    "could not find expected ':'",
    "could not find expected directive name",
    "did not find URI escaped octet",
    "did not find expected '!'",
    "did not find expected ',' or ']'",
    "did not find expected ',' or '}'",
    "did not find expected '-' indicator",
    "did not find expected <document start>",
    "did not find expected alphabetic or numeric character",
    "did not find expected comment or line break",
    "did not find expected digit or '.' character",
    "did not find expected hexadecimal number",
    "did not find expected key",
    "did not find expected node content",
    "did not find expected tag URI",
    "did not find expected version number",
    "did not find expected whitespace or line break",
    "did not find expected whitespace",
    "did not find the expected '>'",
    "found a tab character that violates indentation",
    "found a tab character where an indentation space is expected",
    "found an incorrect leading UTF-8 octet",
    "found an incorrect trailing UTF-8 octet",
    "found an indentation indicator equal to 0",
    "found character that cannot start any token",
    "found duplicate %TAG directive",
    "found duplicate %YAML directive",
    "found extremely long version number",
    "found incompatible YAML document",
    "found invalid Unicode character escape code",
    "found undefined tag handle",
    "found unexpected ':'",
    "found unexpected document indicator",
    "found unexpected end of stream",
    "found unexpected non-alphabetical character",
    "found unknown directive name",
    "found unknown escape character",
    "invalid Unicode character",
    "unknown anchor",
    TOO_DEEP,
    "repetition limit exceeded",
    "EOF while parsing a value",
    "deserializing from YAML containing more than one document is not supported",
    "empty YAML tag is not allowed",
    "failed to parse YAML number",
    "the aliases expand to too many values",
    "a key must be a string, not a number",
    "a key must be a string, not a list",
    "a key must be a string, not a mapping",
    "a key must be a string, not a value with a tag",
    "the document is larger than 4 GiB",
];
/// What the reader calls an unfinished part, and the mark that opens it.
const OPENINGS: [(&str, &str); 3] = [
    (", while scanning a quoted scalar at line ", "quote"),
    (", while parsing a flow mapping at line ", "`{`"),
    (", while parsing a flow sequence at line ", "`[`"),
];
/// The beginnings of errors in a value with a YAML tag.
const OF_TAGS: [&str; 3] = ["invalid value: ", "invalid type: ", "invalid length: "];

/// Returns the reason why a text cannot be read. It is one of a fixed set of phrases, because the reader's own text
/// quotes values and keys.
pub(crate) fn reason(error: &serde_yaml::Error) -> &'static str {
    phrase(&error.to_string())
}

/// Returns the mark that opens the unfinished part of a text, and the line of that mark: the reader notices only at the end.
pub(super) fn opening(error: &serde_yaml::Error) -> Option<(&'static str, usize)> {
    let text = error.to_string();
    OPENINGS.iter().find_map(|(sign, mark)| {
        let (_, rest) = text.rsplit_once(*sign)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((*mark, rest.get(..end)?.parse().ok()?))
    })
}

/// Returns the reason with its line and column, for a message without an excerpt.
pub(crate) fn reason_and_place(error: &serde_yaml::Error) -> String {
    match error.location() {
        Some(place) => format!("{} at line {} column {}", reason(error), place.line(), place.column()),
        None => reason(error).to_owned(),
    }
}

fn phrase(text: &str) -> &'static str {
    // The message of an error in a value starts with the path of the value, and its keys may be secrets. The path is missing
    // if the value is the whole document.
    let of_tag = || OF_TAGS.iter().any(|sign| text.contains(sign)).then_some("a value does not fit its YAML tag");
    let behind_path = || PHRASES.iter().copied().find(|phrase| text.contains(&format!(": {phrase}")));
    let whole = PHRASES.iter().copied().find(|phrase| text.starts_with(phrase));
    whole.or_else(of_tag).or_else(behind_path).unwrap_or("the text cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::yaml::Tape;

    fn read(text: &str) -> Option<String> {
        serde_yaml::from_str::<Tape>(text).err().map(|error| reason_and_place(&error))
    }

    #[test]
    fn a_value_that_does_not_fit_its_tag_is_not_quoted() {
        let tags = ["!!int", "!!float", "!!bool", "!!null", "!<tag:yaml.org,2002:int>"];
        for tag in tags {
            for text in [
                format!("a:\n  client_secret: {tag} hunter2"),
                format!("a: [{tag} hunter2]"),
                format!("a: {{? {tag} hunter2 : 1}}"),
                format!("hunter2: {{a: {tag} hunter2}}"),
                format!("a: {tag} \"invalid type: hunter2 at line 1\""),
                format!("a: {tag} |\n  hunter2\n"),
            ] {
                let told = read(&text);
                let told = told.as_deref().unwrap_or("a value does not fit its YAML tag");
                assert!(told.starts_with("a value does not fit its YAML tag"), "{text}: {told}");
                assert!(!told.contains("hunter2"), "{text}: {told}");
            }
        }
        let told = read("a: 1\nb: !!int hunter2\n");
        assert_eq!(told.as_deref(), Some("a value does not fit its YAML tag at line 2 column 4"));
    }

    #[test]
    fn an_unfinished_part_has_the_line_of_its_beginning() {
        let opening = |text: &str| serde_yaml::from_str::<Tape>(text).err().and_then(|error| opening(&error));
        for (text, expected) in [
            ("a: 1\nb: {c: 1\nd: 2\n", Some(("`{`", 2))),
            ("a: 1\nb: [c\nd: 2\n", Some(("`[`", 2))),
            ("a: \"b\nc: d\n", Some(("quote", 1))),
            ("a: *nowhere\n", None),
        ] {
            assert_eq!(opening(text), expected, "{text}");
        }
    }

    #[test]
    fn faults_of_syntax_keep_their_reason() {
        for (text, expected) in [
            ("kind: [a\n", "did not find expected ',' or ']' at line 2 column 1"),
            ("a: b: c\n", "mapping values are not allowed in this context at line 1 column 5"),
            ("a: *nowhere\n", "unknown anchor at line 1 column 4"),
            ("a: @b\n", "found character that cannot start any token at line 1 column 4"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        let told = read("a:\n  ? [x]\n  : 1\n").unwrap_or_default();
        assert!(told.starts_with("a key must be a string, not a list"), "{told}");
    }
}
