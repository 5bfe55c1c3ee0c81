//! Streams on a paused clock: heartbeats, and clients that do not read.

#![allow(clippy::unwrap_used)]

use http_body_util::BodyExt;

use super::*;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::{AnyResource, ApiKey, IpRestriction, Owner, Secret};
use crate::server::limits::slots::classes::DEFAULT_WATCHERS;
use crate::server::{App, VERSION_HEADER};
use crate::store::{ids, tokens};

fn create(key: Key, spec: Arc<dyn AnyResource>, token: Option<Secret>) -> Operation {
    Operation::Create { key, spec, claim: None, token }
}

fn commit(app: &AppState, operations: Vec<Operation>) {
    app.served.store.commit(Author::Local, operations).unwrap();
}

fn restriction(app: &AppState) {
    let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
    let key = Key::new(Kind::IpRestriction, ids::fresh_id(Kind::IpRestriction));
    commit(app, vec![create(key, Arc::new(spec), None)]);
}

/// The API of an empty store, and the headers of its admin.
fn app() -> (AppState, HeaderMap) {
    let app = App::in_memory().0;
    let key = Key::new(Kind::ApiKey, ids::fresh_id(Kind::ApiKey));
    let (token, hash) = tokens::token(&key.id);
    let owner = create(Key::new(Kind::Owner, Id::new("usr_admin")), Arc::new(Owner { role: Role::Admin }), None);
    let spec = ApiKey { owner_id: "usr_admin".into(), ..ApiKey::default() };
    commit(&app, vec![owner, create(key, Arc::new(spec), Some(hash))]);
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {}", token.expose()).parse().unwrap());
    headers.insert(VERSION_HEADER, HeaderValue::from_static("2"));
    (app, headers)
}

async fn watch(app: &AppState, headers: HeaderMap) -> Body {
    let caller = app.access.admit(&app.served.store.snapshot(), &Intent::Watch, &headers).ok().unwrap();
    get(State(app.clone()), RawQuery(None), caller, headers).await.ok().unwrap().into_body()
}

/// The next chunk, or none at the end.
async fn next(body: &mut Body) -> Option<String> {
    let frame = body.frame().await?.unwrap();
    Some(String::from_utf8(frame.into_data().ok().unwrap().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_gets_comments() {
    let (app, headers) = app();
    let mut body = watch(&app, headers).await;
    assert_eq!(next(&mut body).await.unwrap(), ": changes after revision 1\nid: 1\n\n");
    for _ in 0..2 {
        let began = tokio::time::Instant::now();
        assert_eq!(next(&mut body).await.unwrap(), ": heartbeat\n\n");
        assert!(began.elapsed() >= HEARTBEAT);
    }
    restriction(&app);
    let events = next(&mut body).await.unwrap();
    assert!(events.starts_with("event: created\ndata: {\"revision\":2,"), "{events}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_disconnected_and_told() {
    let (app, headers) = app();
    let mut body = watch(&app, headers).await;
    for _ in 0..2 * CHUNKS {
        restriction(&app);
    }
    assert_eq!(app.admissions.watchers.running(), 1);
    tokio::time::sleep(2 * LONGEST_WAIT).await;
    assert_eq!(app.admissions.watchers.running(), 0, "it holds nothing but its buffer");
    let mut chunks = Vec::new();
    while let Some(chunk) = next(&mut body).await {
        chunks.push(chunk);
    }
    assert_eq!(chunks.len(), CHUNKS + 1);
    let last = chunks.pop().unwrap();
    assert!(last.starts_with("event: error\ndata: {\"error_code\":\"ERR_EDGEWRIGHT_SLOW_READER\""), "{last}");
    // What it was sent ends with a whole revision, after which it can resume.
    assert!(chunks.pop().unwrap().contains(&format!("id: {CHUNKS}\nevent: revision\n")));
}

#[test]
fn one_owner_has_a_share_and_gateways_have_places_of_their_own() {
    let caller = |owner: &str, role: Role| Caller { key: Id::new("ak_1"), owner: Id::new(owner), role, scope: None };
    let (app, _) = app();
    let all = |owner: &str, role: Role| -> Vec<WorkPlace> {
        (0..2 * DEFAULT_WATCHERS).map_while(|_| place(&app.admissions, &caller(owner, role)).ok()).collect()
    };
    let mut viewers: Vec<Vec<WorkPlace>> = Vec::new();
    for number in 0..8 {
        viewers.push(all(&format!("usr_{number}"), Role::Viewer));
    }
    let counts: Vec<usize> = viewers.iter().map(Vec::len).collect();
    assert_eq!(counts.first(), Some(&18), "a quarter of the 75 that are not for gateways");
    assert!(counts.iter().all(|count| *count > 0), "each finds a place: {counts:?}");
    let refused = place(&app.admissions, &caller("usr_0", Role::Viewer)).err().map(|error| error.code());
    assert_eq!(refused, Some(Code::RateLimited));
    let taken: usize = counts.iter().sum();
    let gateways = all("bot_gateway", Role::Gateway);
    assert!(gateways.len() >= DEFAULT_WATCHERS / 4);
    assert_eq!((gateways.len() + taken, app.admissions.watchers.running()), (DEFAULT_WATCHERS, DEFAULT_WATCHERS));
    let full = place(&app.admissions, &caller("usr_new", Role::Viewer)).err().map(|error| error.code());
    assert_eq!(full, Some(Code::Unavailable));
    drop((viewers, gateways));
    assert_eq!(app.admissions.watchers.running(), 0);
}
