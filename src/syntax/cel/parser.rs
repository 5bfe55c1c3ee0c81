//! The parser of expressions, with bounds on their length and depth.

use regex::RegexBuilder;

use super::{
    error::CelError,
    function::{self, CelFold},
    grammar,
    literal::literal,
    node::{CelExpr, CelNode, MOST_DEPTH, OBJ, bounded, build, too_deep},
    operator::{CelOperator, LEVELS},
    token::{CelToken, CelTokens},
};
use crate::syntax::text::printable;

/// The longest expression, in bytes.
const MOST_BYTES: usize = 4096;
/// The largest compiled pattern, in bytes: matching takes time in proportion to it.
const MOST_PATTERN_BYTES: usize = 256 << 10;
/// The most patterns, as compiling one takes time and memory.
const MOST_PATTERNS: usize = 8;

/// How much of the language the parser accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CelExtent {
    /// The subset that filters can evaluate.
    Filter,
    /// Everything.
    Whole,
}

/// Parses an expression of the whole language. Functions are only names, and patterns are not compiled.
pub(crate) fn parse_whole(text: &str) -> Result<CelExpr, CelError> {
    grammar::check(text)?;
    let tokens = CelTokens::new(text).collect::<Result<Vec<_>, CelError>>()?;
    CelParser { tokens, next: 0, end: text.len(), nesting: 0, extent: CelExtent::Whole }.all()
}

/// Parses a filter.
pub(super) fn parse(text: &str) -> Result<CelExpr, CelError> {
    if text.len() > MOST_BYTES {
        return Err(CelError::new(MOST_BYTES, format!("the expression is longer than {MOST_BYTES} bytes")));
    }
    grammar::check(text)?;
    let tokens = CelTokens::new(text).collect::<Result<Vec<_>, CelError>>()?;
    let mut patterns = tokens.iter().filter(|(_, token)| *token == CelToken::Word("matches"));
    if let Some((at, _)) = patterns.nth(MOST_PATTERNS) {
        return Err(CelError::new(*at, format!("more than {MOST_PATTERNS} calls of `matches`")));
    }
    CelParser { tokens, next: 0, end: text.len(), nesting: 0, extent: CelExtent::Filter }.all()
}

struct CelParser<'a> {
    tokens: Vec<(usize, CelToken<'a>)>,
    next: usize,
    end: usize,
    nesting: usize,
    extent: CelExtent,
}

type ParseResult = Result<CelExpr, CelError>;

impl<'a> CelParser<'a> {
    fn all(mut self) -> ParseResult {
        let root = self.choice()?;
        match self.peek() {
            None => Ok(root),
            Some(_) => Err(self.unsupported()),
        }
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

    fn expect(&mut self, symbol: &str) -> Result<(), CelError> {
        match self.symbol(&[symbol]) {
            Some(_) => Ok(()),
            None => Err(self.unsupported()),
        }
    }

    /// The error for a valid token that filters have no use for.
    fn unsupported(&self) -> CelError {
        match self.peek() {
            Some((at, token)) => CelError::new(at, format!("{token} is not supported in a filter")),
            None => CelError::new(self.end, "the expression is incomplete"),
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
            parser.expect(":")?;
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
                let Some((at, CelToken::Word(name))) = self.peek() else { return Err(self.unsupported()) };
                self.next += 1;
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
                self.expect("]")?;
                let node = match is_optional {
                    true => CelNode::Opaque(vec![value, index]),
                    false => CelNode::Index(Box::new(value), Box::new(index)),
                };
                value = build(at, node)?;
            } else if let Some((at, _)) = self.foreign_symbol(&[".?"]) {
                // The name of the field.
                self.next += 1;
                value = build(at, CelNode::Opaque(vec![value]))?;
            } else if let Some((at, _)) = self.foreign_symbol(&["{"]) {
                // The value so far is the name of a message.
                let entries = self.entries(at)?;
                // The keys are the names of fields, not variables.
                let values = entries.into_iter().skip(1).step_by(2).collect();
                value = build(at, CelNode::Opaque(values))?;
            } else {
                return Ok(value);
            }
        }
    }

    fn primary(&mut self) -> ParseResult {
        let Some((at, token)) = self.peek() else { return Err(self.unsupported()) };
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
                self.expect(")")?;
                Ok(inner)
            }
            CelToken::Symbol("[") => {
                self.next += 1;
                let items = self.items(at, "]")?;
                build(at, CelNode::List(items))
            }
            CelToken::Symbol("{") if self.extent == CelExtent::Whole => {
                self.next += 1;
                let entries = self.entries(at)?;
                build(at, CelNode::Map(entries))
            }
            CelToken::Symbol(".") if self.extent == CelExtent::Whole => {
                self.next += 1;
                // A name from the root namespace is not the variable of that name.
                match self.primary()? {
                    CelExpr { node: CelNode::Name(_), .. } => build(at, CelNode::Opaque(Vec::new())),
                    other => Ok(other),
                }
            }
            CelToken::Symbol(_) => Err(self.unsupported()),
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

    /// Parses the rest of a map or message, to its keys and values.
    fn entries(&mut self, at: usize) -> Result<Vec<CelExpr>, CelError> {
        self.nested(at, |parser| {
            let mut parts = Vec::new();
            while parser.symbol(&["}"]).is_none() {
                // The comma after the last entry is optional.
                parser.symbol(&[","]);
                if parser.symbol(&["}"]).is_some() {
                    break;
                }
                parser.symbol(&["?"]);
                parts.push(parser.choice()?);
                parser.expect(":")?;
                parts.push(parser.choice()?);
            }
            Ok(parts)
        })
    }

    /// Parses the rest of a list.
    fn items(&mut self, at: usize, close: &str) -> Result<Vec<CelExpr>, CelError> {
        self.nested(at, |parser| {
            let mut items = Vec::new();
            while parser.symbol(&[close]).is_none() {
                if !items.is_empty() {
                    parser.expect(",")?;
                    if parser.symbol(&[close]).is_some() {
                        break;
                    }
                }
                parser.foreign_symbol(&["?"]);
                items.push(parser.choice()?);
            }
            Ok(items)
        })
    }
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
    let function = function::find(name, receiver.is_some(), arguments.len());
    let function = function.map_err(|error| match error {
        None => {
            let message = format!("unknown function `{}`", printable(name));
            CelError::unknown(at, message, name, function::names())
        }
        Some(usage) => CelError::new(at, format!("use `{name}` as `{usage}`")),
    })?;
    build(at, CelNode::Call(function, receiver.into_iter().chain(arguments).collect()))
}
