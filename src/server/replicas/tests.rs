//! What becomes of a request whose writer is gone, hangs or answers something else, of one whose client is gone, and of one that
//! names a revision of another server.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use axum::body::Bytes;
use axum::http::request::Parts;

use super::forwarded_client::{FORWARDED, ForwardedClient, ForwardingKey};
use super::forwarder::{Forwarder, OutgoingRequest};
use super::read_your_writes::has_revision;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::{IpRestriction, Operation};
use crate::server::auth::client_certificates::VouchedName;
use crate::server::limits::slots::Slots;
use crate::server::limits::slots::admissions::Admissions;
use crate::server::prelude::*;
use crate::store::engine::{Engine, FollowedWriter};
use crate::store::patched_engine::PatchedEngine;
use crate::store::{MEMORY, Retention};

/// A server that follows a writer at a URL.
struct TestFollower {
    engine: Arc<PatchedEngine>,
    store: Arc<Store>,
    forwarder: Forwarder,
    places: Slots,
}

impl TestFollower {
    fn of(url: &str) -> Self {
        let writer = FollowedWriter {
            name: "first".into(),
            url: Some(url.into()),
            began: None,
            gone_since: None,
            seen: Instant::now(),
        };
        let writer = Lock::new(Some(writer));
        let engine = Arc::new(PatchedEngine { is_shared: true, writer, ..PatchedEngine::default() });
        let store = Store::with_engine(Arc::clone(&engine) as Arc<dyn Engine>, Retention::default()).unwrap();
        let store = Arc::new(store);
        Self { engine, forwarder: Forwarder::new(Arc::clone(&store)), store, places: Admissions::default().forwards }
    }

    /// Forwards a request, and returns the status or the code of the error.
    async fn forward(&self, parts: &Parts, timeout: Option<Duration>) -> Result<u16, Code> {
        let outgoing = OutgoingRequest { timeout, ..OutgoingRequest::new(None, parts, Bytes::new()) };
        let forwarded = self.forwarder.forward(&self.places, outgoing).await;
        forwarded.map(|response| response.status().as_u16()).map_err(|error| error.code())
    }

    /// Waits until no thread is left.
    fn wait_for_threads(&self) {
        let began = Instant::now();
        while self.forwarder.threads.running() > 0 {
            assert!(began.elapsed() < Duration::from_secs(10), "a thread waits for nobody");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!((self.places.running(), self.places.waiting()), (0, 0));
    }
}

fn deletion() -> Parts {
    Request::builder().method("DELETE").uri("/edges/https/edghts_1").body(()).unwrap().into_parts().0
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// A server that gives one answer, and its URL.
fn answering(answer: &'static str) -> String {
    recording(answer).0
}

/// A server that gives one answer: its URL, and the request that it gets, in lower case.
fn recording(answer: &'static str) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let received = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).unwrap();
        assert!(read > 0);
        stream.write_all(answer.as_bytes()).unwrap();
        String::from_utf8_lossy(request.get(..read).unwrap()).to_lowercase()
    });
    (url, received)
}

/// A server that accepts connections, and never answers. It does so until it is dropped.
fn hanging() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn only_an_answer_of_a_server_to_the_request_itself_is_returned() {
    for (answer, expected) in [
        ("204 No Content\r\nrequest-id: op_1\r\n\r\n", Ok(204)),
        ("401 Unauthorized\r\nrequest-id: op_1\r\ncontent-length: 0\r\n\r\n", Ok(401)),
        (
            "401 Unauthorized\r\nrequest-id: op_1\r\nedgewright-forwarded: refused\r\ncontent-length: 0\r\n\r\n",
            Err(Code::NotTheWriter),
        ),
        ("204 No Content\r\n\r\n", Err(Code::WriterLost)),
        ("200 OK\r\nrequest-id: op_1\r\ncontent-length: 9999999999\r\n\r\n", Err(Code::WriterLost)),
    ] {
        let answer: &'static str = format!("HTTP/1.1 {answer}").leak();
        let follower = TestFollower::of(&answering(answer));
        assert_eq!(run(follower.forward(&deletion(), None)), expected, "{answer}");
        follower.wait_for_threads();
    }
}

#[test]
fn nothing_is_sent_to_a_writer_that_is_gone() {
    let (listener, url) = hanging();
    let follower = TestFollower::of(&url);
    follower.engine.writer.lock().as_mut().unwrap().gone_since = Instant::now().checked_sub(Duration::from_secs(3));
    assert_eq!(run(follower.forward(&deletion(), None)), Err(Code::NotTheWriter));
    assert!(follower.forwarder.check(&deletion()).is_err());
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
    follower.wait_for_threads();
}

#[test]
fn a_request_whose_client_is_gone_keeps_no_place_and_its_thread_ends_with_the_writer() {
    let (_listener, url) = hanging();
    let follower = TestFollower::of(&url);
    let abandoned =
        async { tokio::time::timeout(Duration::from_millis(200), follower.forward(&deletion(), None)).await };
    assert!(run(abandoned).is_err());
    assert_eq!((follower.places.running(), follower.forwarder.threads.running()), (0, 1));
    follower.forwarder.hang_up("another");
    assert_eq!(follower.forwarder.threads.running(), 1);
    follower.forwarder.hang_up("first");
    follower.wait_for_threads();
}

#[test]
fn a_request_ends_when_the_writer_is_replaced_or_its_timeout_is_over() {
    let (_listener, url) = hanging();
    let follower = TestFollower::of(&url);
    let timeout = Some(Duration::from_millis(100));
    assert_eq!(run(follower.forward(&deletion(), timeout)), Err(Code::WriterLost));
    follower.wait_for_threads();
    let replaced = run(async {
        let replacing = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            follower.engine.writer.lock().as_mut().unwrap().name = "second".into();
        };
        let deletion = deletion();
        tokio::join!(follower.forward(&deletion, None), replacing).0
    });
    assert_eq!(replaced, Err(Code::WriterLost));
    follower.wait_for_threads();
}

#[test]
fn the_name_in_a_certificate_is_sent_to_this_machine_or_inside_tls() {
    let mut parts = deletion();
    parts.extensions.insert(VouchedName("dns:client.example.com".into()));
    for url in ["http://192.0.2.1:8484", "http://[2001:db8::1]", "http://localhost.example.com"] {
        assert_eq!(run(TestFollower::of(url).forward(&parts, None)), Err(Code::InsecureTransport), "{url}");
    }
    let local = TestFollower::of(&answering("HTTP/1.1 204 No Content\r\nrequest-id: op_1\r\n\r\n"));
    assert_eq!(run(local.forward(&parts, None)), Ok(204));
}

#[test]
fn a_session_is_sent_to_this_machine_or_inside_tls_and_only_with_what_is_of_the_dashboard() {
    let with_cookie = |path: &str| {
        let request = Request::builder().method("POST").uri(path).header("Cookie", "__Host-edgewright=a");
        request.body(()).unwrap().into_parts().0
    };
    let form = with_cookie("/ui/sources/shop/sync");
    assert_eq!(run(TestFollower::of("http://192.0.2.1:8484").forward(&form, None)), Err(Code::InsecureTransport));
    for (path, is_sent) in [("/ui/sources/shop/sync", true), ("/sources/shop/sync", false)] {
        let (url, received) = recording(
            "HTTP/1.1 204 No Content
request-id: op_1

",
        );
        assert_eq!(run(TestFollower::of(&url).forward(&with_cookie(path), None)), Ok(204));
        assert_eq!(received.join().unwrap().contains("cookie: __host-edgewright=a"), is_sent, "{path}");
    }
}

#[test]
fn what_stands_for_the_form_of_a_session_is_not_sent() {
    let mut parts = deletion();
    parts.headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Session AAAA"));
    assert_eq!(run(TestFollower::of("http://127.0.0.1:1").forward(&parts, None)), Err(Code::NotTheWriter));
}

#[test]
fn a_store_that_no_other_server_has_gets_no_forwarded_requests() {
    let shared = TestFollower::of("http://127.0.0.1:1");
    let shared_store = Store::with_engine(Arc::clone(&shared.engine) as Arc<dyn Engine>, Retention::default());
    for (store, is_received) in [(shared_store.unwrap(), true), (Store::open(MEMORY).unwrap(), false)] {
        let store = Arc::new(store);
        let (key, digest) = (ForwardingKey::new(Arc::clone(&store)), blake3::hash(b"{}"));
        let mut request = Request::new(Body::from("{}"));
        let client = ForwardedClient { address: None, certificate: None };
        let (what, headers) = ((request.method(), request.uri()), request.headers());
        let signed = key.sign(what, headers, &digest, &client, clock::now()).unwrap();
        request.headers_mut().insert(FORWARDED, signed);
        assert_eq!(Forwarder::new(store).receive(&mut request).is_ok(), is_received);
        assert_eq!(request.extensions().get::<ForwardedClient>().is_some(), is_received);
    }
}

#[test]
fn a_revision_that_a_client_has_seen_is_waited_for_and_only_the_database_tells_that_there_is_none() {
    let TestFollower { store, .. } = TestFollower::of("http://127.0.0.1:1");
    let (places, owner) = (Admissions::default().catch_ups, Id::new("usr_a"));
    let seen = |revision: u64, happens: &dyn Fn()| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let began = tokio::time::Instant::now();
            let meanwhile = async {
                tokio::time::sleep(Duration::from_secs(1)).await;
                happens();
            };
            let (found, ()) = tokio::join!(has_revision(&store, revision, &places, &owner), meanwhile);
            (found.map_err(|error| error.code()), began.elapsed() > Duration::from_secs(4))
        })
    };
    let poll = || assert!(!store.catch_up().unwrap());
    let create = || {
        let spec = IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() };
        let operation = Operation::create(Key::new(Kind::IpRestriction, Id::new("ipx_a")), Arc::new(spec));
        store.commit(Author::Local, vec![operation]).unwrap();
    };
    assert_eq!(seen(0, &|| {}), (Ok(true), false));
    // What it has heard before says nothing of a revision that a client has seen since.
    poll();
    assert_eq!(seen(1, &|| {}), (Err(Code::NotCaughtUp), true));
    assert_eq!(seen(1, &poll), (Ok(false), true));
    assert_eq!(seen(1, &create), (Ok(true), false));
    // A writer that has its lock has all.
    assert_eq!(seen(2, &|| store.probe().unwrap()), (Ok(false), true));
    let (store, began) = (Store::open(MEMORY).unwrap(), Instant::now());
    let unknown = run(has_revision(&store, 1, &places, &owner));
    assert_eq!(unknown.ok(), Some(false));
    assert!(began.elapsed() < Duration::from_secs(4), "nobody else writes to it");
    assert_eq!(places.running(), 0);
}
