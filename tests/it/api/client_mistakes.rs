//! What happens to a client whose variables are empty, whose server is another program, or whose response is lost (D105).

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{
    manifests::edge_with,
    program::{Folder, Run, finish},
    users::{assert_refused, server_that_answers, user},
};

#[test]
fn an_empty_flag_is_an_error_and_makes_no_store() {
    let folder = Folder::new();
    for line in ["keys create", "keys list", "status"] {
        for flag in ["--server", "--context"] {
            let mut command = user(&folder, line);
            command.args([flag, ""]);
            assert_refused(&finish(command, ""), &format!("'{flag} <"));
        }
    }
    for (flag, line) in [("--secrets", "validate m"), ("--with", "validate m")] {
        folder.write("m/a.yaml", &edge_with("a", "{}"));
        let mut command = user(&folder, line);
        command.args([flag, ""]);
        assert_refused(&finish(command, ""), &format!("'{flag} <"));
    }
    assert!(!folder.path("edgewright.db").exists());
}

#[test]
fn an_empty_variable_is_as_unset() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    for variable in ["SERVER", "CONTEXT", "SECRETS", "WITH", "CONFIG"] {
        let mut command = user(&folder, "plan m");
        command.env(format!("EDGEWRIGHT_{variable}"), "");
        let run = finish(command, "");
        assert!(run.code == 0 && run.out.contains("1 to create"), "{variable}: {}", run.all());
    }
    let mut command = user(&folder, "validate m");
    for variable in ["SECRETS", "WITH", "CONFIG"] {
        command.env(format!("EDGEWRIGHT_{variable}"), "");
    }
    let run = finish(command, "");
    assert_eq!(run.code, 0, "{}", run.all());
    // A file that no variable names stays one that was found.
    folder.write("edgewright.config.yaml", "options: {server: 'http://127.0.0.1:1'}\n");
    let mut command = user(&folder, "plan m");
    command.env("EDGEWRIGHT_CONFIG", "");
    assert_refused(&finish(command, ""), "cannot be set in a configuration file found in the working folder");
}

fn through(folder: &Folder, url: &str, line: &str) -> Run {
    let mut command = user(folder, line);
    command.env("EDGEWRIGHT_SERVER", url).env("EDGEWRIGHT_TOKEN", "token");
    finish(command, "")
}

#[test]
fn a_change_whose_response_is_lost_may_have_been_made() {
    let folder = Folder::new();
    let silent = server_that_answers(|_| None);
    let proxy = server_that_answers(|_| Some((502, "<html>")));
    for (line, see) in [
        ("keys create", "revoke a new key of `usr_"),
        ("keys create --role viewer", "nobody has its token"),
        ("keys revoke ak_1", "run `edgewright keys list`"),
        ("owners set-role usr_1 viewer", "run `edgewright owners list`"),
        ("suspend shop --reason x", "run `edgewright status`"),
        ("resume shop", "run `edgewright status`"),
    ] {
        for url in [&silent, &proxy] {
            let lost = through(&folder, url, line);
            assert_refused(&lost, "the change may have been made");
            assert!(lost.err.contains(see) && !lost.err.contains("cannot reach"), "{line}: {}", lost.all());
        }
        // What was not sent was not made.
        let away = through(&folder, "http://127.0.0.1:1", line);
        assert_refused(&away, "cannot reach http://127.0.0.1:1/");
        assert!(!away.err.contains("may have been made"), "{}", away.all());
    }
}

#[test]
fn a_server_that_fails_says_why_and_only_some_errors_prove_that_nothing_has_changed() {
    const AWAY: &str = r#"{"error_code": "ERR_EDGEWRIGHT_STORE_UNAVAILABLE", "msg": "the database does not answer"}"#;
    const FAILED: &str = r#"{"error_code": "ERR_EDGEWRIGHT_STORE_FAILED", "msg": "the store failed"}"#;
    let folder = Folder::new();
    let (away, failed) = (server_that_answers(|_| Some((503, AWAY))), server_that_answers(|_| Some((500, FAILED))));
    for line in ["keys revoke ak_1", "suspend shop --reason x", "store rekey"] {
        let run = through(&folder, &away, line);
        assert_refused(&run, "ERR_EDGEWRIGHT_STORE_UNAVAILABLE");
        assert!(
            run.err.contains("the database does not answer") && !run.err.contains("may have been"),
            "{}",
            run.all()
        );
        let run = through(&folder, &failed, line);
        assert_refused(&run, "ERR_EDGEWRIGHT_STORE_FAILED");
        assert!(
            run.err.contains("the server failed: the store failed; the change may have been made"),
            "{}",
            run.all()
        );
    }
}

#[test]
fn a_server_of_another_program_has_no_empty_lists() {
    let folder = Folder::new();
    let url = server_that_answers(|_| Some((200, "{}")));
    for line in ["get edges", "keys list", "owners list", "status"] {
        assert_refused(&through(&folder, &url, line), "not an edgewright server");
    }
}

#[test]
fn a_list_whose_pages_do_not_advance_ends() {
    let folder = Folder::new();
    let url = server_that_answers(|first| {
        // Each page names a new one, at another server.
        static PAGES: AtomicUsize = AtomicUsize::new(1);
        let next = format!("http://elsewhere.test/x?before_id={}", PAGES.fetch_add(1, Ordering::Relaxed));
        let list = match first.split(['?', ' ']).nth(1) {
            Some("/edges/https") => "https_edges",
            Some("/api_keys") => "keys",
            Some("/owners") => "owners",
            _ => "history",
        };
        let body: &'static str = serde_json::json!({list: [], "uri": "", "next_page_uri": next}).to_string().leak();
        Some((200, body))
    });
    for (line, list) in
        [("get edges", "edges/https"), ("keys list", "api_keys"), ("owners list", "owners"), ("history", "history")]
    {
        let run = through(&folder, &url, line);
        assert_refused(&run, &format!("the pages of {url}/{list} do not advance"));
    }
}

#[test]
fn a_key_never_has_more_rights_than_it_was_asked_for() {
    let folder = Folder::new();
    // A server that stops after the first request it answers.
    let stopping = server_that_answers(|first| {
        let created =
            r#"{"id": "ak_1", "owner_id": "usr_1", "created_at": "2026-11-22T10:00:00Z", "token": "ew_ak_1_secret"}"#;
        first.starts_with("POST /api_keys?owner_role=viewer ").then_some((201, created))
    });
    let run = through(&folder, &stopping, "keys create --role viewer");
    assert_eq!((run.code, run.out.as_str()), (0, "ew_ak_1_secret\n"), "one request does everything: {}", run.all());
    // A server that does not know the role creates nothing.
    let old = server_that_answers(|_| {
        let unknown = r#"{"error_code": "ERR_EDGEWRIGHT_PARAMETER", "msg": "unknown query parameter `owner_role`"}"#;
        Some((400, unknown))
    });
    let run = through(&folder, &old, "keys create --role viewer");
    assert_refused(&run, "is too old: it cannot create a key and the role of its owner at once");
    assert_eq!(run.out, "");
}

#[test]
fn a_server_that_cannot_count_the_time_of_a_suspension_is_too_old() {
    let folder = Folder::new();
    let old = server_that_answers(|_| {
        let unknown = r#"{"error_code": "ERR_EDGEWRIGHT_UNKNOWN_FIELD", "msg": "unknown field `for_seconds`"}"#;
        Some((400, unknown))
    });
    let run = through(&folder, &old, "suspend shop --reason x --for 2h");
    assert_refused(&run, "is too old: it cannot suspend a source for a time");
    let run = through(&folder, &old, "suspend shop --reason x --for 5000000000s");
    assert_refused(&run, "`--for` is too long");
}

#[test]
fn a_command_that_the_server_turns_away_sends_its_request_again() {
    static REQUESTS: AtomicUsize = AtomicUsize::new(0);
    let folder = Folder::new();
    let url = server_that_answers(|_| {
        Some(match REQUESTS.fetch_add(1, Ordering::Relaxed) {
            0 => (429, r#"{"error_code": "ERR_EDGEWRIGHT_RATE_LIMITED", "msg": "the owner has its share"}"#),
            1 => (503, r#"{"error_code": "ERR_EDGEWRIGHT_UNAVAILABLE", "msg": "the server is full"}"#),
            // A proxy does not know whether the change was made.
            _ => (503, "<html>"),
        })
    });
    let run = through(&folder, &url, "suspend shop --reason x");
    assert_refused(&run, "the change may have been made");
    assert_eq!(REQUESTS.load(Ordering::Relaxed), 3, "{}", run.all());
}
