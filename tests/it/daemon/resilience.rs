//! A server that input cannot stop, and that says when it is not well (D52).

use std::{
    fs,
    io::Write,
    net::TcpStream,
    os::unix::fs::symlink,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use edgewright::{
    Code, Diagnostic, Disk, ManifestFile, Options, Store, Tree,
    report::Name,
    resources::Fault,
    server::{App, Reason, RunReport, Settings, Verdict, bind, follow, router},
    storage::Retention,
};
use serde_json::json;

use crate::support::{
    engine::{FailingEngine, Failure},
    http::{http, request},
    manifests::edge,
    program::{CONFIG, Folder, Serve, until, within},
    server::{BASE_URL, VERSION_HEADER},
    sources::{replace, shown, until_shown},
};

/// Far below the 30 seconds after which a lost event does not matter any longer.
const SOON: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(20);

/// The head of a request that posts manifests as the admin, and its body.
fn post(serve: &Serve, body: &serde_json::Value) -> String {
    let bearer = format!("Bearer {}", serve.token);
    let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
    request(&serve.address, "POST", "/reconciliations", &headers, &body.to_string())
}

fn soon_shown(serve: &Serve, description: &str) {
    within(SOON, description, || (shown(serve) == [description]).then_some(()));
}

#[test]
fn a_folder_that_is_made_again_is_followed() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    for (second, third) in [("second", "third"), ("fourth", "fifth")] {
        let reported = serve.said().matches("ERR_EDGEWRIGHT_UNREADABLE").count();
        fs::remove_dir_all(folder.path("m")).unwrap();
        until("the report", || (serve.said().matches("ERR_EDGEWRIGHT_UNREADABLE").count() > reported).then_some(()));
        folder.write("m/one.yaml", &edge("one", second));
        soon_shown(&serve, second);
        folder.write("m/one.yaml", &edge("one", third));
        soon_shown(&serve, third);
    }
}

#[test]
fn a_folder_whose_parent_is_made_again_is_followed() {
    let folder = Folder::new();
    folder.write("a/b/m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests a/b/m");
    fs::remove_dir_all(folder.path("a")).unwrap();
    serve.wait_for("ERR_EDGEWRIGHT_UNREADABLE");
    folder.write("a/b/m/one.yaml", &edge("one", "second"));
    soon_shown(&serve, "second");
    folder.write("a/b/m/one.yaml", &edge("one", "third"));
    soon_shown(&serve, "third");
}

#[test]
fn links_in_a_followed_folder_hold_up_neither_the_start_nor_a_sync_nor_the_end() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    // Hidden, so that no run looks there: 2^39 paths, and another one to everything.
    for number in 0..40 {
        let at = folder.path(&format!("m/.x/d{number}"));
        fs::create_dir_all(&at).unwrap();
        for link in ["a", "b"] {
            symlink(format!("../d{}", number + 1), at.join(link)).unwrap();
        }
    }
    symlink("/", folder.path("m/.x/root")).unwrap();
    let serve = folder.serve("--manifests m");
    folder.write("m/one.yaml", &edge("one", "second"));
    soon_shown(&serve, "second");
    assert!(!serve.said().contains("cannot watch the manifests"), "{}", serve.said());
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_source_that_the_system_cannot_watch_is_read_at_its_interval() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.write(CONFIG, "sources:\n- {name: shop, path: m, interval: 1s}\n");
    let Some(serve) = folder.serve_without_watches("") else { return };
    let warnings = || serve.said().matches("cannot watch the manifests; reading them at each interval instead").count();
    assert_eq!((shown(&serve), warnings()), (vec!["first".to_owned()], 1), "{}", serve.said());
    folder.write("m/one.yaml", &edge("one", "second"));
    until_shown(&serve, "second");
    // A reload, too.
    folder.write("docs/two.yaml", &edge("two", "third"));
    replace(&folder, "sources:\n- {name: shop, path: m, interval: 1s}\n- {name: docs, path: docs, interval: 1s}\n");
    until("the other source", || (shown(&serve) == ["second", "third"] && warnings() > 1).then_some(()));
    assert_eq!(warnings(), 2, "each source has one, however often it is read\n{}", serve.said());
}

#[test]
fn what_changes_beside_the_followed_folder_causes_no_run() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m");
    serve.wait_for("Applied as revision 2");
    let runs = || {
        let text = serve.get("/metrics").body;
        let count = text.lines().find_map(|line| line.strip_prefix("edgewright_reconcile_duration_seconds_count "));
        count.unwrap_or_default().to_owned()
    };
    let before = runs();
    for at in 0..5 {
        folder.write("serve.log", &format!("{at}\n"));
        std::thread::sleep(Duration::from_millis(100));
    }
    folder.write("m/one.yaml", &edge("one", "second"));
    soon_shown(&serve, "second");
    // A run is counted when it has ended.
    within(SOON, "the end of the run", || (runs() != before).then_some(()));
    assert_eq!((before.as_str(), runs().as_str()), ("1", "2"));
}

#[test]
fn a_hangup_means_sync_again_and_nothing_where_no_folder_is_followed() {
    let folder = Folder::new();
    let route = "{name: hook, match_type: exact_path, match: /, backend: {backend_id: bkd_1}, \
                 webhook_verification: {provider: github, secret: {from_file: ../far/away/secret.txt}}}";
    // Nobody watches that folder.
    folder.write("far/away/secret.txt", "one");
    folder.write(
        "m/one.yaml",
        &(edge("one", "first").trim_end().trim_end_matches('}').to_owned() + &format!(", routes: [{route}]}}\n")),
    );
    let serve = folder.serve("--manifests m --allow-outside-files");
    serve.wait_for("Applied as revision 2");
    folder.write("far/away/secret.txt", "two");
    serve.signal("HUP");
    within(SOON, "the next revision", || serve.said().contains("Applied as revision 3").then_some(()));

    let other = Folder::new();
    let serve = other.serve("");
    serve.signal("HUP");
    assert_eq!(serve.get("/edges/https").status, 200);
    let run = serve.stop();
    assert_eq!(run.code, 0, "{}", run.all());
}

#[test]
fn a_server_is_ready_once_its_source_was_applied_and_stays_so_with_broken_manifests() {
    let folder = Folder::new();
    let broken = edge("one", "broken").replace("hostports", "hostprots");
    folder.write("m/one.yaml", &broken);
    let serve = folder.serve("--manifests m");
    let probe = || http(&serve.address, "GET", "/readyz", &[], "");
    let before = probe();
    assert_eq!((before.status, before.code().as_str()), (503, "ERR_EDGEWRIGHT_UNAVAILABLE"), "{}", before.body);
    assert!(before.body.contains("OutOfSync (Invalid)"), "{}", before.body);
    assert_eq!(http(&serve.address, "GET", "/healthz", &[], "").status, 200);

    folder.write("m/one.yaml", &edge("one", "first"));
    until_shown(&serve, "first");
    let ready = until("a ready server", || Some(probe()).filter(|answer| answer.status == 200));
    assert_eq!(ready.body, "ready\n");
    let metric = |line: &str| {
        let page = http(&serve.address, "GET", "/metrics", &[], "").body;
        assert!(page.lines().any(|it| it == line), "no {line}\n{page}");
        page
    };
    metric("edgewright_reconcile_loop_up{source=\"default\"} 1");
    let page = metric("edgewright_drift{source=\"default\"} 0");
    for name in ["attempt", "success"] {
        let name = format!("edgewright_reconcile_last_{name}_timestamp_seconds{{source=\"default\"}} ");
        let value = page.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("no {name}"));
        assert!(value.parse::<f64>().unwrap() > 1_700_000_000.0, "{name}{value}");
    }

    folder.write("m/one.yaml", &broken);
    let warned = until("a warning", || Some(probe()).filter(|answer| answer.body.contains("warning")));
    let wanted = "ready\nwarning: OutOfSync (Invalid): 1 error in the manifests\n";
    assert_eq!((warned.status, warned.body.as_str()), (200, wanted));
    metric("edgewright_drift{source=\"default\"} 1");
    assert_eq!(shown(&serve), ["first"]);
    assert_eq!(serve.stop().code, 0);

    let again = folder.serve("--manifests m");
    let served = http(&again.address, "GET", "/readyz", &[], "");
    assert_eq!((served.status, served.body.as_str()), (200, wanted), "what was applied before is served");
}

/// Manifests that panic when they are read for the first time.
#[derive(Debug)]
struct Shaky {
    disk: Disk,
    panics: AtomicBool,
}

impl Tree for Shaky {
    fn manifests(&self) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>) {
        assert!(!self.panics.swap(false, Ordering::SeqCst), "on purpose");
        self.disk.manifests()
    }

    fn commit(&self) -> Option<String> {
        self.disk.commit()
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.disk.file(manifest, name)
    }
}

#[test]
fn a_panic_in_a_run_or_in_its_report_ends_neither_the_loop_nor_the_process() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let store = Arc::new(Store::open(folder.path("store")).unwrap());
    let paths = [folder.path("m")];
    let disk = Disk::new(paths.to_vec());
    let tree = Shaky { disk, panics: AtomicBool::new(true) };
    let (sender, reports) = mpsc::channel();
    let mut panics = true;
    let guard = follow(Arc::clone(&store), Options::new(tree), &paths, move |report, _| {
        let applied = matches!(report, RunReport::Applied { .. });
        let _ = sender.send(report);
        if applied && std::mem::take(&mut panics) {
            panic!("on purpose");
        }
    });
    let guard = guard.unwrap();
    let internal = |report: &RunReport| match report {
        RunReport::Failed(found) => found.iter().all(|it| it.code == Name::Code(Code::Internal)),
        _ => false,
    };
    let next = || reports.recv_timeout(PATIENCE).unwrap();
    let first = next();
    assert!(internal(&first), "{first:?}");
    let following = guard.handle();
    let health = &following.health;
    assert_eq!(health.condition().reason, Reason::Panicked);
    assert!(matches!(next(), RunReport::Applied { .. }), "the next run does its work");
    let report = next();
    assert!(internal(&report), "its report has panicked: {report:?}");
    assert!(matches!(next(), RunReport::InSync { unchanged: 1, .. }));
    assert_eq!(health.verdict(), Verdict::Ready);
    drop(guard);
    assert_eq!(store.snapshot().revision, 1);
}

#[test]
fn a_store_that_cannot_be_written_is_not_ready() {
    let store = Store::with_engine(Arc::new(FailingEngine::new(Failure::Health)), Retention::default()).unwrap();
    let store = Arc::new(store);
    let settings =
        Settings { base_url: BASE_URL.into(), saml_base_url: BASE_URL.into(), version_header: VERSION_HEADER.into() };
    let listener = bind("127.0.0.1:0").unwrap();
    let address = listener.address().unwrap().to_string();
    let router = router(App::new(store, settings));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        let stopped = async {
            let _ = stopped.await;
        };
        listener.run_until(router, stopped).unwrap();
    });
    let answer = http(&address, "GET", "/readyz", &[], "");
    assert_eq!((answer.status, answer.code().as_str()), (503, "ERR_EDGEWRIGHT_UNAVAILABLE"), "{}", answer.body);
    assert!(answer.body.contains("restart the server") && !answer.body.contains("secret"), "{}", answer.body);
    assert_eq!(http(&address, "GET", "/healthz", &[], "").status, 200);
    stop.send(()).unwrap();
    server.join().unwrap();
}

#[test]
fn the_source_that_a_server_follows_is_not_applied_through_it() {
    let folder = Folder::new();
    folder.write("m/one.yaml", &edge("one", "first"));
    let serve = folder.serve("--manifests m --source shop");
    let files = json!([{"name": "other.yaml", "text": edge("other", "other")}]);
    let ask = |source: &str, dry_run: bool| {
        let body = json!({"files": files, "source": source, "dry_run": dry_run, "max_deletes": "100%"});
        serve.call("POST", "/reconciliations", &body.to_string())
    };
    let refused = ask("shop", false);
    assert_eq!((refused.status, refused.code().as_str()), (409, "ERR_EDGEWRIGHT_CONFLICT"), "{}", refused.body);
    assert_eq!(refused.json()["details"]["field"], "/source");
    assert!(refused.body.contains("the server reconciles source `shop` from its own manifests"), "{}", refused.body);
    assert_eq!(shown(&serve), ["first"]);
    assert_eq!(ask("shop", true).status, 200, "a dry run changes nothing");
    assert_eq!(ask("docs", false).status, 201, "another source is not the loop's");
}

#[test]
fn a_server_that_plans_ends_within_its_grace_period() {
    let folder = Folder::new();
    let mut serve = folder.serve("");
    // A build without optimisation plans this for longer than the grace period.
    let texts: Vec<String> = (0..40_000).map(|number| edge(&format!("e{number}"), "big")).collect();
    let body = json!({"files": [{"name": "big.yaml", "text": texts.join("---\n")}], "dry_run": true});
    let mut connection = TcpStream::connect(&serve.address).unwrap();
    // All of it does not fit between client and server: once it is written, the server is at work.
    connection.write_all(post(&serve, &body).as_bytes()).unwrap();
    let since = Instant::now();
    serve.terminate();
    until("the end of listening", || TcpStream::connect(&serve.address).is_err().then_some(()));
    // The period goes on while the process is stopped, which leaves the processor to other tests.
    serve.signal("STOP");
    std::thread::sleep(Duration::from_secs(8));
    serve.signal("CONT");
    let run = serve.ended();
    assert!(since.elapsed() < Duration::from_secs(15), "{:?}", since.elapsed());
    assert_eq!(run.code, 0, "{}", run.all());
    assert!(run.err.ends_with("Stopped.\n"), "{}", run.err);
}
