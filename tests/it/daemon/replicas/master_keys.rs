//! A new master key, which every server of a database reads.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use super::{CHANGE, MASTER_KEY, Pair};
use crate::support::{
    postgres::Postgres,
    program::{Folder, within},
};

/// Replaces a file with a master key, as a whole.
fn replace_key(folder: &Folder, name: &str, digit: char) {
    folder.write("new.key", &format!("{digit:0>64}"));
    fs::set_permissions(folder.path("new.key"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(folder.path("new.key"), folder.path(name)).unwrap();
}

#[test]
fn a_new_master_key_is_taken_over_by_those_who_follow_while_they_serve() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start_reachable(&postgres);
    let Pair { first, second, folders, .. } = &pair;
    let mut lines = pair.watch(second, None);
    for digit in ['1', '2', '3'] {
        replace_key(&folders[0], MASTER_KEY, digit);
        let rekeyed = pair.call(second, "POST", "/store/rekey", &[], r#"{"forget_secrets":false}"#);
        assert_eq!((rekeyed.status, rekeyed.json()["master_key_changed"].as_bool()), (200, Some(true)));
        let key = pair.call(second, "POST", "/api_keys", &[], r#"{"description":"encrypted"}"#);
        assert_eq!(key.status, 201, "{}", key.body);
    }
    assert_eq!(pair.create(first, "one").status, 201);
    // The stream is still that of the beginning.
    assert!(lines.any(|line| line.contains("one.example.com:443")));
    for alarm in ["read again", "interrupted", "master key of the store"] {
        assert!(!second.said().contains(alarm), "{}", second.said());
    }
    first.signal("KILL");
    within(CHANGE, "a write", || pair.creates(second, "two"));
}

#[test]
fn whoever_follows_without_the_new_master_key_says_so_once_and_goes_on_when_it_is_there() {
    let Some(postgres) = Postgres::shared() else { return };
    let (pair, _) = Pair::start(&postgres);
    let Pair { first, folders, options, .. } = &pair;
    let third = Folder::new();
    fs::copy(folders[0].path(MASTER_KEY), third.path("own.key")).unwrap();
    let shared = folders[0].path(MASTER_KEY).display().to_string();
    let options = format!("{} --security-log security.log", options.replace(&shared, "own.key"));
    let follower = third.serve(&options);
    replace_key(&folders[0], MASTER_KEY, '1');
    assert_eq!(first.call_as(&pair.token, "POST", "/store/rekey", "{}").status, 200);
    assert_eq!(pair.create(first, "one").status, 201);
    follower.wait_for("own.key is not the master key of the store");
    std::thread::sleep(Duration::from_secs(3));
    assert!(pair.knows(&follower, "one").is_none());
    replace_key(&third, "own.key", '1');
    within(CHANGE, "the commit", || pair.knows(&follower, "one"));
    let said = follower.said();
    assert_eq!((said.matches("is not the master key").count(), said.contains("read again")), (1, false), "{said}");
}
