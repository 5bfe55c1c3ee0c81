//! GET `/resources/{id}`: the manifest that declares a resource, and what changed it last (D86).
//!
//! All of it is from the claim of the resource and the newest entries of its history, so nothing is stored
//! for it. It says where the resource was when its source last changed it: a later commit that only moves the manifest
//! has no record.

use axum::extract::Path;

use super::history::document::HistoryAuthor;
use crate::server::handler_prelude::*;
use crate::store::Provenance;
use crate::store::history::if_available;
use crate::syntax::text::key_of_token;

pub(super) static GET: ApiOperation = ApiOperation::get("/resources/{id}", Intent::Read, |method| on(method, get))
    .named("Origin", "getResourceOrigin", "Get the origin of a resource")
    .described("Returns the source, manifest name, file, line and commit of a resource of any kind, found by its identifier alone, and what changed it last.")
    .documented("400 401 404 429 500 503", |operation, schemas| operation.ok(schemas.response::<ResourceOrigin>()));

/// Where a resource comes from, and what changed it last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ResourceOrigin {
    /// The identifier.
    pub id: String,
    /// The kind.
    pub kind: String,
    /// The path in the API.
    pub path: String,
    /// The URI.
    pub uri: String,
    /// The source that owns the resource, or empty.
    pub source: String,
    /// The name in the manifests, or empty.
    pub name: String,
    /// The file that declared the resource when its source last changed it, or empty if that is not known.
    pub file: String,
    /// The line in the file, or null.
    pub line: Option<u64>,
    /// The Git commit of the manifests then, or empty.
    pub commit: String,
    /// The revision in which the source last changed the resource; null if that is no longer in the history.
    pub applied_revision: Option<u64>,
    /// The time of that revision, or empty.
    pub applied_at: String,
    /// The revision that last changed the resource; null if that is no longer in the history.
    pub changed_revision: Option<u64>,
    /// The time of that revision, or empty.
    pub changed_at: String,
    /// The author of that revision.
    pub changed_by: HistoryAuthor,
    /// Whether the history is unavailable, because the database of the store does not answer. If so, the fields from
    /// `file` to `changed_by` are empty or null.
    #[serde(default)]
    pub history_unavailable: bool,
}

impl ResourceOrigin {
    /// Finds the origin of a resource, without what comes from the history while that is unavailable.
    pub(crate) fn find(store: &Store, entry: &Entry, base_url: &str) -> Result<Self, StoreError> {
        let found = if_available(Self::provenance(store, entry))?;
        Ok(Self::new(&store.snapshot(), entry, base_url, found))
    }

    /// Finds what the history has about the origin of a resource.
    pub(crate) fn provenance(store: &Store, entry: &Entry) -> Result<Provenance, StoreError> {
        store.provenance(&entry.key, entry.claim.as_deref().map(|claim| claim.source.as_str()))
    }

    /// The origin of a resource. `found` is what the history has, if it is available.
    pub(crate) fn new(state: &Snapshot, entry: &Entry, base_url: &str, found: Option<Provenance>) -> Self {
        let (key, claim) = (&entry.key, entry.claim.as_deref());
        let history_unavailable = found.is_none();
        let Provenance { changed, applied } = found.unwrap_or_default();
        let (set, declared_at) = applied.map_or((None, None), |(set, declared_at)| (Some(set), declared_at));
        let (file, line) = declared_at.map(|place| file_and_line(&place)).unwrap_or_default();
        let commit = match set.as_ref().map(|set| &set.author) {
            Some(Author::Source { commit, .. }) => commit.clone().unwrap_or_default(),
            _ => String::new(),
        };
        let path = key.path();
        Self {
            id: key.id.to_string(),
            kind: key.kind.to_string(),
            uri: format!("{base_url}{path}"),
            path,
            source: claim.map(|claim| claim.source.clone()).unwrap_or_default(),
            name: claim.map(|claim| claim.name.clone()).unwrap_or_default(),
            file,
            line,
            commit,
            applied_revision: set.as_ref().map(|set| set.revision),
            applied_at: set.map(|set| set.at.to_string()).unwrap_or_default(),
            changed_revision: changed.as_ref().map(|set| set.revision),
            changed_at: changed.as_ref().map(|set| set.at.to_string()).unwrap_or_default(),
            changed_by: changed.map(|set| HistoryAuthor::new(&set.author, state)).unwrap_or_default(),
            history_unavailable,
        }
    }
}

/// Splits `file:line`. A large commit records the file alone.
fn file_and_line(place: &str) -> (String, Option<u64>) {
    let split = place.rsplit_once(':').and_then(|(file, line)| Some((file.to_owned(), Some(line.parse().ok()?))));
    split.unwrap_or_else(|| (place.to_owned(), None))
}

/// Finds a resource by its identifier alone. Event sources have none of their own.
fn find<'s>(snapshot: &'s Snapshot, id: &str) -> Option<&'s Arc<Entry>> {
    let mut kinds = Kind::all().filter(|info| info.kind != Kind::Owner && !info.facts.prefix.is_empty());
    kinds.find_map(|info| match info.facts.parent {
        Some(_) => snapshot.find_child(info.kind, &Id::new(id)),
        None => snapshot.get(&Key::new(info.kind, Id::new(id))),
    })
}

/// Returns where a resource comes from.
async fn get(search: SearchRequest, Path(id): Path<String>, headers: HeaderMap) -> ApiResult {
    // Whoever pastes a leaked token means its key, and the token goes no further.
    let key = key_of_token(&id).map(str::to_owned);
    let (has_token, id) = (key.is_some(), key.unwrap_or(id));
    let run = move |served: &ServedStore, _: &Cancel| {
        let snapshot = served.store.snapshot();
        let missing = || ApiError::with_code(Code::NotFound, format!("no resource has the ID `{}`", printable(&id)));
        let entry = find(&snapshot, &id).ok_or_else(missing)?;
        let origin = ResourceOrigin::find(&served.store, entry, &served.base_urls.base_url)?;
        conditional::json_response(&headers, &origin)
    };
    let mut response = search.run(run).await.unwrap_or_else(IntoResponse::into_response);
    if has_token {
        response::warn(&mut response, &[response::TOKEN_SEEN.to_owned()]);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_line_unless_the_commit_was_large() {
        assert_eq!(file_and_line("a:b/c.yaml:12"), ("a:b/c.yaml".to_owned(), Some(12)));
        assert_eq!(file_and_line("a/c.yaml"), ("a/c.yaml".to_owned(), None));
    }
}
