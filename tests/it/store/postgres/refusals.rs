//! Secrets in a database and in what is said of it, and what is refused.

use edgewright::Code;

use crate::support::{
    postgres::Postgres,
    program::{Folder, has},
};

const ROUTE: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: a}\nspec:\n  \
    hostports: ['a.example.com:443']\n  routes:\n    - {name: hook, match_type: path_prefix, match: /, \
    webhook_verification: {provider: github, secret: {from_file: s.txt}}}\n";

#[test]
fn secrets_are_sealed_and_former_ones_can_be_destroyed() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = postgres.options(&database);
    folder.write("m/a.yaml", ROUTE);
    for secret in ["hunter2-first", "hunter2-second"] {
        folder.write("m/s.txt", secret);
        folder.ok(&format!("reconcile m {options}"));
    }
    let columns = ["state.value", "entries.entry", "commits.header", "commits.calls", "secrets.keys"];
    for column in columns {
        let (table, name) = column.split_once('.').unwrap();
        let sql = format!("SELECT count(*) FROM edgewright.{table} WHERE position('hunter2'::bytea IN {name}) > 0");
        assert_eq!(postgres.psql(&database, &sql).unwrap(), "0", "{column}");
    }
    let lost = |run: &str| folder.run(&format!("rollback --to 1 {run} {options}"));
    assert_eq!(lost("--dry-run").code, 0);
    folder.ok(&format!("store rekey --forget-secrets {options}"));
    has(&lost(""), &["SECRETS_GONE"]);
    folder.ok(&format!("store check {options}"));
    assert!(folder.ok(&format!("reconcile m {options}")).all().contains("No changes"));
    let other = folder.path("other.key");
    folder.write("other.key", &"ab".repeat(32));
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let url = postgres.url(&database);
    has(&folder.run(&format!("store check --store {url} --master-key-file other.key")), &["MASTER_KEY"]);
    let unnamed = folder.run(&format!("store check --store {url}"));
    has(&unnamed, &["MASTER_KEY", "--master-key-file"]);
    assert!(!unnamed.err.contains("openssl"), "a new key would not open the store: {}", unnamed.err);
}

#[test]
fn what_a_database_has_not_is_refused_and_its_password_is_never_shown() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::with_storefront(), postgres.database());
    let url = postgres.url(&database).replace("edge@", "edge:hunter2@");
    let options = format!("--store {url} --master-key-file {}", postgres.master_key().display());
    let plan = folder.run(&format!("plan storefront {options}"));
    has(&plan, &["No store found in `postgres://edge@"]);
    let created = folder.ok(&format!("reconcile storefront {options}"));
    let mut said = vec![plan, created, folder.ok(&format!("backup a.backup {options}"))];
    for (line, help) in [
        ("restore a.backup", "empty database"),
        ("store repair", "PostgreSQL's tools"),
        ("security-log verify", "--security-log"),
    ] {
        let options = if line.starts_with("security") { format!("--store {url}") } else { options.clone() };
        let run = folder.run(&format!("{line} {options}"));
        assert_ne!(run.code, 0, "{line}");
        has(&run, &[help]);
        said.push(run);
    }
    said.push(folder.run(&format!("plan storefront --store {}", url.replace("/edge", "/none"))));
    said.push(folder.run(&format!("plan storefront --store {url}&hunter2=1")));
    said.push(folder.run("plan --help"));
    for run in said {
        assert!(!run.all().contains("hunter2"), "{}", run.all());
    }
}

#[test]
fn tables_of_a_newer_version_are_refused_unchanged() {
    let Some(postgres) = Postgres::shared() else { return };
    let database = postgres.database();
    drop(postgres.open(&database).unwrap());
    postgres.psql(&database, "UPDATE edgewright.schema_version SET version = 99").unwrap();
    for error in [postgres.open(&database).err().unwrap(), postgres.open_to_read(&database).err().unwrap()] {
        assert_eq!(error.code, Code::StoreFormat);
        assert!(error.message.contains("version 99"), "{error}");
    }
}
