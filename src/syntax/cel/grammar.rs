//! A syntax check for CEL (<https://github.com/google/cel-spec>, `langdef.md`). Precedence does not affect validity, so
//! one pass with a stack of open brackets is enough and needs no recursion. Doubtful cases (reserved words, escapes in
//! strings, the optional syntax) are accepted, so that valid expressions never raise a warning.

use super::{
    error::CelError,
    token::{CelToken, CelTokens},
};

/// An open construct.
#[derive(Clone, Copy, PartialEq)]
enum OpenBracket {
    /// `( … )` around an expression.
    Group,
    /// Call arguments.
    Call,
    /// A list.
    List,
    /// An index after an operand.
    Index,
    /// A map or message, before the colon of an entry.
    Key,
    /// A map or message, after the colon of an entry.
    Value,
    /// A `?` without its `:` yet.
    Choice,
}

/// Binary operators. `-` can also be a sign, which [`step`] handles first.
const BETWEEN: &[&str] = &["==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "in"];

/// Checks the syntax of an expression.
pub(crate) fn check(text: &str) -> Result<(), CelError> {
    let mut open = Vec::new();
    let mut complete = false;
    let mut before = None;
    for token in CelTokens::new(text) {
        let (at, token) = token?;
        complete = step(&mut open, complete, before, token).ok_or_else(|| match before {
            Some(before) => CelError::new(at, format!("unexpected {token} after {before}")),
            None => CelError::new(at, format!("unexpected {token} at the start")),
        })?;
        before = Some(token);
    }
    let at_end = |message: String| Err(CelError::new(text.len(), message));
    match (before, open.last()) {
        (None, _) => at_end("the expression is empty".into()),
        (Some(last), _) if !complete => at_end(format!("an operand is missing after {last}")),
        (_, Some(OpenBracket::Choice)) => at_end("`?` without `:`".into()),
        (_, Some(_)) => at_end("unclosed bracket".into()),
        (_, None) => Ok(()),
    }
}

/// Consumes one token. Returns whether the expression so far could end here, or `None` if the token is unexpected.
fn step(
    open: &mut Vec<OpenBracket>,
    complete: bool,
    before: Option<CelToken<'_>>,
    token: CelToken<'_>,
) -> Option<bool> {
    use OpenBracket::{Call, Choice, Group, Index, Key, List, Value};
    let after = |symbols: &[&str]| matches!(before, Some(CelToken::Symbol(it)) if symbols.contains(&it));
    let after_word = matches!(before, Some(CelToken::Word(_)));
    let selects = after(&[".", ".?"]);
    let CelToken::Symbol(symbol) = token else {
        // Only a name can follow a dot.
        let fits = !complete && (!selects || matches!(token, CelToken::Word(_)));
        return fits.then_some(true);
    };
    if selects {
        return None;
    }
    // Whether the token closes a construct, which one it opens, and whether an operand is complete after it.
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
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let bad =
            "||  |// only|!(a in ['b']|a &&|&& a|a b|a..b|f(a,)|a ? b|a : b|{a}|[,]|'open|a = b|a)|(|a[]|1(2)|a.'b'|#";
        for bad in bad.split('|') {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_error_has_its_place() {
        for (text, at) in [("a == ü && )", 5), ("a && )", 5), ("a && 'x", 5), ("a &&", 4), ("(a", 2), ("", 0)] {
            assert_eq!(check(text).err().map(|error| error.at), Some(at), "{text}");
        }
    }
}
