//! Classes of requests: hosts and paths that are treated alike.

use std::fmt;

use super::host_class::{HostClass, origin};
use super::path_class::{PathClass, has_dot_segment};
use crate::model::traffic::TracedRequest;

/// The requests to some hosts with some paths. In each state that is looked at, one edge and route take all of them. It
/// has at least one host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestClass<'c> {
    /// The hosts. The same routes compete for those of a group.
    pub(crate) groups: &'c [&'c [HostClass]],
    /// The paths.
    pub(crate) path: PathClass<'c>,
}

impl<'c> RequestClass<'c> {
    /// The hosts of all groups.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &'c HostClass> {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// The port, which is the same for all hosts.
    pub(crate) fn port(&self) -> u16 {
        self.hosts().next().map(|host| host.port).unwrap_or_default()
    }

    /// Whether the class has a request.
    #[cfg(test)]
    pub(crate) fn contains(&self, request: &TracedRequest) -> bool {
        self.hosts().any(|host| host.contains(&request.host, request.port)) && self.path.contains(&request.path)
    }

    /// The requests of the class by their pattern, such as `https://*.example.com/a*`: those of its first host.
    pub(crate) fn pattern(&self) -> String {
        let host = self.hosts().next().map(ToString::to_string).unwrap_or_default();
        format!("{host}{}", self.path)
    }

    /// A request of the class, if there is one that every client sends for its URL. Clients can send others, too: a raw `<` or `é`
    /// in a path, for example. So a class without an example can have requests.
    pub(crate) fn example(&self) -> Option<TracedRequest> {
        let path = self.path.example()?;
        self.hosts().find_map(|host| sent(&host.example()?, host.port, &path))
    }
}

/// The pattern.
impl fmt::Display for RequestClass<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern())
    }
}

/// The request with a host and path, if clients send them as they are in a URL.
fn sent(host: &str, port: u16, path: &str) -> Option<TracedRequest> {
    if path.contains(is_rewritten) || has_dot_segment(path) {
        return None;
    }
    let brackets = if host.contains(':') { ("[", "]") } else { ("", "") };
    let url = format!("https://{}{host}{}:{port}{path}", brackets.0, brackets.1);
    let request = TracedRequest::new("GET", &url).ok()?;
    (request.host == host && request.port == port && request.path == path).then_some(request)
}

/// Whether clients send something else for a letter in the path of a URL. This is the path percent-encode set of the URL Standard,
/// and the backslash, for which they send a slash.
fn is_rewritten(c: char) -> bool {
    !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '}')
}

/// The URL of a request.
pub(crate) fn url_of(request: &TracedRequest) -> String {
    format!("{}{}", origin(&request.host, request.port), request.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_leads_back_to_its_request() {
        for url in ["https://a.example/", "http://a.example/b", "https://a.example:8443/", "https://[2001:db8::1]/c"] {
            let shown = TracedRequest::new("GET", url).map(|request| url_of(&request));
            assert_eq!(shown.as_deref(), Ok(url));
        }
    }

    #[test]
    fn a_host_or_path_that_no_url_has_is_no_example() {
        for path in
            ["/a%20b", "/caf%C3%A9", "/a|b", "/a[1]", "/~jo/@a:b;c=d,e+f!$&'()", "/.well-known", "/..a/", "/a%2Fb"]
        {
            assert!(sent("a.example", 443, path).is_some(), "{path}");
        }
        for host in ["a b", "*.example", "a..b"] {
            assert!(sent(host, 443, "/").is_none(), "{host}");
        }
        // Clients encode a letter, send another one, or resolve segments of dots.
        for path in
            ["/a?b", "/a#b", "/a b", "/é", "/{id}", "/<id>", "/a\"b", "/a^b", "/a`b", "/a\\b", "/a/../b", "/a/%2E"]
        {
            assert!(sent("a.example", 443, path).is_none(), "{path}");
        }
    }
}
