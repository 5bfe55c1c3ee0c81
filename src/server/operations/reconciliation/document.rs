//! `/reconciliations` in the OpenAPI document.

use serde_json::{Value, json};

use super::wire::{Reconciliation, ReconciliationItem, Request, Run};
use crate::server::openapi::{extension::ExtensionOperation, schemas::Schemas};

/// The tag of the operations.
pub(crate) const TAG: &str = "Reconciliations";
const PATH: &str = "/reconciliations";
const MANIFEST: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: example}\nspec: {description: An example}\n";

/// An example request.
pub(crate) fn example() -> Value {
    json!({"dry_run": true, "source": "example", "files": [{"name": "example.yaml", "text": MANIFEST}]})
}

/// The paths with their operations.
pub(crate) fn paths(schemas: &mut Schemas) -> [(String, Value); 2] {
    let run = schemas.response::<Run>();
    let one = schemas.response::<Reconciliation>();
    let item = schemas.response::<ReconciliationItem>();
    let list = schemas.list("Reconciliation", "reconciliations", item, true);
    let post = ExtensionOperation::new(
        TAG,
        "createReconciliation",
        "Plan or apply manifests",
        "Plans manifests and applies the plan as one revision, unless `dry_run` is set. A dry run responds with 200: its diagnostics and refusals are the errors that would prevent applying the plan. If the server lacks the text of a file with a `digest`, it responds with 409 and `ERR_EDGEWRIGHT_MISSING_FILES`, plans and changes nothing, and keeps the texts of the request for the next one. With `compare`, a dry run returns the changes from the files with `older` to the others; with `trace`, it also returns the way of a request before and after the plan.",
    )
    .body(schemas.request::<Request>(), example())
    .responds("200", "Planned, or no changes", run.clone())
    .responds("201", "Applied as a new revision", run)
    .header("201", "Location", "Its address.")
    .fails(&["400", "401", "403", "408", "409", "413", "415", "429", "500", "503"]);
    let get_list = ExtensionOperation::new(
        TAG,
        "listReconciliations",
        "List reconciliations",
        "Returns the revisions that sources created, newest first, one page at a time. `next_page_uri` is the URI of the next page.",
    )
    .paged("reconciliation", "reconciliations")
    .ok(list)
    .fails(&["400", "401", "429", "500", "503"]);
    let get = ExtensionOperation::new(
        TAG,
        "getReconciliation",
        "Get a reconciliation",
        "Returns the reconciliation with its calls, or 304 if the client's copy is current.",
    )
    .ok(one)
    .conditional()
    .fails(&["400", "401", "404", "429", "500", "503"]);
    [
        (PATH.to_owned(), json!({"post": post.build(), "get": get_list.build()})),
        (format!("{PATH}/{{id}}"), json!({"get": get.build()})),
    ]
}
