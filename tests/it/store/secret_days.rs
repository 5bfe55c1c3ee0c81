//! How long a store keeps former secrets, and that a new master key is announced, also after a process was killed (D96).

use edgewright::Store;
use jiff::{SignedDuration, Timestamp};

use crate::support::program::{CONFIG_VARIABLE, Folder, Run, finish};

/// Until when former data keys decrypt, as `store rekey` says, in days from now.
fn days_left(run: &Run) -> Vec<f64> {
    let until = run.err.lines().filter_map(|line| line.split_once("decrypts earlier revisions until "));
    let days = until.map(|(_, until)| {
        let until: Timestamp = until.trim_end_matches('.').parse().unwrap();
        until.duration_since(Timestamp::now()).as_secs_f64() / SignedDuration::from_hours(24).as_secs_f64()
    });
    days.collect()
}

#[test]
fn the_store_remembers_how_long_it_keeps_former_secrets() {
    let folder = Folder::new();
    folder.ok("keys create --role admin --secret-days 3");
    let days = days_left(&folder.ok("store rekey"));
    assert!(days.len() == 1 && (2.9..=3.0).contains(&days[0]), "{days:?}");
    let days = days_left(&folder.ok("store rekey --secret-days 90"));
    assert!(days.len() == 2 && days.iter().all(|days| (89.9..=90.0).contains(days)), "{days:?}");
    for wrong in ["--secret-days 0", "--secret-days 3651", "--data-key-days 0", "--data-key-days week"] {
        let run = folder.run(&format!("store rekey {wrong}"));
        assert!(run.code == 1 && run.err.contains("from 1 to 3650"), "{wrong}: {}", run.all());
    }
    // Write access to the working folder must not be enough to destroy secrets.
    folder.write("edgewright.config.yaml", "options: {secret-days: 1}\n");
    let mut command = folder.command("store rekey");
    command.env_remove(CONFIG_VARIABLE);
    let run = finish(command, "");
    assert!(run.code == 1 && run.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED"), "{}", run.all());
    // A command that only reads has no such option, and what sets it is in nobody's way.
    let mut command = folder.command("keys list");
    command.env_remove(CONFIG_VARIABLE).env("EDGEWRIGHT_HISTORY_RECORDS", "10");
    assert_eq!(finish(command, "").code, 0);
}

#[test]
fn a_master_key_is_announced_by_the_first_command_that_can() {
    let folder = Folder::new();
    // A program that embeds the library announces nothing, as a command that is killed too early.
    drop(Store::open(folder.path("store")).unwrap());
    let told = |line: &str| folder.ok(line).err.matches("Created the master key").count();
    assert_eq!(told("keys create --role admin"), 1);
    assert_eq!(told("keys create --role admin"), 0);
    // The store is made again with the key of the one before.
    std::fs::remove_dir_all(folder.path("store")).unwrap();
    let run = folder.ok("keys create --role admin");
    assert_eq!(run.err.matches("Using the master key").count(), 1, "{}", run.all());
    assert!(!folder.ok("keys create --role admin").err.contains("master key"));
}
