//! What happens to a client whose variables are empty, whose server is another program, or whose response is lost (D105).

use crate::{
    administration::{assert_refused, user},
    cli::{Folder, finish},
};

fn edge(name: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{}}\n")
}

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
        folder.write("m/a.yaml", &edge("a"));
        let mut command = user(&folder, line);
        command.args([flag, ""]);
        assert_refused(&finish(command, ""), &format!("'{flag} <"));
    }
    assert!(!folder.path("edgewright.db").exists());
}

#[test]
fn an_empty_variable_is_as_unset() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a"));
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
