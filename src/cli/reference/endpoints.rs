//! The page of the API's endpoints, from its OpenAPI document.

use serde_json::Value;

use super::api::Api;
use super::fields::{description, list};
use super::markdown::{SharedRows, code, paragraph, table};
use super::operation::DocumentedOperation;
use super::resource_operations::{CommonFacts, modules};

const INTRODUCTION: &str = "\
# Endpoints

[The API](api.md) describes what all endpoints share: headers, pages, errors, ETags and limits. `edgewright schema
openapi`, `/openapi.json` and `/docs` on a server have the OpenAPI document that this page is made from. *Extension*
marks additions to the API specification. A list has an array, its `uri` and, if it has pages, `next_page_uri`, which
is null on the last one. The section of an operation does not repeat what the index says.";

pub(super) fn page(api: &Api) -> String {
    let operations = DocumentedOperation::all(api);
    let shared = SharedRows::new(
        &["Parameter", "In", "Type", "Meaning"],
        "[Shared parameters](#shared-parameters)",
        operations.iter().flat_map(DocumentedOperation::parameters),
    );
    let actions = CommonFacts::new(&operations, &shared);
    let (mut index, mut resources, mut others) = (Vec::new(), String::new(), String::new());
    for tag in list(&api.document, "tags") {
        let name = tag.get("name").and_then(Value::as_str).unwrap_or_default();
        let link = format!("**[{name}](#{})**", name.to_lowercase().replace(' ', "-"));
        index.push(vec![String::new(), link, description(tag), String::new()]);
        let (mut lines, mut sections) = (String::new(), String::new());
        for operation in operations.iter().filter(|operation| operation.has_tag(name)) {
            index.push(operation.row());
            match operation.action() {
                Some("Create") => sections += &operation.example(),
                Some(_) => {}
                None => sections += &section(operation, &shared),
            }
            lines += &actions.difference(operation, &shared).unwrap_or_default();
        }
        match lines.is_empty() {
            true => others += &format!("## {name}\n\n{sections}"),
            false => resources += &format!("### {name}\n\n{lines}\n{sections}"),
        }
    }
    let errors = api.document.pointer("/components/responses").and_then(Value::as_object).into_iter().flatten();
    let errors: Vec<Vec<String>> = errors.map(|(status, response)| vec![code(status), description(response)]).collect();
    let parts = [
        format!("{INTRODUCTION}\n\n## Index\n\n"),
        table(&["Method", "Path", "Operation", "Callers"], &index),
        actions.list(),
        resources,
        modules(&operations),
        others,
        format!("## Shared parameters\n\n{}## Error statuses\n\n", shared.table()),
        table(&["Status", "Meaning"], &errors),
    ];
    parts.concat()
}

/// The section of an operation that is not about a resource or module.
fn section(operation: &DocumentedOperation<'_>, shared: &SharedRows) -> String {
    let request = operation.request().map(|request| format!("Request: {request}."));
    let request = request.into_iter().chain(operation.optional_body()).collect::<Vec<_>>().join(" ");
    format!(
        "### {}\n\n{}{}{}{}{}\n\n",
        operation.name(),
        paragraph(&description(operation.content)),
        shared.section(operation.parameters()),
        paragraph(&request),
        operation.example(),
        operation.outcome(true),
    )
}
