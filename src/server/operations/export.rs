//! GET `/export`: the state of a running server as manifests, without secrets (D105).

use crate::manifest::export::{Exported, Variable, export};
use crate::reconcile::DEFAULT_SOURCE;
use crate::server::handler_prelude::*;

pub(crate) const PATH: &str = "/export";
/// The query parameter with the name of the source.
pub(crate) const SOURCE: &str = "source";
/// The query parameter that includes resources without a source.
pub(crate) const ADOPT: &str = "adopt";

pub(super) static GET: ApiOperation = ApiOperation::get(PATH, Intent::Read, |method| on(method, get))
    .query(&[
        QueryParameter(SOURCE, || {
            json!({
                "description": "The source whose resources to export.",
                "schema": {"type": "string", "default": DEFAULT_SOURCE},
            })
        }),
        QueryParameter(ADOPT, || {
            json!({
                "description": "Whether to also export resources that no source owns, with their IDs.",
                "schema": {"type": "boolean", "default": false},
            })
        }),
    ])
    .named("Administration", "exportManifests", "Export manifests")
    .described("Returns the resources of a source as manifests whose plan has no changes. Secrets are not exported: the manifests read them from the environment variables in `variables`.")
    .documented("400 401 403 429 500 503", |operation, schemas| operation.ok(schemas.response::<ExportedManifests>()));

/// The manifests of a source, all of one revision.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExportedManifests {
    /// The revision of the store.
    pub revision: u64,
    /// The manifests.
    pub files: Vec<ExportedFile>,
    /// The environment variables that the manifests take secrets from. The secrets are not exported.
    pub variables: Vec<Variable>,
    /// The resources that are not exported, in words.
    pub left_out: Vec<String>,
}

/// A manifest file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ExportedFile {
    /// The file name, without a folder.
    pub name: String,
    /// The text.
    pub text: String,
}

impl ExportedManifests {
    /// Describes an export.
    pub(crate) fn new(exported: Exported, revision: u64) -> Self {
        let files = exported.files.into_iter().map(|(name, text)| ExportedFile { name, text });
        Self { revision, files: files.collect(), variables: exported.variables, left_out: exported.left_out }
    }
}

/// Exports a source.
async fn get(
    State(AppState { served, admissions, .. }): State<AppState>,
    RawQuery(query): RawQuery,
    caller: Caller,
) -> ApiResult {
    let (source, adopt) = parameters(query.as_deref())?;
    let place = admissions.reconciliations.for_owner(&caller.owner)?;
    let run = move |_| {
        let snapshot = served.store.snapshot();
        let exported = export(&snapshot, &source, adopt, clock::now())?;
        json_response(StatusCode::OK, &ExportedManifests::new(exported, snapshot.revision))
    };
    place.run(run).await
}

/// Reads the source, and whether to include resources without one.
fn parameters(query: Option<&str>) -> Result<(String, bool), ApiError> {
    let source = query::value(query, SOURCE).unwrap_or_else(|| DEFAULT_SOURCE.to_owned());
    match query::value(query, ADOPT).as_deref() {
        None | Some("false") => Ok((source, false)),
        Some("true") => Ok((source, true)),
        Some(_) => Err(ApiError::new(query::at(ADOPT, format!("`{ADOPT}` must be `true` or `false`")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_default_and_adopt_is_a_boolean() {
        let read = |query: &str| parameters(Some(query)).ok();
        assert_eq!(read(""), Some(("default".to_owned(), false)));
        assert_eq!(read("source=a%26b&adopt=true"), Some(("a&b".to_owned(), true)));
        assert_eq!(read("adopt=false"), Some(("default".to_owned(), false)));
        for bad in ["adopt=yes", "adopt"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
