//! `invalid-user-agent-pattern`: a pattern that is not a valid regular expression.

use foldhash::HashMap;
use regex_syntax::ast::{self, Ast, ClassSetItem, Span, Visitor, parse::Parser};

use super::prelude::*;
use crate::model::module::agent_patterns::LONGEST_PATTERN;

pub(crate) static LINT: Lint = Lint {
    name: "invalid-user-agent-pattern",
    default: Level::Warn,
    summary: "An `allow` or `deny` entry of `user_agent_filter` is not a valid regular expression.",
    why: "The entries are regular expressions. An invalid one matches no user agent, so it neither allows nor denies anyone.",
    cure: "Fix the regular expression; escape literal characters such as `(` or `+` with `\\`.",
    check: LintCheck::Edge(check),
};

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    let mut patterns = Patterns::default();
    for (key, filter) in view.route_modules(|route| route.user_agent_filter.as_deref()) {
        for (field, list) in [("allow", &filter.allow), ("deny", &filter.deny)] {
            findings.report_entries(key, &["user_agent_filter", field], list, |pattern| {
                Some(format!("`{}` {}", printable(pattern), patterns.fault(pattern)?))
            });
        }
    }
}

/// The patterns of a run. Each is parsed once and never compiled: compiling a few bytes such as `\w{100}{10}` takes
/// longer than parsing thousands of patterns.
#[derive(Default)]
struct Patterns<'w> {
    /// The error of a pattern.
    known: HashMap<&'w str, Option<String>>,
    /// The error of a Unicode class.
    classes: HashMap<&'w str, Option<String>>,
}

impl<'w> Patterns<'w> {
    fn fault(&mut self, pattern: &'w str) -> Option<&str> {
        let classes = &mut self.classes;
        self.known.entry(pattern).or_insert_with(|| fault(pattern, classes)).as_deref()
    }
}

fn fault<'w>(pattern: &'w str, known: &mut HashMap<&'w str, Option<String>>) -> Option<String> {
    if pattern.len() > LONGEST_PATTERN {
        return Some(format!("is longer than {LONGEST_PATTERN} bytes and is not checked"));
    }
    let faulty = |reason: &str| format!("is not a regular expression: {reason}");
    match Parser::new().parse(pattern) {
        Ok(tree) => ast::visit(&tree, Classes { pattern, known }).err().map(|reason| faulty(&reason)),
        Err(error) => Some(faulty(&reason(&error.to_string()))),
    }
}

/// Looks up Unicode classes such as `\p{Greek}`, because the parser accepts any name.
struct Classes<'w, 'k> {
    pattern: &'w str,
    known: &'k mut HashMap<&'w str, Option<String>>,
}

impl Classes<'_, '_> {
    fn look_up(&mut self, span: &Span) -> Result<(), String> {
        let class = self.pattern.get(span.start.offset..span.end.offset).unwrap_or_default();
        // Parse as if whitespace were insignificant, which a flag in the pattern may set.
        let fault = || regex_syntax::parse(&format!("(?x){class}")).err().map(|error| reason(&error.to_string()));
        match self.known.entry(class).or_insert_with(fault) {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        }
    }
}

impl Visitor for Classes<'_, '_> {
    type Output = ();
    type Err = String;

    fn finish(self) -> Result<(), String> {
        Ok(())
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            Ast::ClassUnicode(class) => self.look_up(&class.span),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), String> {
        match item {
            ClassSetItem::Unicode(class) => self.look_up(&class.span),
            _ => Ok(()),
        }
    }
}

/// The last line of an error, which has the reason; the lines before it show the pattern.
fn reason(error: &str) -> String {
    let line = error.lines().last().unwrap_or_default();
    line.trim().trim_start_matches("error: ").trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_good(pattern: &str) -> bool {
        Patterns::default().fault(pattern).is_none()
    }

    #[test]
    fn a_pattern_is_good_if_the_compiler_takes_it() {
        let patterns = [
            "",
            "bot",
            "(?i)mozilla/[0-9]+\\.[0-9]+.*chrome",
            "(?P<name>[a-z]+)|\\bcurl\\b",
            "(?x) a b \\p{Greek} # comment",
            "[\\pL&&\\P{Lu}]{2,3}",
            "(bot|crawler",
            "a{2,1}",
            "*",
            "[z-a]",
            "\\p{Nobody}",
            "[a\\p{Nobody}]",
            "(?=a)",
            "\\1",
            "a\\",
        ];
        for pattern in patterns {
            assert_eq!(is_good(pattern), regex::Regex::new(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn what_is_costly_to_compile_is_only_parsed() {
        // Each of these takes a compiler 10 ms and more.
        let costly: Vec<String> = (0..20_000).map(|n| format!("(?i)[\\W]{n}\\w{{100}}{{10}}")).collect();
        let mut patterns = Patterns::default();
        assert!(costly.iter().all(|pattern| patterns.fault(pattern).is_none()));
        assert!(!is_good(&"a".repeat(LONGEST_PATTERN + 1)) && is_good(&"a".repeat(LONGEST_PATTERN)));
        assert!(!is_good(&"(".repeat(LONGEST_PATTERN)));
    }
}
