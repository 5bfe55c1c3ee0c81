//! A body whose chunks come from a bounded buffer.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;

use crate::server::prelude::*;

/// The other end of the buffer.
pub(in crate::server) type Chunks = mpsc::Receiver<Result<Bytes, axum::Error>>;

/// A body in chunks, which ends when their senders are dropped.
pub(in crate::server) struct ChannelBody(pub(in crate::server) Chunks);

impl HttpBody for ChannelBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.0.poll_recv(cx).map(|chunk| Some(chunk?.map(Frame::data)))
    }
}

/// A response whose chunks are server-sent events.
pub(in crate::server) fn event_stream(events: Chunks) -> Response {
    let mut response = Response::new(Body::new(ChannelBody(events)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // nginx would keep events back until its buffer is full.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
