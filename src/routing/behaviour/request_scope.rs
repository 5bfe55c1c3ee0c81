//! Sets of requests that somebody asks about, by host and path.

use super::host_class::HostClass;
use super::path_beginnings::PathBeginnings;
use super::path_class::PathClass;
use super::request_class::RequestClass;
use crate::model::host_pattern::covers;
use crate::model::traffic::host_name;

/// The beginning of every path.
const EVERY_PATH: &str = "/";

/// The requests to some hosts with some paths. A visit that is given scopes splits its classes so that each is inside or
/// outside of each scope.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestScope {
    /// Patterns of hosts in normal form; none for every host.
    hosts: Vec<String>,
    /// Beginnings of paths in order, of which none begins with another one; none for every path.
    prefixes: Vec<String>,
}

impl RequestScope {
    /// A scope with patterns of hosts, such as `*.example.com`, and beginnings of paths.
    pub(crate) fn new(hosts: &[String], prefixes: &[String]) -> Self {
        let beginnings = PathBeginnings::new(prefixes.iter().map(String::as_str).collect());
        let is_every_path = beginnings.iter().any(|prefix| prefix == EVERY_PATH);
        let prefixes = beginnings.iter().filter(|_| !is_every_path).map(str::to_owned).collect();
        Self { hosts: hosts.iter().map(|host| host_name(host)).collect(), prefixes }
    }

    /// Joins the scopes that have the same beginnings of paths. A visit makes classes for each set of scopes that
    /// hosts are in, so there are as few as can be.
    pub(crate) fn joined(scopes: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut joined: Vec<Self> = Vec::new();
        for mut scope in scopes {
            match joined.iter_mut().find(|other| other.prefixes == scope.prefixes) {
                Some(other) if other.hosts.is_empty() || scope.hosts.is_empty() => other.hosts.clear(),
                Some(other) => other.hosts.append(&mut scope.hosts),
                None => joined.push(scope),
            }
        }
        joined
    }

    /// Whether the scope has the requests of a class that its visit made.
    pub(crate) fn contains(&self, class: &RequestClass<'_>) -> bool {
        class.hosts().next().is_some_and(|host| self.has_host(host)) && self.has_path(&class.path)
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(String::as_str)
    }

    pub(super) fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.prefixes.iter().map(String::as_str)
    }

    /// Whether some host of a pattern in normal form is in the scope.
    pub(crate) fn meets(&self, pattern: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|own| covers(own, pattern) || covers(pattern, own))
    }

    /// Whether the scope has the hosts of a class, which is inside or outside of it.
    pub(crate) fn has_host(&self, host: &HostClass) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|own| covers(own, &host.pattern))
    }

    /// Whether the scope has the paths of a class, which is inside or outside of it.
    pub(super) fn has_path(&self, path: &PathClass<'_>) -> bool {
        self.prefixes.is_empty() || self.prefixes.iter().any(|own| path.path.starts_with(own.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_meets_a_hostport_that_shares_hosts_with_it() {
        let scope = RequestScope::new(&["*.Internal.Example.com".to_owned(), "a.org.".to_owned()], &[]);
        for pattern in
            ["x.internal.example.com", "*.internal.example.com", "*.y.internal.example.com", "*.com", "a.org"]
        {
            assert!(scope.meets(pattern), "{pattern}");
        }
        for pattern in ["internal.example.com", "example.com", "b.org", "*.a.org", "evilinternal.example.com"] {
            assert!(!scope.meets(pattern), "{pattern}");
        }
        assert!(RequestScope::default().meets("a.org"));
    }

    #[test]
    fn scopes_with_the_same_paths_are_one() {
        let list = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let scope = |hosts: &[&str], prefixes: &[&str]| RequestScope::new(&list(hosts), &list(prefixes));
        let given = [
            scope(&["a.org"], &[]),
            scope(&["a.org"], &["/x", "/y"]),
            scope(&["*.b.org"], &[]),
            scope(&["c.org"], &["/y", "/x"]),
            scope(&["a.org"], &["/x"]),
            scope(&[], &["/x"]),
            scope(&["d.org"], &["/x"]),
        ];
        let joined =
            [scope(&["a.org", "*.b.org"], &[]), scope(&["a.org", "c.org"], &["/x", "/y"]), scope(&[], &["/x"])];
        assert_eq!(RequestScope::joined(given.into_iter()), joined);
        // The same paths in other words.
        let same = [scope(&["a.org"], &["/x", "/x/y", "/x"]), scope(&["b.org"], &["/x"])];
        assert_eq!(RequestScope::joined(same.into_iter()), [scope(&["a.org", "b.org"], &["/x"])]);
        let every = [scope(&["a.org"], &["/y", "/"]), scope(&["b.org"], &[])];
        assert_eq!(RequestScope::joined(every.into_iter()), [scope(&["a.org", "b.org"], &[])]);
    }
}
