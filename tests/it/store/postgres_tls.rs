//! A store on PostgreSQL over TLS, as libpq has it: what `sslmode` encrypts and verifies, certificates of clients, passwords, and
//! what an error advises.

use std::{fs, os::unix::fs::PermissionsExt};

use edgewright::{
    Store,
    storage::{MasterKeySource, Query},
};

use crate::{
    security::tls::Authority,
    support::{
        postgres::Postgres,
        program::{Folder, Run, finish, has, until},
    },
};

const SETTINGS: &str = "listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = 'server.pem'\n\
                        ssl_key_file = 'server.key'\nssl_ca_file = 'ca.pem'\n";
/// Who may connect how. The first user owns the store.
const ACCESS: &str = "local all all trust\n\
                      host all edge 127.0.0.1/32 trust\n\
                      hostssl all with_password 127.0.0.1/32 scram-sha-256\n\
                      hostssl all with_certificate 127.0.0.1/32 cert\n";
const COMMAND: &str = "EDGEWRIGHT_DATABASE_PASSWORD_COMMAND";
const VERIFIED: &str = "sslmode=verify-full&sslrootcert=ca.pem";

/// A database with a certificate of an authority, and a folder with the files of its clients.
struct SecuredDatabase {
    postgres: Postgres,
    folder: Folder,
    name: String,
}

impl SecuredDatabase {
    fn start() -> Option<Self> {
        let (authority, other) = (Authority::new("one"), Authority::new("two"));
        let (certificate, key) = authority.sign("urn:database");
        let ca = authority.pem();
        let files = [("server.pem", &*certificate), ("server.key", &*key), ("ca.pem", &*ca), ("pg_hba.conf", ACCESS)];
        let postgres = Postgres::start_with(SETTINGS, &files)?;
        let roles = "CREATE ROLE with_password SUPERUSER LOGIN PASSWORD 'hunter2'; \
                     CREATE ROLE with_certificate SUPERUSER LOGIN";
        postgres.psql("postgres", roles).unwrap();
        let (folder, name) = (Folder::new(), postgres.database());
        drop(postgres.open(&name).unwrap());
        folder.write("ca.pem", &ca);
        folder.write("other.pem", &other.pem());
        folder.write("none.pem", "nothing\n");
        for (file, authority, user) in [
            ("client", &authority, "with_certificate"),
            ("another", &authority, "somebody"),
            ("stranger", &other, "with_certificate"),
        ] {
            let (certificate, key) = authority.sign_as(user, "urn:client");
            folder.write(&format!("{file}.pem"), &certificate);
            folder.write(&format!("{file}.key"), &key);
        }
        Some(Self { postgres, folder, name })
    }

    fn url(&self, user: &str, host: &str, parameters: &str) -> String {
        format!("postgres://{user}@{host}:{}/{}?{parameters}", self.postgres.port, self.name)
    }

    /// Reads the store with a command.
    fn read(&self, url: &str, variables: &[(&str, &str)]) -> Run {
        let key = self.postgres.master_key();
        let mut command = self.folder.command(&format!("keys list --store {url} --master-key-file {}", key.display()));
        command.env_remove("PGPASSWORD").env_remove("PGPASSFILE").env("HOME", self.folder.path("home"));
        command.envs(variables.iter().copied());
        finish(command, "")
    }

    /// Expects an error of the command, with these words.
    fn refuses(&self, url: &str, variables: &[(&str, &str)], words: &[&str]) {
        let run = self.read(url, variables);
        assert_eq!(run.code, 1, "{url}\n{}", run.all());
        has(&run, words);
        assert!(!run.all().contains("hunter2"), "{}", run.all());
    }

    /// Whether the connections of an open store are encrypted.
    fn is_encrypted(&self, url: &str) -> bool {
        let sql = format!(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
             WHERE datname = '{}' AND application_name LIKE 'edgewright%'",
            self.name
        );
        let found = || self.postgres.psql("postgres", &sql).unwrap();
        // Those of a store that was closed end a moment later.
        until("the end of other connections", || found().is_empty().then_some(()));
        let source = MasterKeySource::File(self.postgres.master_key());
        let _store = Store::open_encrypted_to_read(url, &source).unwrap();
        let found = found();
        assert!(found == "t" || found == "f", "{found:?}");
        found == "t"
    }
}

#[test]
fn a_connection_is_encrypted_and_verified_as_its_mode_says() {
    let Some(database) = SecuredDatabase::start() else { return };
    let ca = database.folder.path("ca.pem").display().to_string();
    for (host, parameters, is_encrypted) in [
        ("127.0.0.1", "sslmode=disable".to_owned(), false),
        ("127.0.0.1", String::new(), true),
        ("127.0.0.1", "sslmode=prefer".to_owned(), true),
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("127.0.0.1", format!("sslmode=verify-ca&sslrootcert={ca}"), true),
        // The certificate has another name, which is not verified.
        ("localhost", format!("sslmode=verify-ca&sslrootcert={ca}"), true),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={ca}"), true),
    ] {
        assert_eq!(
            database.is_encrypted(&database.url("edge", host, &parameters)),
            is_encrypted,
            "{host} {parameters}"
        );
    }
    let by_system = database.url("edge", "127.0.0.1", "sslrootcert=system");
    let trusted = database.read(&by_system, &[("SSL_CERT_FILE", "ca.pem")]);
    assert_eq!(trusted.code, 0, "{}", trusted.all());
    let root = "set `sslrootcert` in the address";
    database.refuses(&by_system, &[("SSL_CERT_FILE", "other.pem")], &["UnknownIssuer", root]);
    for (host, parameters, words) in [
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=other.pem", ["UnknownIssuer", root]),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=other.pem", ["UnknownIssuer", root]),
        ("127.0.0.1", "sslmode=require&sslrootcert=other.pem", ["UnknownIssuer", root]),
        ("localhost", VERIFIED, ["not valid for name \"localhost\"", "use a host name in the address"]),
        ("127.0.0.1", "sslmode=verify-full", ["names no authority", "add `sslrootcert=FILE`"]),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=gone.pem", ["cannot use `gone.pem`", "which must be PEM"]),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=none.pem", ["cannot use `none.pem`", "no certificate found"]),
        ("127.0.0.1", "sslmode=maybe", ["`sslmode` is disable, prefer", "not a valid `postgres://` URL"]),
    ] {
        database.refuses(&database.url("edge", host, parameters), &[], &words);
    }
    // Without TLS, only those connect that do not insist on it.
    database.postgres.psql("postgres", "ALTER SYSTEM SET ssl = off").unwrap();
    database.postgres.psql("postgres", "SELECT pg_reload_conf()").unwrap();
    let preferred = database.url("edge", "127.0.0.1", "");
    until("a server without TLS", || (!database.is_encrypted(&preferred)).then_some(()));
    for parameters in ["sslmode=require", VERIFIED, "sslrootcert=system"] {
        let url = database.url("edge", "127.0.0.1", parameters);
        database.refuses(&url, &[], &["server does not support TLS", "turn on `ssl` in PostgreSQL"]);
    }
}

#[test]
fn a_client_is_known_by_its_certificate() {
    let Some(database) = SecuredDatabase::start() else { return };
    let with = |parameters: &str| database.url("with_certificate", "127.0.0.1", &format!("{VERIFIED}{parameters}"));
    let run = database.read(&with("&sslcert=client.pem&sslkey=client.key"), &[]);
    assert_eq!(run.code, 0, "{}", run.all());
    let access = "against `pg_hba.conf` of PostgreSQL";
    for (parameters, words) in [
        ("", ["requires a valid client certificate", access]),
        ("&sslcert=another.pem&sslkey=another.key", ["authentication failed for user \"with_certificate\"", access]),
        ("&sslcert=client.pem", ["only one of `sslcert` and `sslkey`", "set both"]),
        ("&sslcert=client.pem&sslkey=another.key", ["KeyMismatch", "set `sslkey` in the address to the key"]),
        ("&sslcert=client.pem&sslkey=gone.key", ["cannot use `gone.key`", "which must be PEM"]),
        ("&sslcert=client.pem&sslkey=client.pem", ["cannot use `client.pem`", "which must be PEM"]),
        ("&sslcert=none.pem&sslkey=client.key", ["cannot use `none.pem`", "no certificate found"]),
    ] {
        database.refuses(&with(parameters), &[], &words);
    }
    // The server may close the connection before its reason is read.
    database.refuses(&with("&sslcert=stranger.pem&sslkey=stranger.key"), &[], &["cannot connect to the store"]);
}

#[test]
fn a_password_comes_from_a_command_the_environment_or_a_file_that_only_its_owner_can_read() {
    let Some(database) = SecuredDatabase::start() else { return };
    let folder = &database.folder;
    let line =
        |password: &str| format!("127.0.0.1:{}:{}:with_password:{password}\n", database.postgres.port, database.name);
    for (name, text, mode) in [
        ("pgpass", line("hunter2"), 0o600),
        ("wrong.pgpass", line("hunter2-wrong"), 0o600),
        ("open.pgpass", line("hunter2"), 0o644),
        ("other.pgpass", "other:*:*:*:hunter2\n".to_owned(), 0o600),
        ("home/.pgpass", line("hunter2"), 0o600),
    ] {
        folder.write(name, &text);
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let with = |parameters: &str| database.url("with_password", "127.0.0.1", &format!("{VERIFIED}{parameters}"));
    let accepted: [(&str, &[(&str, &str)]); 6] = [
        ("&passfile=pgpass", &[]),
        ("", &[("PGPASSFILE", "pgpass")]),
        ("", &[("PGPASSWORD", "hunter2")]),
        ("", &[]),
        ("&passfile=wrong.pgpass", &[("PGPASSWORD", "hunter2")]),
        ("&passfile=wrong.pgpass", &[("PGPASSWORD", "hunter2-wrong"), (COMMAND, "echo hunter2")]),
    ];
    for (parameters, variables) in accepted {
        let run = database.read(&with(parameters), variables);
        assert_eq!(run.code, 0, "{parameters} {variables:?}\n{}", run.all());
    }
    let cure = "that only its owner can read";
    let refused = [
        ("&passfile=gone.pgpass", "password missing"),
        ("&passfile=open.pgpass", "password missing"),
        ("&passfile=other.pgpass", "password missing: no line of other.pgpass is for 127.0.0.1:"),
        ("&passfile=wrong.pgpass", "password authentication failed"),
    ];
    for (parameters, message) in refused {
        database.refuses(&with(parameters), &[], &[message, cure]);
    }
    database.refuses(&with(""), &[("PGPASSWORD", "hunter2-wrong")], &["password authentication failed", cure]);
    for (command, message) in [
        ("echo hunter2-wrong", "password authentication failed"),
        (
            "echo hunter2; false",
            "EDGEWRIGHT_DATABASE_PASSWORD_COMMAND failed (exit status: 1); run it by hand to see why",
        ),
        ("echo; echo hunter2", "EDGEWRIGHT_DATABASE_PASSWORD_COMMAND prints no password"),
    ] {
        database.refuses(&with("&passfile=pgpass"), &[(COMMAND, command)], &[message]);
    }
    // The user has no way in without TLS.
    let open = database.url("with_password", "127.0.0.1", "sslmode=disable&passfile=pgpass");
    database.refuses(&open, &[], &["no encryption", "`sslmode`"]);
}

#[test]
fn a_password_can_be_replaced_while_the_store_is_open() {
    let Some(database) = SecuredDatabase::start() else { return };
    let (file, ca) = (database.folder.path("pgpass"), database.folder.path("ca.pem"));
    let replace = |password: &str| {
        database.folder.write("pgpass", &format!("*:*:*:*:{password}\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        database.postgres.psql("postgres", &format!("ALTER ROLE with_password PASSWORD '{password}'")).unwrap();
    };
    replace("first");
    let parameters = format!("sslmode=verify-full&sslrootcert={}&passfile={}", ca.display(), file.display());
    let url = database.url("with_password", "127.0.0.1", &parameters);
    let store = Store::open_encrypted_to_read(url, &MasterKeySource::File(database.postgres.master_key())).unwrap();
    store.history(&Query::All, u64::MAX, 1).unwrap();
    replace("second");
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'with_password'";
    database.postgres.psql("postgres", sql).unwrap();
    until("a connection with the new password", || store.history(&Query::All, u64::MAX, 1).ok());
}
