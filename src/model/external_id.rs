//! The IDs of resources that other services own: backends, IP policies, TLS edges and event subscriptions (D20). Nobody here
//! knows whether such a resource exists, but an ID with the prefix of another kind of this service, or an address, is
//! certainly none.

use super::diagnostics::check::is_address;
use super::diagnostics::{Code, Fault, Faults};
use super::id::is_opaque_id;
use super::kind::Kind;
use crate::syntax::text::{has_token, printable};

/// A kind of resource that another service owns (D20).
pub(crate) struct ExternalKind {
    /// The kind with its article, for messages.
    pub(crate) what: &'static str,
    /// The prefix that its IDs usually have.
    pub(crate) prefix: &'static str,
    /// A sample of its IDs.
    sample: &'static str,
}

/// Backends.
pub(crate) static BACKEND: ExternalKind = ExternalKind { what: "a backend", prefix: "bkd_", sample: "bkd_shop" };
/// IP policies.
pub(crate) static IP_POLICY: ExternalKind = ExternalKind { what: "an IP policy", prefix: "ipp_", sample: "ipp_office" };
/// TLS edges, which the API creates with any ID.
pub(crate) static TLS_EDGE: ExternalKind =
    ExternalKind { what: "a TlsEdge", prefix: "edgtls_", sample: "edgtls_database" };
/// Event subscriptions, which the API creates with any ID.
pub(crate) static SUBSCRIPTION: ExternalKind =
    ExternalKind { what: "an EventSubscription", prefix: "esb_", sample: "esb_audit" };

/// The prefixes of other IDs that this service makes, and what has them.
const OTHER_PREFIXES: [(&str, &str); 3] = [("bot_", "an Owner"), ("op_", "an operation"), ("rec_", "a reconciliation")];

impl ExternalKind {
    /// The external kind of an implicit one (D34).
    pub(crate) fn from_implicit(kind: Kind) -> Option<&'static Self> {
        match kind {
            Kind::TlsEdge => Some(&TLS_EDGE),
            Kind::EventSubscription => Some(&SUBSCRIPTION),
            _ => None,
        }
    }

    /// Returns what is wrong with an ID in a field, except a token: the check of all texts of the resource reports it.
    fn field_fault(&self, id: &str) -> Option<Fault> {
        if has_token(id) { None } else { self.id_fault(id) }
    }

    /// Returns what is wrong with an ID, if it cannot be one of this kind.
    pub(crate) fn id_fault(&self, id: &str) -> Option<Fault> {
        if !is_opaque_id(id) || is_address(id) {
            let help = match is_address(id) {
                true => {
                    "use the ID of the resource with this address: the gateway resolves IDs to addresses and networks"
                }
                false => "use 1 to 255 bytes without slashes, white space or control characters",
            };
            let fault = Fault::new(Code::InvalidFormat, format!("`{}` is not a valid ID", printable(id)));
            return Some(fault.help(help));
        }
        if id.starts_with(self.prefix) {
            return None;
        }
        let owner = owner_of_prefix(id)?;
        let message = format!("`{}` has the prefix of {owner}, not of {}", printable(id), self.what);
        let help = format!("use the ID of {}, such as `{}`", self.what, self.sample);
        Some(Fault::new(Code::InvalidFormat, message).help(help))
    }
}

/// Returns what an ID's prefix belongs to in this service, with its article.
fn owner_of_prefix(id: &str) -> Option<String> {
    let (prefix, _) = id.split_once('_')?;
    let is_prefix = |known: &str| known.strip_suffix('_') == Some(prefix);
    if let Some((_, what)) = OTHER_PREFIXES.iter().find(|(known, _)| is_prefix(known)) {
        return Some((*what).to_owned());
    }
    let info = Kind::EVERY.iter().map(|kind| kind.facts()).find(|facts| is_prefix(facts.prefix))?;
    // `HttpsEdge` starts with a vowel when it is spoken.
    let article = if info.name.starts_with(['A', 'E', 'H', 'I', 'O']) { "an" } else { "a" };
    Some(format!("{article} {}", info.name))
}

/// Checks a field with the ID of a resource that another service owns (D20).
pub(crate) fn external_id(faults: &mut Faults, field: &str, kind: &ExternalKind, id: &str) {
    let required = || Fault::required(field).help(format!("set an ID, such as `{field}: {}`", kind.sample));
    faults.extend(if id.is_empty() { Some(required()) } else { kind.field_fault(id).map(|fault| fault.at(field)) });
}

/// Checks a list of IDs of resources that another service owns (D20).
pub(crate) fn external_ids(faults: &mut Faults, field: &str, kind: &ExternalKind, ids: &[String]) {
    let empty = || {
        let message = format!("each entry of `{field}` must be an ID (found an empty string)");
        let help = format!("remove the entry, or set an ID, such as `{}`", kind.sample);
        Fault::new(Code::Required, message).help(help)
    };
    faults.each_in(field, ids, |faults, id| {
        faults.extend(if id.is_empty() { Some(empty()) } else { kind.field_fault(id) });
    });
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_id_names_its_field() {
        let mut faults = Faults::new();
        external_id(&mut faults, "backend_id", &BACKEND, "");
        external_ids(&mut faults, "ip_policy_ids", &IP_POLICY, &["ipp_1".to_owned(), String::new()]);
        let told = |fault: Fault| (fault.path.to_string(), fault.message, fault.help.unwrap_or_default());
        let told: Vec<_> = faults.into_vec().into_iter().map(told).collect();
        let expected = [
            ("/backend_id", "`backend_id` is required", "set an ID, such as `backend_id: bkd_shop`"),
            (
                "/ip_policy_ids/1",
                "each entry of `ip_policy_ids` must be an ID (found an empty string)",
                "remove the entry, or set an ID, such as `ipp_office`",
            ),
        ];
        assert_eq!(told, expected.map(|(path, message, help)| (path.to_owned(), message.to_owned(), help.to_owned())));
    }

    #[test]
    fn an_external_id_has_no_prefix_of_another_kind_of_this_service() {
        let told = |kind: &ExternalKind, id: &str| kind.id_fault(id).map(|fault| fault.message);
        for (id, owner) in [
            ("ak_1", "an ApiKey"),
            ("bot_1", "an Owner"),
            ("ca_1", "a CertificateAuthority"),
            ("edghts_1", "an HttpsEdge"),
            ("edgtls_1", "a TlsEdge"),
            ("op_1", "an operation"),
            ("rec_1", "a reconciliation"),
            ("usr_1", "an Owner"),
        ] {
            assert_eq!(told(&BACKEND, id), Some(format!("`{id}` has the prefix of {owner}, not of a backend")));
        }
        // IDs of other systems are not validated further.
        for opaque in ["_", "_1", "office", "pool_1", "ca1", "cax_1", "CA_1", "bkd_1", "ipp_1", "evsub_1"] {
            assert_eq!(told(&BACKEND, opaque), None, "{opaque}");
        }
        assert!(told(&TLS_EDGE, "edgtls_1").is_none() && told(&SUBSCRIPTION, "esb_1").is_none());
        assert!(told(&TLS_EDGE, "esb_1").is_some() && told(&SUBSCRIPTION, "edgtls_1").is_some());
    }
}
