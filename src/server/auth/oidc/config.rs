//! The provider in the configuration file, and what can be wrong with it.

use axum::http::Uri;
use ureq::tls::RootCerts;
use zeroize::Zeroizing;

use super::refused_people::RefusedPeople;
use super::roles::RoleMapping;
use crate::http_client;
use crate::model::diagnostics::Check;
use crate::model::{Faults, Secret};
use crate::server::prelude::*;
use crate::store::seal::command::output_of;

/// The most mappings: their digests are in the cookie of a session.
const MOST_MAPPINGS: usize = 100;
/// The most bytes of a client secret.
const MOST_SECRET_BYTES: u64 = 4096;
/// The scope of every request.
const OPENID: &str = "openid";
/// The scopes that are asked for if none are configured.
const DEFAULT_SCOPES: [&str; 2] = ["profile", "email"];

/// `openid_connect` in the configuration file: the provider through which people sign in.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OidcConfig {
    /// The URL that identifies the provider, where it publishes its endpoints.
    pub(super) issuer: String,
    /// The ID of this server at the provider.
    pub(super) client_id: String,
    /// The file with the secret of this server at the provider, if it has one.
    client_secret_file: PathBuf,
    /// The shell command that prints the secret, instead of a file.
    client_secret_command: String,
    /// The PEM file with the authorities of the provider's certificate, instead of those of the system.
    pub(super) ca_file: PathBuf,
    /// The scopes to ask for besides `openid`.
    scopes: Vec<String>,
    /// The claim with the name of a person, before those that usually have one.
    pub(super) name_claim: String,
    /// The roles of people.
    pub(super) roles: Vec<RoleMapping>,
    /// The people who are refused whatever their roles.
    pub(crate) refused: RefusedPeople,
    /// Whether people can sign in on command lines: anybody can begin that, and ask somebody else to enter the code.
    pub(super) device: bool,
}

impl OidcConfig {
    /// Reads what is only read when it is needed, so that it can be changed without a restart. Returns why it is not usable.
    pub(crate) fn check_files(&self) -> Result<(), String> {
        self.secret().map(drop)?;
        self.authorities().map(drop)
    }

    /// The host of the provider, which people know it by.
    pub(in crate::server) fn host(&self) -> &str {
        let rest = self.issuer.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// The scopes of a request.
    pub(super) fn scope_text(&self) -> String {
        let configured = self.scopes.iter().map(String::as_str).filter(|scope| *scope != OPENID);
        let usual = DEFAULT_SCOPES.iter().copied().filter(|_| self.scopes.is_empty());
        std::iter::once(OPENID).chain(configured).chain(usual).collect::<Vec<_>>().join(" ")
    }

    /// The secret of this server at the provider; none for a public client. No error quotes it.
    pub(super) fn secret(&self) -> Result<Option<Secret>, String> {
        let bytes = match (self.client_secret_file.as_os_str().is_empty(), self.client_secret_command.is_empty()) {
            (false, _) => read_short(&self.client_secret_file)?,
            (_, false) => output_of(&self.client_secret_command, MOST_SECRET_BYTES)
                .map_err(|reason| format!("`client_secret_command` {reason}"))?,
            _ => return Ok(None),
        };
        let text = std::str::from_utf8(&bytes).map(str::trim).unwrap_or_default();
        if text.is_empty() || bytes.len() as u64 > MOST_SECRET_BYTES {
            return Err(format!("the client secret must be a text of 1 to {MOST_SECRET_BYTES} bytes"));
        }
        Ok(Some(Secret::new(text)))
    }

    /// The authorities of the provider's certificate: those in a file, or of the system.
    pub(super) fn authorities(&self) -> Result<RootCerts, String> {
        if self.ca_file.as_os_str().is_empty() {
            return Ok(RootCerts::PlatformVerifier);
        }
        let named = |reason: &dyn fmt::Display| format!("`{}`: {reason}", self.ca_file.display());
        let pem = std::fs::read(&self.ca_file).map_err(|error| named(&error))?;
        http_client::authorities(&pem).map_err(|reason| named(&reason))
    }
}

impl Check for OidcConfig {
    fn check(&self, faults: &mut Faults) {
        match self.issuer.is_empty() {
            true => faults.report(Fault::required("issuer")),
            false => faults.extend(issuer_fault(&self.issuer).map(|fault| fault.at("issuer"))),
        }
        if self.client_id.trim().is_empty() {
            faults.report(Fault::required("client_id"));
        }
        if !self.client_secret_file.as_os_str().is_empty() && !self.client_secret_command.is_empty() {
            let message = "`client_secret_file` and `client_secret_command` cannot be combined";
            faults.report(Fault::new(Code::NotAllowed, message).at("client_secret_command").help("remove one of them"));
        }
        faults.each_in("scopes", &self.scopes, |faults, scope| {
            let is_valid = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            if scope.is_empty() || !scope.bytes().all(is_valid) {
                let message = format!("`{}` is not a scope", printable(scope));
                faults
                    .report(Fault::new(Code::InvalidFormat, message).help("write one scope in each entry of the list"));
            }
        });
        if self.roles.is_empty() {
            let fault = Fault::new(Code::Required, "`roles` is empty: nobody could sign in").at("roles");
            faults.report(fault.help("add an entry, such as `{claim: groups, value: platform, role: viewer}`"));
        } else if self.roles.len() > MOST_MAPPINGS {
            let message = format!("`roles` can have at most {MOST_MAPPINGS} entries (found {})", self.roles.len());
            faults.report(Fault::new(Code::TooLong, message).at("roles"));
        }
        faults.each_in("roles", &self.roles, |faults, mapping| mapping.check(faults));
        faults.within("refused", |faults| self.refused.check(faults));
    }
}

/// Checks the URL of an issuer.
fn issuer_fault(issuer: &str) -> Option<Fault> {
    let as_published = "write the `issuer` as `/.well-known/openid-configuration` of the provider has it";
    let only_here = "only a provider on the server's own machine can have `http://`, with an address such as 127.0.0.1";
    let (code, reason, help) = match http_client::server_url(issuer) {
        Err(reason) => (Code::InvalidFormat, reason, as_published),
        Ok(uri) if uri.query().is_some() || issuer.contains('#') => {
            (Code::InvalidFormat, "must have no query or fragment", as_published)
        }
        Ok(_) if is_confidential(issuer, is_local_http(issuer)) => return None,
        Ok(_) => (Code::NotAllowed, "must start with `https://`", only_here),
    };
    Some(Fault::new(code, format!("`issuer` {reason}")).help(help))
}

/// Whether a URL is one of this machine, over plain HTTP.
pub(super) fn is_local_http(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    uri.scheme_str() == Some("http") && http_client::is_this_machine(uri.host().unwrap_or_default())
}

/// Whether what is sent to a URL cannot be read on its way. A provider on this machine has endpoints on this machine.
pub(super) fn is_confidential(url: &str, allows_local: bool) -> bool {
    let is_https = url.parse::<Uri>().is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
    is_https || (allows_local && is_local_http(url))
}

/// Reads a file, and at most one byte too many.
fn read_short(path: &std::path::Path) -> Result<Zeroizing<Vec<u8>>, String> {
    use std::io::Read;
    let named = |error: std::io::Error| format!("`client_secret_file` `{}`: {error}", path.display());
    let mut bytes = Zeroizing::new(Vec::new());
    let file = std::fs::File::open(path).map_err(named)?;
    file.take(MOST_SECRET_BYTES + 1).read_to_end(&mut bytes).map_err(named)?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::claims::{MOST_NAME_BYTES, PersonClaims};
    use super::super::person::SignedInPerson;
    use super::super::refused_people::name_digest;
    use super::*;
    use crate::server::auth::session::{DashboardSession, SessionSealer};
    use crate::store::MEMORY;

    fn faults(text: &str) -> Vec<(String, Code)> {
        let config: OidcConfig = serde_yaml::from_str(text).unwrap();
        config.faults().into_iter().map(|fault| (fault.path.to_string(), fault.code)).collect()
    }

    fn with(fields: &str) -> String {
        format!("{{client_id: edge, roles: [{{claim: groups, value: a, role: admin}}], {fields}}}")
    }

    #[test]
    fn a_provider_has_a_secure_issuer() {
        for issuer in
            ["https://id.example.com", "https://id.example.com/realms/main", "http://127.0.0.1:9", "http://[::1]:9"]
        {
            assert!(faults(&with(&format!("issuer: '{issuer}'"))).is_empty(), "{issuer}");
        }
        for (issuer, code) in [
            ("id.example.com", Code::NotAllowed),
            ("https://", Code::InvalidFormat),
            ("https://id.example.com?a=b", Code::InvalidFormat),
            ("https://me@id.example.com", Code::InvalidFormat),
            ("http://id.example.com", Code::NotAllowed),
            ("http://127.0.0.1.example.com", Code::NotAllowed),
            ("ftp://id.example.com", Code::NotAllowed),
        ] {
            assert_eq!(faults(&with(&format!("issuer: '{issuer}'"))), [("/issuer".to_owned(), code)], "{issuer}");
        }
    }

    #[test]
    fn every_mistake_has_its_place() {
        let found = faults("{client_secret_file: a, client_secret_command: b, scopes: [a b, groups, '']}");
        let places: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(
            places,
            ["/issuer", "/client_id", "/client_secret_command", "/scopes/0", "/scopes/2", "/roles"],
            "{found:?}"
        );
        let mapped = |mapping: &str| faults(&format!("{{issuer: 'https://a', client_id: e, roles: [{mapping}]}}"));
        let one = |path: &str, code: Code| vec![(path.to_owned(), code)];
        assert!(mapped("{claim: a, value: b, role: editor, sources: ['shop-*']}").is_empty());
        assert_eq!(mapped("{claim: '', value: b, role: viewer}"), one("/roles/0/claim", Code::Required));
        assert_eq!(mapped("{claim: a, value: '', role: viewer}"), one("/roles/0/value", Code::Required));
        assert_eq!(mapped("{claim: a, value: b, role: gateway}"), one("/roles/0/role", Code::NotAllowed));
        for role in ["admin", "viewer"] {
            for sources in ["[shop]", "[]"] {
                let found = mapped(&format!("{{claim: a, value: b, role: {role}, sources: {sources}}}"));
                assert_eq!(found, one("/roles/0/sources", Code::NotAllowed), "{role} {sources}");
            }
        }
        let found = mapped("{claim: a, value: b, role: editor, sources: [shop, 'a*b']}");
        assert_eq!(found, one("/roles/0/sources/1", Code::InvalidFormat));
        let limited = |fields: &str| mapped(&format!("{{claim: a, value: b, {fields}}}"));
        assert!(limited("role: editor, sources: [docs], hosts: [docs.example.com, '*.docs.example.com']").is_empty());
        let found = limited("role: editor, sources: [docs], hosts: [docs.example.com, 'docs.example.com:443']");
        assert_eq!(found, one("/roles/0/hosts/1", Code::InvalidFormat));
        assert_eq!(limited("role: editor, hosts: [docs.example.com]"), one("/roles/0/hosts", Code::NotAllowed));
        assert_eq!(limited("role: editor, sources: [docs], hosts: []"), one("/roles/0/hosts", Code::Required));
        let found = limited("role: planner, sources: [docs], hosts: [docs.example.com]");
        assert_eq!(found, one("/roles/0/hosts", Code::NotAllowed));
        let refused = |entry: &str| faults(&with(&format!("issuer: 'https://a', refused: [ada, '{entry}']")));
        let owner = "usr_7RhErXqfVn3U4pK2ZO92jBaW4a0";
        let with_owner = ["ada", "person:ada", "usr_smith", "ak_smith"].map(|name| format!("{name} ({owner})"));
        let names = ["ada@example.com", "usr_smith@example.com", "usr_a_smith", "ak_smith@example.com", owner];
        for entry in with_owner.iter().map(String::as_str).chain(names) {
            assert!(refused(entry).is_empty(), "{entry}");
        }
        assert_eq!(refused(" "), one("/refused/1", Code::Required));
        for entry in ["usr_7RhErX", "USR_7RhErX…", "ada (usr_7RhErX…)", "ak_3MWmcLvtt0vjIX9kLlxuHz95QLB"] {
            assert_eq!(refused(entry), one("/refused/1", Code::InvalidFormat), "{entry}");
        }
    }

    #[test]
    fn a_browser_keeps_the_largest_session() {
        let names = |claim: &str| -> Vec<String> {
            (0..20).map(|at| format!("{claim}-{at}-")).map(|name| format!("{name:x<MOST_NAME_BYTES$}")).collect()
        };
        let named =
            ["nickname", "email", "preferred_username", "name", "sub"].map(|it| (it.to_owned(), json!(names(it))));
        let claims: Map<String, Value> = named.into_iter().collect();
        let claims = PersonClaims(&claims);
        let grants = (0..MOST_MAPPINGS).map(|at| format!("{at:016}")).collect();
        let refusable = claims.refusable_names("nickname").map(name_digest).collect();
        let person =
            SignedInPerson::new("https://a", "1", claims.name("nickname"), grants).with_names(false, refusable);
        assert_eq!((person.given_name().len(), person.refusable_names.len()), (MOST_NAME_BYTES, 15));
        let sealer = SessionSealer::new(Arc::new(Store::open(MEMORY).unwrap()));
        let sealed = sealer.seal(&DashboardSession::of_person(person)).unwrap();
        let bytes = "edgewright-dashboard".len() + sealed.len();
        assert!(bytes <= 4096, "{bytes}");
    }

    #[test]
    fn scopes_are_those_of_the_file_or_the_usual_ones() {
        let scopes = |text: &str| serde_yaml::from_str::<OidcConfig>(text).unwrap().scope_text();
        assert_eq!(scopes("{}"), "openid profile email");
        assert_eq!(scopes("{scopes: [groups, openid]}"), "openid groups");
    }

    #[test]
    fn the_secret_is_in_a_file_or_printed_by_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "s3cret\n").unwrap();
        let in_file =
            |path: &std::path::Path| OidcConfig { client_secret_file: path.to_owned(), ..OidcConfig::default() };
        let exposed = |config: &OidcConfig| config.secret().map(|secret| secret.map(|it| it.expose().to_owned()));
        assert_eq!(exposed(&in_file(&file)), Ok(Some("s3cret".to_owned())));
        let printed = OidcConfig { client_secret_command: "echo s3cret".to_owned(), ..OidcConfig::default() };
        assert_eq!(exposed(&printed), Ok(Some("s3cret".to_owned())));
        assert_eq!(exposed(&OidcConfig::default()), Ok(None));
        std::fs::write(&file, " \n").unwrap();
        assert!(exposed(&in_file(&file)).is_err() && exposed(&in_file(&folder.path().join("none"))).is_err());
    }
}
