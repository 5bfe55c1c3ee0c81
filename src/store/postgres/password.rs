//! The password for a database whose address has none.
//!
//! It is found anew for each connection: it can be replaced while a server runs, and cloud services issue passwords that are valid
//! for minutes. The first of these that is set gives it: the command in `EDGEWRIGHT_DATABASE_PASSWORD_COMMAND`, `PGPASSWORD`, and a
//! password file that only its owner can read (`passfile` in the address, `PGPASSFILE`, `~/.pgpass`).

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::store::seal::command::output_within;

/// The variable with a shell command that prints the password.
const PASSWORD_COMMAND: &str = "EDGEWRIGHT_DATABASE_PASSWORD_COMMAND";
/// How long the command may take: whoever makes a change waits for the connection.
const DEADLINE: Duration = Duration::from_secs(5);
/// The most bytes of a password: tokens of clouds have some 2,000.
const MOST_BYTES: u64 = 16 << 10;

/// Returns the password for a database. `passfile` is the password file that its address names. Waits for the command, so this
/// must not run on the thread of the connections. An error says what is wrong with the command, and never what it prints.
pub(super) fn find_password(config: &Config, passfile: Option<&Path>) -> Result<Option<String>, String> {
    if let Some(command) = variable(PASSWORD_COMMAND) {
        let printed = printed_by(&command.to_string_lossy(), DEADLINE);
        return printed.map(Some).map_err(|found| format!("{PASSWORD_COMMAND} {found}"));
    }
    if let Some(password) = variable("PGPASSWORD").and_then(|value| value.into_string().ok()) {
        return Ok(Some(password));
    }
    Ok(password_file(passfile).and_then(|path| password_in_file(&path, config)))
}

/// Says that the password file has no line for a database, if that is so.
pub(super) fn unmatched_file(config: &Config, passfile: Option<&Path>) -> Option<String> {
    let path = password_file(passfile)?;
    fs::metadata(&path).ok().filter(|facts| facts.is_file() && is_private(facts))?;
    let text = fs::read_to_string(&path).ok()?;
    let is_unmatched = text.lines().all(|line| password_in(line, config).is_none());
    is_unmatched.then(|| format!("no line of {} is for {}", path.display(), line_of(config).join(":")))
}

/// The password file, which need not exist.
fn password_file(passfile: Option<&Path>) -> Option<PathBuf> {
    let named = passfile.map(Path::to_owned).or_else(|| variable("PGPASSFILE").map(PathBuf::from));
    named.or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".pgpass")))
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn is_private(facts: &fs::Metadata) -> bool {
    facts.permissions().mode() & 0o077 == 0
}

/// The first line that a command prints within a time.
fn printed_by(command: &str, deadline: Duration) -> Result<String, String> {
    let output = output_within(deadline, command, MOST_BYTES)?;
    let text = std::str::from_utf8(&output).map_err(|_| "prints no text".to_owned())?;
    let line = text.lines().next().unwrap_or_default();
    match line.len() as u64 {
        0 => Err("prints no password".to_owned()),
        length if length > MOST_BYTES => Err(format!("prints more than {MOST_BYTES} bytes")),
        _ => Ok(line.to_owned()),
    }
}

fn password_in_file(path: &Path, config: &Config) -> Option<String> {
    let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    if !is_private(&facts) {
        tracing::warn!("The password file {} is ignored: others can read it.", path.display());
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| password_in(line, config))
}

/// The password in a line `host:port:database:user:password`, if the line is for this database.
fn password_in(line: &str, config: &Config) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let [host, port, database, user, password] = <[String; 5]>::try_from(fields(line)).ok()?;
    let mut fields = [host, port, database, user].into_iter().zip(line_of(config));
    fields.all(|(pattern, value)| pattern == "*" || pattern == value).then_some(password)
}

/// The host, port, database and user of a line for a database.
fn line_of(config: &Config) -> [String; 4] {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        // As libpq has it.
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    [host, port, config.get_dbname().unwrap_or(user).to_owned(), user.to_owned()]
}

/// The fields of a line of a password file: colons divide them, and a backslash escapes.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut field, mut characters) = (Vec::new(), String::new(), line.chars());
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut field)),
            '\\' => field.extend(characters.next()),
            other => field.push(other),
        }
    }
    fields.push(field);
    fields
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_command_that_hangs_is_not_waited_for_long() {
        let began = Instant::now();
        let refused = printed_by("sleep 60", Duration::from_millis(100)).unwrap_err();
        assert!(refused.starts_with("did not finish within "), "{refused}");
        assert!(began.elapsed() < DEADLINE, "{:?}", began.elapsed());
        assert_eq!(printed_by("echo hunter2", DEADLINE).unwrap(), "hunter2");
    }

    #[test]
    fn a_line_of_a_password_file_is_for_the_databases_that_it_names() {
        let config: Config = "postgres://edge@db/store".parse().unwrap();
        for (line, expected) in [
            ("db:5432:store:edge:hunter2", Some("hunter2")),
            ("*:*:*:edge:a\\:b\\\\c", Some("a:b\\c")),
            ("*:*:*:*:with:colons", Some("with:colons")),
            ("db:5433:store:edge:hunter2", None),
            ("# db:5432:store:edge:hunter2", None),
            ("db", None),
        ] {
            assert_eq!(password_in(line, &config).as_deref(), expected, "{line}");
        }
        assert_eq!(line_of(&config).join(":"), "db:5432:store:edge");
    }
}
