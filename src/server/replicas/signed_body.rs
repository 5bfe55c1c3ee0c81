//! The body of a forwarded request, which is the one that the other server has signed, or ends with an error (D115).

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::server::prelude::*;

/// A body that is compared with a digest at its end: whoever reads all of it has what was signed.
pub(super) struct SignedBody {
    body: Body,
    hasher: blake3::Hasher,
    signed: blake3::Hash,
    /// Whether all of it has come, and is what was signed.
    is_verified: bool,
}

impl SignedBody {
    /// A body that must have a digest.
    pub(super) fn new(body: Body, signed: blake3::Hash) -> Self {
        let is_verified = body.is_end_stream() && blake3::hash(b"") == signed;
        Self { body, hasher: blake3::Hasher::new(), signed, is_verified }
    }
}

impl HttpBody for SignedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &polled {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.hasher.update(data);
                }
            }
            Some(Err(_)) => {}
            None if self.is_verified => {}
            None if self.hasher.finalize() == self.signed => self.is_verified = true,
            None => return Poll::Ready(Some(Err(axum::Error::new("this is not the body that was signed")))),
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.is_verified
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// Reads a body, if it is the signed one.
    async fn read(sent: &'static [u8], signed: &[u8]) -> Option<Bytes> {
        let body = Body::new(SignedBody::new(Body::from(sent), blake3::hash(signed)));
        body.collect().await.ok().map(|all| all.to_bytes())
    }

    #[tokio::test]
    async fn only_the_body_that_was_signed_is_read_to_its_end() {
        for body in [&b""[..], b"{}"] {
            assert_eq!(read(body, body).await.as_deref(), Some(body));
        }
        assert_eq!([read(b"", b"{}").await, read(b"{}", b"").await, read(b"{}", b"[]").await], [None, None, None]);
        let is_end = |signed: &[u8]| SignedBody::new(Body::empty(), blake3::hash(signed)).is_end_stream();
        assert!(is_end(b"") && !is_end(b"{}"));
    }
}
