//! The patterns of regular expressions in policies.

use regex_syntax::ast::{ErrorKind, parse::Parser};

use crate::model::module::agent_patterns::LONGEST_PATTERN;

/// Returns what is wrong with a pattern of `matches`.
pub(in crate::lint::rules) fn pattern_message(pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST_PATTERN {
        return Some(format!("the pattern of `matches` is longer than {LONGEST_PATTERN} bytes and is not checked"));
    }
    let reason = pattern_fault(pattern).or_else(|| unsupported(pattern))?;
    Some(format!("the pattern of `matches` is not a regular expression: {reason}"))
}

/// Returns what `matches` does not support in a pattern that is valid elsewhere: CEL defines its syntax as that of RE2.
fn unsupported(pattern: &str) -> Option<String> {
    let error = Parser::new().parse(pattern).err()?;
    let is_unsupported = matches!(error.kind(), ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference);
    // Between `\Q` and `\E`, everything is literal.
    (is_unsupported && !pattern.contains("\\Q")).then(|| error.kind().to_string())
}

/// Returns why a pattern is invalid. Only errors in every dialect count, because the gateway's is unknown.
pub(in crate::lint::rules) fn pattern_fault(pattern: &str) -> Option<String> {
    if pattern.len() > LONGEST_PATTERN || pattern.contains("\\Q") {
        return None;
    }
    let error = Parser::new().parse(pattern).err()?;
    // Dialects differ in what a bracket in a class means.
    let classes = pattern.matches('[').count();
    let is_common = match error.kind() {
        ErrorKind::ClassUnclosed | ErrorKind::ClassRangeInvalid => classes == 1,
        ErrorKind::EscapeUnexpectedEof
        | ErrorKind::GroupUnclosed
        | ErrorKind::GroupUnopened
        | ErrorKind::RepetitionCountInvalid
        | ErrorKind::RepetitionMissing => classes == 0,
        _ => false,
    };
    is_common.then(|| error.kind().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_invalid_only_if_every_dialect_says_so() {
        for bad in ["(a", "a)", "*a", "a{2,1}", "a\\", "[z-a]", "[a"] {
            assert!(pattern_fault(bad).is_some(), "{bad}");
        }
        for good in ["", "^/a(b|c)*$", "a{", "[[]", "[a[]", "\\Qa(b\\E", "(?=a)", "\\p{Greek}", "[(]"] {
            assert!(pattern_fault(good).is_none(), "{good}");
        }
    }
}
