//! `/sources` in the OpenAPI document.

use serde_json::{Value, json};

use super::{
    destroy,
    view::{SourceResume, SourceSuspend, SourceView},
};
use crate::server::openapi::{extension::ExtensionOperation, schemas::Schemas};

/// The tag of the operations.
pub(crate) const TAG: &str = "Sources";
const PATH: &str = "/sources";

/// The paths with their operations.
pub(crate) fn paths(schemas: &mut Schemas) -> Vec<(String, Value)> {
    let one = schemas.response::<SourceView>();
    let suspend = schemas.request::<SourceSuspend>();
    let resume = schemas.request::<SourceResume>();
    let list = schemas.list("Source", "sources", one.clone(), false);
    let list = ExtensionOperation::new(
        TAG,
        "listSources",
        "List sources",
        "Returns the sources that the server follows, with their status, in the order of the configuration. Then come the first hundred sources that own resources and that it does not follow, with the reason `NotFollowed`, and what a client applied last.",
    )
    .ok(list)
    .conditional()
    .fails(&["400", "401", "429", "500", "503"]);
    let get = ExtensionOperation::new(
        TAG,
        "getSource",
        "Get the status of a source",
        "Returns the status of a source that the server follows or that owns resources: its conditions, the last sync and the last one that applied the manifests, the diagnostics with their places, and counts.",
    )
    .ok(one.clone())
    .conditional()
    .fails(&["400", "401", "404", "429", "500", "503"]);
    let suspending = ExtensionOperation::new(
        TAG,
        "suspendSource",
        "Suspend a source",
        "Suspends a source until it is resumed or until a time: the server plans its manifests and reports what it would change, and applies nothing. A current run does not apply its plan any more.",
    )
    .body(suspend, json!({"reason": "Emergency fix of the checkout route", "until": ""}))
    .ok(one.clone())
    .tagged()
    .fails(&["400", "401", "403", "404", "408", "413", "415", "429", "500", "503"]);
    let resuming = ExtensionOperation::new(
        TAG,
        "resumeSource",
        "Resume a source",
        "Ends the suspension of a source, if it has one, and syncs it. With `accept_commit`, a source with `verify` goes on from a commit that it refuses because it does not descend from the one that was applied last.",
    )
    .optional_body(resume, json!({"accept_commit": "4f2a9c51d0b7e38642f1a5c9e0d3b7864f2a9c51"}))
    .ok(one)
    .tagged()
    .fails(&["400", "401", "403", "404", "408", "409", "413", "415", "429", "500", "503"]);
    vec![
        (PATH.to_owned(), json!({"get": list.build()})),
        (format!("{PATH}/{{name}}"), json!({"get": get.build()})),
        (format!("{PATH}/{{name}}/suspend"), json!({"post": suspending.build()})),
        (format!("{PATH}/{{name}}/resume"), json!({"post": resuming.build()})),
        destroy::path(schemas),
    ]
}
