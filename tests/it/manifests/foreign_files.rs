//! Files of other programs in a folder of manifests are one finding each, or left out (D26).

use std::{fs, process::Command};

use crate::support::program::Folder;

const EDGE: &str =
    "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec: {hostports: ['shop.example.com:443']}\n";

/// A folder with a manifest and the files of other programs.
fn mixed() -> Folder {
    let folder = Folder::new();
    folder.write("m/shop.yaml", EDGE);
    folder.ok("plan m --out m/plan.json");
    folder.write("m/package.json", r#"{"name": "x", "version": "1", "scripts": {"a": "b"}}"#);
    folder.write("m/docker-compose.yml", "services: {web: {image: x}}\nvolumes: {}\n");
    folder.write("m/ci/workflow.yaml", "name: ci\non: push\njobs: {a: {runs-on: x}}\n");
    folder.write(
        "m/ci/deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {replicas: 1}\n",
    );
    folder
}

#[test]
fn a_file_of_another_program_is_one_finding() {
    let folder = mixed();
    let run = folder.run("validate m");
    assert_eq!((run.code, run.err.matches("ERR_EDGEWRIGHT_").count()), (3, 5), "{}", run.all());
    assert_eq!(run.err.matches("not a manifest: no `apiVersion: edgewright/v1`").count(), 4, "{}", run.all());
    assert!(run.err.contains("not a manifest: a plan saved by `plan --out`"), "{}", run.all());
    assert!(run.err.contains(".edgewrightignore"), "{}", run.all());
    assert!(run.err.contains("apply it with `edgewright reconcile PATH --plan FILE`"), "{}", run.all());
    for file in ["nowhere.json", "m/shop.yaml"] {
        let run = folder.run(&format!("reconcile m --plan {file}"));
        let helps = run.err.contains("name a file that `edgewright plan PATH --out FILE` saved");
        assert!(run.code == 1 && helps, "{file}: {}", run.all());
    }
    // What is meant to be a manifest has its own errors.
    folder.write("one.yaml", &EDGE.replace("edgewright/v1", "edgewright/v2"));
    assert!(folder.run("validate one.yaml").err.contains("unknown apiVersion"));
    folder.write("one.yaml", &EDGE.replace("apiVersion: edgewright/v1\n", ""));
    assert!(folder.run("validate one.yaml").err.contains("`apiVersion` is missing"));
}

#[test]
fn a_wrong_folder_is_a_summary_behind_the_errors_of_manifests() {
    let folder = Folder::new();
    for number in 0..30 {
        folder.write(&format!("m/{number:02}.yaml"), "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n");
    }
    folder.write("m/shop.yaml", &EDGE.replace("hostports", "hostprots"));
    let run = folder.run("validate m");
    assert_eq!((run.code, run.err.matches("not a manifest: ").count()), (3, 5), "{}", run.all());
    for said in
        ["did you mean `hostports`?", "… and 25 more errors in files that may not be manifests", "31 files read: 31 "]
    {
        assert!(run.err.contains(said), "{said}: {}", run.all());
    }
    // A file that cannot be read but names a kind is meant to be a manifest.
    for number in 0..7 {
        folder.write(&format!("m/broken-{number}.json"), "{\"name\": \"a\"\n\"kind\": \"HttpsEdge\"}\n");
    }
    let broken = folder.run("validate m");
    assert!(broken.err.contains("… and 25 more errors in files that may not be"), "{}", broken.all());
    for number in 0..7 {
        assert!(broken.err.contains(&format!("m/broken-{number}.json:2:")), "{}", broken.all());
        fs::remove_file(folder.path(&format!("m/broken-{number}.json"))).unwrap();
    }
    let json = folder.run("validate m --format json");
    assert_eq!(json.out.matches("not a manifest: ").count(), 30, "{}", json.out);
}

#[test]
fn a_file_of_any_form_is_one_finding_with_the_way_to_leave_it_out() {
    let folder = Folder::new();
    for (name, text) in [
        ("list.json", "[1, 2]"),
        ("text.yaml", "hello world\n"),
        ("comments.json", "// of another program\n{\"a\": 1}\n"),
        ("helm.yaml", "apiVersion: v1\nkind: {{ .Values.kind }}\nmetadata:\n  name: {{ include \"x\" . }}\n"),
    ] {
        folder.write(name, text);
        let run = folder.run(&format!("validate {name}"));
        assert_eq!((run.code, run.err.matches("ERR_EDGEWRIGHT_").count()), (3, 1), "{name}: {}", run.all());
        assert!(run.err.contains("list it in the folder's `.edgewrightignore`"), "{name}: {}", run.all());
    }
    // A manifest with a mistake is not to be left out.
    for text in [format!("{EDGE}  - x\n"), "[{apiVersion: edgewright/v1}]\n".to_owned()] {
        folder.write("own.yaml", &text);
        let run = folder.run("validate own.yaml");
        assert!(run.code == 3 && !run.err.contains(".edgewrightignore"), "{}", run.all());
    }
}

#[test]
fn a_document_of_another_program_is_one_finding() {
    let folder = Folder::new();
    for text in ["foo: bar\n", "{}\n", "services: {web: {image: x}}\nvolumes: {}\n"] {
        folder.write("m.yaml", &format!("{EDGE}---\n{text}"));
        let run = folder.run("validate m.yaml");
        assert_eq!((run.code, run.err.matches("ERR_EDGEWRIGHT_").count()), (3, 1), "{text}: {}", run.all());
        let said = "not an edgewright manifest: it has no `apiVersion` and no `kind`";
        assert!(run.err.contains(said) && run.err.contains("m.yaml:6:1"), "{text}: {}", run.all());
    }
    // Misspelt fields of a manifest are errors of their own.
    folder.write("m.yaml", &format!("{EDGE}---\napiVersoin: edgewright/v1\nkid: HttpsEdge\n"));
    let run = folder.run("validate m.yaml");
    assert!(run.code == 3 && run.err.contains("did you mean `apiVersion`?"), "{}", run.all());
}

#[test]
fn an_ignore_file_leaves_files_out_wherever_manifests_are_read() {
    let folder = mixed();
    folder.write("m/.edgewrightignore", "# not ours\n/package.json\nplan.json\ndocker-*.yml\nci/\n");
    assert!(folder.ok("validate m").all().contains("1 file read"));
    let git = |line: &str| {
        let mut command = Command::new("git");
        command.current_dir(folder.path("")).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
        assert!(command.args(line.split(' ')).output().unwrap().status.success(), "{line}");
    };
    git("init -q");
    git("add m");
    git("commit -q -m one");
    folder.write("m/shop.yaml", &EDGE.replace("443", "8443"));
    git("commit -q -a -m two");
    let diff = folder.ok("diff --rev HEAD~1..HEAD m");
    assert!(diff.out.contains("0 to create, 1 to change"), "{}", diff.out);
    // A file that is named itself is read, and a pattern that is none is an error.
    assert_eq!(folder.run("validate m/package.json").code, 3);
    folder.write("m/.edgewrightignore", "a[\n");
    let run = folder.run("validate m");
    assert!(run.code == 3 && run.err.contains("m/.edgewrightignore:1:1"), "{}", run.all());
}
