//! The targets of notifications in the configuration file (D81).

use super::{event_filter::EventFilter, events::EventType};
use crate::http_client::server_url;
use crate::model::{Faults, is_name};
use crate::reconcile::check_source;
use crate::server::prelude::*;
use crate::server::resources::change::{ChangeFilter, kind_named};

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
    Inline(String),
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
    /// The name, under which the cursor is kept.
    pub name: String,
    /// The events that it is notified of.
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
    /// Validates the targets. All faults are returned, with their paths below `notifications`.
    pub(crate) fn targets(self) -> Result<Vec<NotificationTarget>, Vec<Fault>> {
        let mut faults = Faults::new();
        let mut names = BTreeSet::new();
        let mut targets = Vec::new();
        if self.webhooks.len() + self.files.len() > MOST_TARGETS {
            faults.report(Fault::new(Code::OutOfRange, format!("at most {MOST_TARGETS} targets are allowed")));
        }
        faults.each_in("webhooks", self.webhooks, |faults, webhook| {
            targets.extend(webhook.target(&mut names, faults));
        });
        faults.each_in("files", self.files, |faults, file| targets.push(file.target(&mut names, faults)));
        if faults.is_empty() { Ok(targets) } else { Err(faults.into_vec()) }
    }
}

impl WebhookConfig {
    fn target(self, names: &mut BTreeSet<String>, faults: &mut Faults) -> Option<NotificationTarget> {
        check_name(&self.name, names, faults);
        let url = webhook_url(self.url, self.url_file, self.allow_http);
        let url = url.map_err(|fault| faults.report(fault)).ok();
        let secret_file = Some(self.secret_file).filter(|file| !file.as_os_str().is_empty());
        if self.format == WebhookFormat::Json {
            require("secret_file", secret_file.is_some(), faults);
        }
        let filter = filter(&self.kinds, self.sources, self.events, faults);
        let sink = NotificationSink::Webhook { url: url?, format: self.format, secret_file };
        Some(NotificationTarget { name: self.name, filter, sink })
    }
}

impl ChangeFileConfig {
    fn target(self, names: &mut BTreeSet<String>, faults: &mut Faults) -> NotificationTarget {
        check_name(&self.name, names, faults);
        require("path", !self.path.as_os_str().is_empty(), faults);
        let filter = filter(&self.kinds, self.sources, self.events, faults);
        NotificationTarget { name: self.name, filter, sink: NotificationSink::File(self.path) }
    }
}

fn field(code: Code, name: &str, message: impl Into<String>) -> Fault {
    Fault::new(code, message).at(name)
}

fn require(name: &str, is_set: bool, faults: &mut Faults) {
    if !is_set {
        faults.report(Fault::required(name));
    }
}

/// Checks the name of a target. It identifies the target's cursor, so it must be unique.
fn check_name(name: &str, names: &mut BTreeSet<String>, faults: &mut Faults) {
    require("name", !name.is_empty(), faults);
    if name.is_empty() {
        return;
    }
    if !is_name(name) {
        let message = format!("`{}` is not a valid name: use lower-case letters, digits, `-` and `.`", printable(name));
        faults.report(field(Code::InvalidName, "name", message));
    } else if !names.insert(name.to_owned()) {
        faults.report(field(Code::DuplicateName, "name", format!("duplicate name `{name}`")));
    }
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
        (false, true) => check_url(&url, allow_http).map(|()| WebhookUrl::Inline(url)),
    }
}

/// Checks a URL. The fault does not contain it.
pub(super) fn check_url(url: &str, allow_http: bool) -> Result<(), Fault> {
    let invalid = |reason: &str| field(Code::InvalidFormat, "url", format!("`url` {reason}"));
    match server_url(url).map_err(invalid)?.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if allow_http => Ok(()),
        Some("http") => Err(field(Code::NotAllowed, "url", "`url` must start with `https://`")
            .help("set `allow_http: true` to send notifications over unencrypted HTTP")),
        _ => Err(invalid("must start with `https://`")),
    }
}

fn filter(kinds: &[String], sources: Vec<String>, events: Vec<EventType>, faults: &mut Faults) -> EventFilter {
    let mut found = BTreeSet::new();
    faults.each_in("kinds", kinds, |faults, name| {
        found.extend(kind_named(name, Code::UnknownKind).map_err(|fault| faults.report(fault)).ok());
    });
    faults.each_in("sources", &sources, |faults, source| {
        faults.extend(check_source(source).err());
    });
    let resources = ChangeFilter { kinds: found, sources: sources.into_iter().collect() };
    EventFilter { resources, events: events.into_iter().collect() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{model::Kind, store::revision::ChangeEvent};

    fn parsed(text: &str) -> Result<Vec<NotificationTarget>, Vec<Fault>> {
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
            target.filter.selects_change(Kind::TlsEdge, source, event)
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
            let faults = parsed(&text).err().unwrap();
            let [fault] = faults.as_slice() else { unreachable!("{text}: {faults:?}") };
            assert_eq!((fault.path.to_string().as_str(), fault.code), (path, code), "{text}");
        }
        assert!(parsed(&webhook("url: 'http://a.example', allow_http: true")).is_ok());
    }

    #[test]
    fn every_mistake_of_every_target_is_found() {
        let faults = parsed(
            "webhooks:\n- {url: 'ftp://a.example', kinds: [TlsEdge, TlsEdges], sources: [' ']}\n- {name: a, format: slack}\n\
             files:\n- {name: a}\n- {name: B, path: x}\n",
        );
        let places: Vec<String> = faults.err().unwrap().iter().map(|fault| fault.path.to_string()).collect();
        let expected = [
            "/webhooks/0/name",
            "/webhooks/0/url",
            "/webhooks/0/secret_file",
            "/webhooks/0/kinds/1",
            "/webhooks/0/sources/0",
            "/webhooks/1/url",
            "/files/0/name",
            "/files/0/path",
            "/files/1/name",
        ];
        assert_eq!(places, expected);
        let files: Vec<String> = (0..=MOST_TARGETS).map(|number| format!("{{name: a{number}, path: x}}")).collect();
        let many = parsed(&format!("files: [{}]", files.join(", "))).err().unwrap();
        assert_eq!(many.iter().map(|fault| fault.code).collect::<Vec<_>>(), [Code::OutOfRange]);
    }

    #[test]
    fn a_chat_needs_no_secret_and_its_url_can_be_in_a_file() {
        let text = "webhooks: [{name: a, format: slack, url: 'https://a.example/x', events: [source.invalid]},\n\
                    {name: b, format: teams, url_file: url}]";
        let targets = parsed(text).unwrap();
        let forms = targets.iter().map(|target| match &target.sink {
            NotificationSink::Webhook { format, secret_file: None, url: WebhookUrl::Inline(_) } => {
                Some((*format, false))
            }
            NotificationSink::Webhook { format, secret_file: None, url: WebhookUrl::InFile { .. } } => {
                Some((*format, true))
            }
            _ => None,
        });
        let expected = [Some((WebhookFormat::Slack, false)), Some((WebhookFormat::Teams, true))];
        assert!(forms.eq(expected), "{targets:?}");
        assert!(!targets.first().unwrap().filter.selects_revisions());
    }
}
