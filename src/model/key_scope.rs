//! The scope of an API key: what the key may do of what the role of its owner allows (D101).

use std::{fmt, net::IpAddr};

use jiff::{Timestamp, civil::DateTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::claim::check_source_name;
use super::diagnostics::{Check, Code, Fault, Faults, suggest};
use super::host_pattern::{check_host_pattern, covers_hosts};
use super::kind::Kind;
use super::kind::owner::Role;
use super::names::names;
use super::network::Network;
use crate::syntax::text::printable;

/// The pattern for every source or kind.
const ALL: &str = "*";
/// The most entries of a list: every request of the key reads them.
const MOST_ENTRIES: usize = 100;
/// The kinds that clients can write.
fn writable() -> impl Iterator<Item = &'static str> {
    Kind::EVERY.iter().filter(|kind| **kind != Kind::Owner).map(|kind| kind.facts().name)
}

/// The scope of an API key. It grants what it lists and nothing else, within the role of the key's owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct KeyScope {
    /// The highest role of the key, below that of its owner: `viewer`, `planner`, `editor` or `admin`.
    pub role: Option<Role>,
    /// The sources that the key may plan, in addition to those that it may apply. A name can end in `*`.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub plan: Vec<String>,
    /// The sources that the key may apply, suspend and resume, and whose resources it may change. A name can end in `*`.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub apply: Vec<String>,
    /// The kinds of resources without a source that the key may change, such as `TlsCertificate`, or `*`.
    #[schemars(length(max = 100))]
    pub kinds: Vec<String>,
    /// The changes that the key may make to single resources; empty for all.
    #[schemars(length(max = 100))]
    pub actions: Vec<WriteAction>,
    /// The hosts that the key may take for edges, such as `docs.example.com`, or `*.docs.example.com` for all of its
    /// subdomains; empty for any.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub hosts: Vec<String>,
    /// Whether the key sees all secrets. Otherwise it sees those of the sources that it may apply.
    pub secrets: bool,
    /// Whether the key may change what acts on every source: resources of the kinds `IpRestriction` and `Invariant`,
    /// and certificates without a source, which every edge may present.
    pub global: bool,
    /// When the key expires, in RFC 3339; empty for never.
    #[schemars(length(max = 64))]
    pub expires_at: String,
    /// The addresses and networks that the key can be used from, such as `192.0.2.0/24`; empty for any.
    #[schemars(length(max = 100), inner(length(min = 1, max = 64)))]
    pub addresses: Vec<String>,
}

/// A change of a single resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteAction {
    /// A new resource.
    Create,
    /// A change of a resource or of its modules.
    Update,
    /// A deletion.
    Delete,
}

names!(WriteAction: Create "create", Update "update", Delete "delete");

impl KeyScope {
    /// Whether the key may plan a source.
    pub(crate) fn may_plan(&self, source: &str) -> bool {
        self.plan.iter().chain(&self.apply).any(|pattern| selects_name(pattern, source))
    }

    /// Whether the key may apply a source.
    pub(crate) fn may_apply(&self, source: &str) -> bool {
        self.apply.iter().any(|pattern| selects_name(pattern, source))
    }

    /// Whether the key may plan any source.
    pub(crate) fn may_plan_all(&self) -> bool {
        self.plan.iter().chain(&self.apply).any(|pattern| pattern == ALL)
    }

    /// Whether the key may apply any source.
    pub(crate) fn may_apply_all(&self) -> bool {
        self.apply.iter().any(|pattern| pattern == ALL)
    }

    /// The names in `plan` and `apply` that select none of some sources.
    pub(crate) fn unmatched(&self, sources: &[String]) -> Vec<&str> {
        let is_unmatched = |pattern: &&String| {
            pattern.as_str() != ALL && !sources.iter().any(|source| selects_name(pattern.as_str(), source.as_str()))
        };
        self.plan.iter().chain(&self.apply).filter(is_unmatched).map(String::as_str).collect()
    }

    /// Whether the key may change resources of a kind that no source owns.
    pub(crate) fn may_write(&self, kind: Kind) -> bool {
        self.kinds.iter().any(|name| includes_kind(name, kind.facts().name))
    }

    /// Whether the key may make such a change to single resources.
    pub(crate) fn may_do(&self, action: WriteAction) -> bool {
        self.actions.is_empty() || self.actions.contains(&action)
    }

    /// Whether the key has expired at a time. A time that cannot be read has passed.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        !self.expires_at.is_empty() && self.expiry().is_none_or(|expiry| expiry <= now)
    }

    /// The fault of an expiry that has passed already. A key that has expired since keeps its expiry.
    pub(crate) fn past_expiry(&self, before: Option<&KeyScope>, now: Timestamp) -> Option<Fault> {
        let is_kept = before.is_some_and(|before| before.expires_at == self.expires_at);
        let is_past = !is_kept && self.expiry().is_some_and(|expiry| expiry <= now);
        is_past.then(|| {
            let message = format!("`expires_at` is in the past (found `{}`)", printable(&self.expires_at));
            Fault::new(Code::OutOfRange, message).at("expires_at").help("set a later time, or delete the key")
        })
    }

    /// The fault of a scope that keeps a gateway from reading its configuration, which has the secrets of all sources.
    pub(crate) fn gateway_fault(&self) -> Option<Fault> {
        let message = "a gateway key reads the configuration of all sources";
        (!self.secrets).then(|| Fault::new(Code::NotAllowed, message).help("omit the scope, or set `secrets`"))
    }

    /// Whether the key can be used from an address. An unknown address does not match a list.
    pub(crate) fn allows_address(&self, address: Option<IpAddr>) -> bool {
        let is_in = |network: Network| address.is_some_and(|address| network.contains(address));
        self.addresses.is_empty() || self.networks().any(is_in)
    }

    /// The first field of another scope that grants more than this one.
    pub(crate) fn exceeded_by(&self, other: &KeyScope) -> Option<&'static str> {
        let plan =
            other.plan.iter().all(|narrow| self.plan.iter().chain(&self.apply).any(|wide| selects_name(wide, narrow)));
        let apply = other.apply.iter().all(|narrow| self.apply.iter().any(|wide| selects_name(wide, narrow)));
        let role = |role: Option<Role>| role.unwrap_or(Role::Admin);
        let kinds = other.kinds.iter().all(|kind| self.kinds.iter().any(|wide| includes_kind(wide, kind)));
        let actions = WriteAction::ALL.into_iter().all(|action| self.may_do(action) || !other.may_do(action));
        let expires = match (self.expiry(), other.expiry()) {
            (Some(own), Some(other)) => other <= own,
            (Some(_), None) => false,
            (None, _) => true,
        };
        let has_host = |narrow: &String| self.hosts.iter().any(|wide| covers_hosts(wide, narrow));
        let hosts = self.hosts.is_empty() || (!other.hosts.is_empty() && other.hosts.iter().all(has_host));
        let mut networks = other.networks();
        let addresses = self.addresses.is_empty()
            || (!other.addresses.is_empty() && networks.all(|narrow| self.networks().any(|own| own.includes(&narrow))));
        let fields = [
            ("role", role(other.role) <= role(self.role)),
            ("plan", plan),
            ("apply", apply),
            ("kinds", kinds),
            ("actions", actions),
            ("hosts", hosts),
            ("secrets", self.secrets || !other.secrets),
            ("global", self.global || !other.global),
            ("expires_at", expires),
            ("addresses", addresses),
        ];
        fields.into_iter().find(|(_, is_within)| !is_within).map(|(field, _)| field)
    }

    fn expiry(&self) -> Option<Timestamp> {
        end_time(&self.expires_at)
    }

    fn networks(&self) -> impl Iterator<Item = Network> {
        self.addresses.iter().filter_map(|text| text.parse().ok())
    }
}

/// Parses the time of an end. The last day that RFC 3339 can write is later than the last timestamp, and means the same as never.
pub(crate) fn end_time(text: &str) -> Option<Timestamp> {
    let is_last = |text: &str| text.parse::<DateTime>().is_ok_and(|time| time.year() == DateTime::MAX.year());
    let last = || text.strip_suffix('Z').filter(|text| is_last(text)).map(|_| Timestamp::MAX);
    text.parse().ok().or_else(last)
}

/// Whether the name of a kind in a scope, or `*`, includes a kind. Manifests declare event sources only within their
/// subscription.
pub(crate) fn includes_kind(name: &str, kind: &str) -> bool {
    let is_subscription = name == Kind::EventSubscription.facts().name;
    name == ALL || name == kind || (is_subscription && kind == Kind::EventSource.facts().name)
}

/// Whether a name, or a prefix with `*`, selects a name. A prefix selects itself and longer prefixes, too.
pub(crate) fn selects_name(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

impl Check for KeyScope {
    fn check(&self, faults: &mut Faults) {
        if self.role == Some(Role::Gateway) {
            let fault = Fault::new(Code::NotAllowed, "the `role` of a scope cannot be `gateway`").at("role");
            let help = "use `viewer`, `planner`, `editor` or `admin`, or give the owner the role `gateway`";
            faults.report(fault.help(help));
        }
        check_entries(faults, "plan", &self.plan, |pattern| pattern_fault(pattern));
        check_entries(faults, "apply", &self.apply, |pattern| pattern_fault(pattern));
        check_entries(faults, "kinds", &self.kinds, |kind| kind_fault(kind));
        check_entries(faults, "actions", &self.actions, |_| None);
        check_entries(faults, "hosts", &self.hosts, |host| check_host_pattern(host).err());
        if self.secrets
            && let Some(role) = self.role.filter(|role| !role.sees_secrets())
        {
            let message =
                format!("`secrets` cannot be true with the role `{}`, which cannot read secrets", role.as_str());
            let fault = Fault::new(Code::NotAllowed, message).at("secrets");
            faults.report(fault.help("remove `secrets`, or set the role `editor`"));
        }
        if !self.expires_at.is_empty() && self.expiry().is_none() {
            let message = "`expires_at` must be a time such as 2027-01-31T18:00:00Z";
            faults.report(Fault::new(Code::InvalidFormat, message).at("expires_at"));
        }
        check_entries(faults, "addresses", &self.addresses, |text| {
            let message = format!("`{}` is not a network: {}", printable(text), text.parse::<Network>().err()?);
            let fault = Fault::new(Code::InvalidFormat, message);
            Some(fault.help("use an address or a network, such as `192.0.2.0/24` or `2001:db8::/32`"))
        });
    }
}

/// Checks the length of a list and each of its entries.
pub(super) fn check_entries<T>(faults: &mut Faults, field: &str, entries: &[T], fault: impl Fn(&T) -> Option<Fault>) {
    faults.within(field, |faults| {
        if entries.len() > MOST_ENTRIES {
            let message = format!("`{field}` can have at most {MOST_ENTRIES} entries (found {})", entries.len());
            faults.report(Fault::new(Code::TooLong, message));
        }
        faults.each(entries, |faults, entry| faults.extend(fault(entry)));
    });
}

fn pattern_fault(pattern: &str) -> Option<Fault> {
    let name = pattern.strip_suffix('*').unwrap_or(pattern);
    if let Err(message) = check_source_name(pattern) {
        return Some(Fault::new(Code::InvalidFormat, message));
    }
    name.contains('*').then(|| {
        let message = format!("`*` is only allowed at the end of a source name (found `{}`)", printable(pattern));
        Fault::new(Code::InvalidFormat, message).help("use a prefix, such as `shop-*`")
    })
}

fn kind_fault(kind: &str) -> Option<Fault> {
    if kind == ALL || writable().any(|name| name == kind) {
        return None;
    }
    let fault = Fault::new(Code::UnknownValue, format!("unknown kind `{}`", printable(kind)));
    let all = format!("use `*` or one of {}", writable().collect::<Vec<_>>().join(", "));
    Some(fault.help(suggest(kind, writable(), all)))
}

/// Displays what the scope grants on one line.
impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions: Vec<String> = self.actions.iter().map(|action| action.as_str().to_owned()).collect();
        let lists = [
            ("plan", &self.plan),
            ("apply", &self.apply),
            ("kinds", &self.kinds),
            ("actions", &actions),
            ("hosts", &self.hosts),
            ("addresses", &self.addresses),
        ];
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.role.map(|role| format!("role={}", role.as_str())));
        parts.extend(lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| {
            let list: &[String] = list;
            format!("{name}={}", list.join(","))
        }));
        parts.extend(self.secrets.then(|| "secrets".to_owned()));
        parts.extend(self.global.then(|| "global".to_owned()));
        parts.extend((!self.expires_at.is_empty()).then(|| format!("expires={}", self.expires_at)));
        match parts.is_empty() {
            true => f.write_str("grants nothing"),
            false => f.write_str(&parts.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    fn applies(list: &[&str]) -> KeyScope {
        KeyScope { apply: texts(list), ..KeyScope::default() }
    }

    #[test]
    fn a_scope_grants_what_it_lists() {
        let scope = KeyScope { plan: texts(&["docs"]), kinds: texts(&["TlsCertificate"]), ..applies(&["shop-*"]) };
        assert!(scope.may_apply("shop-a") && scope.may_plan("shop-a") && scope.may_plan("docs"));
        assert!(!scope.may_apply("docs") && !scope.may_apply("shop") && !scope.may_plan("identity"));
        assert!(scope.may_write(Kind::TlsCertificate) && !scope.may_write(Kind::HttpsEdge));
        let [whole, part] =
            ["EventSubscription", "EventSource"].map(|kind| KeyScope { kinds: texts(&[kind]), ..KeyScope::default() });
        assert!(whole.may_write(Kind::EventSource) && !part.may_write(Kind::EventSubscription));
        assert_eq!((whole.exceeded_by(&part), part.exceeded_by(&whole)), (None, Some("kinds")));
        assert!(WriteAction::ALL.into_iter().all(|action| scope.may_do(action)));
        let none = KeyScope::default();
        assert!(!none.may_plan("shop") && !none.may_apply("shop") && !none.may_write(Kind::HttpsEdge));
        assert!(!none.may_plan_all() && applies(&["*"]).may_plan_all() && applies(&["*"]).may_apply_all());
        assert!(!applies(&["s*"]).may_apply_all());
    }

    #[test]
    fn an_expired_key_and_another_address_are_refused() {
        let at = |second: i64| Timestamp::from_second(second).unwrap_or_default();
        let scope = |text: &str| KeyScope { expires_at: text.to_owned(), ..KeyScope::default() };
        assert!(!scope("").is_expired(at(i64::from(u32::MAX))));
        assert!(scope("1970-01-01T00:01:40Z").is_expired(at(100)) && !scope("1970-01-01T00:01:40Z").is_expired(at(99)));
        assert!(scope("soon").is_expired(at(0)), "what cannot be read does not extend a key");
        let refused = |text: &str, before: Option<&str>| {
            scope(text).past_expiry(before.map(scope).as_ref(), at(100)).map(|fault| fault.path.to_string())
        };
        let past = "1970-01-01T00:01:40Z";
        assert_eq!(refused(past, None).as_deref(), Some("/expires_at"));
        assert_eq!(refused(past, Some("1970-01-01T00:01:39Z")).as_deref(), Some("/expires_at"));
        for (text, before) in [(past, Some(past)), ("1970-01-01T00:01:41Z", None), ("", None), ("soon", None)] {
            assert_eq!(refused(text, before), None, "{text} {before:?}");
        }
        let last = scope("9999-12-31T23:59:59Z");
        assert!(last.faults().is_empty() && !last.is_expired(at(i64::from(u32::MAX))));
        let scope = KeyScope { addresses: texts(&["192.0.2.0/24", "2001:db8::1"]), ..KeyScope::default() };
        let allows = |text: &str| scope.allows_address(text.parse().ok());
        assert!(allows("192.0.2.7") && allows("::ffff:192.0.2.7") && allows("2001:db8::1"));
        assert!(!allows("198.51.100.1") && !allows("2001:db8::2") && !scope.allows_address(None));
        assert!(KeyScope::default().allows_address(None));
        let unreadable = KeyScope { addresses: texts(&["everywhere"]), ..KeyScope::default() };
        assert!(!unreadable.allows_address("192.0.2.7".parse().ok()));
    }

    #[test]
    fn a_scope_within_another_exceeds_no_field() {
        let own = KeyScope {
            role: Some(Role::Editor),
            plan: texts(&["docs"]),
            apply: texts(&["shop*"]),
            kinds: texts(&["TlsCertificate"]),
            actions: vec![WriteAction::Create, WriteAction::Update],
            hosts: texts(&["shop.example.com", "*.shop.example.com"]),
            secrets: false,
            global: false,
            expires_at: "2027-01-01T00:00:00Z".into(),
            addresses: texts(&["10.0.0.0/8"]),
        };
        let with = |change: &dyn Fn(&mut KeyScope)| {
            let mut other = own.clone();
            change(&mut other);
            own.exceeded_by(&other)
        };
        assert_eq!(with(&|_| {}), None);
        assert_eq!(with(&|it| it.role = Some(Role::Viewer)), None);
        assert_eq!(with(&|it| it.plan = texts(&["shop-a"])), None, "apply implies plan");
        assert_eq!(with(&|it| it.apply = texts(&["shop-a", "shop-*"])), None);
        assert_eq!(with(&|it| it.expires_at = "2026-12-31T00:00:00Z".into()), None);
        assert_eq!(with(&|it| it.addresses = texts(&["10.1.0.0/16"])), None);
        assert_eq!(with(&|it| it.role = None), Some("role"));
        assert_eq!(with(&|it| it.role = Some(Role::Admin)), Some("role"));
        assert_eq!(with(&|it| it.plan = texts(&["*"])), Some("plan"));
        assert_eq!(with(&|it| it.apply = texts(&["sho*"])), Some("apply"));
        assert_eq!(with(&|it| it.apply = texts(&["docs"])), Some("apply"));
        assert_eq!(with(&|it| it.kinds = texts(&["*"])), Some("kinds"));
        assert_eq!(with(&|it| it.actions = Vec::new()), Some("actions"));
        assert_eq!(with(&|it| it.actions = vec![WriteAction::Delete]), Some("actions"));
        assert_eq!(with(&|it| it.hosts = texts(&["*.eu.shop.example.com", "SHOP.example.com"])), None);
        assert_eq!(with(&|it| it.hosts = Vec::new()), Some("hosts"));
        assert_eq!(with(&|it| it.hosts = texts(&["*.example.com"])), Some("hosts"));
        assert_eq!(with(&|it| it.secrets = true), Some("secrets"));
        assert_eq!(with(&|it| it.global = true), Some("global"));
        assert_eq!(with(&|it| it.expires_at = String::new()), Some("expires_at"));
        assert_eq!(with(&|it| it.expires_at = "2027-01-01T00:00:01Z".into()), Some("expires_at"));
        assert_eq!(with(&|it| it.addresses = Vec::new()), Some("addresses"));
        assert_eq!(with(&|it| it.addresses = texts(&["0.0.0.0/0"])), Some("addresses"));
    }

    #[test]
    fn each_fault_has_its_place() {
        let faulty = KeyScope {
            role: Some(Role::Gateway),
            plan: texts(&["a*b", ""]),
            apply: texts(&["shop", "\u{7}"]),
            kinds: texts(&["TlsCertificat", "Owner", "*"]),
            hosts: texts(&["shop.example.com", "*", "shop.example.com:443"]),
            secrets: false,
            global: false,
            expires_at: "tomorrow".into(),
            addresses: texts(&["10.0.0.1/8", "::1"]),
            actions: Vec::new(),
        };
        let places: Vec<String> = faulty.faults().iter().map(|fault| fault.path.to_string()).collect();
        let expected = [
            "/role",
            "/plan/0",
            "/plan/1",
            "/apply/1",
            "/kinds/0",
            "/kinds/1",
            "/hosts/1",
            "/hosts/2",
            "/expires_at",
            "/addresses/0",
        ];
        assert_eq!(places, expected);
        let secrets = KeyScope { secrets: true, role: Some(Role::Planner), ..KeyScope::default() };
        assert_eq!(secrets.faults().first().map(|fault| fault.path.to_string()).as_deref(), Some("/secrets"));
        let long = KeyScope { actions: vec![WriteAction::Create; MOST_ENTRIES + 1], ..KeyScope::default() };
        assert_eq!(long.faults().first().map(|fault| fault.path.to_string()).as_deref(), Some("/actions"));
    }

    #[test]
    fn every_kind_that_clients_write_can_be_named() {
        let kinds = Kind::all().filter(|info| info.kind != Kind::Owner).map(|info| info.name);
        assert!(writable().eq(kinds));
    }
}
