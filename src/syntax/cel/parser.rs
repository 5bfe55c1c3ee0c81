//! The parser of expressions (<https://github.com/google/cel-spec>, `langdef.md`), with bounds on their length and depth.

use regex::RegexBuilder;

use super::error::CelError;
use super::function::{self, CelFold};
use super::literal::literal;
use super::node::{CelExpr, CelNode, MOST_DEPTH, OBJ, bounded, build, too_deep};
use super::operator::{CelOperator, LEVELS};
use super::token::{CelToken, CelTokens};
use crate::syntax::text::printable;

/// The longest expression, in bytes.
const MOST_BYTES: usize = 4096;
/// The largest compiled pattern, in bytes: matching takes time in proportion to it.
const MOST_PATTERN_BYTES: usize = 256 << 10;
/// The most patterns, as compiling one takes time and memory.
const MOST_PATTERNS: usize = 8;
/// The error at the end of a text with an open bracket.
const UNCLOSED: &str = "unclosed bracket";

/// How much of the language the parser accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CelExtent {
    /// The subset that filters can evaluate.
    Filter,
    /// Everything.
    Whole,
}

/// Checks the syntax of an expression of the whole language. Doubtful cases (reserved words, escapes in strings, the
/// optional syntax) are accepted, so that valid expressions never raise a warning. So is one that is nested deeper than
/// [`MOST_DEPTH`]: the parser stops at that place, and nothing behind it is checked.
pub(crate) fn check(text: &str) -> Result<(), CelError> {
    match parse_whole(text) {
        Err(error) if !error.is_too_deep => Err(error),
        _ => Ok(()),
    }
}

/// Parses an expression of the whole language. Functions are only names, and patterns are not compiled.
pub(crate) fn parse_whole(text: &str) -> ParseResult {
    CelParser::new(text, CelExtent::Whole).all()
}

/// Parses a filter.
pub(super) fn parse(text: &str) -> ParseResult {
    if text.len() > MOST_BYTES {
        return Err(CelError::new(MOST_BYTES, format!("the expression is longer than {MOST_BYTES} bytes")));
    }
    let parser = CelParser::new(text, CelExtent::Filter);
    let mut patterns = parser.tokens.iter().filter(|(_, token)| *token == CelToken::Word("matches"));
    if let Some((at, _)) = patterns.nth(MOST_PATTERNS) {
        return Err(CelError::new(*at, format!("more than {MOST_PATTERNS} calls of `matches`")));
    }
    parser.all()
}

struct CelParser<'a> {
    tokens: Vec<(usize, CelToken<'a>)>,
    /// The error after the tokens, if the text has an invalid one.
    broken: Option<CelError>,
    next: usize,
    end: usize,
    nesting: usize,
    extent: CelExtent,
}

type ParseResult = Result<CelExpr, CelError>;

impl<'a> CelParser<'a> {
    fn new(text: &'a str, extent: CelExtent) -> Self {
        let mut broken = None;
        let tokens = CelTokens::new(text).map_while(|token| token.map_err(|error| broken = Some(error)).ok()).collect();
        Self { tokens, broken, next: 0, end: text.len(), nesting: 0, extent }
    }

    fn all(mut self) -> ParseResult {
        let root = self.choice()?;
        if self.peek().is_none() && self.broken.is_none() { Ok(root) } else { Err(self.unexpected(None)) }
    }

    fn peek(&self) -> Option<(usize, CelToken<'a>)> {
        self.tokens.get(self.next).copied()
    }

    /// Takes the next token if it is one of these symbols.
    fn symbol(&mut self, known: &[&str]) -> Option<(usize, &'a str)> {
        match self.peek() {
            Some((at, CelToken::Symbol(symbol))) if known.contains(&symbol) => {
                self.next += 1;
                Some((at, symbol))
            }
            _ => None,
        }
    }

    /// Like [`Self::symbol`], for symbols that filters do not support.
    fn foreign_symbol(&mut self, known: &[&str]) -> Option<(usize, &'a str)> {
        if self.extent == CelExtent::Whole { self.symbol(known) } else { None }
    }

    /// Takes a symbol; at the end of the text, `missing` says what is wrong.
    fn expect(&mut self, symbol: &str, missing: &str) -> Result<(), CelError> {
        self.symbol(&[symbol]).map(|_| ()).ok_or_else(|| self.unexpected(Some(missing)))
    }

    /// Takes a name after a dot.
    fn name(&mut self) -> Result<(usize, &'a str), CelError> {
        let Some((at, CelToken::Word(name))) = self.peek() else { return Err(self.unexpected(None)) };
        self.next += 1;
        Ok((at, name))
    }

    fn before(&self) -> Option<CelToken<'a>> {
        self.next.checked_sub(1).and_then(|before| self.tokens.get(before)).map(|(_, token)| *token)
    }

    /// The error for the next token. At the end of the text, `missing` or an operand is missing.
    fn unexpected(&self, missing: Option<&str>) -> CelError {
        let is_foreign = |token| matches!(token, CelToken::Symbol("{" | ".?")) && self.extent == CelExtent::Filter;
        match (self.peek(), &self.broken, self.before()) {
            (Some((at, token)), ..) if is_foreign(token) => unsupported(at, token),
            (Some((at, token)), _, Some(before)) => {
                let operator = match token {
                    CelToken::Word("and" | "AND") => ": use `&&`",
                    CelToken::Word("or" | "OR") => ": use `||`",
                    _ => "",
                };
                CelError::new(at, format!("unexpected {token} after {before}{operator}"))
            }
            (Some((at, token)), _, None) => CelError::new(at, format!("unexpected {token} at the start")),
            (None, Some(broken), _) => broken.clone(),
            (None, None, None) => CelError::new(self.end, "the expression is empty"),
            (None, None, Some(last)) => {
                let missing = missing.map_or_else(|| format!("an operand is missing after {last}"), str::to_owned);
                CelError::new(self.end, missing)
            }
        }
    }

    fn nested<T>(&mut self, at: usize, parse: impl FnOnce(&mut Self) -> Result<T, CelError>) -> Result<T, CelError> {
        if self.nesting >= MOST_DEPTH {
            return Err(too_deep(at));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn choice(&mut self) -> ParseResult {
        let condition = self.binary(0)?;
        let Some((at, _)) = self.symbol(&["?"]) else { return Ok(condition) };
        self.nested(at, |parser| {
            let yes = parser.choice()?;
            parser.expect(":", "`?` without `:`")?;
            let no = parser.choice()?;
            build(at, CelNode::Choice(Box::new([condition, yes, no])))
        })
    }

    fn binary(&mut self, level: usize) -> ParseResult {
        let Some(symbols) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some((at, symbol)) = self.symbol(symbols) {
            let right = self.binary(level + 1)?;
            left = join(at, symbol, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> ParseResult {
        let Some((at, symbol)) = self.symbol(&["!", "-"]) else { return self.member() };
        self.nested(at, |parser| {
            let operand = Box::new(parser.unary()?);
            build(at, if symbol == "!" { CelNode::Not(operand) } else { CelNode::Negate(operand) })
        })
    }

    fn member(&mut self) -> ParseResult {
        let mut value = self.primary()?;
        loop {
            if self.symbol(&["."]).is_some() {
                let (at, name) = self.name()?;
                value = match self.symbol(&["("]) {
                    Some((open, _)) => {
                        let arguments = self.items(open, ")")?;
                        self.call(at, name, Some(value), arguments)?
                    }
                    None => build(at, CelNode::Field(Box::new(value), unquoted(name)))?,
                };
            } else if let Some((at, _)) = self.symbol(&["["]) {
                let is_optional = self.foreign_symbol(&["?"]).is_some();
                let index = self.nested(at, |parser| parser.choice())?;
                self.expect("]", UNCLOSED)?;
                let node = match is_optional {
                    true => CelNode::Opaque(vec![value, index]),
                    false => CelNode::Index(Box::new(value), Box::new(index)),
                };
                value = build(at, node)?;
            } else if let Some((at, _)) = self.foreign_symbol(&[".?"]) {
                self.name()?;
                value = build(at, CelNode::Opaque(vec![value]))?;
            } else if matches!(self.before(), Some(CelToken::Word(_)))
                && let Some((at, _)) = self.foreign_symbol(&["{"])
            {
                // The value so far is the name of a message.
                let entries = self.items(at, "}")?;
                // The keys are the names of fields, not variables.
                let values = entries.into_iter().skip(1).step_by(2).collect();
                value = build(at, CelNode::Opaque(values))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> ParseResult {
        let Some((at, token)) = self.peek() else { return Err(self.unexpected(None)) };
        match token {
            CelToken::Literal(text) => {
                self.next += 1;
                match literal(text) {
                    // Bytes, for example.
                    Err(_) if self.extent == CelExtent::Whole => build(at, CelNode::Opaque(Vec::new())),
                    read => build(at, read.map_err(|message| CelError::new(at, message))?),
                }
            }
            CelToken::Word(word) => {
                self.next += 1;
                if let Some((open, _)) = self.symbol(&["("]) {
                    let arguments = self.items(open, ")")?;
                    return self.call(at, word, None, arguments);
                }
                let node = match word {
                    "true" => CelNode::Bool(true),
                    "false" => CelNode::Bool(false),
                    "null" => CelNode::Null,
                    _ => CelNode::Name(unquoted(word)),
                };
                build(at, node)
            }
            CelToken::Symbol("(") => {
                self.next += 1;
                let inner = self.nested(at, |parser| parser.choice())?;
                self.expect(")", UNCLOSED)?;
                Ok(inner)
            }
            CelToken::Symbol("[") => {
                self.next += 1;
                let items = self.items(at, "]")?;
                build(at, CelNode::List(items))
            }
            CelToken::Symbol("{") if self.extent == CelExtent::Whole => {
                self.next += 1;
                let entries = self.items(at, "}")?;
                build(at, CelNode::Map(entries))
            }
            CelToken::Symbol(".") if self.extent == CelExtent::Whole => {
                self.next += 1;
                let Some((_, CelToken::Word(_))) = self.peek() else { return Err(self.unexpected(None)) };
                // A name from the root namespace is not the variable of that name.
                match self.primary()? {
                    CelExpr { node: CelNode::Name(_), .. } => build(at, CelNode::Opaque(Vec::new())),
                    other => Ok(other),
                }
            }
            CelToken::Symbol("." | "?") if self.extent == CelExtent::Filter => Err(unsupported(at, token)),
            CelToken::Symbol(_) => Err(self.unexpected(None)),
        }
    }

    fn call(&self, at: usize, name: &str, receiver: Option<CelExpr>, arguments: Vec<CelExpr>) -> ParseResult {
        if self.extent == CelExtent::Filter {
            return call(at, name, receiver, arguments);
        }
        let has_receiver = receiver.is_some();
        let arguments = receiver.into_iter().chain(arguments).collect();
        build(at, CelNode::Foreign { name: unquoted(name), has_receiver, arguments })
    }

    /// Parses the rest of a list or of arguments, to its items, or that of a map or message, to its keys and values.
    fn items(&mut self, at: usize, close: &str) -> Result<Vec<CelExpr>, CelError> {
        self.nested(at, |parser| {
            let mut items = Vec::new();
            while parser.symbol(&[close]).is_none() {
                if !items.is_empty() {
                    parser.expect(",", UNCLOSED)?;
                    // Arguments cannot end with a comma.
                    if close != ")" && parser.symbol(&[close]).is_some() {
                        break;
                    }
                }
                parser.foreign_symbol(&["?"]);
                items.push(parser.choice()?);
                if close == "}" {
                    parser.expect(":", UNCLOSED)?;
                    items.push(parser.choice()?);
                }
            }
            Ok(items)
        })
    }
}

/// The error for a valid token that filters have no use for.
fn unsupported(at: usize, token: CelToken<'_>) -> CelError {
    CelError::new(at, format!("{token} is not supported in a filter"))
}

/// Joins two operands; a chain of one logical operator becomes one node.
fn join(at: usize, symbol: &str, left: CelExpr, right: CelExpr) -> ParseResult {
    let Some(operator) = CelOperator::from_symbol(symbol) else {
        let any = symbol == "||";
        // The depth is not computed from all parts again, so that a long chain takes linear time.
        let deepest = left.depth.max(right.depth + 1);
        return match left {
            CelExpr { at, node: CelNode::Logic { any: same, mut parts }, .. } if same == any => {
                parts.push(right);
                bounded(CelExpr { at, depth: deepest, node: CelNode::Logic { any, parts } })
            }
            other => build(at, CelNode::Logic { any, parts: vec![other, right] }),
        };
    };
    build(at, CelNode::Binary(operator, Box::new(left), Box::new(right)))
}

/// Names can be quoted in backticks.
fn unquoted(name: &str) -> String {
    name.trim_matches('`').to_owned()
}

fn call(at: usize, name: &str, receiver: Option<CelExpr>, arguments: Vec<CelExpr>) -> ParseResult {
    let wrong = |usage: &str| Err(CelError::new(at, format!("use `{name}` as `{usage}`")));
    if name == "has" && receiver.is_none() {
        let only = <[CelExpr; 1]>::try_from(arguments).map(|[only]| only.node);
        return match only {
            Ok(CelNode::Field(of, field)) => build(at, CelNode::Has(of, field)),
            _ => wrong("has(obj.field)"),
        };
    }
    if name == "matches" {
        let both = <[CelExpr; 2]>::try_from(receiver.into_iter().chain(arguments).collect::<Vec<_>>());
        return match both {
            Ok([text, CelExpr { at: place, node: CelNode::Text(pattern), .. }]) => {
                let pattern = RegexBuilder::new(&pattern).size_limit(MOST_PATTERN_BYTES).build().map_err(|error| {
                    let reason = match error {
                        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
                        // The last line says what is wrong; the others draw the pattern.
                        other => printable(other.to_string().lines().last().unwrap_or_default().trim()),
                    };
                    CelError::new(place, format!("invalid pattern: {reason}"))
                })?;
                build(at, CelNode::Matches(Box::new(text), Box::new(pattern)))
            }
            _ => wrong("text.matches('pattern')"),
        };
    }
    if let (Some(fold), true) = (CelFold::from_name(name), receiver.is_some()) {
        let mut arguments = arguments.into_iter();
        let variable = match arguments.next().map(|first| first.node) {
            Some(CelNode::Name(variable)) if variable != OBJ => variable,
            _ => return wrong(fold.usage()),
        };
        let body: Vec<CelExpr> = arguments.collect();
        return match receiver {
            Some(list) if fold.takes(body.len()) => {
                build(at, CelNode::Fold { fold, list: Box::new(list), variable, body })
            }
            _ => wrong(fold.usage()),
        };
    }
    match function::find(name, receiver.is_some(), arguments.len()) {
        Ok(function) => build(at, CelNode::Call(function, receiver.into_iter().chain(arguments).collect())),
        Err(Some(usage)) => wrong(usage),
        Err(None) => {
            let message = format!("unknown function `{}`", printable(name));
            Err(CelError::unknown(at, message, name, function::names()))
        }
    }
}
