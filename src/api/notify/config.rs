//! The targets of notifications in the configuration file (D81).

use std::{collections::BTreeSet, path::PathBuf};

use axum::http::Uri;
use serde::Deserialize;

use super::{
    super::change::kind_named,
    events::{EventFilter, EventType},
};
use crate::{
    model::{
        code::Code,
        fault::{Fault, Path},
        id::is_name,
    },
    reconcile::check_source,
    text::printable,
};

/// The most targets: each has a thread.
const MOST_TARGETS: usize = 32;

/// `notifications` in the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NotificationConfig {
    /// Webhooks to send notifications to.
    webhooks: Vec<WebhookConfig>,
    /// Files to append notifications to.
    files: Vec<ChangeFileConfig>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WebhookConfig {
    name: String,
    url: String,
    url_file: PathBuf,
    format: WebhookFormat,
    secret_file: PathBuf,
    allow_http: bool,
    kinds: Vec<String>,
    sources: Vec<String>,
    events: Vec<EventType>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ChangeFileConfig {
    name: String,
    path: PathBuf,
    kinds: Vec<String>,
    sources: Vec<String>,
    events: Vec<EventType>,
}

/// The form of a webhook's requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WebhookFormat {
    /// The notification, signed as Standard Webhooks specifies.
    #[default]
    Json,
    /// The message of an incoming webhook of Slack.
    Slack,
    /// The card of an incoming webhook of Microsoft Teams.
    Teams,
}

/// Where the URL of a webhook is. It can contain a token, so no message shows it.
#[derive(Debug, Clone)]
pub(crate) enum WebhookUrl {
    /// In the configuration file.
    Given(String),
    /// In a file of its own.
    InFile {
        /// The file.
        path: PathBuf,
        /// Whether the URL can be unencrypted.
        allow_http: bool,
    },
}

/// A target of notifications.
#[derive(Debug, Clone)]
pub(crate) struct NotificationTarget {
    /// Its name, under which its cursor is kept.
    pub name: String,
    /// What it is told of.
    pub filter: EventFilter,
    /// Where they go.
    pub sink: NotificationSink,
}

/// Where notifications go.
#[derive(Debug, Clone)]
pub(crate) enum NotificationSink {
    /// A URL.
    Webhook {
        /// The URL.
        url: WebhookUrl,
        /// The form of its requests.
        format: WebhookFormat,
        /// The file with the secret that signs requests, if any.
        secret_file: Option<PathBuf>,
    },
    /// A file, one JSON object a line.
    File(PathBuf),
}

impl NotificationConfig {
    /// Validates the targets. A fault has its path below `notifications`.
    pub(crate) fn targets(self) -> Result<Vec<NotificationTarget>, Fault> {
        let mut targets = Vec::new();
        for (number, webhook) in self.webhooks.into_iter().enumerate() {
            let at = Path::root().join("webhooks").join(number);
            let under = |fault: Fault| beneath(fault, &at);
            let WebhookConfig { url, url_file, format, secret_file, allow_http, .. } = webhook;
            let url = webhook_url(url, url_file, allow_http).map_err(under)?;
            let secret_file = Some(secret_file).filter(|file| !file.as_os_str().is_empty());
            if format == WebhookFormat::Json {
                required("secret_file", secret_file.is_none()).map_err(under)?;
            }
            let filter = filter(&webhook.kinds, webhook.sources, webhook.events).map_err(under)?;
            let sink = NotificationSink::Webhook { url, format, secret_file };
            add(&mut targets, NotificationTarget { name: webhook.name, filter, sink }).map_err(under)?;
        }
        for (number, file) in self.files.into_iter().enumerate() {
            let at = Path::root().join("files").join(number);
            let under = |fault: Fault| beneath(fault, &at);
            required("path", file.path.as_os_str().is_empty()).map_err(under)?;
            let filter = filter(&file.kinds, file.sources, file.events).map_err(under)?;
            let sink = NotificationSink::File(file.path);
            add(&mut targets, NotificationTarget { name: file.name, filter, sink }).map_err(under)?;
        }
        Ok(targets)
    }
}

fn beneath(fault: Fault, at: &Path) -> Fault {
    let path = fault.path.clone().under(at);
    fault.at(path)
}

fn field(code: Code, name: &str, message: impl Into<String>) -> Fault {
    Fault::new(code, message).at(Path::root().join(name))
}

fn required(name: &str, is_missing: bool) -> Result<(), Fault> {
    if is_missing { Err(field(Code::Required, name, format!("`{name}` is required"))) } else { Ok(()) }
}

/// Adds a target. Its name identifies its cursor, so it must be unique.
fn add(targets: &mut Vec<NotificationTarget>, target: NotificationTarget) -> Result<(), Fault> {
    required("name", target.name.is_empty())?;
    if !is_name(&target.name) {
        let message =
            format!("`{}` is not a valid name: use lower-case letters, digits, `-` and `.`", printable(&target.name));
        return Err(field(Code::InvalidName, "name", message));
    }
    if targets.iter().any(|other| other.name == target.name) {
        return Err(field(Code::DuplicateName, "name", format!("duplicate name `{}`", target.name)));
    }
    if targets.len() >= MOST_TARGETS {
        return Err(Fault::new(Code::OutOfRange, format!("at most {MOST_TARGETS} targets are allowed")));
    }
    targets.push(target);
    Ok(())
}

fn webhook_url(url: String, url_file: PathBuf, allow_http: bool) -> Result<WebhookUrl, Fault> {
    match (url.is_empty(), url_file.as_os_str().is_empty()) {
        (true, true) => Err(field(Code::Required, "url", "`url` or `url_file` is required")
            .help("set `url_file` to a file with the URL")),
        (false, false) => {
            Err(field(Code::NotAllowed, "url_file", "`url` and `url_file` cannot be combined")
                .help("remove one of them"))
        }
        (true, false) => Ok(WebhookUrl::InFile { path: url_file, allow_http }),
        (false, true) => check_url(&url, allow_http).map(|()| WebhookUrl::Given(url)),
    }
}

/// Checks a URL. The fault does not contain it.
pub(super) fn check_url(url: &str, allow_http: bool) -> Result<(), Fault> {
    let invalid = |message: &str| Err(field(Code::InvalidFormat, "url", message));
    let Ok(uri) = url.parse::<Uri>() else { return invalid("`url` is not a URL") };
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return invalid("`url` has no host");
    };
    if authority.as_str().contains('@') {
        return invalid("`url` must not contain a user name or password");
    }
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if allow_http => Ok(()),
        Some("http") => Err(field(Code::NotAllowed, "url", "`url` must start with `https://`")
            .help("set `allow_http: true` to send notifications over unencrypted HTTP")),
        _ => invalid("`url` must start with `https://`"),
    }
}

fn filter(kinds: &[String], sources: Vec<String>, events: Vec<EventType>) -> Result<EventFilter, Fault> {
    let mut found = BTreeSet::new();
    for (number, name) in kinds.iter().enumerate() {
        let kind = kind_named(name, Code::UnknownKind);
        found.insert(kind.map_err(|fault| fault.at(Path::root().join("kinds").join(number)))?);
    }
    for (number, source) in sources.iter().enumerate() {
        let at = Path::root().join("sources").join(number);
        check_source(source).map_err(|reason| Fault::new(Code::InvalidFormat, reason).at(at))?;
    }
    Ok(EventFilter::new(found, sources.into_iter().collect(), events.into_iter().collect()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{model::Kind, store::recent::ChangeEvent};

    fn parsed(text: &str) -> Result<Vec<NotificationTarget>, Fault> {
        serde_yaml::from_str::<NotificationConfig>(text).unwrap().targets()
    }

    #[test]
    fn targets_are_read_with_their_filters() {
        let targets = parsed(
            "webhooks: [{name: chat, url: 'https://a.example/x?y', secret_file: s, kinds: [TlsEdge], events: [deleted]}]\n\
             files: [{name: audit, path: changes.jsonl, sources: [shop]}]",
        );
        let targets = targets.unwrap();
        let [chat, audit] = targets.as_slice() else { unreachable!("{targets:?}") };
        assert_eq!((chat.name.as_str(), audit.name.as_str()), ("chat", "audit"));
        let selects = |target: &NotificationTarget, source: Option<&str>, event: ChangeEvent| {
            target.filter.changes().unwrap().selects(Kind::TlsEdge, source, event)
        };
        assert!(selects(chat, None, ChangeEvent::Deleted) && !selects(chat, None, ChangeEvent::Created));
        assert!(selects(audit, Some("shop"), ChangeEvent::Created));
        assert!(matches!(&audit.sink, NotificationSink::File(path) if path.ends_with("changes.jsonl")));
    }

    #[test]
    fn a_target_that_cannot_be_meant_is_an_error_at_its_field() {
        let webhook = |fields: &str| format!("webhooks: [{{name: a, secret_file: s, {fields}}}]");
        for (text, path, code) in [
            (webhook("url: 'http://a.example'"), "/webhooks/0/url", Code::NotAllowed),
            (webhook("url: 'ftp://a.example'"), "/webhooks/0/url", Code::InvalidFormat),
            (webhook("url: 'https://me:pw@a.example'"), "/webhooks/0/url", Code::InvalidFormat),
            (webhook("url: 'https://a.example', kinds: [TlsEdges]"), "/webhooks/0/kinds/0", Code::UnknownKind),
            ("webhooks: [{name: a, url: 'https://a.example'}]".into(), "/webhooks/0/secret_file", Code::Required),
            ("webhooks: [{name: a, format: slack}]".into(), "/webhooks/0/url", Code::Required),
            (webhook("url: 'https://a.example', url_file: u"), "/webhooks/0/url_file", Code::NotAllowed),
            ("files: [{path: x}]".into(), "/files/0/name", Code::Required),
            ("files: [{name: A, path: x}]".into(), "/files/0/name", Code::InvalidName),
            ("files: [{name: a, path: x}, {name: a, path: y}]".into(), "/files/1/name", Code::DuplicateName),
        ] {
            let fault = parsed(&text).err().unwrap();
            assert_eq!((fault.path.to_string().as_str(), fault.code), (path, code), "{text}");
        }
        assert!(parsed(&webhook("url: 'http://a.example', allow_http: true")).is_ok());
    }

    #[test]
    fn a_chat_needs_no_secret_and_its_url_can_be_in_a_file() {
        let text = "webhooks: [{name: a, format: slack, url: 'https://a.example/x', events: [source.invalid]},\n\
                    {name: b, format: teams, url_file: url}]";
        let targets = parsed(text).unwrap();
        let forms = targets.iter().map(|target| match &target.sink {
            NotificationSink::Webhook { format, secret_file: None, url: WebhookUrl::Given(_) } => {
                Some((*format, false))
            }
            NotificationSink::Webhook { format, secret_file: None, url: WebhookUrl::InFile { .. } } => {
                Some((*format, true))
            }
            _ => None,
        });
        let expected = [Some((WebhookFormat::Slack, false)), Some((WebhookFormat::Teams, true))];
        assert!(forms.eq(expected), "{targets:?}");
        assert!(targets.first().unwrap().filter.changes().is_none());
    }
}
