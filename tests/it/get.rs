//! `edgewright get`: resources of a store or a server, by kind, name, id and filter (D67).

use serde_json::Value;

use crate::cli::{Folder, Run, finish};

/// A store with the example in it.
fn folder() -> Folder {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder
}

/// Runs the command with a filter, which may contain blanks.
fn filtered(folder: &Folder, line: &str, filter: &str) -> Run {
    let mut command = folder.command(line);
    command.args(["--filter", filter]);
    finish(command, "")
}

fn ids(text: &str) -> Vec<String> {
    let items: Vec<Value> = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_store_is_listed_by_kind_and_filter() {
    let folder = folder();
    let all = ids(&folder.ok("get edges -o json").out);
    assert!(all.len() > 1, "{all:?}");
    let table = folder.ok("get https-edges").out;
    assert!(table.starts_with("ID "), "{table}");
    assert!(table.lines().next().unwrap().contains("HOSTPORTS"), "{table}");
    assert_eq!(table.lines().count(), all.len() + 1);
    let one = filtered(&folder, "get edges -o json", &format!("obj.id == '{}'", all[0]));
    assert_eq!(ids(&one.out), [all[0].clone()], "{}", one.all());
    let wrong = filtered(&folder, "get edges", "obj.hostport == 'x'");
    assert_eq!(wrong.code, 1);
    assert!(wrong.err.contains("column 5") && wrong.err.contains("did you mean `hostports`?"), "{}", wrong.err);
    let none = filtered(&folder, "get edges -o json", "false");
    assert_eq!((none.code, none.out.trim()), (0, "[]"), "{}", none.all());
    assert!(none.err.contains("No https-edges found."), "{}", none.err);
}

#[test]
fn a_resource_is_found_by_name_and_id() {
    let folder = folder();
    let edge: Value = serde_json::from_str(&folder.ok("get edge storefront -o json").out).unwrap();
    let id = edge["id"].as_str().unwrap();
    assert_eq!(edge["uri"], format!("/edges/https/{id}"));
    let same: Value = serde_yaml::from_str(&folder.ok(&format!("get HttpsEdge {id} -o yaml")).out).unwrap();
    assert_eq!(same, edge);
    let routes = ids(&folder.ok("get routes --edge storefront -o json").out);
    assert_eq!(routes.len(), edge["routes"].as_array().unwrap().len());
    assert!(ids(&folder.ok("get routes -o json").out).len() > routes.len());
    for (line, says) in [
        ("get edge nothing", "no https-edge with the id or name `nothing`"),
        ("get egdes", "did you mean `edges`?"),
        ("get edges --edge storefront", "`--edge` does not apply to https-edges"),
        ("get routes --edge nothing", "no https-edge with the id or name `nothing`"),
    ] {
        let run = folder.run(line);
        assert_eq!(run.code, 1, "{line}\n{}", run.all());
        assert!(run.err.contains(says), "{line}\n{}", run.err);
    }
}

#[test]
fn no_secret_of_a_store_is_shown() {
    let folder = folder();
    let shown = folder.ok("get routes -o json").out;
    let secret = folder.read("storefront/secrets/stripe-webhook-secret.txt");
    assert!(shown.contains("********") && !shown.contains(secret.trim()));
    let secret =
        filtered(&folder, "get routes -o json", &format!("obj.webhook_verification.secret == '{}'", secret.trim()));
    assert_eq!(secret.out.trim(), "[]", "{}", secret.all());
}

#[test]
fn a_server_lists_the_same() {
    let folder = folder();
    let lines = ["get edges -o json", "get routes --edge storefront -o json", "get edge storefront -o json"];
    let local = lines.map(|line| folder.ok(line).out);
    let server = folder.serve("");
    for (line, local) in lines.iter().zip(local) {
        let mut command = folder.command(&format!("{line} --server http://{}", server.address));
        command.env("EDGEWRIGHT_TOKEN", &server.token).env_remove("EDGEWRIGHT_STORE");
        let run = finish(command, "");
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        let of = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap();
            let items = value.as_array().cloned().unwrap_or_else(|| vec![value]);
            items.iter().map(|item| item["id"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&run.out), of(&local), "{line}");
    }
    let mut command = folder.command(&format!("get edges --server http://{}", server.address));
    command.env("EDGEWRIGHT_TOKEN", &server.token).args(["--filter", "obj.nothing == 1"]);
    let refused = finish(command, "");
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(refused.err.contains("unknown field `nothing`"), "{}", refused.err);
}
