//! The layout of a state, which `docs/explanation/store.md` describes for programs that know sled alone (D58).

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs,
    path::Path,
};

use edgewright::resources::Kind;
use serde_json::Value;

use crate::support::{
    program::{Folder, REPOSITORY, beside, copy},
    users::client,
};

/// Runs the program of the page, and returns the lines that it prints.
fn printed(copy_of_state: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut lines = Vec::new();
    macro_rules! println {
        ($($argument:tt)*) => { lines.push(format!($($argument)*)) };
    }
    let db = sled::open(copy_of_state)?;
    for row in db.iter() {
        let (name, value) = row?;
        if name == "meta" {
            continue;
        }
        let mut rest = &value[..];
        while !rest.is_empty() {
            let key_length = u32::from_le_bytes(rest[..4].try_into()?) as usize;
            let length = u64::from_le_bytes(rest[4..12].try_into()?) as usize;
            let (key, after) = rest[12..].split_at(key_length);
            let (value, after) = after.split_at(length);
            println!("{} {}", String::from_utf8_lossy(key), String::from_utf8_lossy(value));
            rest = after;
        }
    }
    Ok(lines)
}

/// The resources in a copy of the newest state, as `KIND NAME`.
fn in_sled(folder: &Folder, store: &str) -> BTreeSet<String> {
    let names = fs::read_dir(folder.path(store)).unwrap().map(|entry| entry.unwrap().file_name());
    let states = names.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with("state."));
    let aside = tempfile::tempdir().unwrap();
    copy(&folder.path(store).join(states.max().unwrap()), &aside.path().join("state"));
    let lines = printed(&aside.path().join("state")).unwrap();
    let resources = lines.iter().filter_map(|line| line.strip_prefix("r/")).map(|line| {
        let (key, value) = line.split_once(' ').unwrap();
        let [kind, parent, id] = key.splitn(3, '/').collect::<Vec<_>>()[..] else { panic!("{key}") };
        let value: Value = serde_json::from_str(value).unwrap();
        (kind, parent, id, value["claim"]["name"].as_str().unwrap_or(id).to_owned())
    });
    let resources: Vec<(&str, &str, &str, String)> = resources.collect();
    let names: BTreeMap<&str, &str> = resources.iter().map(|(_, _, id, name)| (*id, name.as_str())).collect();
    let full = |(kind, parent, _, name): &(&str, &str, &str, String)| match names.get(parent) {
        Some(parent) => format!("{kind} {parent}/{name}"),
        None => format!("{kind} {name}"),
    };
    resources.iter().map(full).collect()
}

/// The resources that commands list, as `KIND NAME`.
fn listed(folder: &Folder, store: &str) -> BTreeSet<String> {
    let mut listed = BTreeSet::new();
    for kind in Kind::all().map(|info| info.kind).filter(|kind| *kind != Kind::Owner) {
        let names = folder.ok(&format!("get {kind} -o name --store {store}")).out;
        listed.extend(names.lines().map(|line| format!("{kind} {}", line.split_once('/').unwrap().1)));
    }
    let owners = folder.ok(&format!("owners list --store {store}")).out;
    let ids = owners.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1));
    listed.extend(ids.map(|id| format!("{} {id}", Kind::Owner)));
    listed
}

#[test]
fn sled_alone_reads_what_commands_list() {
    let folder = Folder::with_storefront();
    let same = |store: &str, after: &str| {
        let listed = listed(&folder, store);
        assert_eq!(in_sled(&folder, store), listed, "after {after}");
        listed
    };
    folder.ok("reconcile storefront");
    let first = same("store", "reconcile");
    assert!(first.contains("HttpsEdgeRoute storefront/checkout"), "{first:?}");

    let serve = folder.serve("");
    assert_eq!(serve.call("POST", "/ip_restrictions", r#"{"type": "api"}"#).status, 201);
    // The state in this backup is older than its last commit.
    assert_eq!(client(&folder, &serve, "backup one.backup").code, 0);
    assert_eq!(serve.stop().code, 0);
    // A server that ran for a moment leaves the state to who has more time.
    folder.ok("store rekey");
    let served = same("store", "serve");
    assert!(served.is_superset(&first) && served.len() > first.len(), "{served:?}");

    fs::copy(beside(&folder.path("store")), beside(&folder.path("again"))).unwrap();
    folder.ok("restore one.backup --store again");
    assert_eq!(same("again", "restore"), served);

    folder.ok("keys create --role viewer --store again");
    assert!(same("again", "keys create").len() > served.len());
}

#[test]
fn the_page_prints_the_program_of_this_test() {
    let page = fs::read_to_string(format!("{REPOSITORY}/docs/explanation/store.md")).unwrap();
    let lines = |text: &str| text.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let program = page.split_once("let db = sled::open(\"copy-of-state\")?;\n").unwrap().1.split_once("```").unwrap().0;
    let this = lines(include_str!("sled_layout.rs"));
    assert!(this.windows(lines(program).len()).any(|window| window == lines(program)), "{program}");
}
