//! Sources in remote Git repositories, fetched from real servers: Git over HTTP and, where it is installed, over SSH (D88).

mod http;
mod https;
mod ref_floods;
mod ssh;

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::Command,
    time::Duration,
};

use serde_json::json;

use crate::support::{
    git::{git, head},
    http::http as request,
    manifests::edge,
    program::{CONFIG, CONFIG_VARIABLE, Folder, Serve, finish, until, within},
    sources::{in_state, status},
};
use http::GitServer;

/// Far below an interval of an hour.
const SOON: Duration = Duration::from_secs(15);
const PASSWORD: &str = "correct-horse-battery";

/// A work tree `repo` with an edge in the folder `edge`, pushed to the bare repository `srv/edge.git`.
fn pushed() -> Folder {
    let folder = Folder::new();
    folder.write("repo/edge/one.yaml", &edge("one", "a"));
    for line in [
        "init -q --bare -b main srv/edge.git",
        "init -q -b main repo",
        "-C repo add .",
        "-C repo commit -q -m first",
        "-C repo push -q ../srv/edge.git main",
    ] {
        git(&folder, line);
    }
    folder
}

/// Commits a description of the edge and pushes it. Returns the commit.
fn push(folder: &Folder, text: &str) -> String {
    folder.write("repo/edge/one.yaml", text);
    git(folder, "-C repo commit -q -a --allow-empty -m next");
    git(folder, "-C repo push -q ../srv/edge.git main");
    head(folder, "repo")
}

/// A configuration file with one source. `keys` are those beside its name and path.
fn configure(folder: &Folder, keys: &str) {
    folder.write(CONFIG, &format!("sources:\n- {{name: shop, path: edge, {keys}}}\n"));
}

/// Serves with a home of its own, so that no configuration of Git or SSH has an effect.
fn serve(folder: &Folder) -> Serve {
    let home = folder.path("").display().to_string();
    folder.serve_with("", &[("HOME", home.as_str()), ("EDGEWRIGHT_CONFIG", CONFIG)])
}

/// The description of the edge that the API shows.
fn shown(serve: &Serve) -> String {
    let list = serve.get("/edges/https").json();
    list["https_edges"][0]["description"].as_str().unwrap_or_default().to_owned()
}

fn until_shown(serve: &Serve, description: &str) {
    until(description, || (shown(serve) == description).then_some(()));
}

#[test]
fn a_pushed_commit_is_applied_and_a_broken_one_is_not() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), Some(("deploy", PASSWORD)));
    folder.write("token", &format!("{PASSWORD}\n"));
    let url = server.url("edge.git");
    configure(
        &folder,
        &format!("repository: \"{url}\", ref: main, interval: 1s, username: deploy, password_file: token"),
    );
    let serve = serve(&folder);
    until_shown(&serve, "a");
    let found = in_state(&serve, "shop", "Synced");
    assert_eq!((&found["repository"], &found["ref"]), (&json!(url), &json!("main")));
    let first = head(&folder, "repo");
    assert_eq!(found["last_applied"]["commit"], json!(first));

    let broken = push(&folder, &edge("one", "b").replace("hostports", "hostprots"));
    let found = in_state(&serve, "shop", "Invalid");
    assert_eq!((&found["last_attempt"]["commit"], &found["last_applied"]["commit"]), (&json!(broken), &json!(first)));
    let diagnostic = &found["diagnostics"][0];
    assert_eq!((&diagnostic["file"], &diagnostic["line"]), (&json!("edge/one.yaml"), &json!(4)), "{found:#}");
    assert_eq!(shown(&serve), "a");

    push(&folder, &edge("one", "c"));
    until_shown(&serve, "c");
    in_state(&serve, "shop", "Synced");
    assert!(!serve.said().contains(PASSWORD));
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn an_outage_keeps_the_last_good_state_even_over_a_restart() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), None);
    configure(&folder, &format!("repository: \"{}\", ref: main, interval: 1s", server.url("edge.git")));
    let first = serve(&folder);
    until_shown(&first, "a");
    server.set_online(false);
    let found = in_state(&first, "shop", "Failed");
    assert_eq!(found["conditions"][0]["reason"], "FetchFailed");
    assert_eq!(found["diagnostics"][0]["code"], "ERR_EDGEWRIGHT_FETCH_FAILED", "{found:#}");
    assert_eq!((shown(&first).as_str(), first.get("/readyz").status), ("a", 200));
    assert_eq!(first.stop().code, 0);

    // The mirror is beside the store, so that a change over the API is still put back.
    let again = serve(&folder);
    let found = in_state(&again, "shop", "Failed");
    assert_eq!((shown(&again).as_str(), &found["counts"]["declared"]), ("a", &json!(1)));
    assert_eq!(found["last_applied"]["commit"], json!(head(&folder, "repo")), "it is in effect");
    again.wait_for("The store matches the last fetched commit: 1 resource.");
    again.wait_for("status=OutOfSync reason=FetchFailed");
    assert!(!again.said().contains("In sync with the manifests"), "{}", again.said());
    push(&folder, &edge("one", "b"));
    server.set_online(true);
    until_shown(&again, "b");
    in_state(&again, "shop", "Synced");
    again.wait_for("the repository can be fetched again");
}

#[test]
fn refused_credentials_are_reported_without_the_password_and_can_be_corrected() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), Some(("deploy", PASSWORD)));
    folder.write("token", "wrong-password\n");
    let url = server.url("edge.git");
    configure(&folder, &format!("repository: \"{url}\", interval: 1s, username: deploy, password_file: token"));
    let serve = serve(&folder);
    let found = in_state(&serve, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, format!("cannot fetch {url}: the server refused the credentials"));
    assert!(!found.to_string().contains("wrong-password") && !serve.said().contains("wrong-password"));
    assert_eq!(serve.get("/readyz").status, 503, "nothing was ever applied");
    // The file is read at each fetch.
    folder.write("token", PASSWORD);
    until_shown(&serve, "a");
}

#[test]
fn a_source_without_credentials_uses_the_helpers_of_the_user() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), Some(("deploy", PASSWORD)));
    let url = server.url("edge.git");
    configure(&folder, &format!("repository: \"{url}\", interval: 1s"));
    let serve = serve(&folder);
    let found = in_state(&serve, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert_eq!(message, format!("cannot fetch {url}: the server asks for credentials"));
    // The user's hooks do not run: git would fail with this one.
    folder.write("hooks/reference-transaction", "#!/bin/sh\nexit 1\n");
    fs::set_permissions(folder.path("hooks/reference-transaction"), Permissions::from_mode(0o755)).unwrap();
    let helper = format!("!f() {{ echo username=deploy; echo password={PASSWORD}; }}; f");
    let hooks = folder.path("hooks").display().to_string();
    folder.write(".gitconfig", &format!("[credential]\nhelper = \"{helper}\"\n[core]\nhooksPath = {hooks}\n"));
    until_shown(&serve, "a");
    assert!(!serve.said().contains(PASSWORD));
}

#[test]
fn a_missing_git_is_an_error_that_says_so() {
    let folder = pushed();
    configure(&folder, &format!("repository: \"file://{}\"", folder.path("srv/edge.git").display()));
    let home = folder.path("").display().to_string();
    let serve =
        folder.serve_with("", &[("HOME", home.as_str()), ("EDGEWRIGHT_CONFIG", CONFIG), ("PATH", "/nonexistent")]);
    let found = in_state(&serve, "shop", "Failed");
    assert_eq!(found["diagnostics"][0]["code"], "ERR_EDGEWRIGHT_FETCH_FAILED", "{found:#}");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.ends_with(": the program `git` is not installed"), "{message}");
}

#[test]
fn a_redirect_to_another_port_of_the_host_gets_no_credentials() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), Some(("deploy", PASSWORD)));
    folder.write("token", PASSWORD);
    let url = server.redirected_url("edge.git");
    configure(&folder, &format!("repository: \"{url}\", interval: 1s, username: deploy, password_file: token"));
    let serve = serve(&folder);
    let found = in_state(&serve, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    let said = "the server redirects to another port or protocol, which asks for credentials";
    assert_eq!(message, format!("cannot fetch {url}: {said}"));
    assert!(server.requests() > 0 && shown(&serve).is_empty(), "it was reached, and had the wrong credentials");
    // Without credentials, it is the same repository.
    let open = GitServer::start(&folder.path("srv"), None);
    let url = open.redirected_url("edge.git");
    configure(&folder, &format!("repository: \"{url}\", interval: 1s, username: deploy, password_file: token"));
    until_shown(&serve, "a");
}

#[test]
fn a_revision_is_a_branch_a_tag_a_commit_or_a_range_of_versions() {
    let folder = pushed();
    let first = head(&folder, "repo");
    for (tag, description) in [("v1.0.0", "one"), ("1.10.0", "ten"), ("v2.0.0", "two"), ("v2.1.0-rc.1", "rc")] {
        push(&folder, &edge("one", description));
        git(&folder, &format!("-C repo tag -a -m {tag} {tag}"));
    }
    git(&folder, "-C repo push -q --tags ../srv/edge.git");
    push(&folder, &edge("one", "main"));
    let server = GitServer::start(&folder.path("srv"), None);
    let (http, file) = (server.url("edge.git"), format!("file://{}", folder.path("srv/edge.git").display()));
    let (whole, short) = (format!("ref: \"{first}\""), format!("ref: \"{}\"", &first[..10]));
    for (repository, revision, description) in [
        (http.as_str(), "ref: HEAD", "main"),
        (http.as_str(), "ref: v1.0.0", "one"),
        (http.as_str(), "ref: refs/tags/v2.0.0", "two"),
        (http.as_str(), whole.as_str(), "a"),
        (http.as_str(), short.as_str(), "a"),
        (http.as_str(), "semver: ^1", "ten"),
        (file.as_str(), "semver: \">=1.0, <2\"", "ten"),
        ("srv/edge.git", "semver: ~1.0", "one"),
        ("repo", "semver: \"*\"", "two"),
    ] {
        configure(&folder, &format!("repository: \"{repository}\", {revision}, interval: 1s"));
        let serve = serve(&folder);
        until_shown(&serve, description);
        let found = in_state(&serve, "shop", "Synced");
        let (key, value) = revision.split_once(": ").unwrap();
        assert_eq!(found[key], value.trim_matches('"'), "{revision}");
        let tag = match (key, description) {
            ("semver", "one") => "v1.0.0",
            ("semver", "two") => "v2.0.0",
            ("semver", _) => "1.10.0",
            _ => "",
        };
        assert_eq!(found["last_applied"]["tag"], tag, "{revision}");
        if revision == "semver: ^1" {
            git(&folder, "-C repo tag v1.11.0 v2.0.0");
            git(&folder, "-C repo push -q --tags ../srv/edge.git");
            until_shown(&serve, "two");
            git(&folder, "-C repo tag -d v1.11.0");
            git(&folder, "-C repo push -q ../srv/edge.git :refs/tags/v1.11.0");
        }
    }
    configure(&folder, &format!("repository: \"{http}\", ref: nothing, interval: 1s"));
    let found = in_state(&serve(&folder), "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains(": unknown Git revision `nothing`; the repository has `"), "{message}");
}

#[test]
fn a_tag_with_the_name_of_the_branch_does_not_take_over_the_source() {
    let folder = pushed();
    let first = head(&folder, "repo");
    folder.write("repo/edge/one.yaml", &edge("one", "evil"));
    for line in ["-C repo commit -q -a -m evil", "-C repo tag main", &format!("-C repo reset -q --hard {first}")] {
        git(&folder, line);
    }
    let remote = format!("file://{}", folder.path("srv/edge.git").display());
    for repository in [remote.as_str(), "srv/edge.git"] {
        configure(&folder, &format!("repository: \"{repository}\", ref: main, interval: 1s"));
        let serve = serve(&folder);
        until_shown(&serve, "a");
        git(&folder, "-C repo push -q ../srv/edge.git refs/tags/main");
        let found = in_state(&serve, "shop", "Failed").to_string();
        let said = "`main` is ambiguous: the repository has `refs/tags/main` and `refs/heads/main`";
        assert!(found.contains(said) && found.contains("such as `refs/heads/main`"), "{found}");
        assert_eq!(shown(&serve), "a");
        git(&folder, "-C repo push -q ../srv/edge.git :refs/tags/main");
        in_state(&serve, "shop", "Synced");
    }
    git(&folder, "-C repo push -q ../srv/edge.git refs/tags/main");
    for (revision, description) in [("refs/tags/main", "evil"), ("refs/heads/main", "a")] {
        configure(&folder, &format!("repository: \"{remote}\", ref: {revision}, interval: 1s"));
        let serve = serve(&folder);
        until_shown(&serve, description);
        in_state(&serve, "shop", "Synced");
    }
}

#[test]
fn a_server_with_only_the_dumb_protocol_is_refused() {
    let folder = pushed();
    git(&folder, "-C srv/edge.git update-server-info");
    let server = GitServer::start(&folder.path("srv"), None);
    configure(&folder, &format!("repository: \"{}\", interval: 1h", server.dumb_url("edge.git")));
    let serve = serve(&folder);
    let found = in_state(&serve, "shop", "Failed").to_string();
    assert!(found.contains("the server supports only Git's dumb HTTP protocol"), "{found}");
    assert!(fs::read_dir(folder.path("store/mirrors")).unwrap().next().is_none(), "something was fetched");
}

#[test]
fn a_shallow_repository_is_followed() {
    let folder = pushed();
    push(&folder, &edge("one", "b"));
    let url = |name: &str| format!("file://{}", folder.path(name).display());
    git(&folder, &format!("clone -q --bare --depth 1 {} srv/shallow.git", url("srv/edge.git")));
    configure(&folder, &format!("repository: \"{}\", interval: 1s", url("srv/shallow.git")));
    let serve = serve(&folder);
    until_shown(&serve, "b");
    in_state(&serve, "shop", "Synced");
    let pushed = push(&folder, &edge("one", "c"));
    git(&folder, "-C srv/shallow.git fetch -q --depth 1 origin +main:main");
    until_shown(&serve, "c");
    until("the pushed commit", || (status(&serve, "shop")["last_applied"]["commit"] == pushed).then_some(()));
    in_state(&serve, "shop", "Synced");
}

#[test]
fn a_damaged_mirror_is_fetched_anew() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), None);
    configure(&folder, &format!("repository: \"{}\", interval: 1s", server.url("edge.git")));
    let first = serve(&folder);
    until_shown(&first, "a");
    assert_eq!(first.stop().code, 0);
    let mirrors = std::fs::read_dir(folder.path("store/mirrors")).unwrap();
    let mirror = mirrors.map(|entry| entry.unwrap().path()).next().unwrap();
    for file in walkdir::WalkDir::new(&mirror).into_iter().map(Result::unwrap) {
        // A killed process, a full disk, a power loss.
        if file.file_type().is_file() {
            let _ = std::fs::remove_file(file.path());
            std::fs::write(file.path(), "").unwrap();
        }
    }
    push(&folder, &edge("one", "b"));
    let again = serve(&folder);
    until_shown(&again, "b");
    in_state(&again, "shop", "Synced");
}

/// The hexadecimal HMAC-SHA256 of a text.
fn hmac(secret: &str, text: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    ring::hmac::sign(&key, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_webhook_makes_the_server_sync_long_before_the_interval() {
    let folder = pushed();
    let server = GitServer::start(&folder.path("srv"), None);
    let url = server.url("edge.git");
    folder.write("hook.secret", "s3cret\n");
    let text = format!(
        "sources:\n- {{name: shop, path: edge, repository: \"{url}\", interval: 1h}}\nhooks:\n  git: {{secret_file: hook.secret}}\n"
    );
    folder.write(CONFIG, &text);
    let serve = serve(&folder);
    until_shown(&serve, "a");
    push(&folder, &edge("one", "b"));
    let hook = |about: &str, secret: &str| {
        let payload = json!({"ref": "refs/heads/main", "repository": {"clone_url": about}}).to_string();
        let digest = format!("sha256={}", hmac(secret, &payload));
        request(&serve.address, "POST", "/hooks/git", &[("X-Hub-Signature-256", digest.as_str())], &payload)
    };
    let fetched = server.requests();
    let refused = hook(&url, "another");
    assert_eq!((refused.status, refused.code().as_str()), (401, "ERR_EDGEWRIGHT_UNAUTHENTICATED"));
    let other = hook("https://git.example.com/other.git", "s3cret");
    assert_eq!((other.status, other.json()), (202, json!({"sources": []})));
    assert_eq!(
        (server.requests(), shown(&serve).as_str()),
        (fetched, "a"),
        "only the webhook of the repository fetches"
    );
    let own = hook(url.trim_end_matches(".git"), "s3cret");
    assert_eq!((own.status, own.json()), (202, json!({"sources": ["shop"]})));
    within(SOON, "b", || (shown(&serve) == "b").then_some(()));
    // A sync that something else causes fetches nothing.
    let fetched = server.requests();
    let before = status(&serve, "shop")["last_attempt"]["at"].clone();
    // Times are in whole seconds: a sync in the same one could not be told from the last.
    until("the sync", || {
        assert_eq!(serve.call("POST", "/sources/shop/resume", "").status, 200);
        (status(&serve, "shop")["last_attempt"]["at"] != before).then_some(())
    });
    assert_eq!(server.requests(), fetched);
}

#[test]
fn a_mistake_in_the_configuration_of_a_repository_is_reported_at_its_field() {
    let folder = pushed();
    for (keys, field, said) in [
        ("repository: 'https://me:hunter2@git.example.com/e'", "repository", "`password_file`"),
        ("repository: 'https://hunter2@git.example.com/e'", "repository", "cannot contain credentials"),
        ("repository: 'http://git.example.com/e'", "repository", "only allowed for this machine"),
        ("repository: 'git://git.example.com/e'", "repository", "not supported"),
        ("repository: repo, ref: main, semver: ^1", "semver", "cannot be combined with `ref`"),
        ("repository: repo, semver: newest", "semver", "must be a range of versions"),
        ("semver: ^1", "semver", "requires `repository`"),
        ("verify: {allowed_signers_file: x}", "verify", "requires `repository`"),
        ("repository: repo, verify: {}", "verify/allowed_signers_file", "is required"),
        ("repository: repo, username: me", "username", "requires a `repository` with"),
        ("repository: 'git@git.example.com:e', password_env: X", "password_env", "an https:// URL"),
        ("repository: 'https://git.example.com/e', ssh_key_file: x", "ssh_key_file", "an SSH URL"),
        ("repository: 'git@git.example.com:e', username: me", "username", "already names the user"),
        (
            "repository: 'git@git.example.com:e', ssh_key_passphrase_file: x",
            "ssh_key_passphrase_file",
            "`ssh_key_file`",
        ),
        ("repository: 'https://git.example.com/e', password_file: x, password_env: X", "password_env", "combined"),
    ] {
        configure(&folder, keys);
        let run = folder.run("validate repo/edge");
        let reported = run.err.contains(&format!("at /sources/0/{field}")) && run.err.contains(said);
        assert_eq!((run.code, reported), (1, true), "{keys}: {}", run.err);
        assert!(!run.all().contains("hunter2"), "{}", run.all());
    }
    folder.write(CONFIG, "hooks:\n  git: {secret_file: nowhere}\n");
    let mut command = folder.command("serve --listen 127.0.0.1:0");
    command.env("EDGEWRIGHT_CONFIG", CONFIG);
    let run = finish(command, "");
    assert_eq!((run.code, run.err.contains("webhook's `secret_file` nowhere")), (1, true), "{}", run.err);
}

#[test]
fn a_file_found_in_the_working_folder_sends_no_credentials() {
    let folder = Folder::new();
    let remote = |keys: &str| format!("sources:\n- {{name: shop, {keys}}}\n");
    for text in [
        remote("repository: 'https://git.example.com/e', password_env: X"),
        remote("repository: 'git@git.example.com:e'"),
        "hooks:\n  git: {secret_file: x}\n".to_owned(),
    ] {
        folder.write(CONFIG, &text);
        let mut command = folder.command("serve --listen 127.0.0.1:0");
        command.env_remove(CONFIG_VARIABLE);
        let run = finish(command, "");
        let is_refused = run.err.contains("cannot be set in a configuration file found in the working folder");
        assert_eq!((run.code, is_refused), (1, true), "{text}: {}", run.err);
    }
}

/// Whether a program is installed.
fn has(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).output().is_ok()
}
