//! Holds rows against a server, and says everything that does not fit.

use std::collections::BTreeMap;

use edgewright::Code;
use serde_json::{Value, json};

use super::row::{Captured, Content, Expect, Row, Step};
use crate::support::server::{Answer, OWNERS, Server, VERSION_HEADER};

/// Runs all rows on one server, and fails with every row that does not hold.
pub(crate) fn hold(rows: Vec<Row>) {
    let server = Server::start();
    hold_on(&server, &rows);
}

/// The same on a server that the test goes on using.
pub(crate) fn hold_on(server: &Server, rows: &[Row]) {
    let failed: Vec<String> =
        rows.iter().enumerate().filter_map(|(number, row)| run(server, number, row).err()).collect();
    assert!(failed.is_empty(), "{} of {} rows do not hold\n\n{}", failed.len(), rows.len(), failed.join("\n\n"));
}

fn run(server: &Server, number: usize, row: &Row) -> Result<(), String> {
    let mut names = Names::new(server, number);
    for (index, step) in row.steps.iter().enumerate() {
        let path = names.fill(&step.path);
        let answer = ask(server, step, &path, &names);
        let mut wrong = everywhere(step, &answer, &names);
        wrong.extend(expected(step, &answer, &mut names));
        for (name, kept) in &step.keeps {
            let value = match kept {
                Captured::Field(pointer) => answer.str(pointer),
                Captured::Header(header) => answer.header(header).unwrap_or_default(),
            };
            if value.is_empty() && !matches!(step.expect, Expect::Given) {
                wrong.push(format!("there is nothing to remember as {{{name}}}"));
            }
            names.set(name, value);
        }
        if !wrong.is_empty() {
            let place = format!("call {} of {}: {} {path:.200}", index + 1, row.steps.len(), step.method);
            let came = format!("came: {} {:.600}", answer.status, answer.text);
            return Err(format!("- {}\n    {place}\n    {}\n    {came}", row.name, wrong.join("\n    ")));
        }
    }
    Ok(())
}

fn ask(server: &Server, step: &Step, path: &str, names: &Names) -> Answer {
    let body = match &step.body {
        Content::Nothing => None,
        Content::Json(body) => Some(names.fill_json(body).to_string().into_bytes()),
        Content::Bytes(bytes) => Some(bytes.clone()),
    };
    let mut headers = vec![
        ("Authorization".to_owned(), format!("Bearer {}", names.fill(&step.token))),
        (VERSION_HEADER.to_owned(), "2".to_owned()),
    ];
    if body.is_some() {
        headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
    }
    headers.retain(|(name, _)| !step.without.contains(&name.to_lowercase()));
    headers.extend(step.headers.iter().map(|(name, value)| (name.clone(), names.fill(value))));
    server.send(&step.method, path, &headers, body)
}

/// What holds of every answer there is.
fn everywhere(step: &Step, answer: &Answer, names: &Names) -> Vec<String> {
    let mut wrong = Vec::new();
    let id = answer.header("request-id").unwrap_or_default();
    if !is_id("op_", id) {
        wrong.push(format!("D8: the Request-Id is `{id}`"));
    }
    if answer.text.contains("PRIVATE KEY-----") {
        wrong.push("a private key is in the answer".into());
    }
    let json = answer.header("content-type") == Some("application/json");
    match answer.status {
        204 | 304 if !answer.text.is_empty() => wrong.push(format!("{} with a body", answer.status)),
        200 | 201 => {
            let endpoint = step.endpoint();
            let etag = answer.header("etag").unwrap_or_default();
            if endpoint.is_some() && !json {
                wrong.push("the body is not declared as JSON".into());
            }
            if endpoint.is_some() && !(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 2) {
                wrong.push(format!("D25: the ETag is `{etag}`"));
            }
        }
        400.. => {
            if !json {
                wrong.push("D9: the body is not declared as JSON".into());
            }
            wrong.extend(error_shape(answer).map(|fault| format!("D9: {fault}")));
            if let Content::Json(body) = &step.body {
                // A field can also be a parameter of the query.
                let is_in_query = |field: &str| step.path.contains(&format!("{}=", field.trim_start_matches('/')));
                let stray = stray_fields(&names.fill_json(body), answer);
                wrong.extend(
                    stray
                        .into_iter()
                        .filter(|field| !is_in_query(field))
                        .map(|field| format!("D9: the field {field} is not in the body that was sent")),
                );
            }
        }
        _ => {}
    }
    wrong
}

/// D9: the same shape for every failure, whatever the layer that refused. One code adds a list (D72).
fn error_shape(answer: &Answer) -> Option<String> {
    let Some(body) = answer.json.as_object() else { return Some("the body is no JSON object".into()) };
    let allowed = ["error_code", "status_code", "msg", "details", "errors"];
    let of_code = (body.get("error_code") == Some(&json!("ERR_EDGEWRIGHT_MISSING_FILES"))).then_some("missing");
    if let Some(key) = body.keys().find(|key| !allowed.contains(&key.as_str()) && of_code != Some(key.as_str())) {
        return Some(format!("the key `{key}` is not part of the shape"));
    }
    let code = answer.str("/error_code");
    let known = Code::from_name(code).filter(|known| known.to_string() == code);
    if known.map(|known| known.info().status) != Some(answer.status) {
        return Some(format!("`{code}` does not go with {}", answer.status));
    }
    if answer.json["status_code"] != answer.status {
        return Some(format!("status_code is {}", answer.json["status_code"]));
    }
    if answer.str("/msg").is_empty() {
        return Some("there is no msg".into());
    }
    let Some(details) = answer.json["details"].as_object() else { return Some("there are no details".into()) };
    if let Some((key, _)) = details.iter().find(|(_, value)| !value.is_string()) {
        return Some(format!("details.{key} is not a string"));
    }
    if answer.header("request-id") != Some(answer.str("/details/operation_id")) {
        return Some("details.operation_id is not the Request-Id".into());
    }
    let errors = body.get("errors")?;
    let errors = errors.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = ["error_code", "field", "msg"];
    let shaped = |item: &Value| {
        item.as_object().is_some_and(|it| it.len() == 3) && texts.iter().all(|text| item[*text].is_string())
    };
    match errors {
        [first, _, ..] if errors.iter().all(shaped) => {
            let same = first["error_code"] == answer.json["error_code"]
                && first["msg"] == answer.json["msg"]
                && first["field"].as_str() == Some(answer.str("/details/field"));
            (!same).then(|| "the first of several errors is not the one in msg".into())
        }
        _ => Some("`errors` are not several items with error_code, field and msg".into()),
    }
}

/// The fields of an error that are not where D9 says: a `field` points into the body that was sent; of a field that is missing, at least its parent is there.
fn stray_fields(body: &Value, answer: &Answer) -> Vec<String> {
    let several = answer.json["errors"].as_array().cloned().unwrap_or_default();
    let all = several.iter().map(|item| (&item["error_code"], &item["field"]));
    let all = all.chain([(&answer.json["error_code"], &answer.json["details"]["field"])]);
    let stray = all.filter_map(|(code, field)| {
        let field = field.as_str()?;
        let missing = code.as_str().is_some_and(|code| code.ends_with("_REQUIRED"));
        let parent = field.rsplit_once('/').map_or("", |(parent, _)| parent);
        let there = body.pointer(field).is_some() || (missing && body.pointer(parent).is_some());
        (!there).then(|| field.to_owned())
    });
    let mut stray: Vec<String> = stray.collect();
    stray.dedup();
    stray
}

fn expected(step: &Step, answer: &Answer, names: &mut Names) -> Vec<String> {
    let mut wrong = Vec::new();
    match &step.expect {
        Expect::Given if !(200..300).contains(&answer.status) => wrong.push("what the row needs failed".into()),
        Expect::Given => {}
        Expect::Success(status, body) => {
            if answer.status != *status {
                wrong.push(format!("wanted {status}"));
            } else if let Some(body) = body {
                differences("", body, &answer.json, names, &mut wrong);
            }
        }
        Expect::Failure(status, faults) => {
            let mut wanted: Vec<(String, String)> =
                faults.iter().map(|(code, field)| (format!("ERR_EDGEWRIGHT_{code}"), names.fill(field))).collect();
            let item = |code: &Value, field: &Value| {
                (code.as_str().unwrap_or_default().to_owned(), field.as_str().unwrap_or_default().to_owned())
            };
            let mut came = match answer.json["errors"].as_array() {
                Some(errors) => errors.iter().map(|it| item(&it["error_code"], &it["field"])).collect(),
                None => vec![item(&answer.json["error_code"], &answer.json["details"]["field"])],
            };
            wanted.sort();
            came.sort();
            if answer.status != *status || wanted != came {
                wrong.push(format!("wanted {status} with {wanted:?}"));
            }
        }
    }
    for (pointer, value) in &step.shows {
        match answer.json.pointer(pointer) {
            Some(found) => differences(pointer, value, found, names, &mut wrong),
            None => wrong.push(format!("there is no {pointer}")),
        }
    }
    for text in &step.says {
        let text = names.fill(text);
        let escaped = Value::from(text.as_str()).to_string();
        if !answer.text.contains(escaped.trim_matches('"')) && !answer.text.contains(&text) {
            wrong.push(format!("wanted the text `{text}` in it"));
        }
    }
    for text in &step.hides {
        if answer.text.contains(&names.fill(text)) {
            wrong.push(format!("the text `{text}` must not be in it"));
        }
    }
    for (header, value) in &step.carries {
        let value = names.fill(value);
        let name = header.to_lowercase();
        let came = answer.headers.iter().filter(|(known, _)| *known == name).map(|(_, value)| value);
        let came: Vec<&String> = came.collect();
        if !came.contains(&&value) {
            wrong.push(format!("wanted {header}: {value}, and it is {came:?}"));
        }
    }
    let unwanted = step.lacks.iter().filter_map(|header| Some((header, answer.header(header)?)));
    wrong.extend(unwanted.map(|(header, value)| format!("wanted no {header}, and it is {value}")));
    wrong
}

/// Two bodies, key for key.
pub(crate) fn differences(path: &str, wanted: &Value, came: &Value, names: &mut Names, wrong: &mut Vec<String>) {
    match (wanted, came) {
        (Value::Object(wanted), Value::Object(came)) => {
            for (key, value) in wanted {
                match came.get(key) {
                    Some(found) => differences(&format!("{path}/{key}"), value, found, names, wrong),
                    None => wrong.push(format!("{path}/{key} is missing")),
                }
            }
            let unwanted = came.keys().filter(|key| !wanted.contains_key(*key));
            wrong.extend(unwanted.map(|key| format!("{path}/{key} is not wanted")));
        }
        (Value::Array(wanted), Value::Array(came)) if wanted.len() == came.len() => {
            for (index, (wanted, came)) in wanted.iter().zip(came).enumerate() {
                differences(&format!("{path}/{index}"), wanted, came, names, wrong);
            }
        }
        (Value::String(wanted), Value::String(came)) if names.fits(wanted, came) => {}
        (Value::Number(wanted), Value::Number(came)) if wanted.as_f64() == came.as_f64() => {}
        _ if wanted == came => {}
        _ => wrong.push(format!("{path}: wanted {:.200}, and it is {:.200}", wanted.to_string(), came.to_string())),
    }
}

/// What a row remembers.
#[derive(Default)]
pub(crate) struct Names(BTreeMap<String, String>);

impl Names {
    fn new(server: &Server, number: usize) -> Self {
        let mut names = Self::default();
        names.set("base", crate::support::server::BASE_URL);
        names.set("n", &number.to_string());
        let tokens = [&server.admin, &server.editor, &server.viewer];
        for ((who, token), (owner, key)) in
            ["admin", "editor", "viewer"].into_iter().zip(tokens).zip(OWNERS.iter().zip(&server.key_ids))
        {
            names.set(who, owner.0);
            names.set(&format!("{who}_token"), token);
            names.set(&format!("{who}_key"), key);
        }
        names
    }

    fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        if !text.contains('{') {
            return filled;
        }
        for (name, value) in &self.0 {
            filled = filled.replace(&format!("{{{name}}}"), value);
        }
        filled
    }

    fn fill_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_json(item)).collect(),
            Value::Object(entries) => {
                Value::Object(entries.iter().map(|(key, value)| (key.clone(), self.fill_json(value))).collect())
            }
            other => other.clone(),
        }
    }

    /// Whether a text is what a template stands for; what fills a hole for the first time is remembered.
    fn fits(&mut self, template: &str, text: &str) -> bool {
        let template = self.fill(template);
        let hole = template.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        let Some((before, (hole, after))) = hole else { return template == text };
        let Some(rest) = text.strip_prefix(before) else { return false };
        let length = match hole {
            "time" => 20,
            "token" | "pem" => rest.len().saturating_sub(after.len()),
            prefix if prefix.ends_with('_') => prefix.len() + 27,
            _ => return template == text,
        };
        let Some((found, rest)) = rest.split_at_checked(length) else { return false };
        let good = match hole {
            "time" => found.ends_with('Z') && found.parse::<jiff::Timestamp>().is_ok(),
            "token" => found.strip_prefix("ew_ak_").is_some_and(|rest| rest.len() > 50),
            "pem" => {
                found.starts_with("-----BEGIN CERTIFICATE-----\n") && found.ends_with("-----END CERTIFICATE-----\n")
            }
            prefix => is_id(prefix, found),
        };
        if hole != "time" {
            self.set(hole, found);
        }
        good && self.fits(after, rest)
    }
}

/// D11: the prefix of the kind, and 27 base62 characters.
fn is_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| rest.len() == 27 && rest.bytes().all(|b| b.is_ascii_alphanumeric()))
}
