//! `edgewright get`: resources of a store or a server, by kind, name, id and filter (D67).

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
};

use serde_json::Value;

use crate::support::{
    manifests::edge_with,
    program::{Folder, Run, finish, on_terminal},
    users::client,
};

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
    assert!(table.starts_with("NAME ") && table.contains("\nstorefront "), "{table}");
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
    let empty = Folder::new();
    empty.ok("keys create");
    let none = empty.ok("get sources");
    assert!(none.err.contains("Sources of manifests are in `edgewright status`."), "{}", none.err);
}

#[test]
fn an_id_alone_is_enough_and_wide_shows_the_file() {
    let folder = folder();
    let route = ids(&folder.ok("get routes --edge storefront -o json").out).remove(0);
    let found: Value = serde_json::from_str(&folder.ok(&format!("get {route} -o json")).out).unwrap();
    assert_eq!(found["id"], route);
    let wide = folder.ok(&format!("get {route} -o wide")).out;
    let mut lines = wide.lines();
    assert!(lines.next().is_some_and(|titles| titles.contains("SOURCE") && titles.contains("FILE")), "{wide}");
    assert!(lines.next().is_some_and(|line| line.contains(" default ") && line.contains(".yaml:")), "{wide}");
    let none = folder.run("get edghtsrt_nothing");
    assert_eq!((none.code, none.err.contains("no https-edge-route with the ID")), (1, true), "{}", none.all());
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
        ("get edge nothing", "no https-edge with the ID or name `nothing`"),
        ("get egdes", "did you mean `edges`?"),
        ("get edge/", "did you mean `edges`?"),
        ("get edge storefrnt", "did you mean `storefront`?"),
        ("get route storefront/chekout", "did you mean `storefront/checkout`?"),
        ("get route chekout", "did you mean `checkout`?"),
        ("get storefront", "did you mean `edge/storefront`?"),
        ("get storefront/checkout", "did you mean `route/storefront/checkout`?"),
        ("get edges --edge storefront", "`--edge` does not apply to https-edges"),
        ("get routes --edge nothing", "no https-edge with the ID or name `nothing`"),
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
    for (line, near) in [
        ("get edge storefrnt", "storefront"),
        ("get route storefront/chekout", "storefront/checkout"),
        ("get storefront", "edge/storefront"),
        ("blame storefrnt", "storefront"),
        ("blame storefrnt/checkout", "storefront/checkout"),
    ] {
        let mut command = folder.command(&format!("{line} --server http://{}", server.address));
        command.env("EDGEWRIGHT_TOKEN", &server.token).env_remove("EDGEWRIGHT_STORE");
        let run = finish(command, "");
        assert_eq!(
            (run.code, run.err.contains(&format!("did you mean `{near}`?"))),
            (1, true),
            "{line}\n{}",
            run.all()
        );
    }
    let mut command = folder.command(&format!("get edges --server http://{}", server.address));
    command.env("EDGEWRIGHT_TOKEN", &server.token).args(["--filter", "obj.nothing == 1"]);
    let refused = finish(command, "");
    assert_eq!(refused.code, 1, "{}", refused.all());
    assert!(refused.err.contains("unknown field `nothing`"), "{}", refused.err);
}

/// Answers like a server without filters: it ignores the parameters of a list. Returns its URL.
fn server_without_filters() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = BufReader::new(connection.try_clone().unwrap());
            let (mut first, mut line) = (String::new(), String::new());
            request.read_line(&mut first).unwrap();
            while request.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let body = if first.starts_with("GET /openapi.json ") {
                r#"{"paths": {"/edges/https": {"get": {"parameters": [{"name": "limit"}, {"name": "before_id"}]}}}}"#
            } else {
                r#"{"https_edges": [{"id": "edghts_a"}, {"id": "edghts_b"}], "routes": [], "next_page_uri": null}"#
            };
            let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let _ = connection.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        }
    });
    url
}

#[test]
fn a_server_without_filters_is_not_asked_to_filter() {
    let folder = Folder::new();
    let url = server_without_filters();
    let run = |line: &str| {
        let mut command = folder.command(&format!("{line} -o json --server {url}"));
        command.env("EDGEWRIGHT_TOKEN", "token").env_remove("EDGEWRIGHT_STORE");
        finish(command, "")
    };
    let all = run("get edges");
    assert_eq!((all.code, ids(&all.out).len()), (0, 2), "{}", all.all());
    for line in ["get edges --filter false", "get edge storefront", "get edge edghts_a", "get routes --edge storefront"]
    {
        let run = run(line);
        assert_eq!((run.code, run.out.as_str()), (1, ""), "{line}\n{}", run.all());
        assert!(run.err.contains("too old"), "{line}\n{}", run.err);
    }
}

#[test]
fn what_to_select_has_no_default() {
    let folder = folder();
    for value in ["", "storefront"] {
        for line in ["get edges", "get edge storefront", "get routes", "get sources"] {
            let mut command = folder.command(&format!("{line} -o json"));
            for name in ["EDGEWRIGHT_FILTER", "EDGEWRIGHT_EDGE", "EDGEWRIGHT_SUBSCRIPTION"] {
                command.env(name, value);
            }
            let run = finish(command, "");
            assert_eq!(run.code, 0, "{line}\n{}", run.all());
            assert_eq!(run.out, folder.ok(&format!("{line} -o json")).out, "{line}");
        }
    }
    for name in ["filter", "edge", "subscription"] {
        folder.write("edgewright.config.yaml", &format!("options: {{{name}: storefront}}\n"));
        let run = folder.run("get edges");
        assert_eq!(run.code, 1, "{}", run.all());
        assert!(run.err.contains(&format!("unknown option `{name}`")), "{}", run.err);
    }
}

/// The first words of the lines of a table.
fn first_words(table: &str) -> Vec<&str> {
    table.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn a_table_has_names_first_and_wide_has_the_rest() {
    let folder = folder();
    let lines =
        ["get routes", "get routes -o wide", "get routes -o name", "get route storefront/checkout", "get sources"];
    let runs = lines.map(|line| folder.ok(line));
    let serve = folder.serve("");
    for (line, local) in lines.iter().zip(&runs) {
        let served = client(&folder, &serve, line);
        assert_eq!((served.code, served.out.as_str()), (0, local.out.as_str()), "{line}\n{}", served.all());
    }
    assert_eq!(serve.stop().code, 0);
    let [table, wide, names, one, sources] = [0, 1, 2, 3, 4].map(|at: usize| runs[at].out.as_str());
    assert!(table.starts_with("NAME ") && table.lines().next().unwrap().ends_with("  DESCRIPTION"), "{table}");
    assert!(first_words(table).contains(&"storefront/checkout") && !table.contains("edghtsrt_"), "{table}");
    let titles: Vec<&str> = wide.lines().next().unwrap().split_whitespace().collect();
    assert!(titles.ends_with(&["DESCRIPTION", "ID", "CREATED-AT", "SOURCE", "FILE", "COMMIT"]), "{wide}");
    assert!(names.lines().any(|line| line == "route/storefront/checkout"), "{names}");
    assert_eq!((first_words(one), one.lines().count()), (vec!["NAME", "storefront/checkout"], 2));
    assert_eq!(sources.lines().next(), Some("NAME"), "{sources}");
    // Commands take the names.
    for name in names.lines() {
        assert!(folder.ok(&format!("get {name}")).out.contains(name.split_once('/').unwrap().1), "{name}");
        folder.ok(&format!("blame {name}"));
    }
    // A resource without a name has its id, such as the key that the first start makes.
    let key = ids(&folder.ok("get keys -o json").out).remove(0);
    assert_eq!(folder.ok("get keys -o name").out, format!("key/{key}\n"));
}

#[test]
fn a_server_lists_the_names_of_a_collection_in_pages() {
    let folder = folder();
    let serve = folder.serve("");
    let mut names = Vec::new();
    let mut next = Some("/resources?collection=/edges/https&limit=2".to_owned());
    while let Some(path) = next {
        let page = serve.get(&path).json();
        let found = page["resources"].as_array().unwrap();
        assert!(!found.is_empty() && found.len() <= 2 && found[0]["source"] == "default", "{page}");
        names.extend(found.iter().map(|resource| resource["name"].as_str().unwrap().to_owned()));
        next = page["next_page_uri"].as_str().map(|uri| uri.split_once(&serve.address).unwrap().1.to_owned());
    }
    assert_eq!(names, first_words(&client(&folder, &serve, "get edges").out)[1..]);
    for collection in ["", "/nothing", "/owners", "/edges/https/edghts_a"] {
        let refused = serve.get(&format!("/resources?collection={collection}"));
        assert_eq!((refused.status, refused.code().as_str()), (400, "ERR_EDGEWRIGHT_PARAMETER"), "{collection}");
    }
}

#[test]
fn a_list_is_sorted_by_any_column() {
    let folder = folder();
    let table = folder.ok("get routes --sort-by NAME").out;
    let names = first_words(&table);
    assert!(names.len() > 5 && names[1..].is_sorted(), "{table}");
    let routes: Vec<Value> = serde_json::from_str(&folder.ok("get routes --sort-by match -o json").out).unwrap();
    let matches: Vec<&str> = routes.iter().map(|route| route["match"].as_str().unwrap()).collect();
    assert!(matches.is_sorted(), "{matches:?}");
    folder.ok("get routes --sort-by created-at");
    for (column, help) in [("mach", "did you mean `match`?"), ("source", "use one of `name`, `match`")] {
        let wrong = folder.run(&format!("get routes --sort-by {column}"));
        assert!(wrong.code == 1 && wrong.err.contains(help), "{}", wrong.all());
    }
}

#[test]
fn keys_have_the_same_columns_in_every_list_and_every_list_is_sorted() {
    let folder = Folder::new();
    let none = folder.run("keys list");
    assert_eq!(none.code, 1, "there is no store");
    folder.write("m/e.yaml", &edge_with("e", "{}"));
    folder.ok("reconcile m");
    for (line, said) in [("keys list", "No API keys found.\n"), ("owners list", "No owners found.\n")] {
        let none = folder.ok(line);
        assert_eq!((none.out.as_str(), none.err.as_str()), ("", said), "{line}");
    }
    for (name, role) in [("one", "viewer"), ("two", "planner"), ("three", "gateway")] {
        folder.ok(&format!("keys create --role {role} --owner usr_{name} --description {name}"));
    }
    let listed = folder.ok("keys list").out;
    assert!(listed.starts_with("DESCRIPTION  ROLE     SCOPE                  ID\n"), "{listed}");
    assert_eq!(folder.ok("get keys").out, listed);
    let descriptions = |line: &str| first_words(&folder.ok(line).out)[1..].join(" ");
    assert_eq!(descriptions("keys list"), "three two one");
    for line in ["keys list --sort-by description", "get keys --sort-by description"] {
        assert_eq!(descriptions(line), "one three two", "{line}");
    }
    assert_eq!(descriptions("owners list --sort-by ID"), "viewer gateway planner");
    let wrong = folder.run("keys list --sort-by rol");
    assert!(wrong.code == 1 && wrong.err.contains("did you mean `role`?"), "{}", wrong.all());
}

#[test]
fn a_table_fits_a_narrow_terminal_and_a_pipe_gets_all_of_it() {
    let folder = folder();
    let whole = folder.ok("get routes").out;
    assert!(!whole.contains('…') && whole.lines().any(|line| line.chars().count() > 80), "{whole}");
    let narrow = |line: &str| {
        let program = folder.command(line);
        let mut command = std::process::Command::new("stty");
        command.args(["cols", "80", ";"]).arg(program.get_program()).args(program.get_args());
        command.current_dir(program.get_current_dir().unwrap());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        on_terminal(&command, "")
    };
    let Some(run) = narrow("get routes") else { return };
    let lines: Vec<&str> = run.out.lines().map(|line| line.trim_end_matches('\r')).collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", run.all());
    assert!(lines.iter().any(|line| line.ends_with('…')), "{}", run.all());
    assert_eq!(lines.len(), whole.lines().count());
    assert_eq!(first_words(&run.out), first_words(&whole));
    let wide = narrow("get routes -o wide").unwrap().out;
    let ids = ids(&folder.ok("get routes -o json").out);
    assert!(!wide.contains('…') && ids.iter().all(|id| wide.contains(id)), "every value is whole: {wide}");
}

#[test]
fn yaml_quotes_what_old_readers_take_for_another_type() {
    let folder = Folder::new();
    folder.write(
        "m/a.yaml",
        &edge_with("a", "{hostports: ['a.example.com:443'], description: 'on', metadata: '12:30:00'}"),
    );
    folder.ok("reconcile m");
    let shown = folder.ok("get edge a -o yaml").out;
    for line in ["description: 'on'", "metadata: '12:30:00'", "created_at: '2"] {
        assert!(shown.lines().any(|shown| shown.starts_with(line)), "{line}\n{shown}");
    }
    let exported = folder.ok("export").out;
    for part in ["description: 'on'", "metadata: '12:30:00'"] {
        assert!(exported.contains(part), "{part}\n{exported}");
    }
}

/// Runs a line on the store, and then through a server of it. Both must print the same resources.
fn everywhere(folder: &Folder, lines: &[String]) -> Vec<Run> {
    let local: Vec<Run> = lines.iter().map(|line| folder.ok(line)).collect();
    let server = folder.serve("");
    for (line, local) in lines.iter().zip(&local) {
        let mut command = folder.command(&format!("{line} --server http://{}", server.address));
        command.env("EDGEWRIGHT_TOKEN", &server.token).env_remove("EDGEWRIGHT_STORE");
        let served = finish(command, "");
        assert_eq!(served.code, 0, "{line}\n{}", served.all());
        assert_eq!(served.out.lines().count(), local.out.lines().count(), "{line}\n{}", served.all());
    }
    local
}

#[test]
fn the_id_alone_finds_a_resource_of_every_kind() {
    let folder = folder();
    assert_eq!(folder.serve("").stop().code, 0, "the first start makes a key");
    let kinds = [
        "api-keys",
        "ip-restrictions",
        "certificate-authorities",
        "tls-certificates",
        "https-edges",
        "https-edge-routes",
        "tls-edges",
        "event-subscriptions",
    ];
    let of_kind = |kind: &str| ids(&folder.ok(&format!("get {kind} -o json")).out).remove(0);
    let wanted: Vec<String> = kinds.iter().map(|kind| of_kind(kind)).collect();
    let lines: Vec<String> = wanted.iter().map(|id| format!("get {id} -o json")).collect();
    for (id, run) in wanted.iter().zip(everywhere(&folder, &lines)) {
        let found: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(found["id"], id.as_str());
    }
    let none = folder.run("get evsub_nothing");
    assert_eq!((none.code, none.err.contains("neither the ID of a resource nor a kind")), (1, true), "{}", none.all());
    let near = folder.run("get https_egdes");
    assert_eq!((near.code, near.err.contains("did you mean `https-edges`?")), (1, true), "{}", near.all());
}

#[test]
fn a_route_is_named_as_plans_show_it() {
    let folder = folder();
    assert_eq!(folder.serve("").stop().code, 0, "the first start makes a key");
    let route: Value = serde_json::from_str(&folder.ok("get route storefront/checkout -o json").out).unwrap();
    let id = route["id"].as_str().unwrap();
    let subscription = ids(&folder.ok("get subscriptions -o json").out).remove(0);
    let lines = [
        "get route storefront/checkout -o json".to_owned(),
        format!("get source {subscription}/ip_policy_created.v0 -o json"),
        "blame route storefront/checkout".to_owned(),
        format!("blame {id}"),
        "blame edge storefront".to_owned(),
        format!("history --resource {id}"),
        "history --resource route storefront/checkout".to_owned(),
        "history --resource edge storefront".to_owned(),
        // A name that only one resource has needs no kind.
        "blame storefront/checkout".to_owned(),
        "history --resource storefront/checkout".to_owned(),
        "blame storefront".to_owned(),
        "history --resource checkout".to_owned(),
        // As `transfer` takes it.
        "blame edge/storefront".to_owned(),
        "history --resource HttpsEdgeRoute/storefront/checkout".to_owned(),
    ];
    for (line, run) in lines.iter().zip(everywhere(&folder, &lines)) {
        assert!(run.out.lines().count() > 1, "{line}: {}", run.all());
    }
    // Of a large record, only the resource that was asked for.
    for line in ["history --resource storefront/checkout", "history --changes --resource storefront/checkout"] {
        let told = folder.ok(line).out;
        assert!(told.contains("    + HttpsEdgeRoute storefront/checkout"), "{line}: {told}");
        assert!(told.matches("\n    + ").count() == 1 && !told.contains(" created: "), "{line}: {told}");
    }
    let of_other = folder.run("get route payments/checkout");
    assert_eq!((of_other.code, of_other.err.contains("no https-edge-route")), (1, true), "{}", of_other.all());
    let twice = folder.run("get route storefront/checkout --edge payments");
    assert_eq!((twice.code, twice.err.contains("`--edge` cannot be combined")), (1, true), "{}", twice.all());

    for command in ["blame", "history --resource"] {
        let none = folder.run(&format!("{command} storefront/nothing"));
        assert_eq!((none.code, none.err.contains("no resource has the ID or name")), (1, true), "{}", none.all());
        for (wanted, said) in [
            ("storefrnot/checkout", "did you mean `storefront/checkout`?"),
            ("storefrnt", "did you mean `storefront`?"),
            ("edge/storefrnt", "no https-edge with the ID or name `storefrnt`"),
            ("egde/storefront", "did you mean `edge/storefront`?"),
            // What has only the parent in common is not similar.
            ("storefront/crat", "name a resource as `KIND/NAME`"),
        ] {
            let near = folder.run(&format!("{command} {wanted}"));
            assert_eq!((near.code, near.err.contains(said)), (1, true), "{}", near.all());
        }
    }

    // Who deleted an edge is asked when it is gone.
    folder.write("m/e.yaml", &edge_with("gone", "{}"));
    folder.ok("reconcile --source other m");
    let edge: Value = serde_json::from_str(&folder.ok("get edge gone -o json").out).unwrap();
    folder.write("m/e.yaml", &edge_with("another", "{}"));
    folder.ok("reconcile --source other m --max-deletes 1");
    let told = folder.ok(&format!("history --resource {}", edge["id"].as_str().unwrap())).out;
    assert!(told.contains("    - HttpsEdge gone\n"), "{told}");

    // Two resources of one name need a kind.
    folder.write(
        "m/r.yaml",
        "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {name: another}\nspec: {type: api, enforced: false}\n",
    );
    folder.ok("reconcile --source other m");
    for command in ["blame", "history --resource"] {
        let both = folder.run(&format!("{command} another"));
        assert!(both.code == 1 && both.err.contains("several resources have the name `another`"), "{}", both.all());
        assert!(both.err.contains("`https-edge edghts_") && both.err.contains("`ip-restriction "), "{}", both.err);
        folder.ok(&format!("{command} edge another"));
    }
}
