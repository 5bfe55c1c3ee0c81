//! Deletion budgets: a normal day passes, an accident does not (D41).

use edgewright::{ApplyError, Code, Options, Sent, SentFile, Store, apply, plan, report::Name};

use crate::support::{manifests::edges, program::Folder};

const REFUSED: &str = "ERR_EDGEWRIGHT_TOO_MANY_DELETIONS";

#[test]
fn a_small_source_is_guarded_too_and_a_flag_allows_it_once() {
    let folder = Folder::new();
    folder.write("m/e.yaml", &edges("e", 3));
    folder.ok("reconcile m");
    folder.write("m/e.yaml", "# all of them are gone\n");
    let refused = folder.run("reconcile m");
    assert_eq!((refused.code, refused.err.contains(REFUSED)), (4, true), "{}", refused.err);
    assert!(refused.err.contains("e0, HttpsEdge e1, HttpsEdge e2"), "{}", refused.err);
    assert_eq!(folder.run("reconcile m --max-deletes 2").code, 4);
    assert!(refused.err.contains("run again with --max-deletes 3"), "{}", refused.err);
    assert_eq!(folder.run("reconcile m --max-deletes 99%").code, 4);
    folder.ok("reconcile m --max-deletes 3");
    assert!(folder.snapshot("store").is_empty());
}

#[test]
fn a_new_source_is_told_from_a_misspelt_one() {
    let folder = Folder::new();
    folder.write("m/e.yaml", &edges("e", 1));
    assert!(!folder.ok("reconcile m --source shop").err.contains("did you mean"), "the first source");
    folder.write("n/f.yaml", &edges("f", 1));
    for (source, meant) in [("shp", true), ("docs", false), ("shop2", false)] {
        let run = folder.ok(&format!("plan n --source {source}"));
        let note = format!("Source {source} is new; did you mean shop?");
        assert_eq!(run.err.contains(&note), meant, "{}", run.all());
    }
    assert!(folder.ok("reconcile n --source shp").err.contains("did you mean shop?"));
    assert!(!folder.ok("plan n --source shp").err.contains("did you mean"), "it is a source by now");
}

#[test]
fn a_normal_day_needs_no_flag() {
    let folder = Folder::new();
    folder.write("m/e.yaml", &edges("e", 20));
    folder.ok("reconcile m");
    folder.write("m/e.yaml", &edges("e", 15));
    folder.ok("reconcile m");
    folder.write("m/e.yaml", &edges("e", 11));
    let refused = folder.run("reconcile m");
    assert_eq!((refused.code, refused.err.contains("would delete 4 of the source's 15")), (4, true), "{}", refused.err);
    folder.ok("reconcile m --max-deletes 30%");
    assert_eq!(folder.run("reconcile m --max-deletes many").code, 1);
}

#[test]
fn the_library_applies_no_refused_plan_and_no_invalid_manifests() {
    let store = Store::open("memory:").unwrap();
    let reconcile = |text: String| {
        let file = SentFile::new("m/e.yaml", text);
        let options = Options::new(Sent::new(vec![file], None));
        apply(&store, &options, &plan(&options, &store.snapshot()))
    };
    assert_eq!(reconcile(edges("e", 3)).unwrap(), 1);
    for (text, code) in [
        ("# all of them are gone\n".to_owned(), Code::TooManyDeletions),
        (edges("e", 3).replace("hostports", "hostprots"), Code::UnknownField),
    ] {
        let error = reconcile(text).unwrap_err();
        let ApplyError::Refused(found) = &error else { panic!("{error:?}") };
        assert!(!found.is_empty() && found.iter().all(|it| it.code == Name::Code(code)), "{error}");
        assert_eq!(store.snapshot().revision, 1);
    }
}
