//! An operation of the OpenAPI document.

use serde_json::Value;

use super::api::Api;
use super::fields::{description, list, type_of};
use super::markdown::{SharedRows, code, prose};
use crate::server::{Action, Endpoint, endpoints, operations::callers};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// An operation, and its endpoint if it is one of a kind or module.
pub(super) struct DocumentedOperation<'d> {
    api: &'d Api,
    method: &'static str,
    path: &'d str,
    /// The path's item, with the parameters of the path.
    item: &'d Value,
    pub(super) content: &'d Value,
    endpoint: Option<Endpoint>,
}

impl<'d> DocumentedOperation<'d> {
    /// All operations by path.
    pub(super) fn all(api: &'d Api) -> Vec<Self> {
        let endpoints = endpoints();
        let paths = api.document.get("paths").and_then(Value::as_object).into_iter().flatten();
        let mut operations = Vec::new();
        for (path, item) in paths {
            let found = METHODS.into_iter().filter_map(|method| Some((method, item.get(method)?)));
            operations.extend(found.map(|(method, content)| {
                let is_it = |it: &&Endpoint| it.path == *path && it.method.eq_ignore_ascii_case(method);
                Self { api, method, path, item, content, endpoint: endpoints.iter().find(is_it).cloned() }
            }));
        }
        operations
    }

    /// The action on a resource or module, if it has one.
    pub(super) fn action(&self) -> Option<&'static str> {
        Some(match self.endpoint.as_ref()?.action {
            Action::List => "List",
            Action::Create => "Create",
            Action::Get => "Get",
            Action::Patch => "Change",
            Action::Delete => "Delete",
            Action::GetModule(_) => "Get a module",
            Action::PutModule(_) => "Set a module",
            Action::DeleteModule(_) => "Remove a module",
        })
    }

    /// The module that it is about.
    pub(super) fn module(&self) -> Option<&'static str> {
        match self.endpoint.as_ref()?.action {
            Action::PutModule(slot) | Action::GetModule(slot) | Action::DeleteModule(slot) => Some(slot.name),
            _ => None,
        }
    }

    pub(super) fn has_tag(&self, tag: &str) -> bool {
        list(self.content, "tags").any(|it| it == tag)
    }

    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), code(self.path))
    }

    pub(super) fn row(&self) -> Vec<String> {
        let summary = prose(self.content.get("summary").and_then(Value::as_str).unwrap_or_default());
        let extension = if self.content.get("x-extension").is_some() { ". *Extension.*" } else { "" };
        let callers = callers(self.method, self.path).to_owned();
        vec![self.method.to_uppercase(), code(self.path), summary + extension, callers]
    }

    pub(super) fn parameters(&self) -> Vec<Vec<String>> {
        let parameters = list(self.item, "parameters").chain(list(self.content, "parameters"));
        let row = |parameter: &Value| {
            let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
            let type_name = parameter.get("schema").map(type_of).unwrap_or_default();
            vec![code(text("name")), text("in").to_owned(), type_name, description(parameter)]
        };
        parameters.map(row).collect()
    }

    /// The type of the body of its requests.
    pub(super) fn request(&self) -> Option<String> {
        let created = self.endpoint.as_ref().filter(|endpoint| endpoint.action == Action::Create);
        let lacks = created.map(|endpoint| self.api.lacks(&format!("{}Create", endpoint.kind.info().name)));
        Some(self.media(self.content.get("requestBody")?) + &lacks.unwrap_or_default())
    }

    /// The sentence about an optional body.
    pub(super) fn optional_body(&self) -> Option<String> {
        let is_required = self.content.get("requestBody")?.get("required").and_then(Value::as_bool) == Some(true);
        (!is_required).then(|| "The body is optional.".to_owned())
    }

    /// The example of the body of its requests, as a block.
    pub(super) fn example(&self) -> String {
        let example = self.content.pointer("/requestBody/content/application~1json/example");
        example.map(|example| format!("```json\n{example:#}\n```\n\n")).unwrap_or_default()
    }

    /// The type of the body of its first response.
    pub(super) fn response(&self) -> Option<String> {
        self.responses()
            .find(|(_, response)| response.get("content").is_some())
            .map(|(_, response)| self.media(response))
    }

    /// The responses, with or without the types of their bodies, and the statuses of its errors.
    pub(super) fn outcome(&self, with_bodies: bool) -> String {
        let line = |(status, response): &(&String, &Value)| {
            let headers = response.get("headers").and_then(Value::as_object).into_iter().flatten();
            let headers: Vec<String> = headers.map(|(name, _)| code(name)).collect();
            let headers = if headers.is_empty() { String::new() } else { format!(" with {}", headers.join(", ")) };
            let has_body = with_bodies && response.get("content").is_some();
            let body = if has_body { format!(": {}", self.media(response)) } else { String::new() };
            format!("{} {}{body}{headers}", code(status), description(response).trim_end_matches('.'))
        };
        let (errors, others): (Vec<_>, Vec<_>) =
            self.responses().partition(|(status, _)| status.starts_with(['4', '5']));
        let errors: Vec<String> = errors.iter().map(|(status, _)| code(status)).collect();
        let others: Vec<String> = others.iter().map(line).collect();
        format!("Response: {}. Errors: {}.", others.join("; "), errors.join(", "))
    }

    /// The sentences about it that it may have in common with others: its description, parameters and responses.
    pub(super) fn facts(&self, shared: &SharedRows) -> Vec<String> {
        let description = description(self.content);
        let sentences = description.split_inclusive(". ").map(|sentence| sentence.trim().to_owned());
        let parameters = self.parameters().into_iter().filter(|row| !row.iter().any(|cell| cell == "path"));
        let (names, own): (Vec<_>, Vec<_>) = parameters.partition(|row| shared.has(row));
        let names: Vec<String> = names.into_iter().filter_map(|row| row.into_iter().next()).collect();
        let named = format!("Parameters: {}.", names.join(", "));
        let own = own.iter().filter_map(|row| match row.as_slice() {
            [name, place, type_name, meaning] => Some(format!("Parameter {name} ({place}, {type_name}): {meaning}")),
            _ => None,
        });
        sentences.chain(self.optional_body()).chain([named]).chain(own).chain([self.outcome(false)]).collect()
    }

    fn responses(&self) -> impl Iterator<Item = (&'d String, &'d Value)> {
        self.content.get("responses").and_then(Value::as_object).into_iter().flatten()
    }

    /// The types of a body, with the media types that are not JSON.
    fn media(&self, body: &Value) -> String {
        let kinds = body.get("content").and_then(Value::as_object).into_iter().flatten();
        let of_kind = |(name, media): (&String, &Value)| {
            let type_name = media.get("schema").map(|schema| self.api.type_of(schema)).unwrap_or_default();
            if name == "application/json" { type_name } else { format!("{} ({type_name})", code(name)) }
        };
        kinds.map(of_kind).collect::<Vec<_>>().join(" or ")
    }
}
