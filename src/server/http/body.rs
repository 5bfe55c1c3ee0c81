//! Request bodies: size, content type and syntax, in the order of D3.

use axum::body::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::Instant;

use super::api_error::ApiError;
use crate::model::json::deserialize::{self, LimitError};
use crate::model::json::long_integer;
use crate::server::limits::blocking_task::with_body;
use crate::server::limits::guards::{Reception, RequestPlace};
use crate::server::prelude::*;
use crate::syntax::yaml::Tape;

/// The size of a body's beginning, from which [`take_begun`] judges the rest.
const BEGINNING: usize = 1 << 10;
/// The maximum nesting depth of a body (D39).
const MOST_LEVELS: usize = 128;

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The size in bytes.
    pub bytes: usize,
    /// The number of values, including keys and collections (D48).
    pub values: usize,
    /// The time to receive it.
    pub time: Duration,
    /// How long a client may take to begin.
    pub first: Duration,
    /// The bytes per second of the slowest client that is waited for after that.
    pub rate: u64,
    /// Whether a place of its own bounds the memory for it (D52).
    pub has_place: bool,
}

impl Limits {
    /// The limits of a resource or module (D39).
    pub(crate) const RESOURCE: Self = Self {
        bytes: 2 << 20,
        values: 200_000,
        time: Duration::from_secs(15),
        first: Duration::from_secs(10),
        rate: 32 << 10,
        has_place: false,
    };
    /// The limits of a source's manifests (D45).
    pub(crate) const MANIFESTS: Self =
        Self { bytes: 64 << 20, values: 2_000_000, time: Duration::from_secs(120), ..Self::RESOURCE };

    /// The time for a body of which so much has arrived: a client that sends byte by byte must not hold a place that
    /// others wait for.
    fn time_limit(self, received: usize) -> Duration {
        let at_least = Duration::from_millis(received as u64 * 1000 / self.rate.max(1));
        (self.first + at_least).min(self.time)
    }
}

/// Reads a JSON body, and returns it with the faults of its keys and numbers, and its size. An empty body is null.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: Limits,
) -> Result<(Tape, Vec<Fault>, usize), ApiError> {
    let bytes = take(headers, body, limits).await?;
    let size = bytes.len();
    let (content, faults) = with_body(size, move || parse(&bytes, limits)).await??;
    Ok((content, faults, size))
}

/// Reads the bytes of a body with a JSON content type, or of an empty body. Outside a request, which only a bug causes, it
/// fails with an internal error.
pub(crate) async fn take(headers: &HeaderMap, body: Body, limits: Limits) -> Result<Bytes, ApiError> {
    take_begun(headers, body, limits, |_| Ok(())).await
}

/// Like [`take`]. `judge` gets the first bytes of a body with more than a few, and can refuse to receive the rest.
pub(crate) async fn take_begun(
    headers: &HeaderMap,
    body: Body,
    limits: Limits,
    judge: impl FnOnce(&[u8]) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let bytes = take_any(headers, body, limits, judge).await?;
    if !bytes.is_empty() && !is_json(headers) {
        return Err(ApiError::with_code(
            Code::ContentType,
            "the request body must have `Content-Type: application/json`",
        ));
    }
    Ok(bytes)
}

/// Reads the bytes of a body with any content type, such as a form.
pub(crate) async fn take_any(
    headers: &HeaderMap,
    body: Body,
    limits: Limits,
    judge: impl FnOnce(&[u8]) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limits.bytes as u64) {
        return Err(too_large(limits));
    }
    let mut reception = RequestPlace::begin_receiving()?;
    let bytes = receive(body, limits, &mut reception, judge).await?;
    RequestPlace::end_receiving(reception)?;
    Ok(bytes)
}

/// Receives the bytes of a body while others leave it room.
async fn receive(
    body: Body,
    limits: Limits,
    reception: &mut Reception,
    judge: impl FnOnce(&[u8]) -> Result<(), ApiError>,
) -> Result<Bytes, ApiError> {
    let (began, mut body, mut bytes) = (Instant::now(), Limited::new(body, limits.bytes), Vec::new());
    let mut judge = Some(judge);
    loop {
        let left = limits.time_limit(bytes.len()).saturating_sub(began.elapsed());
        let frame = tokio::select! {
            biased;
            stopped = reception.stopped() => return Err(stopped),
            frame = tokio::time::timeout(left, body.frame()) => frame,
        };
        let data = match frame {
            Ok(None) => return Ok(Bytes::from(bytes)),
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => return Err(too_large(limits)),
            Ok(Some(Err(_))) => return Err(ApiError::with_code(Code::Syntax, "incomplete request body")),
            Err(_) => {
                return Err(ApiError::with_code(Code::Timeout, "timeout while receiving the request body"));
            }
        };
        if !limits.has_place {
            reception.grow(data.len())?;
        }
        bytes.extend_from_slice(&data);
        if bytes.len() >= BEGINNING
            && let Some(judge) = judge.take()
        {
            judge(&bytes)?;
        }
    }
}

fn too_large(limits: Limits) -> ApiError {
    ApiError::with_code(Code::BodyTooLarge, format!("the request body must be at most {} bytes", limits.bytes))
}

/// Parses the bytes as JSON, and returns the faults of its keys and numbers. An empty body is null.
pub(crate) fn parse(bytes: &[u8], limits: Limits) -> Result<(Tape, Vec<Fault>), ApiError> {
    if bytes.is_empty() {
        return Ok((Tape::default(), Vec::new()));
    }
    let syntax = |error: serde_json::Error| {
        let (text, line, column) = (error.to_string(), error.line(), error.column());
        let reason = text.split(" at line ").next().unwrap_or_default();
        let message = format!("the request body is not valid JSON: {reason} (line {line}, column {column})");
        ApiError::with_code(Code::Syntax, message)
    };
    if let Some(excess) = deserialize::check_limits(bytes, MOST_LEVELS, limits.values) {
        let (code, excess) = match excess {
            LimitError::Levels(_) => (Code::Syntax, format!("is nested more than {MOST_LEVELS} levels deep")),
            LimitError::Values(_) => (Code::BodyTooLarge, format!("contains more than {} values", limits.values)),
        };
        return Err(ApiError::with_code(code, format!("the request body {excess}")));
    }
    let mut content: Tape = deserialize::from_slice(bytes).map_err(syntax)?;
    long_integer::mark(&mut content, bytes);
    let faults = content.take_faults();
    Ok((content, faults))
}

fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::{Body as HttpBody, Frame};
    use tokio::time::Interval;

    use super::*;
    use crate::server::limits::guards::{GuardSettings, Guards};
    use crate::server::operations::hooks;

    /// A client that sends so many bytes each second and never ends.
    struct SlowClient {
        seconds: Interval,
        bytes: usize,
    }

    impl HttpBody for SlowClient {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            let bytes = self.bytes;
            self.seconds.poll_tick(cx).map(|_| Some(Ok(Frame::data(Bytes::from(vec![b' '; bytes])))))
        }
    }

    /// The seconds after which a client is given up.
    async fn given_up(bytes: usize, limits: Limits) -> u64 {
        let began = Instant::now();
        let body = SlowClient { seconds: tokio::time::interval(Duration::from_secs(1)), bytes };
        let place = Guards::new(GuardSettings::default(), None).in_flight.enter("/trace", None).unwrap();
        let error = place.hold(take(&HeaderMap::new(), Body::new(body), limits)).await.unwrap_err();
        assert_eq!(error.code(), Code::Timeout);
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_is_given_up_and_sooner_if_nobody_has_authenticated_it() {
        for (bytes, limits, seconds) in [
            (1, Limits::RESOURCE, 10),
            (40 << 10, Limits::RESOURCE, 15),
            (40 << 10, Limits::MANIFESTS, 120),
            (1, hooks::LIMITS, 3),
            (64 << 10, hooks::LIMITS, 4),
            (300 << 10, hooks::LIMITS, 10),
        ] {
            assert_eq!(given_up(bytes, limits).await, seconds, "{bytes} bytes per second, {limits:?}");
        }
    }
}
