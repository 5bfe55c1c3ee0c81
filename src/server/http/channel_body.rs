//! A body whose chunks come from a bounded buffer, with a last one that needs no room in it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::body::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;

/// A body in chunks.
pub(in crate::server) struct ChannelBody {
    chunks: mpsc::Receiver<Result<Bytes, axum::Error>>,
    /// The end of the body, set before the sender of chunks is dropped.
    last: Arc<Mutex<Option<Bytes>>>,
}

impl ChannelBody {
    /// Creates a body of chunks.
    pub(in crate::server) fn new(
        chunks: mpsc::Receiver<Result<Bytes, axum::Error>>,
        last: Arc<Mutex<Option<Bytes>>>,
    ) -> Self {
        Self { chunks, last }
    }
}

impl HttpBody for ChannelBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.chunks.poll_recv(cx) {
            Poll::Ready(Some(chunk)) => Poll::Ready(Some(chunk.map(Frame::data))),
            Poll::Ready(None) => {
                let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
                Poll::Ready(last.map(|chunk| Ok(Frame::data(chunk))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
