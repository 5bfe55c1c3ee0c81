//! The address of a store on PostgreSQL: a URL as libpq has it.
//!
//! A URL can have a password, so no message shows one: what people see is made from its parts. The arguments of a process are
//! public, so there are better places for a password (`password`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::password::{find_password, unmatched_file};
use super::tls::{CertificateCheck, TlsParameters};
use crate::model::{Code, nearest};
use crate::store::error::StoreError;
use crate::syntax::text::printable;

/// The parameters of a URL.
const PARAMETERS: [&str; 23] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "load_balance_hosts",
    "options",
    "passfile",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
];
/// How the address of a store on PostgreSQL begins.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// How long a host is waited for, unless the address says otherwise.
const CONNECT: Duration = Duration::from_secs(3);
/// How long a login takes at most.
const LOGIN: Duration = Duration::from_secs(1);
/// How long sent data may stay unconfirmed, unless the address says otherwise. The other machine confirms it even if the database is
/// slow, so its connection is lost.
const UNCONFIRMED: Duration = Duration::from_secs(5);
/// How long a connection is silent until it is probed, and how often it is probed then.
const SILENT: Duration = Duration::from_secs(10);
const PROBES: Duration = Duration::from_secs(5);

/// The `postgres://` URL that an address is, if it is one.
pub(crate) fn url_of(address: &Path) -> Option<&str> {
    address.to_str().filter(|text| SCHEMES.iter().any(|scheme| text.starts_with(scheme)))
}

/// An address as messages show it: without a password, and without parameters.
pub(crate) fn shown(address: &Path) -> String {
    match url_of(address) {
        Some(url) => parsed(url).map_or_else(|_| "postgres://".to_owned(), |(config, _)| name_of(&config)),
        None => match foreign_scheme(address) {
            Some(scheme) => format!("{}://", printable(scheme)),
            None => address.display().to_string(),
        },
    }
}

/// Refuses the URL of anything but a database: no folder is meant.
pub(crate) fn check_scheme(address: &Path) -> Result<(), StoreError> {
    let Some(scheme) = foreign_scheme(address) else { return Ok(()) };
    let help = match nearest(scheme, ["postgres", "postgresql"]) {
        Some(near) => format!("did you mean `{near}://`?"),
        None => "use the path of a folder, or a `postgres://` URL".to_owned(),
    };
    let message = format!("no store has a `{}://` URL", printable(scheme));
    Err(StoreError::new(Code::StoreFailed, message).help(help))
}

/// The scheme of a URL that is not of a database on PostgreSQL.
fn foreign_scheme(address: &Path) -> Option<&str> {
    let (scheme, _) = address.to_str()?.split_once("://")?;
    url_of(address).is_none().then_some(scheme)
}

/// Where a database is, and how to connect to it.
#[derive(Clone)]
pub(super) struct PostgresAddress {
    /// Has a password only if the URL has one.
    pub(super) config: Config,
    /// The password file that the URL names.
    passfile: Option<PathBuf>,
    pub(super) tls: TlsParameters,
    /// The address as messages show it.
    pub(super) shown: String,
    /// Whether a host that does not allow writes will do if there is no other one.
    pub(super) may_be_standby: bool,
    /// Whether the address says which of several hosts are meant.
    names_session: bool,
}

impl PostgresAddress {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let (mut config, own) = parsed(url)?;
        let shown = name_of(&config);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNCONFIRMED);
        }
        config.keepalives_idle(config.get_keepalives_idle().min(SILENT));
        if config.get_keepalives_interval().is_none() {
            config.keepalives_interval(PROBES);
        }
        // There is no TLS on a socket of this machine.
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        // The lock of the writer, and what it has written last, are at the primary only.
        if !own.names_session && config.get_hosts().len().max(config.get_hostaddrs().len()) > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let OwnParameters { tls, passfile, names_session } = own;
        Ok(Self { config, passfile, tls, shown, may_be_standby: false, names_session })
    }

    /// Returns the address for a process that only reads: if none of several hosts allows writes, another one will do.
    pub(super) fn for_reading(self) -> Self {
        Self {
            may_be_standby: !self.names_session && self.config.get_target_session_attrs() != TargetSessionAttrs::Any,
            ..self
        }
    }

    /// How to connect now: with the password as it is at the moment.
    pub(super) fn with_password(&self) -> Result<Config, StoreError> {
        let mut config = self.config.clone();
        if config.get_password().is_none() {
            let found = find_password(&config, self.passfile.as_deref()).map_err(|found| {
                let message = format!("cannot connect to the store {}: {found}", self.shown);
                StoreError::new(Code::StoreUnavailable, message)
                    .help("set it to a shell command that prints the password")
            })?;
            found.map(|password| config.password(password));
        }
        Ok(config)
    }

    /// Says that the password file has no line for the database, if that is so.
    pub(super) fn unmatched_passfile(&self) -> Option<String> {
        unmatched_file(&self.config, self.passfile.as_deref())
    }

    /// How long a connection is waited for, with its login: each of several hosts may be silent.
    pub(super) fn connect_timeout(&self) -> Duration {
        let hosts = self.config.get_hosts().len().max(self.config.get_hostaddrs().len());
        let each = self.config.get_connect_timeout().copied().unwrap_or(CONNECT);
        each.saturating_mul(u32::try_from(hosts).unwrap_or(u32::MAX)).saturating_add(LOGIN)
    }
}

/// The parameters that the client for PostgreSQL does not know.
#[derive(Default)]
struct OwnParameters {
    tls: TlsParameters,
    passfile: Option<PathBuf>,
    /// Whether `target_session_attrs` is set.
    names_session: bool,
}

/// Reads a URL. No error has a part of it but a parameter that is nearly a known one.
fn parsed(url: &str) -> Result<(Config, OwnParameters), StoreError> {
    let invalid = |found: &str| {
        let message = format!("the address of the store is not a valid `postgres://` URL: {found}");
        let help = "write `postgres://USER@HOST/DATABASE`, with `%40` for an `@` in a name or password";
        StoreError::new(Code::StoreFailed, message).help(help)
    };
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut own, mut others, mut mode) = (OwnParameters::default(), Vec::new(), None);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').ok_or_else(|| invalid("a parameter has no value"))?;
        let text = percent_decode_str(value).decode_utf8().map_err(|_| invalid("a parameter is not UTF-8"))?;
        let path = || Some(PathBuf::from(&*text));
        match name {
            "sslmode" => mode = Some(text.into_owned()),
            "sslrootcert" => own.tls.authorities = path(),
            "sslcert" => own.tls.certificate = path(),
            "sslkey" => own.tls.key = path(),
            "passfile" => own.passfile = path(),
            _ => {
                // Another name may be a part of a password.
                let near =
                    Some(name).filter(|name| !PARAMETERS.contains(name)).and_then(|name| nearest(name, PARAMETERS));
                if let Some(near) = near {
                    return Err(invalid(&format!("unknown parameter `{}`; did you mean `{near}`?", printable(name))));
                }
                own.names_session |= name == "target_session_attrs";
                others.push(parameter);
            }
        }
    }
    let text = if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    let mut config: Config = text.parse().map_err(|_| invalid("a part or a parameter of it is unknown"))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        config.host("localhost");
    }
    let (ssl_mode, check) = match mode.as_deref() {
        None | Some("prefer" | "allow") => (SslMode::Prefer, CertificateCheck::Nothing),
        Some("disable") => (SslMode::Disable, CertificateCheck::Nothing),
        Some("require") => (SslMode::Require, CertificateCheck::Nothing),
        Some("verify-ca") => (SslMode::Require, CertificateCheck::Authority),
        Some("verify-full") => (SslMode::Require, CertificateCheck::AuthorityAndName),
        Some(_) => return Err(invalid("`sslmode` is disable, prefer, require, verify-ca or verify-full")),
    };
    // With the authorities of the system, anybody can have a certificate for some name.
    let is_system = own.tls.authorities.as_deref().is_some_and(|path| path.as_os_str() == "system");
    own.tls.check = if is_system { CertificateCheck::AuthorityAndName } else { check };
    config.ssl_mode(if is_system { SslMode::Require } else { ssl_mode });
    Ok((config, own))
}

/// The database that a configuration leads to.
fn name_of(config: &Config) -> String {
    let host = match (config.get_hosts().first(), config.get_hostaddrs().first()) {
        (Some(Host::Tcp(name)), _) => name.clone(),
        (Some(Host::Unix(path)), _) => path.display().to_string(),
        (None, Some(address)) => address.to_string(),
        (None, None) => "localhost".to_owned(),
    };
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let port = config.get_ports().first().filter(|port| **port != 5432);
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{host}{port}/{database}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn what_people_see_of_an_address_has_no_password() {
        for (url, expected) in [
            ("postgres://edge:hunter2@db.example.com/edge?sslmode=require", "postgres://edge@db.example.com/edge"),
            ("postgresql://edge@db:6543/store?password=hunter2", "postgres://edge@db:6543/store"),
            ("postgres:///edge?host=/run/postgresql&user=edge", "postgres://edge@/run/postgresql/edge"),
            ("postgres://edge:hunter2@[::1/edge", "postgres://"),
            ("postgres://edge:hunter2@db/edge?hunter2=1", "postgres://"),
        ] {
            let said = shown(Path::new(url));
            assert_eq!(said, expected);
            let error = PostgresAddress::parse(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(!error.contains("hunter2"), "{error}");
        }
        assert_eq!(shown(Path::new("edgewright.db")), "edgewright.db");
        assert!(url_of(Path::new("mysql://db/edge")).is_none());
        assert_eq!(shown(Path::new("postgre://edge:hunter2@db/edge")), "postgre://");
    }

    #[test]
    fn a_misspelt_url_is_told_with_what_may_be_meant() {
        let help = |address: &str| {
            let help = check_scheme(Path::new(address)).err().and_then(|error| error.help);
            help.map(Cow::into_owned)
        };
        assert_eq!(help("postgre://edge:hunter2@db/edge").as_deref(), Some("did you mean `postgres://`?"));
        assert!(help("mysql://db/edge").is_some_and(|help| help.contains("a folder")));
        assert_eq!([help("postgresql://db/edge"), help("edgewright.db")], [None, None]);
        let error = PostgresAddress::parse("postgres://edge@db/edge?sslmod=require").err().unwrap();
        assert!(error.message.ends_with("unknown parameter `sslmod`; did you mean `sslmode`?"), "{error}");
        for known in PARAMETERS {
            let refused = PostgresAddress::parse(&format!("postgres://edge@db/edge?{known}=1")).err();
            assert!(refused.is_none_or(|error| !error.message.contains("unknown parameter")), "{known}");
        }
    }

    #[test]
    fn the_mode_of_tls_is_that_of_libpq() {
        let of = |parameters: &str| {
            let (config, own) = parsed(&format!("postgres://edge@db/edge?{parameters}")).unwrap();
            (config.get_ssl_mode(), own.tls.check)
        };
        assert_eq!(of(""), (SslMode::Prefer, CertificateCheck::Nothing));
        assert_eq!(of("sslmode=disable"), (SslMode::Disable, CertificateCheck::Nothing));
        assert_eq!(of("sslmode=verify-ca&sslrootcert=/a"), (SslMode::Require, CertificateCheck::Authority));
        assert_eq!(of("sslmode=verify-full"), (SslMode::Require, CertificateCheck::AuthorityAndName));
        assert_eq!(of("sslrootcert=system"), (SslMode::Require, CertificateCheck::AuthorityAndName));
        assert!(parsed("postgres://edge@db/edge?sslmode=maybe").is_err());
        let socket = PostgresAddress::parse("postgres:///edge?host=/run/postgresql&user=edge").unwrap();
        assert_eq!(socket.config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn of_several_hosts_the_one_that_allows_writes_is_meant() {
        for (url, expected, may_be_standby) in [
            ("postgres://edge@db/edge", TargetSessionAttrs::Any, false),
            ("postgres://edge@one,two/edge", TargetSessionAttrs::ReadWrite, true),
            ("postgres://edge@one,two/edge?target_session_attrs=any", TargetSessionAttrs::Any, false),
            ("postgres://edge@one,two/edge?target_session_attrs=read-write", TargetSessionAttrs::ReadWrite, false),
        ] {
            let address = PostgresAddress::parse(url).unwrap();
            assert!(!address.may_be_standby && address.config.get_target_session_attrs() == expected, "{url}");
            assert_eq!(address.for_reading().may_be_standby, may_be_standby, "{url}");
        }
    }
}
