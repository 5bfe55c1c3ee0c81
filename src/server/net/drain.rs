//! Drains the rest of a rejected request's body while the response is on its way. If the connection were closed while
//! the client still writes, the client would see a broken connection instead of the response.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::server::prelude::*;
use axum::body::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::oneshot;

/// The most bytes to drain.
const MOST_BYTES: usize = 64 << 20;
/// The longest time to drain.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Handles a request, and drains the rest of its body if the handler did not read it. The response does not wait for
/// that: a client may declare a body and wait for an answer before it sends any of it.
pub(crate) async fn drain<A: Future>(request: Request, handle: impl FnOnce(Request) -> A) -> A::Output {
    if request.body().is_end_stream() {
        return handle(request).await;
    }
    let waits = request.headers().contains_key(header::EXPECT);
    let (sender, mut left) = oneshot::channel();
    let request = request.map(|body| Body::new(ReturnedBody { body, waits, sender: Some(sender) }));
    let response = handle(request).await;
    if let Ok(body) = left.try_recv() {
        tokio::spawn(tokio::time::timeout(TIMEOUT, discard(body)));
    }
    response
}

async fn discard(mut body: Body) {
    let mut read = 0;
    while let Some(Ok(frame)) = body.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MOST_BYTES {
            return;
        }
    }
}

/// A body that is returned if it is dropped before its end.
struct ReturnedBody {
    body: Body,
    /// Whether the client sends no body yet: it expects 100-continue, which it gets when somebody asks for the body.
    waits: bool,
    sender: Option<oneshot::Sender<Body>>,
}

impl HttpBody for ReturnedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.waits = false;
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ReturnedBody {
    fn drop(&mut self) {
        if let Some(sender) = self.sender.take()
            && !self.waits
            && !self.body.is_end_stream()
        {
            let _ = sender.send(std::mem::take(&mut self.body));
        }
    }
}
