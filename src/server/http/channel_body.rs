//! A body whose chunks come from a bounded buffer.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Body as HttpBody, Frame};
use tokio::sync::mpsc;

/// A body in chunks, which ends when their senders are dropped.
pub(in crate::server) struct ChannelBody(pub(in crate::server) mpsc::Receiver<Result<Bytes, axum::Error>>);

impl HttpBody for ChannelBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.0.poll_recv(cx).map(|chunk| Some(chunk?.map(Frame::data)))
    }
}
