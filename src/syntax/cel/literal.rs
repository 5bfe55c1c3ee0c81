//! String and number literals.

use super::node::CelNode;

/// Reads a literal as it is written.
pub(super) fn literal(text: &str) -> Result<CelNode, String> {
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        number(text)
    } else {
        string_value(text).map(CelNode::Text)
    }
}

fn number(text: &str) -> Result<CelNode, String> {
    let digits = text.trim_end_matches(['u', 'U']);
    let out_of_range = || "the number is out of range".to_owned();
    if let Some(hex) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).map(CelNode::Int).map_err(|_| out_of_range());
    }
    if digits.contains(['.', 'e', 'E']) {
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        return number.map(CelNode::Double).ok_or_else(out_of_range);
    }
    digits.parse().map(CelNode::Int).map_err(|_| out_of_range())
}

/// Returns the value of a string literal.
fn string_value(text: &str) -> Result<String, String> {
    let quoted = text.trim_start_matches(['r', 'R', 'b', 'B']);
    let prefix = text.strip_suffix(quoted).unwrap_or_default();
    if prefix.contains(['b', 'B']) {
        return Err("bytes are not supported".into());
    }
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let inner = quotes.iter().find_map(|quote| quoted.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or_default();
    if prefix.is_empty() { unescaped(inner) } else { Ok(inner.to_owned()) }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        let escape = rest.next().unwrap_or_default();
        let c = match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '?' | '"' | '\'' | '`' => escape,
            'x' | 'X' => coded(&mut rest, String::new(), 2, 16)?,
            'u' => coded(&mut rest, String::new(), 4, 16)?,
            'U' => coded(&mut rest, String::new(), 8, 16)?,
            '0'..='3' => coded(&mut rest, escape.to_string(), 2, 8)?,
            _ => return Err(unknown_escape()),
        };
        plain.push(c);
    }
    Ok(plain)
}

/// Reads the rest of an escape with a code point.
fn coded(rest: &mut std::str::Chars<'_>, mut digits: String, count: usize, radix: u32) -> Result<char, String> {
    let all = digits.len() + count;
    digits.extend(rest.by_ref().take(count));
    if digits.len() != all {
        return Err(unknown_escape());
    }
    // A sign would be read too.
    let code = u32::from_str_radix(&digits, radix).ok().filter(|_| digits.chars().all(|c| c.is_digit(radix)));
    code.and_then(char::from_u32).ok_or_else(unknown_escape)
}

fn unknown_escape() -> String {
    "unknown escape in a string; use `\\\\` for a backslash, or a raw string such as `r\"\\d\"`".into()
}
