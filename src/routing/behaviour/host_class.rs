//! Classes of hosts at a port: one host, or those below a wildcard that no narrower pattern takes.

use std::fmt;
use std::sync::Arc;

use super::free_text::{TextState, free_text};
use super::host_tree::reversed;
use crate::routing::host_rank::rank_host;

/// The letters of example hosts, and the dot that begins another label.
const LETTERS: &str = "xabcdefghijklmnopqrstuvwyz0123456789.";
/// The most bytes of a host name.
const NAME_BYTES: usize = 253;
/// The most bytes of each of its labels.
const LABEL_BYTES: usize = 63;

/// The hosts that a pattern selects at a port, without those that others of the same edges select more closely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostClass {
    /// A host, or a wildcard such as `*.example.com`, in normal form.
    pub(crate) pattern: String,
    /// The port.
    pub(crate) port: u16,
    /// The narrower patterns, whose hosts are in other classes.
    pub(crate) except: Arc<[String]>,
}

impl HostClass {
    /// Whether the class has a host and port.
    pub(crate) fn contains(&self, host: &str, port: u16) -> bool {
        port == self.port
            && rank_host(host, &self.pattern).is_some()
            && self.except.iter().all(|narrower| rank_host(host, narrower).is_none())
    }

    /// A host that stands for the class in all decisions about routing. No client can send it, and no pattern can have
    /// it.
    pub(super) fn probe(&self) -> String {
        match self.pattern.strip_prefix('*') {
            Some(suffix) => format!("\0{suffix}"),
            None => self.pattern.clone(),
        }
    }

    /// A host of the class, if there is one without unusual letters.
    pub(super) fn example(&self) -> Option<String> {
        let Some(suffix) = self.pattern.strip_prefix('*') else { return Some(self.pattern.clone()) };
        let usual = format!("any{suffix}");
        if can_end_a_host(&usual) && self.contains(&usual, self.port) {
            return Some(usual);
        }
        let state = |text: &str| {
            let host = reversed(text);
            if !can_end_a_host(&host) {
                return TextState::Closed;
            }
            let claims = || self.except.iter().filter(|narrower| rank_host(&host, narrower).is_some());
            match claims().next() {
                None if host.starts_with('.') => TextState::Taken,
                None => TextState::Free,
                Some(_) if claims().any(|narrower| narrower.starts_with('*')) => TextState::Closed,
                Some(_) => TextState::Taken,
            }
        };
        free_text(&reversed(suffix), LETTERS, state).map(|text| reversed(&text))
    }
}

/// Whether some host can end with a text: it and its first label are not too long, and no label is empty.
fn can_end_a_host(text: &str) -> bool {
    let label = text.split('.').next().unwrap_or_default();
    text.len() <= NAME_BYTES && label.len() <= LABEL_BYTES && !text.starts_with("..")
}

/// The beginning of URLs of the class: the scheme, the pattern, and the port if it is not the usual one.
impl fmt::Display for HostClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&origin(&self.pattern, self.port))
    }
}

/// The scheme, host and port of a URL as people write it: without the usual port.
pub(super) fn origin(host: &str, port: u16) -> String {
    let brackets = if host.contains(':') { ("[", "]") } else { ("", "") };
    let (scheme, port) = match port {
        80 => ("http", String::new()),
        443 => ("https", String::new()),
        port => ("https", format!(":{port}")),
    };
    format!("{scheme}://{}{host}{}{port}", brackets.0, brackets.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(pattern: &str, except: &[&str]) -> HostClass {
        let except = except.iter().map(ToString::to_string).collect();
        HostClass { pattern: pattern.to_owned(), port: 443, except }
    }

    #[test]
    fn a_wildcard_class_has_the_hosts_that_no_narrower_pattern_has() {
        let class = class("*.example.com", &["shop.example.com", "*.eu.example.com"]);
        assert!(class.contains("a.example.com", 443) && class.contains("a.b.example.com", 443));
        assert!(class.contains("eu.example.com", 443) && !class.contains("a.eu.example.com", 443));
        assert!(!class.contains("shop.example.com", 443) && !class.contains("a.example.com", 80));
        assert!(!class.contains("example.com", 443));
    }

    #[test]
    fn an_example_of_a_long_name_is_no_longer_than_a_host_can_be() {
        let (most, label) = ("l".repeat(63), "l".repeat(60));
        let name = format!("{most}.{most}.{label}.{label}");
        for (pattern, except, expected) in [
            (format!("*.{name}"), vec![], Some(format!("any.{name}"))),
            (format!("*.a.{name}"), vec![], Some(format!("x.a.{name}"))),
            (format!("*.a.{name}"), vec![format!("x.a.{name}")], Some(format!("a.a.{name}"))),
            (format!("*.ab.{name}"), vec![], None),
            (format!("*{most}.example.com"), vec![], Some(format!("x.{most}.example.com"))),
            (format!("*{most}.org"), vec![format!("*.{most}.org")], None),
        ] {
            let except: Vec<&str> = except.iter().map(String::as_str).collect();
            assert_eq!(class(&pattern, &except).example(), expected, "{pattern} without {except:?}");
        }
    }

    #[test]
    fn an_example_is_in_its_class_however_much_is_excluded() {
        for (pattern, except) in [
            ("a.example.com", vec![]),
            ("*.example.com", vec![]),
            ("*.example.com", vec!["any.example.com"]),
            ("*.example.com", vec!["any.example.com", "x.example.com", "*x.example.com", "a.example.com"]),
            ("*.example.com", vec!["*y.example.com", "*.eu.example.com"]),
        ] {
            let class = class(pattern, &except);
            let example = class.example().unwrap_or_default();
            assert!(class.contains(&example, 443), "{pattern} without {except:?}: {example}");
        }
        // Each host ends in some letter.
        let all: Vec<String> = LETTERS.chars().map(|letter| format!("*{letter}.example.com")).collect();
        let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(class("*.example.com", &all).example().is_some_and(|host| host.len() == "x.example.com".len()));
        let alone: Vec<String> = LETTERS.chars().map(|letter| format!("{letter}.example.com")).collect();
        all.extend(alone.iter().map(String::as_str));
        assert_eq!(class("*.example.com", &all).example(), None);
    }
}
