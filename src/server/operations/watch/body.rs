//! The body of a stream: chunks from a bounded buffer, and a last one that needs no room in it.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use axum::body::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;

/// A stream of events.
pub(super) struct EventBody {
    chunks: mpsc::Receiver<Bytes>,
    /// What is sent after the chunks, set before their sender is dropped.
    last: Arc<Mutex<Option<Bytes>>>,
}

impl EventBody {
    /// Creates a body of chunks.
    pub(super) fn new(chunks: mpsc::Receiver<Bytes>, last: Arc<Mutex<Option<Bytes>>>) -> Self {
        Self { chunks, last }
    }
}

impl HttpBody for EventBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match self.chunks.poll_recv(cx) {
            Poll::Ready(Some(chunk)) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
            Poll::Ready(None) => {
                let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
                Poll::Ready(last.map(|chunk| Ok(Frame::data(chunk))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
