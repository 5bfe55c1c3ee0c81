//! The places of pages among those of costly requests.

#![allow(clippy::unwrap_used)]

use tower::ServiceExt;

use super::session::cookie;
use crate::model::{ApiKey, Owner};
use crate::server::handler_prelude::*;
use crate::server::{App, Settings, VERSION_HEADER, router};
use crate::store::{MEMORY, tokens};

#[test]
fn pages_that_search_have_the_share_of_searches() {
    let url = String::from("http://localhost");
    let settings = Settings { base_url: url.clone(), saml_base_url: url, version_header: VERSION_HEADER.into() };
    let app = App::new(Arc::new(Store::open(MEMORY).unwrap()), settings);
    let (owner, key) = (Id::new("usr_a"), Key::new(Kind::ApiKey, Id::new("ak_1")));
    let (token, hash) = tokens::token(&key.id);
    let spec = Arc::new(ApiKey { owner_id: owner.to_string(), ..ApiKey::default() });
    let operations = vec![
        Operation::create(Key::new(Kind::Owner, owner.clone()), Arc::new(Owner { role: Role::Viewer })),
        Operation::Create { key, spec, claim: None, token: Some(hash) },
    ];
    let AppState { access, served, admissions, .. } = app.0.clone();
    served.store.commit(Author::Local, operations).unwrap();
    let session = access.sign_in(&HeaderMap::new(), token.expose());
    let cookie = cookie::set(&access.sessions, &session.ok().unwrap().0).unwrap();
    let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
    let router = router(app);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = |page: &str| {
        let request = axum::http::Request::builder().uri(format!("/ui/{page}")).header(header::COOKIE, cookie);
        let request = request.body(Body::empty()).unwrap();
        runtime.block_on(router.clone().oneshot(request)).unwrap().status()
    };
    let searches = ["edges?search=a", "routes?sort=host", "keys?use=never", "trace?url=a.example.com", "revisions"];
    for page in searches {
        assert_eq!(status(page), StatusCode::OK, "{page}");
    }
    let places: Vec<WorkPlace> = (0..100).map_while(|_| admissions.searches.for_owner(&owner).ok()).collect();
    for page in searches {
        assert_eq!(status(page), StatusCode::TOO_MANY_REQUESTS, "{page}");
    }
    for page in ["edges", "edges?search=", "routes", "keys", "trace", "certificates"] {
        assert_eq!(status(page), StatusCode::OK, "{page}");
    }
    drop(places);
    assert_eq!(status("keys?use=never"), StatusCode::OK);
}
