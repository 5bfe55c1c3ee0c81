//! Request bodies: size, content type and syntax, in the order of D3.

use std::time::{Duration, Instant};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::{answer::ApiError, work::with_body};
use crate::model::{
    code::Code,
    fault::Fault,
    long_integer,
    node::Tape,
    unbounded::{self, Excess},
};

/// The maximum nesting depth of a body (D39).
const MOST_LEVELS: usize = 128;

/// How long a client may take to begin.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);
/// The slowest client that is waited for after that.
const LEAST_BYTES_PER_SECOND: u64 = 32 << 10;

/// The limits of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The size in bytes.
    pub bytes: usize,
    /// The number of values, including keys and collections (D48).
    pub values: usize,
    /// The time to receive it.
    pub time: Duration,
}

impl Limits {
    /// The limits of a resource or module (D39).
    pub(crate) const RESOURCE: Self = Self { bytes: 2 << 20, values: 200_000, time: Duration::from_secs(15) };
    /// The limits of a source's manifests (D45).
    pub(crate) const MANIFESTS: Self = Self { bytes: 64 << 20, values: 2_000_000, time: Duration::from_secs(120) };

    /// The time for a body of which so much has arrived: a client that sends byte by byte must not hold a place that
    /// others wait for.
    fn patience(self, received: usize) -> Duration {
        let at_least = Duration::from_millis(received as u64 * 1000 / LEAST_BYTES_PER_SECOND);
        (FIRST_PATIENCE + at_least).min(self.time)
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

/// Reads the bytes of a body with a JSON content type, or of an empty body.
pub(crate) async fn take(headers: &HeaderMap, body: Body, limits: Limits) -> Result<Bytes, ApiError> {
    let too_large =
        || ApiError::of(Code::BodyTooLarge, format!("the request body must be at most {} bytes", limits.bytes));
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limits.bytes as u64) {
        return Err(too_large());
    }
    let (began, mut body, mut bytes) = (Instant::now(), Limited::new(body, limits.bytes), Vec::new());
    loop {
        let left = limits.patience(bytes.len()).saturating_sub(began.elapsed());
        match tokio::time::timeout(left, body.frame()).await {
            Err(_) => return Err(ApiError::of(Code::Timeout, "timeout while receiving the request body")),
            Ok(None) => break,
            Ok(Some(Ok(frame))) => bytes.extend_from_slice(frame.data_ref().map(Bytes::as_ref).unwrap_or_default()),
            Ok(Some(Err(error))) if error.is::<LengthLimitError>() => return Err(too_large()),
            Ok(Some(Err(_))) => return Err(ApiError::of(Code::Syntax, "incomplete request body")),
        }
    }
    let bytes = Bytes::from(bytes);
    if !bytes.is_empty() && !is_json(headers) {
        return Err(ApiError::of(Code::ContentType, "the request body must have `Content-Type: application/json`"));
    }
    Ok(bytes)
}

/// Parses the bytes as JSON, and returns the faults of its keys and numbers. An empty body is null.
pub(crate) fn parse(bytes: &[u8], limits: Limits) -> Result<(Tape, Vec<Fault>), ApiError> {
    if bytes.is_empty() {
        return Ok((Tape::default(), Vec::new()));
    }
    let syntax = |error: serde_json::Error| {
        let text = error.to_string();
        let reason = text.split(" at line ").next().unwrap_or_default();
        ApiError::of(
            Code::Syntax,
            format!("the request body is not valid JSON: {reason} (line {}, column {})", error.line(), error.column()),
        )
    };
    match unbounded::excess(bytes, MOST_LEVELS, limits.values) {
        None => {}
        Some(Excess::Levels(_)) => {
            return Err(ApiError::of(
                Code::Syntax,
                format!("the request body is nested more than {MOST_LEVELS} levels deep"),
            ));
        }
        Some(Excess::Values(_)) => {
            let message = format!("the request body contains more than {} values", limits.values);
            return Err(ApiError::of(Code::BodyTooLarge, message));
        }
    }
    let mut content: Tape = unbounded::from_slice(bytes).map_err(syntax)?;
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
