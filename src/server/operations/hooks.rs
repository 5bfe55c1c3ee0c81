//! POST `/hooks/git`: a webhook of a forge, which makes the server fetch and sync the sources of a repository at once
//! (D90).
//!
//! Anybody can send one, so what is cheap comes first: a request without one of the headers is refused before its body
//! is received, a body must come quickly, and only a body with the right signature is parsed. Of the payload, nothing
//! but the URLs of the repository is used. The answer does not wait for the fetch.

use std::{fs, path::Path};

use ring::hmac;

use crate::manifest::tree::remote::RemoteUrl;
use crate::model::Secret;
use crate::server::handler_prelude::*;
use crate::server::http::body::{self, Limits};
use crate::server::replicas::forwarder::OutgoingRequest;

/// The limits of a payload: a push of very many commits has a large one. Nobody knows yet who sends it, and the next webhook
/// may wait for its place, so it must come quickly.
pub(crate) const LIMITS: Limits = Limits {
    bytes: 4 << 20,
    values: 500_000,
    time: Duration::from_secs(10),
    first: Duration::from_secs(3),
    rate: 256 << 10,
    has_place: false,
};
/// The longest secret.
const MOST_SECRET_BYTES: u64 = 64 << 10;
/// The headers with an HMAC of the body, and what its hexadecimal form starts with: GitHub, Bitbucket, Gitea and Forgejo.
const DIGESTS: [(&str, &str); 4] = [
    ("x-hub-signature-256", "sha256="),
    ("x-hub-signature", "sha256="),
    ("x-gitea-signature", ""),
    ("x-forgejo-signature", ""),
];
/// The header with the secret itself: GitLab.
const TOKEN: &str = "x-gitlab-token";
/// The objects of a payload with the URLs of the repository, and their fields.
const REPOSITORIES: [&str; 2] = ["/repository", "/project"];
const URLS: [&str; 10] = [
    "clone_url",
    "ssh_url",
    "html_url",
    "url",
    "git_http_url",
    "git_ssh_url",
    "http_url",
    "web_url",
    "homepage",
    "links/html/href",
];

/// The response to a webhook.
#[derive(Serialize, JsonSchema)]
struct HookResponse {
    /// The names of the sources that are synced.
    sources: Vec<String>,
}

pub(super) static CREATE: ApiOperation = ApiOperation::open(MethodFilter::POST, "/hooks/git", |method| on(method, create))
    .any_query()
    .named("Sources", "receiveGitHook", "Receive a webhook of a Git forge")
    .described("Immediately syncs the sources that follow the webhook's repository. Instead of an API key, the request has one of the headers `X-Hub-Signature-256`, `X-Hub-Signature`, `X-Gitea-Signature` and `X-Forgejo-Signature` with the HMAC-SHA256 of the body, or `X-Gitlab-Token` with the secret. Responds with 404 unless the configuration file of the server sets `hooks.git`.")
    .documented("400 401 404 408 413 415 429 500 503", |operation, schemas| {
        let payload = json!({
            "type": "object",
            "description": "The event as the forge sends it. Only the URLs of the repository are used.",
            "additionalProperties": true,
        });
        let example = json!({"repository": {"clone_url": "https://git.example.com/team/edge.git"}});
        let operation = operation.without_key().body(payload, example);
        operation.responds("202", "Accepted", schemas.response::<HookResponse>())
    });

/// Syncs the sources whose repository a webhook is about.
async fn create(State(app): State<AppState>, request: Request) -> ApiResult {
    let AppState { forwarder, sources, admissions, .. } = app;
    let (parts, body) = request.into_parts();
    let headers = parts.headers.clone();
    let Some(file) = sources.git_hook.clone() else {
        return Err(ApiError::with_code(Code::NotFound, "not found: this server accepts no webhooks"));
    };
    query::check(parts.uri.query(), &[])?;
    // What is not signed is not received. Whether a signature is right is only known with the whole body.
    if !headers.contains_key(TOKEN) && !DIGESTS.iter().any(|(name, _)| headers.contains_key(*name)) {
        return Err(unsigned());
    }
    let bytes = body::take(&headers, body, LIMITS).await?;
    let place = admissions.hooks.enter(None, SlotPool::Shared)?;
    let (follows, signed) = (forwarder.is_needed(), bytes.clone());
    let answer = place.run(move |_| {
        let secret = read_secret(&file).map_err(|reason| {
            tracing::error!(file = %file.display(), reason, "cannot read the webhook secret");
            ApiError::with_code(Code::Unavailable, "the server cannot read the webhook secret")
        })?;
        if !is_signed(&headers, secret.expose().as_bytes(), &signed) {
            return Err(unsigned());
        }
        // This server syncs nothing.
        if follows {
            return Ok(None);
        }
        // A payload is larger than what is taken from it.
        let payload: Value = serde_json::from_slice(&signed)
            .map_err(|_| ApiError::with_code(Code::Syntax, "the webhook's payload is not valid JSON"))?;
        let urls = urls(&payload);
        let synced = sources.registry.iter().filter(|handle| handle.request_fetch(&urls));
        let sources = synced.map(|handle| handle.source.clone()).collect();
        json_response(StatusCode::ACCEPTED, &HookResponse { sources }).map(Some)
    });
    match answer.await? {
        Some(response) => Ok(response),
        None => forwarder.forward(&admissions.forwards, OutgoingRequest::new(None, &parts, bytes)).await,
    }
}

/// Reads the secret of webhooks. It is read for each request, so that a changed one takes effect without a restart.
pub(crate) fn read_secret(file: &Path) -> Result<Secret, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MOST_SECRET_BYTES {
        return Err(format!("larger than {} KiB", MOST_SECRET_BYTES >> 10));
    }
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let secret = Secret::new(text.trim_end_matches(['\r', '\n']));
    // Anyone can sign with an empty secret.
    if secret.expose().trim().is_empty() { Err("empty file".into()) } else { Ok(secret) }
}

fn unsigned() -> ApiError {
    let fault = Fault::new(Code::Unauthenticated, "the webhook is not signed with the secret of this server");
    ApiError::new(fault.help("set the same secret at the forge and in the `secret_file` of `hooks.git`"))
        .noted(SecurityNote::new(SecurityEvent::WebhookRefused, "wrong or missing signature", None))
}

/// Whether a header proves that the sender has the secret. All comparisons take constant time.
fn is_signed(headers: &HeaderMap, secret: &[u8], body: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let only = |name: &str| {
        let mut values = headers.get_all(name).iter();
        let value = values.next().filter(|_| values.next().is_none())?;
        value.to_str().ok().map(str::trim)
    };
    let has_digest = |(name, prefix): &(&str, &str)| {
        // Any 32 bytes in hexadecimal.
        let digest = only(name).and_then(|value| blake3::Hash::from_hex(value.strip_prefix(prefix)?).ok());
        digest.is_some_and(|digest| hmac::verify(&key, body, digest.as_bytes()).is_ok())
    };
    // Digests have one length, whatever the length of the token.
    let has_token = || {
        only(TOKEN).is_some_and(|token| hmac::verify(&key, token.as_bytes(), hmac::sign(&key, secret).as_ref()).is_ok())
    };
    DIGESTS.iter().any(has_digest) || has_token()
}

/// All URLs of the repository in a payload.
fn urls(payload: &Value) -> Vec<RemoteUrl> {
    let repositories = REPOSITORIES.iter().filter_map(|pointer| payload.pointer(pointer));
    let texts = repositories.flat_map(|repository| {
        URLS.iter().filter_map(move |field| repository.pointer(&format!("/{field}")).and_then(Value::as_str))
    });
    texts.filter_map(|text| RemoteUrl::parse(text).ok().flatten()).collect()
}

/// Checks properties of any bytes: a payload has a few URLs at most, and only the right digest is a signature.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzzed(bytes: &[u8]) {
    if let Ok(payload) = serde_json::from_slice::<Value>(bytes) {
        assert!(urls(&payload).len() <= REPOSITORIES.len() * URLS.len());
    }
    let _ = RemoteUrl::parse(&String::from_utf8_lossy(bytes));
    let mut headers = HeaderMap::new();
    for (name, prefix) in DIGESTS {
        let value = axum::http::HeaderValue::from_bytes(&[prefix.as_bytes(), bytes].concat());
        let name = name.parse::<axum::http::HeaderName>();
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.insert(name, value);
        }
    }
    assert!(!is_signed(&headers, b"a secret that no input knows", bytes), "a signature without the secret");
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const BODY: &[u8] = b"{\"ref\": \"refs/heads/main\"}";

    fn is_signed_by(header: &str, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        is_signed(&headers, b"secret", BODY)
    }

    #[test]
    fn the_headers_of_the_common_forges_prove_the_secret() {
        let digest = |secret: &[u8]| {
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), BODY);
            tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let (good, bad) = (digest(b"secret"), digest(b"other"));
        for (header, prefix) in DIGESTS {
            assert!(is_signed_by(header, &format!("{prefix}{good}")), "{header}");
            assert!(is_signed_by(header, &format!("{prefix}{}", good.to_uppercase())), "{header}");
            for wrong in [format!("{prefix}{bad}"), format!("sha1={good}"), prefix.to_owned(), good[1..].to_owned()] {
                assert!(!is_signed_by(header, &wrong), "{header}: {wrong}");
            }
        }
        assert!(is_signed_by("X-Gitlab-Token", "secret"));
        for wrong in ["", "Secret", "secret2", good.as_str()] {
            assert!(!is_signed_by("X-Gitlab-Token", wrong), "{wrong}");
        }
        assert!(!is_signed_by("Authorization", "secret"));
    }

    #[test]
    fn two_values_of_one_header_prove_nothing() {
        let mut headers = HeaderMap::new();
        for value in ["other", "secret"] {
            headers.append(TOKEN, HeaderValue::from_static(value));
        }
        assert!(!is_signed(&headers, b"secret", BODY));
    }

    #[test]
    fn the_repository_is_found_in_the_payloads_of_the_common_forges() {
        let own = RemoteUrl::parse("git@git.example.com:team/edge.git").unwrap().unwrap();
        for payload in [
            json!({"repository": {"clone_url": "https://git.example.com/team/edge.git", "id": 1}}),
            json!({"project": {"git_ssh_url": "git@git.example.com:team/edge.git"}, "repository": null}),
            json!({"repository": {"links": {"html": {"href": "https://git.example.com/team/edge"}}}}),
        ] {
            assert!(urls(&payload).iter().any(|url| url.is_same_repository(&own)), "{payload}");
        }
        for payload in [json!(null), json!([1]), json!({"repository": {"clone_url": 7, "url": "git://x/y"}})] {
            assert!(urls(&payload).is_empty(), "{payload}");
        }
    }
}
