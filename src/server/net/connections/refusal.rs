//! Refusals of requests that reach no handler, with the common error body (D9): the HTTP parser refuses a head, or there
//! is no place for another connection.

use crate::model::Code;
use crate::server::http::api_error::{ApiError, REQUEST_ID};

/// The most bytes of a bare refusal of the HTTP parser.
const MOST_BYTES: usize = 256;

/// Returns the response to send instead of a bare refusal of the HTTP parser. All responses of handlers have a request id
/// (D8).
pub(super) fn replacement_for(response: &[u8]) -> Option<Vec<u8>> {
    if response.len() > MOST_BYTES || !response.ends_with(b"\r\n\r\n") {
        return None;
    }
    let head = std::str::from_utf8(response).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ").or_else(|| head.strip_prefix("HTTP/1.0 "))?.get(..3)?;
    if head.lines().any(|line| line.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case(REQUEST_ID))) {
        return None;
    }
    let error = match status {
        "400" => ApiError::with_code(Code::MalformedRequest, "the bytes are not an HTTP request"),
        "414" | "431" => {
            ApiError::with_code(Code::HeadTooLarge, "the URL and the headers of the request are too large or too many")
        }
        _ => return None,
    };
    Some(error.to_http1())
}

/// Returns the response of a server that has no place for another connection.
pub(super) fn too_many_connections() -> Vec<u8> {
    ApiError::with_code(Code::Unavailable, "the server has too many connections").retry_after(1).to_http1()
}

/// Returns the response to a plain request on a port for TLS.
pub(super) fn tls_required() -> Vec<u8> {
    ApiError::with_code(Code::MalformedRequest, "this port requires TLS; use an `https` URL").to_http1()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn body(response: &[u8]) -> serde_json::Value {
        let text = std::str::from_utf8(response).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        assert_eq!(length.parse::<usize>().unwrap(), body.len());
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let id = head.lines().find_map(|line| line.strip_prefix("request-id: ")).unwrap();
        assert_eq!(body["details"]["operation_id"], id);
        for header in ["cache-control: no-store", "x-content-type-options: nosniff", "referrer-policy: no-referrer"] {
            assert!(head.lines().any(|line| line == header), "{header} in {head}");
        }
        body
    }

    #[test]
    fn refusals_of_the_parser_get_a_body() {
        for (bare, code, status) in [
            ("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", "MALFORMED_REQUEST", 400),
            ("HTTP/1.1 431 Request Header Fields Too Large\r\n\r\n", "HEAD_TOO_LARGE", 431),
            ("HTTP/1.0 414 URI Too Long\r\n\r\n", "HEAD_TOO_LARGE", 431),
        ] {
            let response = replacement_for(bare.as_bytes()).unwrap();
            assert!(response.starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{bare}");
            let body = body(&response);
            assert_eq!(body["error_code"], format!("ERR_EDGEWRIGHT_{code}"));
            assert_eq!(body["status_code"], status);
            // The parser does not say which it was.
            assert_eq!(body["msg"].as_str().unwrap().contains("too large or too many"), status == 431);
        }
        assert_eq!(body(&too_many_connections())["status_code"], 503);
        assert_eq!(body(&tls_required())["status_code"], 400);
    }

    #[test]
    fn responses_of_handlers_stay_as_they_are() {
        for other in [
            "HTTP/1.1 400 Bad Request\r\nrequest-id: op_1\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}",
            "HTTP/1.1 404 Not Found\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "HTTP/1.1 4\r\n\r\n",
            "",
        ] {
            assert_eq!(replacement_for(other.as_bytes()), None, "{other}");
        }
    }
}
