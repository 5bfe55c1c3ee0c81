//! A line of an access log: the request that it tells of, or why it tells of none.

use std::borrow::Cow;

/// The longest line that is read, in bytes.
pub(crate) const LONGEST_LINE: usize = 64 << 10;

/// A request that was logged. The texts are those of the line, without escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AccessLine<'l> {
    pub method: Cow<'l, str>,
    /// The host without a port; none if the line has none.
    pub host: Option<Cow<'l, str>>,
    /// The port of the host, of the server, or of the scheme, if the line has one.
    pub port: Option<u16>,
    /// The path as in the request, without the query.
    pub path: Cow<'l, str>,
    /// The address of the client, or whatever else the line has for it; may be empty.
    pub client: Cow<'l, [u8]>,
    /// The User-Agent; empty if the request had none, and none if the line does not tell.
    pub user_agent: Option<Cow<'l, str>>,
    /// The bytes of the response.
    pub bytes: u64,
}

/// Why a line is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LineProblem {
    /// A line in another format, or one that was cut off.
    #[error("not in the format of the file")]
    OtherFormat,
    /// A line longer than any that is read.
    #[error("longer than {} KiB", LONGEST_LINE >> 10)]
    TooLong,
    /// A connection without a readable request, such as one of a port scanner. The server has answered it by itself.
    #[error("without a request")]
    NoRequest,
}
