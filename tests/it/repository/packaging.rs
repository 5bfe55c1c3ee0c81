//! The files that packages, services and containers are made of name what exists (D110). `.ci/package` installs the package.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::support::program::{Folder, REPOSITORY, finish, run_in_repository};

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(REPOSITORY).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What `serve --help` says, on one line: it wraps between words.
fn help_of_serve() -> String {
    let help = run_in_repository("serve --help").out;
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The values of a setting of a unit.
fn settings<'u>(unit: &'u str, name: &str) -> Vec<&'u str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

/// The first two words of each asset of the package: the file, and where it goes.
fn assets() -> Vec<(String, String)> {
    let manifest = read("Cargo.toml");
    let (_, section) = manifest.split_once("[package.metadata.deb]").unwrap();
    let (_, list) = section.split_once("assets = [\n").unwrap();
    let lines = list.lines().take_while(|line| *line != "]").map(|line| {
        let words: Vec<&str> = line.split('"').collect();
        (words[1].to_owned(), words[3].to_owned())
    });
    lines.collect()
}

#[test]
fn the_package_has_files_that_exist() {
    let assets = assets();
    assert!(assets.len() >= 8, "{assets:?}");
    // `.ci/package` makes the others.
    for (file, _) in assets.iter().filter(|(file, _)| !file.starts_with("target/release/")) {
        assert!(Path::new(REPOSITORY).join(file).is_file(), "{file}");
    }
    assert!(read("Cargo.toml").contains("\ndepends = \"$auto, git, passwd\"\nrecommends = \"openssh-client\"\n"));
    for script in ["postinst", "prerm", "postrm"] {
        let path = format!(".ci/debian/{script}");
        let text = read(&path);
        assert!(text.starts_with("#!/bin/sh\n") && text.contains("\nset -e\n"), "{path}");
        let mode = fs::metadata(Path::new(REPOSITORY).join(&path)).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{path}");
    }
}

#[test]
fn the_unit_runs_the_packaged_program_with_the_packaged_configuration() {
    let unit = read("examples/systemd/edgewright.service");
    assert_eq!(settings(&unit, "Type"), ["notify"]);
    assert_eq!(settings(&unit, "ExecStart"), ["/usr/bin/edgewright serve"]);
    assert_eq!(settings(&unit, "Environment"), ["EDGEWRIGHT_CONFIG=/etc/edgewright/edgewright.yaml"]);
    assert_eq!(settings(&unit, "User"), ["edgewright"]);
    let targets = assets();
    for (file, target) in [
        ("target/release/edgewright", "usr/bin/"),
        ("examples/systemd/edgewright.yaml", "etc/edgewright/"),
        ("examples/systemd/edgewright.service", "usr/lib/systemd/system/"),
    ] {
        assert!(targets.iter().any(|(from, to)| from == file && to == target), "{file} does not go to {target}");
    }
    // The drop-in sets variables that the server knows.
    let help = help_of_serve();
    let drop_in = read("examples/systemd/credentials.conf");
    let variables = settings(&drop_in, "Environment");
    assert_eq!(variables.len(), settings(&drop_in, "LoadCredential").len());
    for variable in variables {
        let (name, value) = variable.split_once('=').unwrap();
        assert!(help.contains(&format!("[env: {name}")), "{name}");
        let credential = value.strip_prefix("%d/").unwrap();
        let is_loaded = |loaded: &&str| loaded.split(':').next() == Some(credential);
        assert!(settings(&drop_in, "LoadCredential").iter().any(is_loaded), "{credential}");
    }
}

#[test]
fn the_socket_unit_opens_the_packaged_address_and_every_script_knows_it() {
    let unit = read("examples/systemd/edgewright.socket");
    let addresses = settings(&unit, "ListenStream");
    let configuration = read("examples/systemd/edgewright.yaml");
    let configured = configuration.lines().find_map(|line| line.trim_start().strip_prefix("listen: ")).unwrap();
    assert_eq!(addresses, [configured]);
    assert_eq!(settings(&unit, "WantedBy"), ["sockets.target"]);
    // The default is one listening socket for one process.
    assert!(settings(&unit, "Accept").is_empty());
    let target = "usr/lib/systemd/system/";
    assert!(assets().iter().any(|(from, to)| from == "examples/systemd/edgewright.socket" && to == target));
    for script in ["postinst", "prerm", "postrm"] {
        assert!(read(&format!(".ci/debian/{script}")).contains("edgewright.socket"), "{script}");
    }
    // The service starts without the socket, too.
    let service = read("examples/systemd/edgewright.service");
    assert!(!service.contains("Requires=") && !service.contains("Also="));
}

/// Removes the marks of comments before what could be configuration.
fn uncommented(text: &str) -> String {
    let is_configuration = |line: &str| {
        let line = line.trim_start();
        let key = line.split(':').next().unwrap_or_default();
        let is_key = line.contains(':') && key.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte));
        line.starts_with("- ") || is_key
    };
    let lines = text.lines().map(|line| match line.split_once("# ") {
        Some((indent, rest)) if indent.trim().is_empty() && is_configuration(rest) => format!("{indent}{rest}\n"),
        _ => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn the_packaged_configuration_is_valid_and_so_are_its_examples() {
    let text = read("examples/systemd/edgewright.yaml");
    let all = uncommented(&text);
    for example in ["\n  tls-cert: ", "\nsources:\n", "\n  - {name: shop", "\nlints:\n"] {
        assert!(all.contains(example) && !text.contains(example), "{example}: {all}");
    }
    let folder = Folder::with_storefront();
    for (name, text) in [("packaged.yaml", text), ("all.yaml", all)] {
        folder.write(name, &text);
        let mut command = folder.command("validate storefront");
        command.env("EDGEWRIGHT_CONFIG", folder.path(name));
        let run = finish(command, "");
        assert_eq!(run.code, 0, "{name}: {}", run.all());
    }
}

#[test]
fn the_container_file_copies_what_exists_and_sets_what_is_known() {
    let text = read("examples/container/Containerfile");
    let context = read(".dockerignore");
    for line in text.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from=")) {
        let words: Vec<&str> = line.split(' ').collect();
        for source in &words[1..words.len() - 1] {
            assert!(Path::new(REPOSITORY).join(source).exists(), "{line}");
            let is_sent = context.lines().any(|line| line.strip_prefix('!') == Some(*source));
            assert!(is_sent, "{source} is not in the context of the build");
        }
    }
    let help = help_of_serve();
    let (_, variables) = text.split_once("\nENV ").unwrap();
    let variables = variables.split("\nEXPOSE").next().unwrap();
    for variable in variables.split_whitespace().filter(|word| *word != "\\") {
        let name = variable.split('=').next().unwrap();
        assert!(help.contains(&format!("[env: {name}")), "{name}");
    }
    let user = text.lines().filter_map(|line| line.strip_prefix("USER ")).next_back().unwrap();
    let (user, _) = user.split_once(':').unwrap();
    assert!(user.parse::<u32>().unwrap() > 0);
    // Repositories are fetched with them, and the build fails if a library is missing.
    assert!(text.contains(" git openssh-client "), "{text}");
    assert!(text.contains("\nRUN [\"/usr/bin/edgewright\", \"--version\"]\n"), "{text}");
    // Images in the OCI format have no health check.
    assert!(read("examples/container/README.md").contains("podman build --format docker "));
    let check = text.lines().find(|line| line.starts_with("HEALTHCHECK ")).unwrap();
    assert!(check.ends_with(r#"CMD ["/usr/bin/edgewright", "healthcheck"]"#), "{check}");
    assert_eq!(run_in_repository("healthcheck --help").code, 0);
}

#[test]
fn the_variants_of_several_replicas_set_what_is_known() {
    let help = help_of_serve();
    let variable = regex::Regex::new("EDGEWRIGHT_[A-Z_]+").unwrap();
    for file in ["examples/replicas/systemd/replica.conf", "examples/replicas/container/compose.yaml"] {
        let text = read(file);
        let names: Vec<&str> = variable.find_iter(&text).map(|found| found.as_str()).collect();
        assert!(names.contains(&"EDGEWRIGHT_ADVERTISE_URL"), "{file}");
        // The image is no option.
        for name in names.into_iter().filter(|name| *name != "EDGEWRIGHT_IMAGE") {
            assert!(help.contains(&format!("[env: {name}")), "{file}: {name}");
        }
    }
    let options = read("examples/replicas/systemd/edgewright.yaml");
    let options = options.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(':'));
    let options: Vec<&str> = options.map(|(name, _)| name).filter(|name| !name.starts_with('#')).collect();
    assert!(options.contains(&"store") && options.len() > 5, "{options:?}");
    for option in options {
        assert!(help.contains(&format!("--{option} ")), "{option}");
    }
    let compose: serde_yaml::Value = serde_yaml::from_str(&read("examples/replicas/container/compose.yaml")).unwrap();
    for replica in ["one", "two", "three"] {
        assert!(compose["services"][replica].is_mapping(), "{replica}");
        let line = read(&format!("examples/replicas/container/replicas/{replica}.conf"));
        assert!(line.starts_with(&format!("server {replica}:8484 ")), "{line}");
    }
}
