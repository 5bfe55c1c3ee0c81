//! Invariants: what holds for every request of a scope, whoever changes the configuration (D120).

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use super::https_edge::HttpsEdge;
use super::https_edge_route::HttpsEdgeRoute;
use super::prelude::*;
use crate::model::claim::check_source_name;
use crate::model::decode::variant_or_blank;
use crate::model::diagnostics::suggest;
use crate::model::external_id::{self, ExternalKind};
use crate::model::host_pattern::check_host_pattern;
use crate::model::key_scope::check_entries;
use crate::model::module::Slot;
use crate::model::module::tls_termination::TlsVersion;
use crate::model::schema::Constraint;

/// A rule for every request of a scope. Every change that would break it is refused.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Invariant {
    /// The rule and its reason, which the error of a change that breaks it quotes; at most 255 bytes.
    #[schemars(length(min = 1, max = 255))]
    pub description: String,
    /// Arbitrary user-defined data, at most 4096 bytes.
    #[schemars(length(max = 4096))]
    pub metadata: String,
    /// The requests that it is about; all requests by default.
    pub scope: InvariantScope,
    /// The modules of which every request that reaches a backend passes at least one, such as `oidc` or `mutual_tls`.
    #[schemars(length(max = 100), extend("items" = module_schema()))]
    pub requires_any: Vec<String>,
    /// The IDs of the IP policies from whose addresses alone a backend can be reached.
    #[schemars(length(max = 100), inner(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255)))]
    pub only_from: Vec<String>,
    /// The IDs of the only backends that requests reach. An ID can end with `*`, which stands for any end.
    #[schemars(length(max = 100), inner(regex(pattern = r"^[^/\s\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255)))]
    pub backends: Vec<String>,
    /// The oldest version of TLS that clients can use. Port 80 has no TLS.
    #[serde(deserialize_with = "variant_or_blank")]
    pub min_tls_version: Option<TlsVersion>,
    /// The modules that no change takes from requests that routes handle, or an edge answers, before and after it.
    #[schemars(length(max = 100), extend("items" = module_schema()))]
    pub keeps: Vec<String>,
    /// The treatment of a change after which the answer is unknown.
    #[serde(deserialize_with = "variant_or_blank")]
    pub unproven: UnprovenLevel,
    /// The requests for which it need not hold for some time.
    #[schemars(length(max = 100))]
    pub exemptions: Vec<InvariantExemption>,
}

/// The requests that an invariant is about: those that all of its fields select.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InvariantScope {
    /// The hosts, such as `admin.example.com`, or `*.internal.example.com` for all below; empty for any.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub hosts: Vec<String>,
    /// The beginnings of paths, such as `/admin`, which also selects `/administration`; empty for any path.
    #[schemars(length(max = 100), inner(regex(pattern = r"^/[^?#\s\x00-\x1f\x7f-\x9f]*$"), length(max = 255)))]
    pub path_prefixes: Vec<String>,
    /// The methods, such as `GET`; empty for any. A login with `options_passthrough` does not check `OPTIONS`.
    #[schemars(length(max = 100), inner(regex(pattern = r"^[A-Za-z]{1,32}$")))]
    pub methods: Vec<String>,
    /// The sources whose routes handle the requests, or whose edges answer them without a route; empty for any.
    #[schemars(length(max = 100), inner(regex(pattern = r"^[^\x00-\x1f\x7f-\x9f]+$"), length(min = 1, max = 255)))]
    pub sources: Vec<String>,
}

/// Requests for which an invariant need not hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InvariantExemption {
    /// The hosts, as in a scope; empty for any.
    #[schemars(length(max = 100), inner(length(min = 1, max = 255)))]
    pub hosts: Vec<String>,
    /// The beginnings of paths, as in a scope; empty for any path.
    #[schemars(length(max = 100), inner(regex(pattern = r"^/[^?#\s\x00-\x1f\x7f-\x9f]*$"), length(max = 255)))]
    pub path_prefixes: Vec<String>,
    /// The person or team that answers for it.
    #[schemars(length(min = 1, max = 255))]
    pub owner: String,
    /// Why it is needed.
    #[schemars(length(min = 1, max = 255))]
    pub reason: String,
    /// The last day on which it counts, in UTC, such as `2027-01-31`.
    #[schemars(regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    pub expires: String,
}

/// The treatment of a change after which an invariant is neither proven nor refuted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnprovenLevel {
    /// A plan warns of it.
    #[default]
    Warn,
    /// Such a change is refused.
    Deny,
}

names!(UnprovenLevel: Warn "warn", Deny "deny");

view! {
    /// The response form of [`Invariant`].
    pub struct InvariantView(spec: &Invariant, at) {
        /// The unique ID.
        pub id: String = at.key.id.to_string(),
        /// The URI of this invariant.
        pub uri: String = at.uri(),
        /// The time of creation.
        pub created_at: String = at.created_at.to_string(),
        /// The description.
        pub description: String = spec.description.clone(),
        /// The user-defined data.
        pub metadata: String = spec.metadata.clone(),
        /// The requests that it is about.
        pub scope: InvariantScope = spec.scope.clone(),
        /// The modules of which every request that reaches a backend passes at least one.
        pub requires_any: Vec<String> = spec.requires_any.clone(),
        /// The IP policies from whose addresses alone a backend can be reached.
        pub only_from: Vec<String> = spec.only_from.clone(),
        /// The only backends that requests reach.
        pub backends: Vec<String> = spec.backends.clone(),
        /// The oldest version of TLS that clients can use.
        pub min_tls_version: Option<TlsVersion> = spec.min_tls_version,
        /// The modules that no change takes from requests that routes handle, or an edge answers, before and after it.
        pub keeps: Vec<String> = spec.keeps.clone(),
        /// The treatment of a change after which the answer is unknown.
        pub unproven: UnprovenLevel = spec.unproven,
        /// The requests for which it need not hold for some time.
        pub exemptions: Vec<InvariantExemption> = spec.exemptions.clone(),
    }
}

impl InvariantExemption {
    /// When it no longer counts: at the end of its last day. None if the day cannot be read.
    pub(crate) fn end(&self) -> Option<Timestamp> {
        let is_separator = |at: usize| matches!(at, 4 | 7);
        let mut bytes = self.expires.bytes().enumerate();
        let is_date = bytes.all(|(at, byte)| if is_separator(at) { byte == b'-' } else { byte.is_ascii_digit() });
        let day: Date = self.expires.parse().ok().filter(|_| is_date)?;
        Some(day.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
    }

    /// Whether the exemption counts at a time. One whose end cannot be read has ended.
    pub(crate) fn counts(&self, now: Timestamp) -> bool {
        self.end().is_some_and(|end| now < end)
    }
}

/// The modules that an invariant can name.
fn slots() -> impl Iterator<Item = &'static Slot> {
    HttpsEdge::SLOTS.iter().chain(HttpsEdgeRoute::SLOTS)
}

/// The schema of the name of a module.
fn module_schema() -> Value {
    let names: Vec<&str> = slots().map(|slot| slot.name).collect();
    json!({"type": "string", "enum": names})
}

fn module_fault(name: &str) -> Option<Fault> {
    if slots().any(|slot| slot.name == name) {
        return None;
    }
    let all = || slots().map(|slot| slot.name);
    let fault = Fault::new(Code::UnknownValue, format!("unknown module `{}`", printable(name)));
    let otherwise = format!("use one of {}", all().collect::<Vec<_>>().join(", "));
    Some(fault.help(suggest(name, all(), otherwise)))
}

fn path_fault(prefix: &str) -> Option<Fault> {
    let is_path = prefix.starts_with('/')
        && prefix.len() <= check::DESCRIPTION_BYTES
        && !prefix.contains(|c: char| c.is_whitespace() || c.is_control() || matches!(c, '?' | '#'));
    let fault = || Fault::new(Code::InvalidFormat, format!("`{}` is not the beginning of a path", printable(prefix)));
    (!is_path).then(|| fault().help("write a path without a query, such as `/admin`"))
}

fn method_fault(method: &str) -> Option<Fault> {
    let is_method = (1..=32).contains(&method.len()) && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    let fault = || Fault::new(Code::InvalidFormat, format!("`{}` is not an HTTP method", printable(method)));
    (!is_method).then(|| fault().help("write a method, such as `GET`"))
}

fn source_fault(source: &str) -> Option<Fault> {
    check_source_name(source).err().map(|message| Fault::new(Code::InvalidFormat, message))
}

/// Checks IDs of resources that another service owns, with an asterisk for any end only at the end.
fn check_ids(faults: &mut Faults, field: &str, kind: &ExternalKind, ids: &[String], has_patterns: bool) {
    check_entries(faults, field, ids, |id| {
        let name = id.strip_suffix('*').filter(|_| has_patterns).unwrap_or(id);
        name.contains('*').then(|| {
            let message = match has_patterns {
                true => format!("`*` is only allowed at the end of an ID (found `{}`)", printable(id)),
                false => format!("`*` is not allowed in `{}`", printable(id)),
            };
            Fault::new(Code::InvalidFormat, message)
        })
    });
    external_id::external_ids(faults, field, kind, ids);
}

impl Check for InvariantScope {
    fn check(&self, faults: &mut Faults) {
        check_entries(faults, "hosts", &self.hosts, |host| check_host_pattern(host).err());
        check_entries(faults, "path_prefixes", &self.path_prefixes, |prefix| path_fault(prefix));
        check_entries(faults, "methods", &self.methods, |method| method_fault(method));
        check_entries(faults, "sources", &self.sources, |source| source_fault(source));
    }
}

impl Check for InvariantExemption {
    fn check(&self, faults: &mut Faults) {
        check_entries(faults, "hosts", &self.hosts, |host| check_host_pattern(host).err());
        check_entries(faults, "path_prefixes", &self.path_prefixes, |prefix| path_fault(prefix));
        if self.hosts.is_empty() && self.path_prefixes.is_empty() {
            let fault = Fault::new(Code::Required, "the exemption names no requests");
            faults.report(fault.help("set `hosts`, `path_prefixes` or both"));
        }
        for (field, text, help) in [
            ("owner", &self.owner, "name the team or person who answers for it"),
            ("reason", &self.reason, "say why the invariant cannot hold for these requests yet"),
        ] {
            if text.trim().is_empty() {
                faults.report(Fault::required(field).help(help));
            } else if text.len() > check::DESCRIPTION_BYTES {
                let most = check::DESCRIPTION_BYTES;
                let message = format!("`{field}` must be at most {most} bytes of UTF-8 (found {})", text.len());
                faults.report(Fault::new(Code::TooLong, message).at(field));
            }
        }
        if self.expires.is_empty() {
            faults.report(Fault::required("expires").help("set the last day on which it counts, such as `2027-01-31`"));
        } else if self.end().is_none() {
            let message = format!("`{}` is not a day", printable(&self.expires));
            let fault = Fault::new(Code::InvalidFormat, message).at("expires");
            faults.report(fault.help("write a date, such as `2027-01-31`"));
        }
    }
}

impl Check for Invariant {
    fn check(&self, faults: &mut Faults) {
        check::texts(faults, &self.description, &self.metadata);
        if self.description.trim().is_empty() {
            let help = "state the rule and its reason: the error of a change that breaks it quotes them";
            faults.report(Fault::required("description").help(help));
        }
        faults.within("scope", |faults| self.scope.check(faults));
        check_entries(faults, "requires_any", &self.requires_any, |name| module_fault(name));
        check_entries(faults, "keeps", &self.keeps, |name| module_fault(name));
        check_ids(faults, "only_from", &external_id::IP_POLICY, &self.only_from, false);
        check_ids(faults, "backends", &external_id::BACKEND, &self.backends, true);
        check_entries(faults, "exemptions", &self.exemptions, |_| None);
        faults.each_in("exemptions", &self.exemptions, |faults, exemption| exemption.check(faults));
        let lists = [&self.requires_any, &self.only_from, &self.backends, &self.keeps];
        if lists.iter().all(|list| list.is_empty()) && self.min_tls_version.is_none() {
            let fault = Fault::new(Code::Required, "the invariant requires nothing");
            let help = "set `requires_any`, `only_from`, `backends`, `min_tls_version` or `keeps`";
            faults.report(fault.help(help));
        }
    }
}

impl Resource for Invariant {
    const INFO: KindInfo = KindInfo {
        offers: Offers::EXTENSION,
        required: &["description"],
        constraints: || vec![Constraint::required("InvariantExemption", &["owner", "reason", "expires"])],
        ..KindInfo::new::<Invariant>(Kind::Invariant)
    };

    type View = InvariantView;

    fn example() -> Option<Value> {
        let logins: Vec<&str> = slots().filter(|slot| slot.is_login).map(|slot| slot.name).collect();
        Some(json!({
            "description": "Nobody opens an admin page without a login",
            "scope": {"hosts": ["*.internal.example.com"], "path_prefixes": ["/admin"]},
            "requires_any": logins,
            "exemptions": [{
                "hosts": ["status.internal.example.com"],
                "owner": "platform",
                "reason": "The status page moves behind the login with the new portal",
                "expires": "2099-12-31",
            }],
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invariant(spec: Value) -> Invariant {
        serde_json::from_value(spec).unwrap_or_default()
    }

    #[test]
    fn an_invariant_says_what_it_requires_and_why() {
        let faults = |spec: Value| {
            let faults = Check::faults(&invariant(spec)).into_iter();
            faults.map(|fault| format!("{} {}", fault.path, fault.code.info().name)).collect::<Vec<_>>()
        };
        assert_eq!(faults(Invariant::example().unwrap_or_default()), [""; 0]);
        assert_eq!(faults(json!({})), ["/description REQUIRED", " REQUIRED"]);
        let spec = json!({
            "description": "d",
            "scope": {"hosts": ["a:443"], "path_prefixes": ["admin", "/a?b"], "methods": ["GET", "G T"], "sources": [""]},
            "requires_any": ["oid"],
            "only_from": ["ipp_*"],
            "backends": ["bkd_shop*", "bkd_*_x", "ca_1"],
            "exemptions": [{"expires": "tomorrow"}, {"hosts": ["a"], "owner": "o", "reason": "r", "expires": "2027-02-29"}],
        });
        let expected = [
            "/scope/hosts/0 INVALID_FORMAT",
            "/scope/path_prefixes/0 INVALID_FORMAT",
            "/scope/path_prefixes/1 INVALID_FORMAT",
            "/scope/methods/1 INVALID_FORMAT",
            "/scope/sources/0 INVALID_FORMAT",
            "/requires_any/0 UNKNOWN_VALUE",
            "/only_from/0 INVALID_FORMAT",
            "/backends/1 INVALID_FORMAT",
            "/backends/2 INVALID_FORMAT",
            "/exemptions/0 REQUIRED",
            "/exemptions/0/owner REQUIRED",
            "/exemptions/0/reason REQUIRED",
            "/exemptions/0/expires INVALID_FORMAT",
            "/exemptions/1/expires INVALID_FORMAT",
        ];
        assert_eq!(faults(spec), expected);
    }

    #[test]
    fn an_exemption_counts_until_the_end_of_its_last_day() {
        let until = |day: &str| InvariantExemption { expires: day.to_owned(), ..InvariantExemption::default() };
        let at = |time: &str| time.parse::<Timestamp>().unwrap_or_default();
        assert!(until("2027-01-31").counts(at("2027-01-31T23:59:59Z")));
        assert!(!until("2027-01-31").counts(at("2027-02-01T00:00:00Z")));
        assert!(!until("").counts(at("1970-01-01T00:00:00Z")) && !until("soon").counts(at("1970-01-01T00:00:00Z")));
        // The day after the last one cannot be written.
        assert!(!until("9999-12-31").counts(at("2027-01-01T00:00:00Z")));
    }
}
