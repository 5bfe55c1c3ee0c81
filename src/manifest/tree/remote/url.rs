//! The addresses of remote Git repositories.

use std::net::Ipv6Addr;

use crate::http_client::is_this_machine;
use crate::model::{Code, Fault};

/// The protocol of a remote repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GitTransport {
    /// `https://`, or `http://` to this machine.
    Http,
    /// `ssh://`, or `user@host:path`.
    Ssh,
    /// `file://`.
    File,
}

/// The address of a remote repository. It never contains a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteUrl {
    /// The URL as given.
    pub text: String,
    pub transport: GitTransport,
    /// The user in an SSH URL.
    pub user: Option<String>,
    /// In lower case; IPv6 addresses without brackets.
    pub host: String,
    /// The port, unless it is the default of the protocol.
    pub port: Option<u16>,
    path: String,
}

impl RemoteUrl {
    /// Parses a URL. Returns none for a local path. A fault never quotes the text, which may contain a password.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Fault> {
        let bad = |message: &str| Fault::new(Code::InvalidFormat, message);
        if text.contains(|c: char| c.is_control() || c.is_whitespace()) && (text.contains("://") || is_scp(text)) {
            return Err(bad("a repository URL cannot contain white space").help("percent-encode it as %20"));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return if is_scp(text) { Self::of_scp(text).map(Some) } else { Ok(None) };
        };
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        let (transport, default_port) = match scheme.as_str() {
            "https" => (GitTransport::Http, 443),
            "http" => (GitTransport::Http, 80),
            "ssh" | "git+ssh" | "ssh+git" => (GitTransport::Ssh, 22),
            "file" => (GitTransport::File, 0),
            _ => {
                return Err(bad("the protocol of the repository URL is not supported")
                    .help("use https://, ssh://, user@host:path or file://"));
            }
        };
        if transport == GitTransport::File {
            if !matches!(authority, "" | "localhost") || path.len() < 2 {
                return Err(bad("a file:// URL must have an absolute path").help("write it as file:///path"));
            }
            let (host, path) = (String::new(), path.to_owned());
            return Ok(Some(Self { text: text.to_owned(), transport, user: None, host, port: None, path }));
        }
        let has_password = user.is_some_and(|user| user.contains(':'));
        // A token is often written as the user's name.
        if has_password || (transport == GitTransport::Http && user.is_some()) {
            let fault = Fault::new(Code::NotAllowed, "a repository URL cannot contain credentials");
            return Err(fault.help("remove them from the URL, and set `username` and `password_file`"));
        }
        if transport == GitTransport::Http && rest.contains(['?', '#']) {
            let fault = Fault::new(Code::NotAllowed, "a repository URL cannot contain a query or fragment");
            return Err(fault.help("remove it, and set `password_file` if it is a token"));
        }
        let (host, port) = host_and_port(host).ok_or_else(|| bad("the repository URL has no valid host"))?;
        if path.trim_matches('/').is_empty() {
            return Err(bad("the repository URL has no path"));
        }
        if scheme == "http" && !is_this_machine(&host) {
            let fault = Fault::new(Code::NotAllowed, "http:// is only allowed for this machine, such as localhost");
            return Err(fault.help("use https://: anyone on the network could change the manifests"));
        }
        let (text, path) = (text.to_owned(), path.to_owned());
        let port = port.filter(|port| *port != default_port);
        Ok(Some(Self { text, transport, user: user.map(str::to_owned), host, port, path }))
    }

    /// Parses `user@host:path`.
    fn of_scp(text: &str) -> Result<Self, Fault> {
        let bad = || Fault::new(Code::InvalidFormat, "the repository must have the form user@host:path");
        let (user, rest) = text.split_once('@').ok_or_else(bad)?;
        // Brackets enclose an IPv6 address.
        let (host, path) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once("]:").ok_or_else(bad)?,
            None => rest.split_once(':').ok_or_else(bad)?,
        };
        if user.is_empty() || host.is_empty() || path.trim_matches('/').is_empty() {
            return Err(bad());
        }
        Ok(Self {
            text: text.to_owned(),
            transport: GitTransport::Ssh,
            user: Some(user.to_owned()),
            host: host.to_ascii_lowercase(),
            port: None,
            path: path.to_owned(),
        })
    }

    /// Whether the host is this machine.
    pub(super) fn is_local(&self) -> bool {
        is_this_machine(&self.host)
    }

    /// The scheme, host and port of an HTTP URL, as given.
    pub(super) fn origin(&self) -> &str {
        let end = self.text.match_indices('/').nth(2).map_or(self.text.len(), |(at, _)| at);
        self.text.get(..end).unwrap_or_default()
    }

    /// Whether two URLs are addresses of one repository, whatever their protocols: a webhook names all of them. Forges
    /// ignore the case of paths.
    pub(crate) fn is_same_repository(&self, other: &Self) -> bool {
        let path = |url: &Self| {
            let path = url.path.trim_matches('/').to_ascii_lowercase();
            path.strip_suffix(".git").map(str::to_owned).unwrap_or(path)
        };
        self.host == other.host && self.port == other.port && path(self) == path(other)
    }
}

/// Whether a text has the form `user@host:path`.
fn is_scp(text: &str) -> bool {
    let Some((user, rest)) = text.split_once('@') else { return false };
    let before_colon = rest.split_once(':').map(|(host, _)| host);
    !text.contains("://") && !user.contains(['/', ':']) && before_colon.is_some_and(|host| !host.contains('/'))
}

fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (address, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(port.parse::<u16>().ok()?),
        None if rest.is_empty() => None,
        None => return None,
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    (!host.is_empty() && host.chars().all(is_allowed)).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    pub(in crate::manifest::tree::remote) fn url(text: &str) -> RemoteUrl {
        RemoteUrl::parse(text).unwrap().unwrap()
    }

    #[test]
    fn urls_have_their_parts_and_anything_else_is_a_path() {
        for (text, transport, user, host, port) in [
            ("https://Git.Example.com/team/edge.git", GitTransport::Http, None, "git.example.com", None),
            ("https://git.example.com:443/edge", GitTransport::Http, None, "git.example.com", None),
            ("http://127.0.0.1:3000/edge", GitTransport::Http, None, "127.0.0.1", Some(3000)),
            ("http://[::1]:3000/edge", GitTransport::Http, None, "::1", Some(3000)),
            ("ssh://git@git.example.com:2222/edge", GitTransport::Ssh, Some("git"), "git.example.com", Some(2222)),
            ("git@git.example.com:team/edge.git", GitTransport::Ssh, Some("git"), "git.example.com", None),
            ("file:///srv/edge.git", GitTransport::File, None, "", None),
        ] {
            let found = url(text);
            assert_eq!(
                (found.transport, found.user.as_deref(), &*found.host, found.port, &*found.text),
                (transport, user, host, port, text)
            );
        }
        assert_eq!(url("https://Git.example.com:8443/team/edge").origin(), "https://Git.example.com:8443");
        assert_eq!(url("http://[::1]:3000/edge").origin(), "http://[::1]:3000");
        for path in ["edge", "/srv/edge.git", "../edge", "a/b@c:d", "C:/edge", "./git@host"] {
            assert_eq!(RemoteUrl::parse(path).unwrap(), None, "{path}");
        }
    }

    #[test]
    fn credentials_and_plain_http_are_refused_without_quoting_them() {
        for (text, said) in [
            ("https://me:hunter2@git.example.com/edge", "cannot contain credentials"),
            ("https://hunter2@git.example.com/edge", "cannot contain credentials"),
            ("ssh://me:hunter2@git.example.com/edge", "cannot contain credentials"),
            ("https://git.example.com/edge?token=hunter2", "query"),
            ("http://git.example.com/hunter2", "only allowed for this machine"),
            ("git://git.example.com/hunter2", "not supported"),
            ("https:///hunter2", "no valid host"),
            ("https://git.example.com:hunter2/edge", "no valid host"),
            ("https://git.example.com/", "no path"),
            ("file://host/hunter2", "absolute path"),
            ("https://git.example.com/hunter2 x", "white space"),
        ] {
            let fault = RemoteUrl::parse(text).unwrap_err();
            let all = format!("{} {}", fault.message, fault.help.unwrap_or_default());
            assert!(all.contains(said) && !all.contains("hunter2"), "{text}: {all}");
        }
        let fault = RemoteUrl::parse("https://me:hunter2@git.example.com/edge").unwrap_err();
        assert!(fault.help.unwrap().contains("`password_file`"));
    }

    #[test]
    fn a_repository_has_one_identity_in_all_its_urls() {
        let all = [
            "https://git.example.com/team/edge.git",
            "https://GIT.example.com/Team/edge/",
            "ssh://git@git.example.com/team/edge",
            "git@git.example.com:team/edge.git",
        ];
        for one in all {
            for other in all {
                assert!(url(one).is_same_repository(&url(other)), "{one} {other}");
            }
            for other in ["https://git.example.com/team/edge2", "https://git.example.com:8443/team/edge"] {
                assert!(!url(one).is_same_repository(&url(other)), "{one} {other}");
            }
        }
    }
}
