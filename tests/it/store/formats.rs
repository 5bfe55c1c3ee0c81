//! A store of a released format opens, and stores of other formats are refused by name.

use std::{fs, path::Path};

use edgewright::{
    Code, Store,
    resources::{Kind, Secrets},
    storage::Query,
};

use crate::support::program::Folder;

/// `tests/stores/edgewright-4` was made by `reconcile examples/storefront` with this master key. Each later
/// version must open it: the format of a store is a promise.
#[test]
fn a_store_of_the_first_format_opens() {
    let folder = Folder::new();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores/edgewright-4");
    crate::support::program::copy(&stored, &folder.path("store"));
    folder.write("master.key", &"0123456789abcdef".repeat(4));
    fs::set_permissions(folder.path("master.key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    folder.ok("store check --master-key-file master.key");
    folder.ok("store repair --master-key-file master.key");
    let source = edgewright::storage::MasterKeySource::File(folder.path("master.key"));
    let store = Store::open_encrypted(folder.path("store"), Default::default(), &source).unwrap();
    assert!(store.warnings().is_empty(), "{:?}", store.warnings());
    let state = store.snapshot();
    assert_eq!((state.revision, state.count(Kind::HttpsEdgeRoute)), (1, 13));
    let secret_of = |spec: &serde_json::Map<String, serde_json::Value>| {
        let secret = spec.get("webhook_verification")?.get("secret")?.as_str()?.to_owned();
        Some(secret).filter(|secret| !secret.is_empty())
    };
    let hook = state.iter().find_map(|entry| secret_of(&entry.spec().to_json(Secrets::Revealed).unwrap()));
    assert_eq!(hook.as_deref(), Some("demo-only-stripe-webhook-secret"));
    let records = store.history(&Query::All, u64::MAX, 9).unwrap();
    assert_eq!(records.iter().map(|record| record.resources.len()).collect::<Vec<_>>(), [25]);
    assert_eq!(store.verify().unwrap().records, 1);
}

/// Checks that a store is refused because of its format, with what to do, and that nothing in its folder changes.
fn is_refused(path: &Path, format: &str) {
    let files = || {
        let files = fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|it| it.is_file() && !it.ends_with("lock"));
        let mut files: Vec<_> = files.map(|file| (fs::read(&file).unwrap(), file)).collect();
        files.sort();
        files
    };
    let before = files();
    for opened in [Store::open(path), Store::open_to_read(path)] {
        let error = opened.err().unwrap();
        assert_eq!(error.code, Code::StoreFormat, "{error}");
        assert!(error.message.contains(format) && error.message.contains("edgewright export"), "{error}");
    }
    assert!(files() == before);
}

#[test]
fn formats_that_were_never_released_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one-tree");
    fs::create_dir(&path).unwrap();
    ["conf", "db"].iter().for_each(|name| fs::write(path.join(name), "of sled").unwrap());
    is_refused(&path, "`edgewright 1`");
    let path = folder.path().join("with-a-base");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("base.0000000007"), "ewbase3").unwrap();
    fs::write(path.join("head"), [0; 5000]).unwrap();
    is_refused(&path, "`edgewright 3`");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    drop(Store::open(&path).unwrap());
    let newer: [(&[&str], u8); 2] = [(&["keys", "keys.copy"], b'3'), (&["head"], b'4')];
    for (files, newer) in newer {
        let original = fs::read(path.join(files[0])).unwrap();
        let mut changed = original.clone();
        changed[6] = newer;
        if files[0] == "head" {
            changed[4096 + 6] = newer;
        }
        files.iter().for_each(|file| fs::write(path.join(file), &changed).unwrap());
        let error = Store::open(&path).err().unwrap();
        assert_eq!(error.code, Code::StoreFormat, "{files:?}: {error}");
        assert!(error.message.contains("edgewright"), "{error}");
        files.iter().for_each(|file| fs::write(path.join(file), &original).unwrap());
    }
    assert!(Store::open(&path).is_ok());
}

#[test]
fn a_folder_with_other_files_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    assert_eq!(Store::open(folder.path()).err().unwrap().code, Code::StoreFormat);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was added");
}
