//! The bytes of a connection: it notes whether the client sends and takes any, and replaces bare refusals (D9, D97).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{activity::Activity, refusal};
use crate::server::prelude::*;

/// The most bytes that are read from a refused client: if the connection were closed with bytes that nobody has read, the
/// client might not see the refusal.
const MOST_DISCARDED: usize = 256 << 10;

/// A stream whose progress is noted.
#[derive(Debug)]
pub(super) struct WatchedStream<S> {
    inner: S,
    activity: Arc<Activity>,
    /// The rest of a refusal that is sent instead of a bare one.
    refusal: Option<Bytes>,
    discarded: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> WatchedStream<S> {
    /// Watches a stream.
    pub(super) fn new(inner: S, activity: Arc<Activity>) -> Self {
        Self { inner, activity, refusal: None, discarded: 0 }
    }

    fn note<T>(&self, written: &Poll<io::Result<T>>, bytes: impl FnOnce(&T) -> usize) {
        let taken = match written {
            Poll::Ready(written) => Some(written.as_ref().map_or(0, bytes)),
            Poll::Pending => None,
        };
        self.activity.note_written(taken, Instant::now());
    }

    /// Keeps a better refusal, if these bytes are a bare one.
    fn replaces(&mut self, bytes: &[u8]) -> bool {
        let better = if self.refusal.is_none() { refusal::replacement_for(bytes) } else { None };
        let Some(better) = better else { return false };
        self.activity.note_refused(Instant::now());
        self.refusal = Some(Bytes::from(better));
        true
    }

    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(rest) = &mut self.refusal else { return Poll::Ready(Ok(())) };
        while !rest.is_empty() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            rest.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut buffer = [0_u8; 4096];
        while self.discarded < MOST_DISCARDED {
            let mut read = ReadBuf::new(&mut buffer);
            ready!(Pin::new(&mut self.inner).poll_read(cx, &mut read))?;
            match read.filled().len() {
                0 => break,
                length => self.discarded += length,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.inner).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            this.activity.note_read(Instant::now());
        }
        read
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.replaces(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        ready!(this.poll_refusal(cx))?;
        let written = Pin::new(&mut this.inner).poll_write(cx, bytes);
        this.note(&written, |bytes| *bytes);
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        if let (Some(only), None) = (filled.next(), filled.next())
            && this.replaces(only)
        {
            return Poll::Ready(Ok(only.len()));
        }
        ready!(this.poll_refusal(cx))?;
        let written = Pin::new(&mut this.inner).poll_write_vectored(cx, slices);
        this.note(&written, |bytes| *bytes);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut flushed = this.poll_refusal(cx);
        if let Poll::Ready(Ok(())) = flushed {
            flushed = Pin::new(&mut this.inner).poll_flush(cx);
        }
        this.note(&flushed, |()| 0);
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusal(cx))?;
        ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
        if this.refusal.is_some() { this.poll_discard(cx) } else { Poll::Ready(Ok(())) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_bare_refusal_is_replaced_and_the_rest_of_the_request_is_read() {
        let (server, mut client) = tokio::io::duplex(1 << 16);
        let activity = Arc::new(Activity::new(Instant::now()));
        let mut stream = WatchedStream::new(server, activity);
        client.write_all(&[b'x'; 10_000]).await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        let reading = tokio::spawn(async move {
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        });
        stream.shutdown().await.unwrap();
        let answer = reading.await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert!(answer.ends_with('}') && answer.contains("ERR_EDGEWRIGHT_MALFORMED_REQUEST"), "{answer}");
    }

    #[tokio::test]
    async fn other_bytes_are_passed_on() {
        let (server, mut client) = tokio::io::duplex(1 << 16);
        let mut stream = WatchedStream::new(server, Arc::new(Activity::new(Instant::now())));
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        stream.write_all(b"body").await.unwrap();
        stream.shutdown().await.unwrap();
        drop(stream);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "HTTP/1.1 200 OK\r\n\r\nbody");
    }
}
