//! The help of the program, as people read it.

use crate::support::program::{Folder, run_in_repository};

#[test]
fn the_help_lists_each_command_once_and_in_a_group() {
    for line in ["--help", "-h", "help"] {
        let help = run_in_repository(line).out;
        let groups: Vec<&str> = help.lines().filter_map(|line| line.strip_suffix(':')).collect();
        assert_eq!(groups, ["Reconcile", "Inspect", "Operate", "Access", "Store", "Other", "Options"], "{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        for (command, summary) in [
            ("get", "List resources, or show one"),
            ("reconcile", "Show the plan, and apply it as one revision [alias: apply]"),
        ] {
            let listed = help.lines().filter(|line| line.split_whitespace().next() == Some(command));
            let listed: Vec<&str> = listed.collect();
            assert!(listed.len() == 1 && listed[0].ends_with(summary), "{help}");
        }
    }
    let none = run_in_repository("");
    assert!(none.code == 1 && none.err.contains("\nReconcile:\n"), "{}", none.all());
}

#[test]
fn the_own_options_of_a_command_come_before_the_shared_ones() {
    let help = run_in_repository("reconcile -h").out;
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}\n{help}"));
    let order = ["\nOptions:\n", "--dry-run", "--max-deletes", "\nManifest options:\n", "--with", "\nStore options:\n"];
    let rest = ["--store", "\nConnection options:\n", "--server", "\nOutput options:\n", "--format"];
    assert!(order.into_iter().chain(rest).map(at).is_sorted(), "{help}");
    let long = run_in_repository("reconcile --help").out;
    assert!(long.contains("\nExamples:\n  # ") && long.contains("--history-days"), "{long}");
    assert!(!help.contains("Examples:") && !help.contains("--history-days"), "{help}");
    assert!(long.contains("[env: EDGEWRIGHT_DRY_RUN]") && !help.contains("[env: "), "{help}");
    assert!(long.contains("Validates the manifests first"), "{long}");
}

#[test]
fn the_long_help_has_the_layout_of_the_short_one() {
    for line in ["reconcile --help", "help reconcile", "apply --help", "help keys create", "keys create --help"] {
        let help = run_in_repository(line).out;
        let options = help.split_once("\nOptions:\n").unwrap().1.split("\n\n").next().unwrap();
        assert!(options.lines().count() > 5 && !options.contains("\n\n"), "{line}\n{help}");
        assert!(help.contains("Examples:\n"), "{line}\n{help}");
    }
    let keys = run_in_repository("keys --help").out;
    assert!(keys.contains("  create  Create a key and print its token"), "{keys}");
}

#[test]
fn a_server_that_only_a_flag_names_has_no_variable() {
    for command in ["validate", "diff", "test", "plan"] {
        let help = run_in_repository(&format!("{command} --help")).out;
        let has = ["EDGEWRIGHT_SERVER", "EDGEWRIGHT_CONTEXT"].map(|name| help.contains(&format!("{name}]")));
        assert_eq!(has, [command == "plan"; 2], "{command}\n{help}");
        assert!(help.contains("--server <URL>") && help.contains("EDGEWRIGHT_VERSION_HEADER]"), "{help}");
    }
}

#[test]
fn apply_is_another_name_of_reconcile() {
    let folder = Folder::with_storefront();
    assert!(folder.ok("apply storefront --dry-run").out.contains("24 to create"));
    assert!(folder.ok("apply storefront").err.contains("Applied as revision 1."));
    let tip = folder.run("apply -f storefront");
    assert!(tip.code == 1 && tip.err.contains("run `edgewright apply storefront`"), "{}", tip.all());
}
