//! The body of a response on its way to a client: in small parts of shared bytes, so that it shows what the client takes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::activity::{LEAST_TAKEN, RequestInProgress};

/// The largest part. One is copied per stream with TLS.
const PART: usize = LEAST_TAKEN;
/// The largest part over HTTP/1 without TLS, where the socket shows what the client takes of a part. The system copies few
/// large ones in less time.
const LARGE_PART: usize = 256 << 10;

/// A body that tells the connection of its progress.
#[derive(Debug)]
pub(super) struct SentBody {
    body: Body,
    /// The rest of the last frame.
    rest: Bytes,
    /// The largest part.
    most: usize,
    flight: RequestInProgress,
}

impl SentBody {
    /// Sends a body. `in_large_parts` is for HTTP/1 without TLS.
    pub(super) fn new(body: Body, mut flight: RequestInProgress, in_large_parts: bool) -> Self {
        let hint = body.size_hint();
        let bytes = usize::try_from(hint.upper().unwrap_or(hint.lower())).unwrap_or(usize::MAX);
        flight.answered(bytes, Instant::now());
        let most = if in_large_parts { LARGE_PART } else { PART };
        Self { body, rest: Bytes::new(), most, flight }
    }

    fn next_part(&mut self) -> Frame<Bytes> {
        let part = self.rest.split_to(self.rest.len().min(self.most));
        self.flight.handed(part.len(), Instant::now());
        Frame::data(part)
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if !this.rest.is_empty() {
            return Poll::Ready(Some(Ok(this.next_part())));
        }
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Pending => {
                this.flight.caught_up();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    this.rest = data;
                    Poll::Ready(Some(Ok(this.next_part())))
                }
                Err(frame) => Poll::Ready(Some(Ok(frame))),
            },
            Poll::Ready(end) => Poll::Ready(end),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, following) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(following.lower().saturating_add(rest));
        if let Some(upper) = following.upper() {
            hint.set_upper(upper.saturating_add(rest));
        }
        hint
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use http_body_util::BodyExt;

    use super::*;
    use crate::server::net::connections::activity::Activity;

    #[tokio::test]
    async fn a_large_body_is_sent_in_parts_that_share_its_bytes() {
        for (in_large_parts, part) in [(false, PART), (true, LARGE_PART)] {
            sent(in_large_parts, 3 * part + 1).await;
        }
    }

    async fn sent(in_large_parts: bool, length: usize) {
        let whole = Bytes::from(vec![b'x'; length]);
        let activity = Arc::new(Activity::new(Instant::now()));
        let mut body = SentBody::new(Body::from(whole.clone()), activity.begin(!in_large_parts), in_large_parts);
        let (mut at, mut parts) = (0, 0);
        while let Some(frame) = body.frame().await {
            let part = frame.unwrap().into_data().unwrap();
            assert_eq!(part.as_ptr(), whole.slice(at..).as_ptr(), "the bytes are not copied");
            at += part.len();
            parts += 1;
            assert_eq!(body.size_hint().exact(), Some((whole.len() - at) as u64));
            assert_eq!(body.is_end_stream(), at == whole.len());
        }
        assert_eq!((at, parts), (whole.len(), 4));
    }
}
