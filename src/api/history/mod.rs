//! `/history`: who changed what, revision by revision and field by field (D77).

pub(crate) mod document;

use std::sync::Arc;

use axum::{body::Body, http::Request as HttpRequest, response::Response};
use serde_json::json;

use super::{
    App,
    answer::{self, ApiError},
    auth,
    page::{self, DEFAULT_LIMIT, Page},
    past, query,
    reconciliation::json_response,
};
use crate::{
    model::{
        Kind,
        code::Code,
        fault::{Fault, Path},
        json,
        key::segment,
        secret::Secrets,
    },
    reconcile::cancel::Cancel,
    store::{engine::Query, history::Record},
};
use document::{HistoryEntry, HistoryItem, PATH, ResourceBlame};

/// How many records are read at once. Each can have as many resources as one commit.
const RECORDS: usize = 50;
/// The parameters that select records.
const FILTERS: [&str; 5] = ["resource", "actor", "source", "from", "to"];

/// The attempts to change the store, newest first.
pub(super) async fn list(app: Arc<App>, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    admit(&app, &request)?;
    let known: Vec<&str> = page::PARAMETERS.iter().chain(&FILTERS).copied().collect();
    query::check(request.uri().query(), &known)?;
    let page = Page::from_query(request.uri().query())?;
    let filter = RecordFilter::from_query(request.uri().query())?;
    let place = app.searches.place()?;
    place.run(move |cancel| listed(&app, &page, &filter, &cancel)).await
}

fn listed(app: &App, page: &Page, filter: &RecordFilter, cancel: &Cancel) -> Result<Response, ApiError> {
    let limit = page.limit.unwrap_or(DEFAULT_LIMIT);
    let mut before = match &page.before_id {
        None => u64::MAX,
        Some(id) => {
            let position = past::number(id).filter(|position| *position <= app.store.statistics().position);
            position.filter(|position| *position > 0).ok_or_else(Page::unknown)?
        }
    };
    let base_url = &app.site.base_url;
    let query = filter.resource.clone().map_or(Query::All, Query::Resource);
    let mut items: Vec<HistoryItem> = Vec::new();
    let mut more = false;
    'search: loop {
        if cancel.is_cancelled() {
            return Err(ApiError::of(Code::Unavailable, "the request was cancelled"));
        }
        let records = app.store.history(&query, before, RECORDS)?;
        let Some(last) = records.last().map(|record| record.position) else { break };
        for record in &records {
            if filter.is_past(record) {
                break 'search;
            }
            let item = HistoryItem::of(record, base_url);
            if !filter.selects(&item) {
                continue;
            }
            if items.len() >= limit {
                more = true;
                break 'search;
            }
            items.push(item);
        }
        before = last;
    }
    let next = items.last().filter(|_| more).map(|last| {
        let mut uri = format!("{base_url}{PATH}?limit={limit}&before_id={}", last.id);
        for (name, value) in filter.given() {
            uri += &format!("&{name}={}", segment(&value));
        }
        uri
    });
    let body = json!({"history": items, "uri": format!("{base_url}{PATH}"), "next_page_uri": next});
    Ok(json_response(axum::http::StatusCode::OK, &body)?)
}

/// Returns one revision.
pub(super) async fn get(app: Arc<App>, id: String, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    admit(&app, &request)?;
    query::check(request.uri().query(), &[])?;
    let place = app.searches.place()?;
    place
        .run(move |_| {
            let unknown = || ApiError::of(Code::NotFound, format!("revision {id} does not exist"));
            let revision = past::number(&id).filter(|revision| *revision > 0).ok_or_else(unknown)?;
            let Some(record) = app.store.record(revision)? else {
                if revision > app.store.snapshot().revision {
                    return Err(unknown());
                }
                let oldest = app.store.oldest_revision()?;
                let message = format!("revision {revision} is no longer in the history; the oldest one is {oldest}");
                return Err(ApiError::of(Code::RevisionGone, message));
            };
            let entry = HistoryEntry::of(record, &app.site.base_url);
            let rendered = answer::rendered(json::bytes(&entry, Secrets::Masked)?);
            Ok(answer::conditional(request.headers(), &rendered))
        })
        .await
}

/// Returns who set each field of a resource.
pub(super) async fn blame(app: Arc<App>, request: HttpRequest<Body>) -> Result<Response, ApiError> {
    admit(&app, &request)?;
    query::check(request.uri().query(), &["resource"])?;
    let Some(path) = parameter(request.uri().query(), "resource") else {
        return Err(ApiError::new(query::at("resource", "`resource` is required".into())));
    };
    let place = app.searches.place()?;
    place
        .run(move |_| {
            let snapshot = app.store.snapshot();
            let found = snapshot.iter().find(|entry| entry.key.kind != Kind::Owner && entry.key.path() == path);
            let missing = || {
                let fault = Fault::new(Code::NotFound, "no resource has this path");
                ApiError::new(fault.at(Path::root().join("resource")))
            };
            let key = found.map(|entry| entry.key.clone()).ok_or_else(missing)?;
            let blame = app.store.blame(&key)?.ok_or_else(missing)?;
            Ok(json_response(axum::http::StatusCode::OK, &ResourceBlame::of(&key, blame))?)
        })
        .await
}

fn admit(app: &App, request: &HttpRequest<Body>) -> Result<(), ApiError> {
    auth::admit(app, &app.store.snapshot(), request.method(), request.headers()).map(|_| ())
}

fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// Which records a list has.
#[derive(Debug, Default)]
struct RecordFilter {
    resource: Option<String>,
    actor: Option<String>,
    source: Option<String>,
    from: Option<u64>,
    to: Option<u64>,
}

impl RecordFilter {
    fn from_query(query: Option<&str>) -> Result<Self, ApiError> {
        let revision = |name: &str| match parameter(query, name) {
            None => Ok(None),
            Some(value) => match past::number(&value) {
                Some(revision) => Ok(Some(revision)),
                None => Err(ApiError::new(query::at(name, format!("`{name}` must be the number of a revision")))),
            },
        };
        let text = |name: &str| parameter(query, name);
        Ok(Self {
            resource: text("resource"),
            actor: text("actor"),
            source: text("source"),
            from: revision("from")?,
            to: revision("to")?,
        })
    }

    /// Whether no older record can be in the list.
    fn is_past(&self, record: &Record) -> bool {
        matches!((self.from, record.revision), (Some(from), Some(revision)) if revision < from)
    }

    /// Whether a record is in the list. The query has selected those of a resource.
    fn selects(&self, item: &HistoryItem) -> bool {
        let in_range =
            |revision: u64| self.from.is_none_or(|from| revision >= from) && self.to.is_none_or(|to| revision <= to);
        let is_ranged = self.from.is_some() || self.to.is_some();
        (!is_ranged || item.revision.is_some_and(in_range))
            && self.actor.as_ref().is_none_or(|actor| item.author.is_actor(actor))
            && self.source.as_ref().is_none_or(|source| item.author.source == *source)
    }

    /// The parameters, for the next page.
    fn given(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Self { resource, actor, source, from, to } = self;
        let number = |value: &Option<u64>| value.map(|value| value.to_string());
        let values = [resource.clone(), actor.clone(), source.clone(), number(from), number(to)];
        FILTERS.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?)))
    }
}
