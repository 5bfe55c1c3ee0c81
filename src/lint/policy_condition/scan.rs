//! The parts of a CEL expression that can be judged without knowing the gateway's variables and functions.
//!
//! This is no parser: it reads tokens, and says nothing about an expression that it is not sure of. `policy-expression`
//! reports syntax errors.

use std::{cmp::Ordering, collections::BTreeSet};

use crate::cel::{CelToken, CelTokens, string_value};

/// A token of an expression.
#[derive(Debug, Clone, PartialEq)]
enum Lexeme<'a> {
    /// A name or keyword.
    Word(&'a str),
    /// A string, with its value unless that is uncertain.
    Text(Option<String>),
    /// A number as written.
    Number(&'a str),
    /// One character of an operator or bracket.
    Symbol(char),
}

/// An expression, as tokens.
pub(super) struct ScannedExpression<'a>(Vec<Lexeme<'a>>);

/// Names that are not variables.
const KEYWORDS: &[&str] = &["true", "false", "null", "in"];
/// Macros whose first arguments name new variables.
const BINDERS: &[&str] =
    &["all", "bind", "exists", "existsOne", "exists_one", "filter", "map", "transformList", "transformMap"];
/// Functions of the language whose result is never a boolean.
const NOT_BOOLEAN: &[&str] = &["bytes", "double", "duration", "int", "size", "string", "timestamp", "type", "uint"];
/// Variables that hold a text or number.
const VALUES: &[&str] = &["conn.ClientIP", "conn.Geo.CountryCode", "req.Method", "req.URL", "res.StatusCode"];

impl<'a> ScannedExpression<'a> {
    /// Reads an expression; `None` if a token is invalid or brackets do not pair up.
    pub(super) fn new(text: &'a str) -> Option<Self> {
        let tokens = read(text)?;
        let mut depth = 0_usize;
        for token in &tokens {
            match token {
                Lexeme::Symbol('(' | '[' | '{') => depth += 1,
                Lexeme::Symbol(')' | ']' | '}') => depth = depth.checked_sub(1)?,
                _ => {}
            }
        }
        (depth == 0).then_some(Self(tokens))
    }

    /// The names of variables: no fields, functions or types, and not the variables of macros.
    pub(super) fn variables(&self) -> BTreeSet<&'a str> {
        let mut names: BTreeSet<&'a str> = BTreeSet::new();
        let mut own: BTreeSet<&'a str> = BTreeSet::new();
        let mut is_field = false;
        let mut rest = self.0.as_slice();
        while let [token, next @ ..] = rest {
            if let Lexeme::Word(word) = token {
                let is_called = matches!(next.first(), Some(Lexeme::Symbol('(' | '{')));
                if is_field && is_called && BINDERS.contains(word) {
                    own.extend(bound(next));
                } else if !is_field && !is_called && !KEYWORDS.contains(word) {
                    names.insert(*word);
                }
            }
            is_field = matches!(token, Lexeme::Symbol('.'));
            rest = next;
        }
        names.difference(&own).copied().collect()
    }

    /// The values of all strings.
    pub(super) fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        for token in &self.0 {
            if let Lexeme::Text(Some(text)) = token {
                texts.push(text.as_str());
            }
        }
        texts
    }

    /// The patterns in calls of `matches`: `x.matches('…')` and `matches(x, '…')`.
    pub(super) fn patterns(&self) -> Vec<&str> {
        let mut found = Vec::new();
        // For each open bracket, whether it is a call of `matches`, and where its last argument starts.
        let mut open: Vec<(bool, usize)> = Vec::new();
        for (index, token) in self.0.iter().enumerate() {
            match token {
                Lexeme::Symbol('(' | '[' | '{') => {
                    let before = index.checked_sub(1).and_then(|before| self.0.get(before));
                    open.push((matches!(before, Some(Lexeme::Word("matches"))), index + 1));
                }
                Lexeme::Symbol(',') => {
                    if let Some((_, start)) = open.last_mut() {
                        *start = index + 1;
                    }
                }
                Lexeme::Symbol(')' | ']' | '}') => {
                    if let Some((true, start)) = open.pop()
                        && let Some([Lexeme::Text(Some(pattern))]) = self.0.get(start..index)
                    {
                        found.push(pattern.as_str());
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// What the expression yields, if that is certainly not a boolean.
    pub(super) fn not_boolean(&self) -> Option<&'static str> {
        let outer = self.outer();
        let Some((first, second)) = branches(&outer) else { return not_boolean(&outer) };
        match (not_boolean(first)?, not_boolean(second)?) {
            (one, other) if one == other => Some(one),
            _ => Some("a value of another type"),
        }
    }

    /// The value of an expression that is the same for every request: a literal, or a comparison of two.
    pub(super) fn constant(&self) -> Option<bool> {
        let mut tokens = self.0.as_slice();
        let mut is_negated = false;
        loop {
            match tokens {
                [Lexeme::Symbol('!'), rest @ ..] if is_operand(rest) => {
                    is_negated = !is_negated;
                    tokens = rest;
                }
                [Lexeme::Symbol('('), inner @ .., Lexeme::Symbol(')')] => tokens = inner,
                _ => break,
            }
        }
        let value = match tokens {
            [Lexeme::Word("true")] => true,
            [Lexeme::Word("false")] => false,
            [left, operator @ .., right] => {
                let order = compare(left, right)?;
                match operator {
                    [Lexeme::Symbol('='), Lexeme::Symbol('=')] => order.is_eq(),
                    [Lexeme::Symbol('!'), Lexeme::Symbol('=')] => order.is_ne(),
                    [Lexeme::Symbol('<')] => order.is_lt(),
                    [Lexeme::Symbol('<'), Lexeme::Symbol('=')] => order.is_le(),
                    [Lexeme::Symbol('>')] => order.is_gt(),
                    [Lexeme::Symbol('>'), Lexeme::Symbol('=')] => order.is_ge(),
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(value != is_negated)
    }

    /// The tokens outside all brackets, and the outermost brackets.
    fn outer(&self) -> Vec<&Lexeme<'a>> {
        let mut depth = 0_usize;
        let mut outer = Vec::new();
        for token in &self.0 {
            if matches!(token, Lexeme::Symbol(')' | ']' | '}')) {
                depth = depth.saturating_sub(1);
            }
            if depth == 0 {
                outer.push(token);
            }
            if matches!(token, Lexeme::Symbol('(' | '[' | '{')) {
                depth += 1;
            }
        }
        outer
    }
}

/// Whether `!` in front of these tokens applies to all of them.
fn is_operand(tokens: &[Lexeme<'_>]) -> bool {
    matches!(tokens, [_] | [Lexeme::Symbol('('), .., Lexeme::Symbol(')')] | [Lexeme::Symbol('!'), ..])
}

/// Compares two literals of one type. Numbers count only as plain integers.
fn compare(left: &Lexeme<'_>, right: &Lexeme<'_>) -> Option<Ordering> {
    match (left, right) {
        (Lexeme::Number(left), Lexeme::Number(right)) => {
            Some(left.parse::<i64>().ok()?.cmp(&right.parse::<i64>().ok()?))
        }
        (Lexeme::Text(Some(left)), Lexeme::Text(Some(right))) => Some(left.cmp(right)),
        _ => None,
    }
}

/// The two values of `condition ? a : b`; `None` if the expression is not exactly that.
fn branches<'t, 'a>(outer: &'t [&'t Lexeme<'a>]) -> Option<(&'t [&'t Lexeme<'a>], &'t [&'t Lexeme<'a>])> {
    let mut choice = outer.split(|token| matches!(token, Lexeme::Symbol('?')));
    let (condition, values, rest) = (choice.next()?, choice.next()?, choice.next());
    let mut values = values.split(|token| matches!(token, Lexeme::Symbol(':')));
    let (first, second, others) = (values.next()?, values.next()?, values.next());
    // `a.?b` selects an optional field.
    let is_choice = !matches!(condition.last(), None | Some(Lexeme::Symbol('.')));
    (is_choice && rest.is_none() && others.is_none()).then_some((first, second))
}

/// What tokens outside brackets yield, if that is certainly not a boolean.
fn not_boolean(outer: &[&Lexeme<'_>]) -> Option<&'static str> {
    if outer.iter().any(|token| decides(token)) {
        return None;
    }
    if outer.iter().any(|token| matches!(token, Lexeme::Symbol('+' | '-' | '*' | '/' | '%'))) {
        return Some("a number or text");
    }
    match outer {
        [Lexeme::Text(_)] => Some("a text"),
        [Lexeme::Number(_)] => Some("a number"),
        [Lexeme::Word("null")] => Some("null"),
        [Lexeme::Symbol('['), Lexeme::Symbol(']')] => Some("a list"),
        [Lexeme::Symbol('{'), Lexeme::Symbol('}')] => Some("a map"),
        [.., Lexeme::Word(function), Lexeme::Symbol('('), Lexeme::Symbol(')')] => {
            NOT_BOOLEAN.contains(function).then_some("a number or text")
        }
        path => {
            let name = joined(path)?;
            VALUES.contains(&name.as_str()).then_some("a number or text")
        }
    }
}

/// Whether a token makes the expression around it a comparison, a condition or a choice.
fn decides(token: &Lexeme<'_>) -> bool {
    matches!(token, Lexeme::Symbol('=' | '!' | '<' | '>' | '&' | '|' | '?') | Lexeme::Word("in"))
}

/// Joins names and dots, such as `req.Method`.
fn joined(path: &[&Lexeme<'_>]) -> Option<String> {
    let mut name = String::new();
    for token in path {
        match token {
            Lexeme::Word(word) => name.push_str(word),
            Lexeme::Symbol('.') => name.push('.'),
            _ => return None,
        }
    }
    Some(name)
}

/// The variables of a macro: the names before a comma, after the opening bracket.
fn bound<'a>(call: &[Lexeme<'a>]) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut rest = call.get(1..).unwrap_or_default();
    while let [Lexeme::Word(name), Lexeme::Symbol(','), next @ ..] = rest {
        names.push(*name);
        rest = next;
    }
    names
}

/// Reads the tokens; `None` if there is an invalid one.
fn read(text: &str) -> Option<Vec<Lexeme<'_>>> {
    let mut found = Vec::new();
    for token in CelTokens::new(text) {
        match token.ok()?.1 {
            CelToken::Symbol("in") => found.push(Lexeme::Word("in")),
            CelToken::Symbol(symbol) => found.extend(symbol.chars().map(Lexeme::Symbol)),
            CelToken::Word(word) => found.push(Lexeme::Word(word)),
            CelToken::Literal(text) if text.ends_with(['\'', '"']) => found.push(Lexeme::Text(string_value(text).ok())),
            CelToken::Literal(number) => found.push(Lexeme::Number(number)),
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(text: &str) -> Vec<&str> {
        ScannedExpression::new(text).map(|it| it.variables().into_iter().collect()).unwrap_or_default()
    }

    #[test]
    fn variables_are_no_fields_functions_or_arguments_of_macros() {
        assert_eq!(variables("rec.Method == 'req' && !(conn.ClientIP in ips)"), ["conn", "ips", "rec"]);
        assert_eq!(variables("req.Headers.all(h, h.startsWith('x')) || size(req.URL) > 1.5"), ["req"]);
        assert_eq!(variables("req.Headers.exists(k, v, k == v) // rem"), ["req"]);
        assert_eq!(variables("Msg{} == f(a)"), ["a"]);
    }

    #[test]
    fn strings_have_values_and_patterns_are_the_last_arguments_of_matches() {
        let text = r#"req.URL.matches('^/a\\d+') || matches(f(req.URL, 'x'), r"\d(") || x.matches(y + 'z')"#;
        let patterns = ScannedExpression::new(text).map(|it| it.patterns().concat());
        assert_eq!(patterns.as_deref(), Some(r"^/a\d+\d("));
        let text = r#"'it\'s' + """a"b""" + b'c' + '\u0041'"#;
        let texts = ScannedExpression::new(text).map(|it| it.texts().join("|"));
        assert_eq!(texts.as_deref(), Some(r#"it's|a"b|A"#));
        for unsure in ["'open", "(a", "a)", "'''a''"] {
            assert!(ScannedExpression::new(unsure).is_none(), "{unsure}");
        }
    }

    #[test]
    fn only_what_is_certain_is_not_a_boolean() {
        let not_boolean = |text: &str| ScannedExpression::new(text).and_then(|it| it.not_boolean());
        let values = "'GET'|42|null|['a'][0] + 1|[1, 2]|{'a': true}|req.Method|size(req.URL)|'a' + 'b'|req.URL.size()|-1\
             |a ? 'x' : 'y'|a == b ? 1 : 'y'|a ? [1] : {'b': 2}";
        for value in values.split('|') {
            assert!(not_boolean(value).is_some(), "{value}");
        }
        let conditions = "true;req.Method == 'GET';!a;a ? b : 2;a ? 1 : true;a ? b ? 1 : 2 : 3;{'a': 1}.?b ? 1 : a;f(a);req.URL.contains('+');a.b;(1 + 2);a[0];'a' in b;\
                          res.Ok;a || b";
        for condition in conditions.split(';') {
            assert_eq!(not_boolean(condition), None, "{condition}");
        }
    }

    #[test]
    fn only_an_expression_of_literals_is_constant() {
        let constant = |text: &str| ScannedExpression::new(text).and_then(|it| it.constant());
        for always in
            ["true", "!false", "(true)", "!(1 == 2)", "1 == 1", "2 >= 1", "'a' < 'b'", "!!true", "'a' != \"b\""]
        {
            assert_eq!(constant(always), Some(true), "{always}");
        }
        for never in ["false", "!true", "1 == 2", "('a' == 'b')", "1 > 2", "!(true) // off"] {
            assert_eq!(constant(never), Some(false), "{never}");
        }
        for unsure in
            ["", "a", "!a", "1 == 1.0", "1 == 'a'", "a == 1", "true || a", "(true) && (a)", "!(true) || (a)", "1 + 1"]
        {
            assert_eq!(constant(unsure), None, "{unsure}");
        }
    }
}
