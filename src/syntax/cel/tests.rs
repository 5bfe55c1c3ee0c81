//! Expressions over a small item: what holds, what is refused and where, and what it costs.

use std::{cell::Cell, sync::Arc};

use serde_json::{Value, json};

use super::*;

fn shape() -> CelShape {
    let object = |fields: &[(&str, CelShape)]| {
        let fields = fields.iter().map(|(name, shape)| ((*name).to_owned(), shape.clone()));
        CelShape::Object(Arc::new(fields.collect()))
    };
    let list = |item: CelShape| CelShape::List(Arc::new(item));
    object(&[
        ("id", CelShape::Text),
        ("description", CelShape::Text),
        ("created_at", CelShape::Text),
        ("count", CelShape::Number),
        ("rate", CelShape::Number),
        ("enforced", CelShape::Bool),
        ("hostports", list(CelShape::Text)),
        ("headers", CelShape::Map(Arc::new(CelShape::Text))),
        ("login", object(&[("issuer", CelShape::Text)])),
        ("config", CelShape::Any),
        ("routes", list(object(&[("match", CelShape::Text), ("login", CelShape::Any)]))),
    ])
}

fn item() -> Value {
    json!({
        "id": "x_1",
        "description": "Größe L",
        "created_at": "2026-03-01T09:30:00Z",
        "count": 7,
        "rate": 0.5,
        "enforced": true,
        "hostports": ["a.example.com:443", "b.example.com:443"],
        "headers": {"X-Team": "shop"},
        "login": null,
        "config": {"deep": [1, {"x": 2}]},
        "routes": [{"match": "/", "login": null}, {"match": "/cart", "login": {"issuer": "a"}}],
    })
}

fn never() -> bool {
    false
}

fn holds(text: &str) -> Result<bool, CelError> {
    let meter = CelMeter::new(10_000_000, &never);
    CelExpression::parse(text, &shape())?.holds(&item(), &meter)
}

#[test]
fn conditions_hold_or_not() {
    let true_ones = r#"obj.description == "Größe L" && obj.created_at > timestamp("2026-01-01T00:00:00Z")
        timestamp(obj.created_at) - duration("36h") < timestamp("2026-02-28T00:00:00+01:00")
        timestamp(obj.created_at) - timestamp("2026-03-01T09:00:00Z") == duration("1h") - duration("30m")
        obj.created_at in [timestamp("2026-03-01T09:30:00Z")]
        obj.created_at < timestamp("9999-12-31T23:59:59Z") && timestamp("9999-12-31T23:59:59Z") == timestamp("9999-12-31T00:00:00+01:00")
        "b.example.com:443" in obj.hostports && !("c" in obj.hostports) && "X-Team" in obj.headers
        obj.hostports.exists(h, h.startsWith("b.")) && obj.hostports.all(h, h.endsWith(":443"))
        obj.hostports.exists_one(h, h.matches(r"^a\.\w+")) && matches(obj.id, '^x_\\d$')
        obj.hostports.filter(h, h.contains('b.')).size() == 1 && size(obj.description) == 7
        obj.hostports.map(h, h.lowerAscii() == h, size(h)) == [17, 17] && obj.hostports + ['c'] != obj.hostports
        obj.routes.exists(r, r.login != null && r.login.issuer == 'a') && obj.routes[1]["match"] == "/cart"
        obj.headers['X-Team'] == 'shop' && obj.headers == obj.headers && has(obj.headers.`X-Team`)
        obj.login == null && !has(obj.login) && !has(obj.login.issuer) && has(obj.count)
        obj.count * 2 - 1 == 13 && obj.count % 4 == 3 && -obj.count < 0 && obj.count / 2 == 3 && obj.rate < 1
        obj.config.deep[1].x == 2 && obj.config.deep == [1, obj.config.deep[1]]
        obj.enforced ? obj.count >= 7 : false
        true || obj.login.issuer == 'x'
        obj.login.issuer == 'x' || true
        !(obj.login.issuer == 'x' && false)
        string(obj.count) == '7' && int('7') == obj.count && double(obj.count) == 7.0 && 0x1F == 31
        'a\x62\u0063\103' == "abcC" && r'\d' == '\\d' && """a"b""" == 'a"b' // the end
        obj.rate + 1 == 1.5 && obj.count != 8u && obj.id < 'y'
        [1, 2].exists(a, [2, 3].exists(b, a == b))"#;
    for text in true_ones.lines() {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
    let false_ones = "obj.login.issuer == 'x'|!(obj.login.issuer == 'x')|obj.hostports[2] == 'x'|obj.hostports[-1] == ''|\
        obj.headers.other == ''|timestamp(obj.id) > timestamp('2026-01-01T00:00:00Z')|obj.count / 0 == 1|\
        obj.created_at < timestamp('2026-01-01T00:00:00Z')|int(obj.id) == 1|obj.config.none.none == 1|\
        obj.count * 9223372036854775807 > 0|obj.login.issuer.matches('a')|obj.id > timestamp('2026-01-01T00:00:00Z')";
    for text in false_ones.split('|') {
        assert_eq!(holds(text), Ok(false), "{text}");
    }
}

#[test]
fn an_error_names_its_column() {
    for (text, column, part) in [
        ("", 1, "empty"),
        ("obj.id ==", 10, "operand is missing"),
        ("obj.description == 'ü' && )", 27, "unexpected `)`"),
        ("obj.descripton == ''", 5, "unknown field `descripton`"),
        ("obj['descripton'] == ''", 5, "unknown field"),
        ("obj.login.isuer == ''", 11, "unknown field `isuer`"),
        ("obj.routes.exists(r, r.mach == '/')", 24, "unknown field `mach`"),
        ("obj.id.name == ''", 8, "a string has no fields"),
        ("description == ''", 1, "use `obj.description`"),
        ("item.id == ''", 1, "unknown name `item`"),
        ("obj.id.startWith('x')", 8, "unknown function `startWith`"),
        ("obj.id.startsWith()", 8, "use `startsWith` as"),
        ("startsWith(obj.id, 'x')", 1, "use `startsWith` as"),
        ("obj.hostports.all('h', true)", 15, "list.all(item, condition)"),
        ("obj.hostports.all(obj, true)", 15, "list.all(item, condition)"),
        ("all(obj.hostports, true)", 1, "list.all(item, condition)"),
        ("obj.id", 5, "must be a boolean, not a string"),
        ("obj.count && true", 5, "expected a boolean, found a number"),
        ("true && obj.count == 'x'", 19, "`==` does not apply to a number and a string"),
        ("obj.hostports < ['x']", 15, "`<` does not apply"),
        ("obj.count + 'x' == 'x'", 11, "`+` does not apply"),
        ("obj.id in 'x'", 8, "`in` does not apply"),
        ("obj.count in obj.hostports", 11, "`in` does not apply"),
        ("obj.id.matches('(')", 16, "invalid pattern"),
        ("obj.id.matches('(a{1000}){1000}')", 16, "too large"),
        ("obj.id.matches(obj.description)", 8, "text.matches('pattern')"),
        ("timestamp('yesterday') < timestamp(obj.created_at)", 11, "not a timestamp"),
        ("duration('1 day') == duration('1h')", 10, "not a duration"),
        ("has(obj)", 1, "has(obj.field)"),
        ("obj.config == {'a': 1}", 15, "not supported"),
        ("obj.?id == ''", 4, "not supported"),
        ("obj.id == b'x'", 11, "bytes are not supported"),
        (r"obj.id == '\d'", 11, "unknown escape"),
        (r"obj.id == '\x4'", 11, "unknown escape"),
        ("obj.id == 'a\nb'", 11, "unclosed string"),
        ("obj.count == 9223372036854775808", 14, "out of range"),
        ("obj.config && true", 5, "expected a boolean, found a map"),
        ("obj.config > 1", 12, "`>` does not apply to a map and a number"),
    ] {
        let error = holds(text).err();
        let found = error.as_ref().map(|error| (error.column(text), error.message.contains(part)));
        assert_eq!(found, Some((column, true)), "{text}: {error:?}");
    }
}

#[test]
fn an_error_lists_the_known_words() {
    let known = holds("obj.descripton == ''").err().and_then(|error| error.unknown);
    assert!(known.is_some_and(|(word, known)| word == "descripton" && known.contains(&"description".to_owned())));
}

#[test]
fn the_size_of_an_expression_is_bounded() {
    let alternatives = ["obj.id == 'abc'"; 200].join(" || ");
    assert_eq!(holds(&alternatives), Ok(false));
    let nested = |open: &str, close: &str, count| format!("{}true{}", open.repeat(count), close.repeat(count));
    for deep in [
        nested("(", ")", 2000),
        nested("!", "", 4000),
        nested("[", "]", 2000),
        nested("true ? true : ", "", 280),
        format!("1{} == 2", " + 1".repeat(900)),
        format!("obj{} == 1", ".config".repeat(500)),
        nested("[1].all(x, ", ")", 300),
    ] {
        let error = holds(&deep).err().map(|error| error.message).unwrap_or_default();
        assert!(error.contains("nested more than"), "{deep:.30}: {error}");
    }
    assert_eq!(holds(&nested("(", ")", 30)), Ok(true));
    let long = holds(&format!("obj.id == '{}'", "x".repeat(4096))).err().map(|error| error.message);
    assert!(long.is_some_and(|message| message.contains("longer than 4096 bytes")));
    let patterns = ["obj.id.matches('a')"; 9].join(" || ");
    assert!(holds(&patterns).is_err_and(|error| error.message.contains("more than 8")));
}

#[test]
fn hostile_expressions_run_out_of_steps() {
    let list = format!("[{}]", ["1"; 100].join(","));
    let loops = format!("{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, a + b + c + d > 0))))");
    let text = format!("['{}']", "x".repeat(64));
    let doubled = (0..30).fold(text, |list, _| format!("{list}.map(x, x + x)"));
    for text in [loops, format!("{doubled}.size() == 1")] {
        let error = holds(&text).err().map(|error| error.message).unwrap_or_default();
        assert_eq!(error, "the evaluation takes too long", "{text:.60}");
    }
}

#[test]
fn an_evaluation_stops_when_it_is_told() {
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        true
    };
    let meter = CelMeter::new(u64::MAX, &stop);
    let list = format!("[{}]", ["1"; 100].join(","));
    let text = format!("{list}.all(a, {list}.all(b, a == b))");
    let stopped = CelExpression::parse(&text, &shape()).and_then(|expression| expression.holds(&item(), &meter));
    assert_eq!(stopped, Err(CelError::new(0, "the evaluation takes too long")));
    assert_eq!(asked.get(), 1);
}

#[test]
fn the_fields_that_an_expression_reads_are_known() {
    for (text, reads_routes) in [
        ("obj.id == 'x'", false),
        ("obj.routes.size() > 1", true),
        ("has(obj.routes)", true),
        ("obj['routes'].size() > 1", true),
        ("obj[obj.id] == 1", true),
        ("size(obj) > 1", true),
        ("obj.hostports.exists(routes, routes == 'x')", false),
    ] {
        let reads = CelExpression::parse(text, &shape()).map(|expression| expression.reads("routes"));
        assert_eq!(reads, Ok(reads_routes), "{text}");
    }
}

#[test]
fn the_whole_language_is_read() {
    let good = r#"true
        !(req.Method in ['GET', 'HEAD'])
        res.StatusCode >= 500 && -x.y[0].z != .5e-3 || conn.ClientIP.startsWith('198.51.100.')
        a ? b : c ? {'k': d ? 1 : 2, } : [1u, 0xFF,]
        has(a.b) && xs.all(x, x > f()) && pkg.Msg{field: 1} // end
        .a.?b[?c] == r"\" || 'it\'s' + b"x" + """a"b""" != a - -1"#;
    for good in good.lines() {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    assert_eq!(check(&format!("{}a{}", "(".repeat(1000), ")".repeat(1000))), Ok(()), "deep nesting is valid");
    assert_eq!(check(&format!("{}a b", "(".repeat(1000))), Ok(()), "nothing behind deep nesting is checked");
    assert!(check(&format!("a b {}", "(".repeat(1000))).is_err(), "what is before it is checked");
    let bad = "||  |// only|!(a in ['b']|a &&|&& a|a b|a..b|f(a,)|a ? b|a : b|{a}|[,]|'open|a = b|a)|(|a[]|1(2)|a.'b'|#|\
        ..a|.(a)|f(){a: 1}|{,}|{a: 1 b: 2}|a.?[b]|a {b: 1 #}";
    for bad in bad.split('|') {
        assert!(check(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_syntax_error_has_its_place_and_what_was_before() {
    for (text, at, message) in [
        ("a == ü && )", 5, "unexpected character `ü`"),
        ("a = b", 2, "unexpected character `=`: use `==`"),
        ("a && )", 5, "unexpected `)` after `&&`"),
        (") && ü", 0, "unexpected `)` at the start"),
        ("a && 'x", 5, "unclosed string"),
        ("a 'x", 2, "unclosed string"),
        ("a b", 2, "unexpected `b` after `a`"),
        ("a and b", 2, "unexpected `and` after `a`: use `&&`"),
        ("a &&", 4, "an operand is missing after `&&`"),
        ("a ? b", 5, "`?` without `:`"),
        ("(a", 2, "unclosed bracket"),
        ("{a", 2, "unclosed bracket"),
        ("[a, ", 4, "an operand is missing after `,`"),
        ("", 0, "the expression is empty"),
    ] {
        assert_eq!(check(text), Err(CelError::new(at, message)), "{text}");
    }
}
