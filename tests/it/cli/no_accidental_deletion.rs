//! Accidents delete nothing: folders, files, values and commands that are not what somebody thought (D28, D37, D41).

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use edgewright::resources::Key;

use crate::support::program::{Folder, Run, copy};

/// What happened, how it happens in a folder whose `storefront` is applied to its `store`, what is run then, the exit
/// code, the registered code (none for wrong usage, or where all is well), and what the message names.
type Accident = (&'static str, fn(&Folder), &'static str, i32, &'static str, &'static str);

const USUAL: &str = "reconcile storefront";
const UNLIMITED: &str = "reconcile --max-deletes 100% storefront";
const SHOP: &str = "storefront/shop/storefront.yaml";
const SETS: &str = "storefront/platform/module-sets.yaml";
const CERTIFICATES: &str = "storefront/platform/certificates.yaml";
const EVENTS: &str = "storefront/platform/events.yaml";
const OFFICE: &str = "storefront/platform/office-only.json";
const SECRET: &str = "storefront/secrets/stripe-webhook-secret.txt";
const CHAIN: &str = "storefront/certs/shop.chain.pem";
const DOCS: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: docs}\nspec: {}\n";
const COMPOSE: &str = "services:\n  shop: {image: nginx}\n";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {replicas: 2}\n";
const LFS: &str = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935\nsize 4523\n";

const FOLDERS: &[Accident] = &[
    ("the folder is empty", empty, USUAL, 3, "EMPTY_SOURCE", "in storefront"),
    ("the folder is not there", |it| gone(it, "storefront"), USUAL, 3, "UNREADABLE", "storefront cannot"),
    ("its name is misspelt", nothing, "reconcile storefrnot", 3, "UNREADABLE", "storefrnot cannot"),
    ("a file stands in its place", a_file_instead, USUAL, 3, "EMPTY_FILE", "[storefront:1:1]"),
    ("a volume in it is not mounted", a_part_is_empty, USUAL, 3, "UNKNOWN_REFERENCE", "search/route.yaml:8:9"),
    ("half of the files are missing", every_second_is_gone, USUAL, 3, "UNKNOWN_REFERENCE", "unknown "),
    ("one file is left", all_but_one_are_gone, USUAL, 4, "TOO_MANY_DELETIONS", "23 of the source's 24"),
    ("a folder beside it is empty", a_folder_beside, "reconcile storefront teams", 3, "EMPTY_SOURCE", "in teams"),
    ("a folder beside it is not there", nothing, "reconcile storefront teams", 3, "UNREADABLE", "teams cannot"),
    ("what all routes share is missing", |it| gone(it, SETS), USUAL, 3, "UNKNOWN_REFERENCE", SHOP),
    (
        "what an edge names is missing",
        |it| gone(it, CERTIFICATES),
        USUAL,
        3,
        "UNKNOWN_REFERENCE",
        "backoffice.yaml:16:",
    ),
    ("one file is given", nothing, "reconcile storefront/platform/office-only.json", 4, "TOO_MANY_DELETIONS", "23 of"),
    ("one folder of it is given", nothing, "reconcile storefront/platform", 3, "OUTSIDE_FILE", "backoffice.yaml"),
    ("the store is given", nothing, "reconcile store", 3, "EMPTY_SOURCE", "in store"),
    ("a folder with a README is given", readme, "reconcile other", 3, "EMPTY_SOURCE", "in other"),
    ("a folder of Docker is given", compose, "reconcile other", 3, "API_VERSION", "other/docker-compose.yaml"),
    ("a folder of Kubernetes is given", deployment, "reconcile other", 3, "API_VERSION", "other/deployment.yaml"),
    ("another team's folder is given", docs, "reconcile docs", 4, "TOO_MANY_DELETIONS", "--max-deletes 24"),
    ("it is copied into itself", into_itself, USUAL, 3, "DUPLICATE_NAME", "storefront/storefront/shop/storefront.yaml"),
    ("an editor left a copy", |it| also(it, "a copy.yaml"), USUAL, 3, "DUPLICATE_NAME", "shop/a copy.yaml"),
    ("all files are called .bak", |it| renamed(it, "bak"), USUAL, 3, "EMPTY_SOURCE", "in storefront"),
    ("a file is called .YAML", |it| moved(it, EVENTS, "storefront/events.YAML"), USUAL, 0, "", ""),
    ("Docker made a folder for a file", a_folder_instead, USUAL, 3, "UNREADABLE", EVENTS),
    ("a link leads nowhere", |it| linked(it, "gone.yaml", SHOP), USUAL, 3, "UNREADABLE", SHOP),
    ("a link leads to itself", |it| linked(it, "storefront.yaml", SHOP), USUAL, 3, "UNREADABLE", SHOP),
    ("a link leads round", |it| linked(it, "..", "storefront/shop/up"), USUAL, 3, "UNREADABLE", "shop/up"),
];

const FILES: &[Accident] = &[
    ("a file has no bytes", |it| it.write(SHOP, ""), USUAL, 3, "EMPTY_FILE", SHOP),
    ("a file ends behind its first line", |it| it.write(SHOP, "---\n"), USUAL, 3, "EMPTY_FILE", SHOP),
    ("a template renders nothing", |it| it.write(SHOP, "---\nnull\n...\n"), USUAL, 3, "EMPTY_FILE", SHOP),
    ("JSON is null", |it| it.write(OFFICE, "null\n"), USUAL, 3, "EMPTY_FILE", OFFICE),
    ("a file has NUL bytes", |it| it.write(SHOP, &"\0".repeat(4096)), USUAL, 3, "SYNTAX", "NUL bytes"),
    ("a file is an archive", |it| bytes(it, SHOP, b"\x1f\x8b\x08\x00\x12\xff"), USUAL, 3, "NOT_UTF8", SHOP),
    ("a file ends in a word", |it| cut(it, SHOP, "volume_thr"), USUAL, 3, "SYNTAX", "storefront.yaml:46:"),
    ("JSON ends in a text", |it| cut(it, OFFICE, "only from"), USUAL, 3, "SYNTAX", "office-only.json:9:"),
    ("a file ends before its routes", |it| cut(it, SHOP, "\n  routes:"), USUAL, 4, "TOO_MANY_DELETIONS", "7 of"),
    ("a merge was not finished", conflict, USUAL, 3, "SYNTAX", "unresolved merge conflict"),
    ("a file is indented with tabs", |it| all_of(it, SHOP, "  ", "\t"), USUAL, 3, "SYNTAX", "YAML does not allow tabs"),
    ("a file is Latin-1", |it| bytes(it, SHOP, b"# f\xfcr alle\n"), USUAL, 3, "NOT_UTF8", "storefront.yaml:1:4"),
    ("a file is UTF-16", |it| bytes(it, SHOP, b"\xff\xfek\0i\0n\0d\0:\0"), USUAL, 3, "NOT_UTF8", SHOP),
    ("git-lfs left its pointer", |it| it.write(SHOP, LFS), USUAL, 3, "SYNTAX", "git lfs pull"),
    ("a download was not found", |it| it.write(SHOP, "404: Not Found\n"), USUAL, 3, "API_VERSION", SHOP),
    ("a download is a web page", |it| it.write(SHOP, "<!DOCTYPE html>\n"), USUAL, 3, "SYNTAX", "an HTML page"),
    ("a file is still encrypted", |it| more(it, "sops: {mac: ENC}\n"), USUAL, 3, "UNKNOWN_FIELD", "`sops`"),
    ("a template is not rendered", |it| host(it, "{{ .Values.host }}:443"), USUAL, 3, "SYNTAX", SHOP),
    ("a variable is not replaced", |it| host(it, "${HOST}:443"), USUAL, 3, "INVALID_FORMAT", "${HOST}"),
    ("the `---` got lost", |it| all_of(it, CERTIFICATES, "---\n", ""), USUAL, 3, "DUPLICATE_KEY", CERTIFICATES),
    ("there is a `---` too many", |it| it.edit(SHOP, "\nspec:", "\n---\nspec:"), USUAL, 3, "REQUIRED", SHOP),
    ("a kind lost its capitals", |it| it.edit(SHOP, "HttpsEdge", "httpsedge"), USUAL, 3, "UNKNOWN_KIND", SHOP),
    ("the version is another", |it| it.edit(SHOP, "right/v1", "right/v2"), USUAL, 3, "API_VERSION", SHOP),
    ("the routes moved left", |it| it.edit(SHOP, "\n  routes:", "\nroutes:"), USUAL, 3, "UNKNOWN_FIELD", SHOP),
    ("quotes got lost", |it| it.edit(SHOP, "\"1.3\"", "1.3"), USUAL, 3, "WRONG_TYPE", "quote it"),
    ("all is commented out", commented_out, USUAL, 4, "TOO_MANY_DELETIONS", "all 24 resources"),
    ("every name has a typo", misnamed, USUAL, 4, "PREVENT_DESTROY", "HttpsEdge storefront"),
    ("all files come from Windows", from_windows, USUAL, 0, "", ""),
];

const VALUES: &[Accident] = &[
    ("a variable is not set", |it| secret_from(it, "UNSET"), USUAL, 3, "ENV_UNSET", "`UNSET` is not set"),
    ("a variable is empty", |it| secret_from(it, "EMPTY"), USUAL, 3, "ENV_UNSET", "`EMPTY` is empty"),
    ("a secret is missing", |it| gone(it, SECRET), USUAL, 3, "FILE_UNREADABLE", "stripe-webhook-secret.txt"),
    ("a secret has no bytes", |it| it.write(SECRET, ""), USUAL, 3, "FILE_UNREADABLE", "empty file"),
    ("a secret is a line break", |it| it.write(SECRET, "\n"), USUAL, 3, "FILE_UNREADABLE", "empty file"),
    ("a secret has NUL bytes", |it| it.write(SECRET, "\0\0\0\0"), USUAL, 3, "FILE_UNREADABLE", SHOP),
    ("a secret is encrypted", |it| bytes(it, SECRET, b"\0GITCRYPT\0\xfe"), USUAL, 3, "FILE_UNREADABLE", "UTF-8"),
    ("secrets are linked from elsewhere", secrets_elsewhere, USUAL, 3, "OUTSIDE_FILE", "stripe-webhook-secret.txt"),
    ("certificates are missing", |it| gone(it, "storefront/certs"), USUAL, 3, "FILE_UNREADABLE", "key.pem"),
    ("a certificate is in git-lfs", |it| it.write(CHAIN, LFS), USUAL, 3, "INVALID_PEM", "shop.chain.pem"),
    ("a certificate is cut off", |it| cut(it, CHAIN, "\nMII"), USUAL, 3, "INVALID_PEM", "shop.chain.pem"),
    ("two keys were mixed up", keys_mixed_up, USUAL, 3, "KEY_MISMATCH", "shop.key.pem"),
    ("certificates end without a line break", unended_certificates, USUAL, 0, "", ""),
];

const COMMANDS: &[Accident] = &[
    ("the path was an unset variable", nothing, "reconcile", 1, "", "<PATH>"),
    ("nothing comes through the pipe", nothing, "reconcile -", 3, "EMPTY_FILE", "[-:1:1]"),
    ("nothing comes beside the folder", nothing, "reconcile storefront -", 3, "EMPTY_FILE", "[-:1:1]"),
    (
        "the source is misspelt",
        nothing,
        "reconcile --source defautl storefront",
        3,
        "NOT_DELEGATED",
        "`--source default`",
    ),
    ("the store is the folder", nothing, "reconcile --store storefront storefront", 1, "STORE_FORMAT", "not a store"),
    ("`--prune` is misspelt", nothing, "reconcile --prune=flase storefront", 1, "", "flase"),
    ("`--prune` has a blank", nothing, "reconcile --prune false storefront", 1, "", "as in `--prune=false`"),
    ("a limit is misspelt", nothing, "reconcile --max-delets 3 storefront", 1, "", "--max-deletes"),
    ("a limit is misspelt in the file", misconfigured, USUAL, 1, "UNKNOWN_FIELD", "max-deletse"),
    ("no limit, nothing there", empty, UNLIMITED, 3, "EMPTY_SOURCE", "in storefront"),
    ("no limit, half is there", every_second_is_gone, UNLIMITED, 3, "UNKNOWN_REFERENCE", "unknown "),
    ("a fault is set aside", conflict, "reconcile --isolate storefront", 1, "SYNTAX", SHOP),
    ("all is set aside", empty, "reconcile --isolate storefront", 1, "EMPTY_SOURCE", "in storefront"),
    ("nothing is pruned, half is there", every_second_is_gone, "reconcile --prune=false storefront", 0, "", ""),
    ("the folder is given twice", nothing, "reconcile storefront storefront/shop", 0, "", ""),
    ("the folder around it is given", nothing, "reconcile .", 0, "", ""),
];

#[test]
fn a_wrong_or_incomplete_folder_deletes_nothing() {
    delete_nothing(FOLDERS);
}

#[test]
fn a_damaged_or_foreign_file_deletes_nothing() {
    delete_nothing(FILES);
}

#[test]
fn a_missing_or_damaged_value_deletes_nothing() {
    delete_nothing(VALUES);
}

#[test]
fn a_mistyped_command_deletes_nothing() {
    delete_nothing(COMMANDS);
}

#[test]
fn what_may_not_be_read_deletes_nothing() {
    let folder = applied();
    let before = held(&folder);
    for name in [SHOP, "storefront/shop"] {
        let allow = |mode| fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
        allow(0o000);
        let bound = fs::read(folder.path(SHOP)).is_err();
        let run = run(&folder, USUAL);
        allow(0o755);
        if !bound {
            eprintln!("not tried: permissions do not bind the user who runs this test");
            return;
        }
        assert_eq!(run.code, 3, "{name}: {}", run.all());
        let said = run.err.contains("ERR_EDGEWRIGHT_UNREADABLE") && run.err.contains(name);
        assert!(said && held(&folder) == before, "{name}: {}", run.err);
    }
}

/// Has each accident in a copy of one folder. Fails with all that change the store, or end or are reported otherwise.
fn delete_nothing(accidents: &[Accident]) {
    let applied = applied();
    let before = held(&applied);
    assert_eq!((before.0, before.1.len()), (1, 24));
    let mut wrong = Vec::new();
    for &(what, happens, line, code, registered, named) in accidents {
        let folder = Folder::new();
        copy(&applied.path(""), &folder.path(""));
        happens(&folder);
        let run = run(&folder, line);
        let after = held(&folder);
        let registered = if registered.is_empty() { String::new() } else { format!("ERR_EDGEWRIGHT_{registered}\n") };
        let unsaid = [registered.as_str(), named].into_iter().find(|words| !run.err.contains(words));
        let problem = if after != before {
            let lost = before.1.iter().filter(|key| !after.1.contains(key)).count();
            format!("made revision {}, without {lost} of 24 resources", after.0)
        } else if run.code != code {
            format!("did not end with {code}")
        } else if let Some(words) = unsaid {
            format!("did not say {words:?}")
        } else {
            continue;
        };
        wrong.push(format!("{what}: `{line}` {problem}\n{}", run.all()));
    }
    assert!(wrong.is_empty(), "{} of {} accidents:\n\n{}", wrong.len(), accidents.len(), wrong.join("\n\n"));
}

/// A folder with the storefront applied to the store.
fn applied() -> Folder {
    let folder = Folder::with_storefront();
    folder.ok(USUAL);
    folder
}

/// The revision of the store, and what sources own in it.
fn held(folder: &Folder) -> (u64, Vec<Key>) {
    let snapshot = folder.snapshot("store");
    let owned = snapshot.iter().filter(|entry| entry.claim.is_some());
    (snapshot.revision, owned.map(|entry| entry.key.clone()).collect())
}

/// Runs the program with nothing on standard input, a variable that is empty, and one that is not set.
fn run(folder: &Folder, line: &str) -> Run {
    let output = folder.command(line).env("EMPTY", "").env_remove("UNSET").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// The manifests, in the order of their paths.
fn manifests(folder: &Folder) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(folder.path("storefront")).sort_by_file_name().into_iter();
    let paths = walk.map(|entry| entry.unwrap().into_path());
    paths.filter(|path| path.extension().is_some_and(|it| it == "yaml" || it == "json")).collect()
}

fn nothing(_: &Folder) {}

fn gone(folder: &Folder, name: &str) {
    let path = folder.path(name);
    if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
}

fn empty(folder: &Folder) {
    gone(folder, "storefront");
    fs::create_dir(folder.path("storefront")).unwrap();
}

fn a_file_instead(folder: &Folder) {
    gone(folder, "storefront");
    folder.write("storefront", "");
}

fn a_folder_beside(folder: &Folder) {
    fs::create_dir(folder.path("teams")).unwrap();
}

fn a_part_is_empty(folder: &Folder) {
    gone(folder, "storefront/shop");
    fs::create_dir(folder.path("storefront/shop")).unwrap();
}

fn a_folder_instead(folder: &Folder) {
    gone(folder, EVENTS);
    fs::create_dir(folder.path(EVENTS)).unwrap();
}

fn every_second_is_gone(folder: &Folder) {
    manifests(folder).iter().step_by(2).for_each(|path| fs::remove_file(path).unwrap());
}

fn all_but_one_are_gone(folder: &Folder) {
    let office = folder.path(OFFICE);
    manifests(folder).iter().filter(|path| **path != office).for_each(|path| fs::remove_file(path).unwrap());
}

fn readme(folder: &Folder) {
    folder.write("other/README.md", "# Another project\n");
}

fn compose(folder: &Folder) {
    folder.write("other/docker-compose.yaml", COMPOSE);
}

fn deployment(folder: &Folder) {
    folder.write("other/deployment.yaml", DEPLOYMENT);
}

fn docs(folder: &Folder) {
    folder.write("docs/docs.yaml", DOCS);
}

fn into_itself(folder: &Folder) {
    copy(&folder.path("storefront"), &folder.path("copy"));
    moved(folder, "copy", "storefront/storefront");
}

fn also(folder: &Folder, name: &str) {
    folder.write(&format!("storefront/shop/{name}"), &folder.read(SHOP));
}

fn renamed(folder: &Folder, extension: &str) {
    manifests(folder).iter().for_each(|path| fs::rename(path, path.with_extension(extension)).unwrap());
}

fn moved(folder: &Folder, from: &str, to: &str) {
    fs::rename(folder.path(from), folder.path(to)).unwrap();
}

/// A link, in the place of what may be there.
fn linked(folder: &Folder, to: &str, name: &str) {
    let _ = fs::remove_file(folder.path(name));
    symlink(to, folder.path(name)).unwrap();
}

fn bytes(folder: &Folder, name: &str, bytes: &[u8]) {
    fs::write(folder.path(name), bytes).unwrap();
}

/// The file up to the end of a word, and no further.
fn cut(folder: &Folder, name: &str, word: &str) {
    let text = folder.read(name);
    folder.write(name, &text[..text.find(word).unwrap() + word.len()]);
}

fn all_of(folder: &Folder, name: &str, from: &str, to: &str) {
    folder.write(name, &folder.read(name).replace(from, to));
}

fn more(folder: &Folder, text: &str) {
    folder.write(SHOP, &(folder.read(SHOP) + text));
}

fn host(folder: &Folder, hostport: &str) {
    folder.edit(SHOP, "- shop.example.com:443", &format!("- {hostport}"));
}

fn conflict(folder: &Folder) {
    let (ours, theirs) = ("      description: Basket and payment\n", "      description: Basket\n");
    folder.edit(SHOP, ours, &format!("<<<<<<< HEAD\n{ours}=======\n{theirs}>>>>>>> feature\n"));
}

fn commented_out(folder: &Folder) {
    gone(folder, OFFICE);
    for path in manifests(folder) {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.lines().map(|line| format!("# {line}\n")).collect::<String>()).unwrap();
    }
}

fn misnamed(folder: &Folder) {
    for path in manifests(folder) {
        let mut text = fs::read_to_string(&path).unwrap();
        let before =
            ["name: ", "\"name\": \"", "edge: ", "authority_ids: [", "devices, ", "modules_from: [", "login, "];
        for place in before {
            text = text.replace(place, &format!("{place}x-"));
        }
        fs::write(path, text).unwrap();
    }
}

fn from_windows(folder: &Folder) {
    for entry in walkdir::WalkDir::new(folder.path("storefront")) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let text = fs::read_to_string(entry.path()).unwrap();
            fs::write(entry.path(), text.replace('\n', "\r\n")).unwrap();
        }
    }
}

fn unended_certificates(folder: &Folder) {
    for entry in fs::read_dir(folder.path("storefront/certs")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.trim_end()).unwrap();
    }
}

fn secret_from(folder: &Folder, variable: &str) {
    folder.edit(SHOP, "from_file: ../secrets/stripe-webhook-secret.txt", &format!("from_env: {variable}"));
}

fn secrets_elsewhere(folder: &Folder) {
    moved(folder, "storefront/secrets", "vault");
    linked(folder, "../vault", "storefront/secrets");
}

fn keys_mixed_up(folder: &Folder) {
    fs::copy(folder.path("storefront/certs/wildcard.key.pem"), folder.path("storefront/certs/shop.key.pem")).unwrap();
}

fn misconfigured(folder: &Folder) {
    folder.write("edgewright.config.yaml", "options: {max-deletse: 10%}\n");
}
