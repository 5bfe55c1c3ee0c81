//! A server on a database with a local copy: it starts and answers while the database is away.

use std::{io::Write, net::TcpStream, time::Duration};

use crate::support::{
    http::{HttpAnswer, read_answer, request},
    postgres::Postgres,
    program::{Folder, Serve, has, within},
};

/// How long a copy, or the change of a role, takes on a busy machine, at most.
const CHANGE: Duration = Duration::from_secs(20);
const HEADER: &str = "edgewright-local-copy";

/// The options of a server on a store, without a copy.
fn server(store: &str) -> String {
    format!("{store} --security-log security.log --base-url http://gateway.test")
}

fn create(serve: &Serve, name: &str) -> HttpAnswer {
    serve.call("POST", "/ip_restrictions", &format!(r#"{{"type":"api","description":"{name}"}}"#))
}

fn knows(serve: &Serve, name: &str) -> bool {
    serve.get("/ip_restrictions?limit=1000").body.contains(&format!("\"{name}\""))
}

/// An answer, if there is one. Between two rounds, the server can close a connection without one.
fn try_get(serve: &Serve, path: &str) -> Option<HttpAnswer> {
    let mut connection = TcpStream::connect(&serve.address).ok()?;
    connection.set_read_timeout(Some(CHANGE)).unwrap();
    connection.write_all(request(&serve.address, "GET", path, &[], "").as_bytes()).ok()?;
    HttpAnswer::parse(&String::from_utf8_lossy(&read_answer(&mut connection)))
}

/// Waits until the copy has everything.
fn copied(serve: &Serve) {
    let lag = || serve.metric("edgewright_local_copy_lag_records");
    within(CHANGE, "the copy", || lag().filter(|lag| *lag == 0.0));
}

/// Waits until the server serves from the database.
fn is_back(serve: &Serve) {
    let is_ready = |answer: &HttpAnswer| answer.body == "ready\n" && answer.header(HEADER).is_empty();
    within(CHANGE, "the database", || try_get(serve, "/readyz").filter(is_ready));
}

#[test]
fn a_server_starts_and_answers_while_the_database_is_away() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, store) = (Folder::new(), postgres.options(&postgres.database()));
    let created = folder.ok(&format!("keys create {store} --role gateway --owner bot_gateway"));
    let gateway = created.out.trim();
    let options = format!("{} --local-copy copy", server(&store));
    let read = |serve: &Serve| {
        let (admin, gateway) = (serve.token.as_str(), gateway);
        [("/ip_restrictions", admin), ("/history", admin), ("/gateway/configuration", gateway)].map(|(path, token)| {
            let answer = serve.call_as(token, "GET", path, "");
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let etag = answer.header("etag").join("");
            (etag, answer.body)
        })
    };
    let serve = folder.serve(&options);
    assert_eq!(create(&serve, "one").status, 201);
    copied(&serve);
    let before = read(&serve);
    assert!(serve.get("/ip_restrictions").header(HEADER).is_empty());
    serve.stop();
    let copy = format!("--store copy --master-key-file {}", postgres.master_key().display());
    folder.ok(&format!("store check {copy}"));
    folder.ok(&format!("history verify {copy}"));
    let refused = folder.run(&format!("store rekey {copy}"));
    assert_eq!(refused.code, 1, "{}", refused.all());
    has(&refused, &["STORE_FORMAT", "is a local copy of postgres://edge@"]);

    postgres.kill();
    let serve = folder.serve(&options);
    for text in ["STORE_UNAVAILABLE", "cannot connect to the store", "answers from its local copy"] {
        assert!(serve.said().contains(text), "{}", serve.said());
    }
    assert_eq!(read(&serve), before);
    let ready = serve.get("/readyz");
    assert_eq!((ready.status, ready.header(HEADER).len()), (200, 1));
    let since = format!("is served from the local copy since {}\n", ready.header(HEADER)[0]);
    assert!(ready.body.starts_with("ready\nlocal copy: ") && ready.body.ends_with(&since), "{}", ready.body);
    let refused = create(&serve, "never");
    assert_eq!((refused.status, refused.code().as_str()), (503, "ERR_EDGEWRIGHT_STORE_UNAVAILABLE"));
    assert_eq!((refused.header("retry-after").len(), refused.header(HEADER).len()), (1, 1));

    postgres.run();
    is_back(&serve);
    assert_eq!(create(&serve, "two").status, 201);
    assert!(knows(&serve, "one") && knows(&serve, "two") && !knows(&serve, "never"));
    copied(&serve);
    // A second server on the same folder has no copy, and serves all the same.
    let second = folder.serve(&options.replace("security.log", "second.log"));
    within(CHANGE, "the warning", || second.get("/readyz").body.contains("cannot write the local copy").then_some(()));
    assert!(knows(&second, "two") && serve.get("/readyz").body == "ready\n");
}

#[test]
fn a_copy_that_is_behind_catches_up_and_one_of_another_store_is_replaced() {
    let Some(postgres) = Postgres::start() else { return };
    let (folder, databases) = (Folder::new(), [postgres.database(), postgres.database()]);
    let [first, other] = databases.map(|database| server(&postgres.options(&database)));
    for (options, name) in [(format!("{first} --local-copy copy"), "one"), (first.clone(), "two")] {
        let serve = folder.serve(&options);
        assert_eq!(create(&serve, name).status, 201);
        copied(&serve);
        serve.stop();
    }
    let serve = folder.serve(&format!("{first} --local-copy copy"));
    copied(&serve);
    postgres.kill();
    drop(serve);
    let serve = folder.serve(&format!("{first} --local-copy copy"));
    assert!(knows(&serve, "one") && knows(&serve, "two"));
    serve.stop();

    postgres.run();
    let serve = folder.serve(&format!("{other} --local-copy copy"));
    assert_eq!(create(&serve, "three").status, 201);
    copied(&serve);
    serve.stop();
    postgres.kill();
    let serve = folder.serve(&format!("{other} --local-copy copy"));
    assert!(knows(&serve, "three") && !knows(&serve, "one"));
    serve.stop();
    // It is not served in place of the first one.
    let ended = folder.try_serve(&format!("{first} --local-copy copy"), &[]).err().unwrap();
    has(&ended, &["STORE_UNAVAILABLE"]);
}

#[test]
fn what_a_database_has_lost_is_said_and_stays_beside_the_copy() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, database) = (Folder::new(), postgres.database());
    let options = format!("{} --local-copy copy", server(&postgres.options(&database)));
    let sql = |sql: &str| postgres.psql("postgres", sql).unwrap();
    let serve = folder.serve(&options);
    assert_eq!(create(&serve, "kept-one").status, 201);
    copied(&serve);
    serve.stop();
    sql(&format!("CREATE DATABASE {database}_earlier TEMPLATE {database}"));
    let serve = folder.serve(&options);
    assert_eq!(create(&serve, "lost-two").status, 201);
    copied(&serve);
    // As after a failover to a replica that lagged.
    sql(&format!("UPDATE pg_database SET datallowconn = false WHERE datname = '{database}'"));
    sql(&format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"));
    sql(&format!("DROP DATABASE {database}"));
    sql(&format!("ALTER DATABASE {database}_earlier RENAME TO {database}"));
    let warning = "warning: the database has lost changes that were confirmed; see the server log\n";
    // It follows at first, and then writes again.
    let writes = |answer: &HttpAnswer| answer.body == format!("ready\n{warning}");
    within(CHANGE, "the warning", || try_get(&serve, "/readyz").filter(writes));
    within(CHANGE, "the copy", || serve.said().contains("The former copy is in copy/former").then_some(()));
    assert_eq!(create(&serve, "later-three").status, 201);
    copied(&serve);
    assert!(knows(&serve, "kept-one") && knows(&serve, "later-three") && !knows(&serve, "lost-two"));
    serve.stop();
    let export = |copy: &str| {
        let key = postgres.master_key();
        folder.ok(&format!("export --adopt --store {copy} --master-key-file {}", key.display())).out
    };
    let (former, copy) = (export("copy/former"), export("copy"));
    assert!(former.contains("lost-two") && !former.contains("later-three"), "{former}");
    assert!(copy.contains("later-three") && !copy.contains("lost-two"), "{copy}");
}

#[test]
fn a_disk_that_is_full_holds_up_the_copy_alone() {
    let Some(postgres) = Postgres::shared() else { return };
    let (folder, store) = (Folder::new(), postgres.options(&postgres.database()));
    let options = format!("{} --local-copy copy", server(&store));
    let serve = folder.serve_with(&options, &[("FAILPOINTS", "log.write=return(full)")]);
    for name in ["one", "two"] {
        assert_eq!(create(&serve, name).status, 201);
    }
    let warning = "ready\nwarning: cannot write the local copy of the store; see the server log\n";
    within(CHANGE, "the warning", || (serve.get("/readyz").body == warning).then_some(()));
    assert!(serve.said().contains("cannot write the local copy in copy"), "{}", serve.said());
    assert_ne!(serve.metric("edgewright_local_copy_lag_records"), Some(0.0));
    assert_eq!(create(&serve, "three").status, 201);
    serve.stop();
    let serve = folder.serve(&options);
    copied(&serve);
    assert_eq!(serve.get("/readyz").body, "ready\n");
}

#[test]
fn only_a_new_folder_becomes_a_copy_and_only_of_a_database() {
    let folder = Folder::new();
    folder.write("used/notes.txt", "mine");
    let url = "postgres://edge@127.0.0.1:1/edge";
    let ended = |options: &str| folder.try_serve(options, &[]).err().unwrap();
    let run = ended(&format!("--store {url} --master-key-file none --local-copy used"));
    has(&run, &["STORE_FORMAT", "used is not empty, and has no local copy of a store"]);
    assert_eq!(folder.read("used/notes.txt"), "mine");
    has(&ended("--local-copy copy"), &["`--local-copy` requires a store in a database"]);
}
