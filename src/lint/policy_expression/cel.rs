//! The grammar of CEL (<https://github.com/google/cel-spec>, `langdef.md`), as far as telling whether a text follows
//! it. Precedence makes no difference to that, so one pass with a stack of what is open does it: no recursion, and
//! what is doubtful (reserved words, escapes inside of texts, the optional syntax) counts as good.

mod token;

use token::{Token, Tokens};

/// What was opened and waits for its end.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    /// `( … )` around an expression.
    Group,
    /// The arguments of a call.
    Call,
    /// A list.
    List,
    /// The index behind an operand.
    Index,
    /// A mapping or message, where a key is to come or just came.
    Key,
    /// The same behind the colon.
    Value,
    /// A `?` that waits for its `:`.
    Choice,
}

/// Operators between two operands; `-` is one, too, and stands apart because it can also be a sign.
const BETWEEN: &[&str] = &["==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "in"];

/// Says what keeps a text from being an expression, if anything does.
pub fn parse(text: &str) -> Result<(), String> {
    let mut open = Vec::new();
    let mut complete = false;
    let mut before = None;
    for token in Tokens::new(text) {
        let token = token?;
        complete = step(&mut open, complete, before, token).ok_or_else(|| match before {
            Some(before) => format!("{token} cannot stand after {before}"),
            None => format!("{token} cannot stand at its start"),
        })?;
        before = Some(token);
    }
    match (before, open.last()) {
        (None, _) => Err("it is empty".into()),
        (Some(last), _) if !complete => Err(format!("something is missing after {last}")),
        (_, Some(Open::Choice)) => Err("a `?` has no `:`".into()),
        (_, Some(_)) => Err("a bracket is not closed".into()),
        (_, None) => Ok(()),
    }
}

/// Takes one token, and tells whether what stands there is then complete; nothing if the token has no place there.
fn step(open: &mut Vec<Open>, complete: bool, before: Option<Token<'_>>, token: Token<'_>) -> Option<bool> {
    use Open::{Call, Choice, Group, Index, Key, List, Value};
    let after = |symbols: &[&str]| matches!(before, Some(Token::Symbol(it)) if symbols.contains(&it));
    let after_word = matches!(before, Some(Token::Word(_)));
    let selects = after(&[".", ".?"]);
    let Token::Symbol(symbol) = token else {
        // Behind a dot only a name can come.
        let fits = !complete && (!selects || matches!(token, Token::Word(_)));
        return fits.then_some(true);
    };
    if selects {
        return None;
    }
    // What is closed, what is opened, and whether an operand is then complete.
    let (closes, opens, complete) = match (symbol, complete, open.last()) {
        ("(", false, _) => (false, Some(Group), false),
        ("(", true, _) if after_word => (false, Some(Call), false),
        ("[", false, _) => (false, Some(List), false),
        ("[", true, _) => (false, Some(Index), false),
        ("{", false, _) => (false, Some(Key), false),
        ("{", true, _) if after_word => (false, Some(Key), false),
        (")", true, Some(Group | Call)) | ("]", true, Some(List | Index)) | ("}", true, Some(Value)) => {
            (true, None, true)
        }
        (")", false, Some(Call)) if after(&["("]) => (true, None, true),
        ("]", false, Some(List)) if after(&["[", ","]) => (true, None, true),
        ("}", false, Some(Key)) if after(&["{", ","]) => (true, None, true),
        (",", true, Some(Call | List)) => (false, None, false),
        (",", true, Some(Value)) => (true, Some(Key), false),
        (":", true, Some(Key)) => (true, Some(Value), false),
        (":", true, Some(Choice)) => (true, None, false),
        ("?", true, _) => (false, Some(Choice), false),
        ("?", false, _) if after(&["[", "{", ","]) => (false, None, false),
        ("!" | "-", false, _) | (".", _, _) | (".?", true, _) => (false, None, false),
        (between, true, _) if BETWEEN.contains(&between) => (false, None, false),
        _ => return None,
    };
    if closes {
        open.pop();
    }
    open.extend(opens);
    Some(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_follow_the_grammar() {
        let good = r#"true
            !(req.Method in ['GET', 'HEAD'])
            res.StatusCode >= 500 && -x.y[0].z != .5e-3 || conn.ClientIP.startsWith('198.51.100.')
            a ? b : c ? {'k': d ? 1 : 2, } : [1u, 0xFF,]
            has(a.b) && xs.all(x, x > f()) && pkg.Msg{field: 1} // end
            .a.?b[?c] == r"\" || 'it\'s' + b"x" + """a"b""" != a - -1"#;
        for good in good.lines() {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        let bad =
            "||  |// only|!(a in ['b']|a &&|&& a|a b|a..b|f(a,)|a ? b|a : b|{a}|[,]|'open|a = b|a)|(|a[]|1(2)|a.'b'|#";
        for bad in bad.split('|') {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
