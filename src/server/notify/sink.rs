//! How a notification reaches its target: as a signed request (Standard Webhooks), or as a line of a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::hmac;
use ureq::Agent;
use zeroize::Zeroizing;

use super::chat;
use super::config::{NotificationSink, WebhookFormat, WebhookUrl, check_url};
use super::message::Notification;
use crate::files::sync_folder;
use crate::http_client;
use crate::server::prelude::*;

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(5);
/// The timeout of a whole request.
const RESPONSE: Duration = Duration::from_secs(15);
/// The prefix of a secret.
const SECRET_PREFIX: &str = "whsec_";
/// The bytes of a secret, as Standard Webhooks limits them.
const LEAST_SECRET_BYTES: usize = 24;
const MOST_SECRET_BYTES: usize = 64;
/// The most bytes of the file of a secret or URL.
const MOST_SECRET_FILE: u64 = 4096;

/// Creates the client for webhooks.
pub(super) fn agent() -> Agent {
    http_client::agent(CONNECT, RESPONSE)
}

impl NotificationSink {
    /// Checks what can be checked without sending anything. Creates the file, so that a program can follow it.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            NotificationSink::Webhook { url, secret_file, .. } => {
                url.read()?;
                secret_file.as_deref().map(signing_key).transpose().map(drop)
            }
            NotificationSink::File(path) => match fs::metadata(path) {
                Ok(found) if !found.is_file() => Err(format!("`{}` is not a regular file", path.display())),
                _ => open(path).map(drop).map_err(|error| unwritable(path, &error)),
            },
        }
    }

    /// Delivers a notification. The error does not contain the URL or the secret.
    pub(super) fn deliver(&self, agent: &Agent, notification: &Notification) -> Result<(), String> {
        match self {
            NotificationSink::Webhook { url, format, secret_file } => {
                let body = match format {
                    WebhookFormat::Json => Cow::Borrowed(notification.body.as_slice()),
                    WebhookFormat::Slack => Cow::Owned(chat::slack(&notification.text)),
                    WebhookFormat::Teams => Cow::Owned(chat::teams(&notification.text)),
                };
                send(agent, url, secret_file.as_deref(), &notification.id, &body)
            }
            NotificationSink::File(path) => append(path, &notification.body).map_err(|error| unwritable(path, &error)),
        }
    }
}

impl WebhookUrl {
    /// The URL. The error does not contain it.
    fn read(&self) -> Result<Cow<'_, str>, String> {
        let (path, allow_http) = match self {
            WebhookUrl::Inline(url) => return Ok(Cow::Borrowed(url)),
            WebhookUrl::InFile { path, allow_http } => (path, *allow_http),
        };
        let url = read_short(path)?.trim().to_owned();
        match check_url(&url, allow_http) {
            Ok(()) => Ok(Cow::Owned(url)),
            Err(fault) => Err(format!("`{}`: {}", path.display(), fault.message)),
        }
    }
}

fn send(agent: &Agent, url: &WebhookUrl, secret_file: Option<&Path>, id: &Id, body: &[u8]) -> Result<(), String> {
    // Both are read for each attempt, so that they can be replaced while the server runs.
    let (url, key) = (url.read()?, secret_file.map(signing_key).transpose()?);
    let mut request = agent.post(&*url).header("Content-Type", "application/json");
    if let Some(key) = key {
        let (id, seconds) = (id.as_str(), Timestamp::now().as_second());
        request = request
            .header("webhook-id", id)
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", signature(&key, id, seconds, body));
    }
    let response = request.send(body).map_err(|error| http_client::reason_without_url(&error))?;
    match response.status().as_u16() {
        200..=299 => Ok(()),
        status => Err(format!("the webhook responded with status {status}")),
    }
}

/// The signature of a request: the HMAC of its id, time and body.
fn signature(key: &hmac::Key, id: &str, seconds: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(key);
    context.update(format!("{id}.{seconds}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign().as_ref()))
}

/// Reads the key of a webhook: `whsec_` and base64.
fn signing_key(path: &Path) -> Result<hmac::Key, String> {
    let text = read_short(path)?;
    parsed_key(text.trim()).ok_or_else(|| {
        format!(
            "`{}` must contain `{SECRET_PREFIX}` and {LEAST_SECRET_BYTES} to {MOST_SECRET_BYTES} bytes in base64",
            path.display()
        )
    })
}

/// Reads a file with a secret.
fn read_short(path: &Path) -> Result<Zeroizing<String>, String> {
    let mut text = Zeroizing::new(String::new());
    let read = File::open(path).and_then(|file| file.take(MOST_SECRET_FILE).read_to_string(&mut text));
    read.map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    Ok(text)
}

fn parsed_key(text: &str) -> Option<hmac::Key> {
    let bytes = Zeroizing::new(STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).ok()?);
    (LEAST_SECRET_BYTES..=MOST_SECRET_BYTES).contains(&bytes.len()).then(|| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Opens a file to append to it, and creates it if it does not exist.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write to `{}`: {error}", path.display())
}

/// Appends a line durably. If the last line was interrupted, the new one does not continue it.
fn append(path: &Path, body: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut line = Vec::with_capacity(body.len() + 2);
    if metadata.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            line.push(b'\n');
        }
    }
    line.extend_from_slice(body);
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_data()?;
    if metadata.len() == 0 {
        // The name of a new file must survive a power loss too.
        sync_folder(path)?;
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_as_in_the_specification() {
        let key = parsed_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_must_be_long_enough() {
        for text in [
            "",
            "whsec_",
            "whsec_c2hvcnQ=",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!",
        ] {
            assert!(parsed_key(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_line_does_not_continue_an_interrupted_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("changes.jsonl");
        append(&path, b"{}").unwrap();
        append(&path, b"[]").unwrap();
        fs::write(&path, "{}\n[").unwrap();
        append(&path, b"1").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n[\n1\n");
        assert!(NotificationSink::File(folder.path().to_owned()).check().is_err());
    }
}
