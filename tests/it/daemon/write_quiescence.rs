//! Files that are still being written: `serve` waits until they are complete (D92).

use std::{
    fs::{self, File},
    io::Write,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::json;

use crate::support::{
    manifests::edge,
    program::{Folder, Serve, until},
    sources::{shown, until_shown},
};

/// Several times the debounce.
const PAUSE: Duration = Duration::from_millis(800);

/// A manifest in two parts. The first is valid by itself, and has only a part of the description.
const HALVES: [&str; 2] = [
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: one}\nspec:\n  hostports: [\"one.example.com:443\"]\n  description: sec",
    "ond\n",
];

/// A server that follows a folder with one manifest.
fn followed() -> (Folder, Serve) {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    assert_eq!(shown(&serve), ["first"]);
    (folder, serve)
}

/// Waits until the status names the file that is waited for.
fn until_waited_for(serve: &Serve) {
    until("the status", || {
        serve.get("/sources/default").body.contains("m/one.yaml is still being written").then_some(())
    });
}

#[test]
fn half_of_a_file_is_not_applied_while_it_is_open() {
    let (folder, serve) = followed();
    let mut file = File::create(folder.path("m/one.yaml")).unwrap();
    file.write_all(HALVES[0].as_bytes()).unwrap();
    until_waited_for(&serve);
    let waits = &serve.get("/sources/default").json()["diagnostics"][0];
    assert_eq!((&waits["file"], &waits["line"]), (&json!("m/one.yaml"), &json!(null)), "{waits}");
    std::thread::sleep(PAUSE);
    assert_eq!(shown(&serve), ["first"]);
    file.write_all(HALVES[1].as_bytes()).unwrap();
    drop(file);
    until_shown(&serve, "second");
    until("the end of the wait", || {
        (!serve.get("/sources/default").body.contains("still being written")).then_some(())
    });
    assert_eq!(serve.stop().code, 0);
    assert_eq!(folder.snapshot("store").revision, 3, "the admin, the first and the second description");
}

#[test]
fn a_new_file_is_not_taken_for_an_empty_one_before_it_is_written() {
    let (folder, serve) = followed();
    let mut file = File::create(folder.path("m/two.yaml")).unwrap();
    until("the status", || serve.get("/sources/default").body.contains("m/two.yaml is still being").then_some(()));
    std::thread::sleep(PAUSE);
    file.write_all(edge("one", "second").replace("one", "two").as_bytes()).unwrap();
    drop(file);
    until("both edges", || (shown(&serve).len() == 2).then_some(()));
    let run = serve.stop();
    assert!(!run.err.contains("ERR_EDGEWRIGHT_EMPTY_FILE"), "{}", run.err);
}

#[test]
fn a_file_is_closed_when_its_writer_is_killed() {
    let (folder, serve) = followed();
    let script = format!("exec 3>m/one.yaml; printf '%s' '{}' >&3; exec sleep 600", HALVES[0]);
    let mut writer = Command::new("sh");
    writer.args(["-c", &script]).current_dir(folder.path("")).stdin(Stdio::null());
    let mut writer = writer.spawn().unwrap();
    until_waited_for(&serve);
    std::thread::sleep(PAUSE);
    let before = shown(&serve);
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(before, ["first"]);
    // Nobody knows that there should be more of it.
    until_shown(&serve, "sec");
}

#[test]
fn a_file_that_is_renamed_while_it_is_written_is_waited_for() {
    let (folder, serve) = followed();
    let mut file = File::create(folder.path("m/one.tmp")).unwrap();
    file.write_all(HALVES[0].as_bytes()).unwrap();
    fs::rename(folder.path("m/one.tmp"), folder.path("m/one.yaml")).unwrap();
    until_waited_for(&serve);
    let waits = &serve.get("/sources/default").json()["diagnostics"][0];
    assert_eq!((&waits["file"], &waits["line"]), (&json!("m/one.yaml"), &json!(null)), "{waits}");
    std::thread::sleep(PAUSE);
    assert_eq!(shown(&serve), ["first"]);
    file.write_all(HALVES[1].as_bytes()).unwrap();
    drop(file);
    until_shown(&serve, "second");
}

#[test]
fn what_is_no_manifest_may_stay_open() {
    let (folder, serve) = followed();
    // An editor keeps its own file open, and others have logs.
    let mut open = Vec::new();
    for name in ["m/.one.yaml.swp", "m/one.yaml~", "m/edge.log"] {
        let mut file = File::create(folder.path(name)).unwrap();
        file.write_all(b"half").unwrap();
        open.push(file);
    }
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
    assert!(!serve.get("/sources/default").body.contains("still being written"));
}
