//! The page of the API's endpoints, from its OpenAPI document.

use serde_json::Value;

use super::{
    fields::{description, list, section, type_of},
    markdown::{SharedRows, code, paragraph, prose, table},
};
use crate::server::{VERSION_HEADER, openapi::document, operations::callers};

const INTRODUCTION: &str = "\
# Endpoints

[The API](api.md) describes what all endpoints share: headers, pages, errors, ETags and limits. `edgewright schema
openapi`, `/openapi.json` and `/docs` on a server have the OpenAPI document that this page is made from. *Extension*
marks additions to the API specification.";

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An operation of the document.
struct DocumentedOperation<'d> {
    method: &'static str,
    path: &'d str,
    /// The path's item, with the parameters of the path.
    item: &'d Value,
    content: &'d Value,
}

/// The page.
pub(super) fn page() -> String {
    let document = document(VERSION_HEADER, "");
    let operations = operations(&document);
    let shared = SharedRows::new(
        &["Parameter", "In", "Type", "Meaning"],
        "[Shared parameters](#shared-parameters)",
        operations.iter().flat_map(DocumentedOperation::parameters),
    );
    let of_tag = |tag: &Value| {
        let name = text(tag, "name");
        let operations = operations.iter().filter(|operation| list(operation.content, "tags").any(|it| it == name));
        let sections: String = operations.map(|operation| operation.section(&shared)).collect();
        format!("## {name}\n\n{}{sections}", paragraph(&description(tag)))
    };
    let tags: String = list(&document, "tags").map(of_tag).collect();
    let components = |kind: &str| document.pointer(&format!("/components/{kind}")).and_then(Value::as_object);
    let errors = components("responses").into_iter().flatten();
    let errors: Vec<Vec<String>> = errors.map(|(status, response)| vec![code(status), description(response)]).collect();
    let bodies = components("schemas").into_iter().flatten();
    let bodies: String = bodies.map(|(name, schema)| section(name, "", schema)).collect();
    format!(
        "{INTRODUCTION}\n\n{tags}## Shared parameters\n\n{}## Error statuses\n\n{}## Bodies\n\n{bodies}",
        shared.table(),
        table(&["Status", "Meaning"], &errors),
    )
}

fn operations(document: &Value) -> Vec<DocumentedOperation<'_>> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    let mut operations = Vec::new();
    for (path, item) in paths {
        let found = METHODS.into_iter().filter_map(|method| Some((method, item.get(method)?)));
        operations.extend(found.map(|(method, content)| DocumentedOperation { method, path, item, content }));
    }
    operations
}

impl DocumentedOperation<'_> {
    fn section(&self, shared: &SharedRows) -> String {
        let extension = if self.content.get("x-extension").is_some() { " *Extension.*" } else { "" };
        let summary = format!("{}. {}{extension}", prose(text(self.content, "summary")), description(self.content));
        format!(
            "### {} {}\n\n{summary}\n\nCallers: {}.\n\n{}{}{}",
            self.method.to_uppercase(),
            code(self.path),
            callers(self.method, self.path),
            shared.section(self.parameters()),
            paragraph(&self.request().unwrap_or_default()),
            self.responses(),
        )
    }

    /// The rows of its parameters.
    fn parameters(&self) -> Vec<Vec<String>> {
        let parameters = list(self.item, "parameters").chain(list(self.content, "parameters"));
        let row = |parameter: &Value| {
            let type_name = parameter.get("schema").map(type_of).unwrap_or_default();
            let place = text(parameter, "in").to_owned();
            vec![code(text(parameter, "name")), place, type_name, description(parameter)]
        };
        parameters.map(row).collect()
    }

    /// The body of its requests.
    fn request(&self) -> Option<String> {
        let body = self.content.get("requestBody")?;
        let need = if body.get("required").and_then(Value::as_bool) == Some(true) { "required" } else { "optional" };
        let example = body.pointer("/content/application~1json/example");
        let example = example.map(|example| format!("\n\n```json\n{example:#}\n```")).unwrap_or_default();
        Some(format!("Request ({need}): {}{example}", media(body)))
    }

    /// Its responses: a line for each that is no error, and the statuses of errors.
    fn responses(&self) -> String {
        let all = self.content.get("responses").and_then(Value::as_object).into_iter().flatten();
        let (errors, others): (Vec<_>, Vec<_>) = all.partition(|(status, _)| status.starts_with(['4', '5']));
        let line = |(status, response): &(&String, &Value)| {
            let headers = response.get("headers").and_then(Value::as_object).into_iter().flatten();
            let headers: Vec<String> = headers.map(|(name, _)| code(name)).collect();
            let headers = if headers.is_empty() { String::new() } else { format!("; headers {}", headers.join(", ")) };
            let body = if response.get("content").is_some() { format!(": {}", media(response)) } else { String::new() };
            format!("- {} {}{body}{headers}\n", code(status), description(response).trim_end_matches('.'))
        };
        let lines: String = others.iter().map(line).collect();
        let statuses: Vec<String> = errors.iter().map(|(status, _)| code(status)).collect();
        let statuses = match statuses.is_empty() {
            true => String::new(),
            false => format!("- [Errors](#error-statuses): {}\n", statuses.join(", ")),
        };
        format!("Responses:\n\n{lines}{statuses}\n")
    }
}

/// The types of a body, with the media types that are not JSON.
fn media(body: &Value) -> String {
    let kinds = body.get("content").and_then(Value::as_object).into_iter().flatten();
    let of_kind = |(name, media): (&String, &Value)| {
        let type_name = media.get("schema").map(type_of).unwrap_or_default();
        if name == "application/json" { type_name } else { format!("{} ({type_name})", code(name)) }
    };
    kinds.map(of_kind).collect::<Vec<_>>().join(" or ")
}

/// A text of an object.
fn text<'v>(object: &'v Value, key: &str) -> &'v str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}
