//! Lines of the access logs of web servers and proxies: the common and the combined format, both with the host in front,
//! and JSON of nginx and Envoy.
//!
//! # The problem
//!
//! A log has millions of lines, and clients write parts of each: paths, agents and user names can contain anything.
//!
//! # The idea
//!
//! A line is read as bytes, in one pass, and its fields are parts of it: only those with escapes are copied. A format is
//! recognized by its first readable line.
//!
//! For example, `192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET /cart?id=7 HTTP/1.1" 200 512` is a GET of `/cart` with 512
//! bytes.
//!
//! # What it never does
//!
//! It keeps no query of a URL, and decides nothing about the request.

mod escapes;
mod field;
mod json_line;
mod line;
mod request_line;
#[cfg(test)]
mod tests;
mod text_line;

pub(crate) use line::{AccessLine, LONGEST_LINE, LineProblem};

/// The format of an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessLogFormat {
    /// The common format, and the combined one, which also has the referrer and the User-Agent.
    Combined,
    /// The common or combined format after the host, and its port if the server writes one.
    VhostCombined,
    /// One JSON object per line, with the names of nginx or Envoy.
    Json,
}

impl AccessLogFormat {
    /// All formats.
    pub(crate) const ALL: [Self; 3] = [Self::Combined, Self::VhostCombined, Self::Json];

    /// The name.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            AccessLogFormat::Combined => "combined",
            AccessLogFormat::VhostCombined => "vhost-combined",
            AccessLogFormat::Json => "json",
        }
    }

    /// The format with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "common" => Some(AccessLogFormat::Combined),
            _ => Self::ALL.into_iter().find(|format| format.as_str() == name),
        }
    }

    /// The format of a line that is readable in it.
    pub(crate) fn recognize(line: &[u8]) -> Option<Self> {
        let format = if line.first() == Some(&b'{') { AccessLogFormat::Json } else { text_line::recognize(line)? };
        match format.read(line) {
            Err(LineProblem::OtherFormat) => None,
            _ => Some(format),
        }
    }

    /// Reads a line without its line break.
    pub(crate) fn read(self, line: &[u8]) -> Result<AccessLine<'_>, LineProblem> {
        if line.len() > LONGEST_LINE {
            return Err(LineProblem::TooLong);
        }
        match self {
            AccessLogFormat::Combined => text_line::read(line, false),
            AccessLogFormat::VhostCombined => text_line::read(line, true),
            AccessLogFormat::Json => json_line::read(line),
        }
    }
}
