//! Usage errors, with tips for those who know other tools. clap quotes arguments unescaped, and a terminal would interpret
//! control characters in them (D30).

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use crate::cli::prelude::*;
use crate::syntax::text::{alters_display, has_token};

/// The commands of other tools for what has a command of its own, and how to do the same.
const OTHER_WORDS: &[(&[&str], &str)] = &[
    (&["deploy", "sync", "up"], "to apply manifests, run `edgewright reconcile PATH`"),
    (
        &["create", "add", "edit", "patch", "set", "update"],
        "to change a resource, change its manifest and run `edgewright reconcile PATH`",
    ),
    (
        &["delete", "remove", "rm"],
        "to delete a resource, remove its manifest and run `edgewright reconcile PATH`; `edgewright destroy` deletes all \
         resources of a source",
    ),
    (&["describe", "inspect", "show"], "to show a resource, run `edgewright get ID --format yaml`"),
    (&["list", "ls"], "to list resources, run `edgewright get KIND`"),
    (&["log", "logs"], "to show what was changed, run `edgewright history`"),
    (&["revert", "undo"], "to go back to an earlier revision, run `edgewright rollback`"),
    (&["check", "lint", "verify"], "to check manifests, run `edgewright validate PATH`"),
    (&["format"], "to format manifests, run `edgewright fmt PATH`"),
    (&["import", "dump"], "to write existing resources as manifests, run `edgewright export`"),
    (&["run", "server", "start"], "to start a server, run `edgewright serve`"),
    (&["pause", "stop"], "to stop applying a source, run `edgewright suspend`"),
    (&["version"], "to show the version, run `edgewright --version`"),
];

/// The commands of other tools below a command of this one.
const NESTED_WORDS: &[(&str, &[&str], &str)] = &[
    ("keys", &["delete", "remove", "rm"], "to revoke a key, run `edgewright keys revoke ID`"),
    ("keys", &["add", "new"], "to create a key, run `edgewright keys create`"),
];

/// The options of other tools for what a command has under another name.
const NESTED_OPTIONS: &[(&str, &[&str], &str)] = &[
    ("trace", &["--ip"], "to trace a client by its address, set --client-ip"),
    ("trace", &["--method", "-X"], "put the method before the URL: `edgewright trace POST URL`"),
];

/// The options of other tools that are similar to one that means something else.
const MISLEADING: [&str; 2] = ["--revision", "--since"];

/// The options of other tools for an address to listen on, a folder to write to, and a token.
const ADDRESS_OPTIONS: [&str; 5] = ["--address", "--bind", "--host", "--port", "-p"];
const FOLDER_OPTIONS: [&str; 5] = ["--dir", "--directory", "--out", "--output", "-o"];
const TOKEN_OPTIONS: [&str; 2] = ["--api-key", "--token"];

/// The commands whose arguments are paths of manifests, and the options for them of other tools.
const PATH_COMMANDS: [&str; 8] = ["plan", "reconcile", "apply", "validate", "test", "prove", "fmt", "diff"];
const PATH_OPTIONS: [&str; 4] = ["-f", "--file", "--filename", "--files"];

/// The options whose value can be left out, so that it stands after `=`, with an example.
const OPTIONAL_VALUES: [(&str, &str); 2] = [("--prune", "--prune=false"), ("--wait", "--wait=30s")];
/// The values that nobody means as paths of manifests.
const ANSWERS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "1", "0"];

const SOURCE_COMMANDS: [&str; 2] = ["suspend", "resume"];

/// The options of other tools for a change without a question, and what the commands have in their place.
const CONFIRMATIONS: [&str; 4] = ["--yes", "-y", "--auto-approve", "--force"];
const CONFIRMED: &[(&[&str], &str)] = &[
    (&["reconcile", "apply"], "omit it: `reconcile` applies without asking, and `plan` only shows the plan"),
    (&["transfer"], "omit it: `transfer` applies without asking, and --dry-run only shows the plan"),
    (&["destroy"], "to delete without asking, set --confirm to the name of the source"),
];

/// The options for a run that changes nothing, for the command that never does.
const DRY_RUNS: [&str; 3] = ["--dry-run", "--dryrun", "--dry_run"];
const NEVER_APPLIES: &[(&[&str], &str)] = &[(&["plan"], "omit it: `plan` never applies anything")];

/// The options that delete, overwrite or allow more. Whoever mistypes another one must not be offered these.
const DANGEROUS: [&str; 11] = [
    "--all",
    "--allow-outside-files",
    "--apply",
    "--confirm",
    "--force",
    "--forget-secrets",
    "--insecure-http",
    "--isolate",
    "--prune",
    "--recreate-ids",
    "--yes",
];

/// The tips for commands without their first argument.
const MISSING: &[(&[&str], &str)] = &[
    (&["get"], "name a kind, such as `edges`, `routes`, `certificates` or `keys`"),
    (&["suspend", "resume"], "to list the sources, run `edgewright status`"),
];

/// Replaces the usage in an error about a missing argument with that of the command: clap's shows the options that
/// variables set as if they were required. So is it in an error with a suggestion that is not shown, which clap's shows, too. Takes
/// the arguments of the process.
pub(crate) fn with_usage_of(
    mut error: Error,
    mut program: Command,
    arguments: impl Iterator<Item = OsString>,
) -> Error {
    let lacks_usage = error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::Usage).is_none();
    if error.kind() == ErrorKind::MissingRequiredArgument || misleads(&error) || lacks_usage {
        program.build();
        let arguments: Vec<OsString> = arguments.collect();
        program = named_command(&program, &arguments).clone();
        error.insert(ContextKind::Usage, ContextValue::StyledStr(program.render_usage()));
    }
    error
}

/// The command, perhaps below others, that the arguments of the process name.
fn named_command<'c>(program: &'c Command, arguments: &[OsString]) -> &'c Command {
    let mut command = program;
    for argument in arguments.iter().skip(1) {
        let Some(nested) = command.find_subcommand(argument) else { break };
        command = nested;
    }
    command
}

/// The error for a value that follows its option after a space, although it can be left out: it would be read as a path of manifests.
/// Takes the arguments of the process.
pub(crate) fn separate_value(program: &Command, arguments: impl Iterator<Item = OsString>) -> Option<Error> {
    let arguments: Vec<OsString> = arguments.take_while(|argument| argument != "--").collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return None;
    }
    let command = named_command(program, &arguments);
    let has = |option: &str| command.get_arguments().any(|it| it.get_long() == option.strip_prefix("--"));
    let is_optional = |name: &OsString| OPTIONAL_VALUES.iter().any(|&(option, _)| name == option && has(option));
    let is_answer = |value: &&str| ANSWERS.iter().any(|answer| answer.eq_ignore_ascii_case(value));
    let value = arguments.windows(2).find_map(|pair| match pair {
        [name, value] if is_optional(name) => value.to_str().filter(is_answer),
        _ => None,
    })?;
    let mut error = Error::new(ErrorKind::UnknownArgument).with_cmd(program);
    error.insert(ContextKind::InvalidArg, ContextValue::String(value.to_owned()));
    Some(error)
}

/// Whether the tip of an error is an option that deletes, overwrites or allows more, or has nothing to do with what was meant.
fn misleads(error: &Error) -> bool {
    let option = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(option)) => option.as_str(),
        _ => "",
    };
    let suggested = option(ContextKind::SuggestedArg);
    let is_other = !suggested.is_empty() && MISLEADING.contains(&option(ContextKind::InvalidArg));
    is_other || DANGEROUS.contains(&suggested)
}

/// Replaces the tip of a usage error that is about a word of another tool, and removes one that misleads. Takes the arguments of
/// the process.
pub(crate) fn add_tip(mut error: Error, arguments: impl Iterator<Item = OsString>) -> Error {
    if misleads(&error) {
        error.remove(ContextKind::SuggestedArg);
    }
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    };
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let is_misspelt = error.get(ContextKind::SuggestedSubcommand).is_some();
            other_word(&text(ContextKind::InvalidSubcommand), is_misspelt, arguments)
        }
        ErrorKind::UnknownArgument => other_option(&text(ContextKind::InvalidArg), arguments),
        ErrorKind::MissingRequiredArgument => missing_argument(error.get(ContextKind::InvalidArg), arguments),
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// The tip for a command, or for one below another. `is_misspelt` if it is similar to one that exists.
fn other_word(word: &str, is_misspelt: bool, mut arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let first = arguments.nth(1)?;
    if first == word {
        return tip(OTHER_WORDS, word);
    }
    if first == "history" && !is_misspelt {
        return Some("to follow one resource, run `edgewright history --resource RESOURCE`".to_owned());
    }
    nested_tip(NESTED_WORDS, first.to_str()?, word)
}

/// The tip for a command without its first argument.
fn missing_argument(missing: Option<&ContextValue>, mut arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = missing else { return None };
    let command = arguments.nth(1)?;
    tip(MISSING, command.to_str()?).filter(|_| missing.iter().any(|argument| argument.starts_with('<')))
}

/// The tip of a table for a word.
fn tip(table: &[(&[&str], &str)], word: &str) -> Option<String> {
    table.iter().find(|(words, _)| words.contains(&word)).map(|(_, tip)| (*tip).to_owned())
}

/// The tip of a table for a word behind a command.
fn nested_tip(table: &[(&str, &[&str], &str)], command: &str, word: &str) -> Option<String> {
    let found = table.iter().find(|(of, words, _)| *of == command && words.contains(&word));
    found.map(|(.., tip)| (*tip).to_owned())
}

/// The tip for an option that names manifests or a source, or confirms or prevents a change.
fn other_option(option: &str, arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let mut arguments = arguments.skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let command = arguments.next()?;
    if CONFIRMATIONS.contains(&option) {
        return tip(CONFIRMED, &command);
    }
    if DRY_RUNS.contains(&option) {
        return tip(NEVER_APPLIES, &command);
    }
    if TOKEN_OPTIONS.contains(&option) && command != "login" {
        let tip = "to send a token, set EDGEWRIGHT_TOKEN: other users of this machine can see a command line";
        return Some(tip.to_owned());
    }
    if let Some(tip) = nested_tip(NESTED_OPTIONS, &command, option) {
        return Some(tip);
    }
    let arguments: Vec<String> = arguments.collect();
    let precedes = |name: &str| arguments.windows(2).any(|pair| pair == [name, option]);
    if let Some((name, example)) = OPTIONAL_VALUES.iter().find(|(name, _)| precedes(name)) {
        return Some(format!("write the value of {name} after `=`, as in `{example}`"));
    }
    if command == "serve" && !option.starts_with('-') {
        return Some(format!("to follow manifests, run `edgewright serve --manifests {}`", escape(option)));
    }
    let value = arguments.into_iter().skip_while(|argument| argument != option).nth(1);
    let value = value.filter(|value| !value.starts_with('-'));
    if command == "serve" && ADDRESS_OPTIONS.contains(&option) {
        let port = value.filter(|value| value.parse::<u16>().is_ok()).unwrap_or_else(|| "PORT".to_owned());
        return Some(format!("to listen on an address, run `edgewright serve --listen 127.0.0.1:{port}`"));
    }
    if command == "export" && FOLDER_OPTIONS.contains(&option) {
        let folder = value.unwrap_or_else(|| "DIR".to_owned());
        return Some(format!("to write to a folder, run `edgewright export {}`", escape(&folder)));
    }
    if option == "--source" && SOURCE_COMMANDS.contains(&command.as_str()) {
        let source = value.unwrap_or_else(|| "SOURCE".to_owned());
        return Some(format!("the source needs no option: run `edgewright {command} {}`", escape(&source)));
    }
    let command = Some(command).filter(|command| PATH_COMMANDS.contains(&command.as_str()))?;
    let path = value.unwrap_or_else(|| "PATH".to_owned());
    let tip = || format!("to name manifests, run `edgewright {command} {}`", escape(&path));
    PATH_OPTIONS.contains(&option).then(tip)
}

/// Escapes the arguments that a usage error quotes, and hides API tokens in them.
pub(crate) fn escape_arguments(mut error: Error) -> Error {
    let quoted: Vec<(ContextKind, ContextValue)> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    if !quoted.iter().any(|(_, value)| needs_escape(value)) {
        return error;
    }
    for (kind, value) in quoted {
        let shown = match value {
            ContextValue::String(text) => ContextValue::String(escape(&text)),
            ContextValue::Strings(texts) => ContextValue::Strings(texts.iter().map(|text| escape(text)).collect()),
            // A tip can quote the argument between colour codes, which look like those of the argument.
            ContextValue::StyledStrs(tips) => {
                let plain = |tip: &StyledStr| StyledStr::from(escape(&tip.to_string()));
                ContextValue::StyledStrs(tips.iter().map(plain).collect())
            }
            // The usage contains only option names.
            _ => continue,
        };
        error.insert(kind, shown);
    }
    error
}

/// The long name of the option and the value that an error refuses, if it is such an error.
pub(crate) fn invalid_value(error: &Error) -> Option<(String, String)> {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (text(ContextKind::InvalidArg)?, text(ContextKind::InvalidValue)?);
    let option = argument.strip_prefix("--")?.split([' ', '=']).next()?;
    Some((option.to_owned(), value.to_owned()))
}

fn escape(text: &str) -> String {
    escaped(text).into_owned()
}

fn needs_escape(value: &ContextValue) -> bool {
    let needs_escape = |text: &String| text.contains(alters_display) || has_token(text);
    match value {
        ContextValue::String(text) => needs_escape(text),
        ContextValue::Strings(texts) => texts.iter().any(needs_escape),
        _ => false,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn a_word_of_another_tool_has_a_tip_that_works() {
        let command = || {
            let path = Arg::new("path").num_args(1..);
            let keys = Command::new("keys").subcommand(Command::new("create"));
            let history = Command::new("history").subcommand(Command::new("show"));
            let prune =
                Arg::new("prune").long("prune").num_args(0..=1).require_equals(true).default_missing_value("true");
            let serve = Command::new("serve").args([Arg::new("manifests").long("manifests"), prune]);
            let names = ["plan", "login", "logout", "reconcile", "destroy", "suspend", "export", "trace"]
                .map(|name| Command::new(name).arg(path.clone()));
            Command::new("edgewright").subcommands(names).subcommands([history, keys, serve])
        };
        for (line, expected) in [
            ("log", Some("run `edgewright history`")),
            ("deploy m", Some("run `edgewright reconcile PATH`")),
            ("plan -f m", Some("run `edgewright plan m`")),
            ("plan --file=m", Some("run `edgewright plan PATH`")),
            ("plan -f", Some("run `edgewright plan PATH`")),
            ("suspend --source shop", Some("run `edgewright suspend shop`")),
            ("login -f m", None),
            ("plan -x m", None),
            ("reconcile m --yes", Some("omit it: `reconcile`")),
            ("destroy -y", Some("--confirm")),
            ("plan m --yes", None),
            ("keys delete", Some("run `edgewright keys revoke ID`")),
            ("keys destroy", None),
            ("history edge/shop", Some("--resource RESOURCE")),
            ("history shw", None),
            ("serve m", Some("run `edgewright serve --manifests m`")),
            ("serve --prune no", Some("`--prune=false`")),
            ("trace URL --ip 192.0.2.7", Some("set --client-ip")),
            ("trace URL --method POST", Some("`edgewright trace POST URL`")),
            ("serve --port 80", Some("--listen 127.0.0.1:80`")),
            ("export --out m", Some("run `edgewright export m`")),
            ("plan m --token ew_1", Some("set EDGEWRIGHT_TOKEN")),
            ("lgoin", None),
        ] {
            let arguments = || std::iter::once("edgewright").chain(line.split(' '));
            let error = command().try_get_matches_from(arguments()).err().unwrap();
            let before = error.to_string();
            let after = add_tip(error, arguments().map(OsString::from)).to_string();
            match expected {
                Some(tip) => assert!(after.matches("tip:").count() == 1 && after.contains(tip), "{line}: {after}"),
                None => assert_eq!(after, before, "{line}"),
            }
        }
    }

    #[test]
    fn a_value_of_prune_after_a_space_is_no_path() {
        let prune = Arg::new("prune").long("prune").num_args(0..=1).require_equals(true);
        let plan = Command::new("plan").arg(prune).arg(Arg::new("path").num_args(1..));
        let program = Command::new("edgewright").subcommands([plan, Command::new("fmt").arg(Arg::new("path"))]);
        for (line, is_refused) in [
            ("plan m --prune no", true),
            ("plan --prune false m", true),
            ("plan --prune False m", true),
            ("fmt --prune no", false),
            ("plan --help --prune no", false),
            ("plan --prune m", false),
            ("plan --prune=false no", false),
            ("plan m -- --prune no", false),
        ] {
            let arguments = || std::iter::once("edgewright").chain(line.split(' ')).map(OsString::from);
            let found = separate_value(&program, arguments());
            let found = found.map(|error| with_usage_of(error, program.clone(), arguments()));
            let text = found.map(|error| add_tip(error, arguments()).to_string());
            assert_eq!(text.is_some(), is_refused, "{line}");
            for phrase in ["unexpected argument", "as in `--prune=false`", "Usage: edgewright plan "] {
                assert!(text.iter().all(|text| text.contains(phrase)), "{line}: {text:?}");
            }
        }
    }

    #[test]
    fn no_option_is_answered_with_one_that_deletes_or_means_something_else() {
        let program = || {
            let flags = ["prune", "detailed-exitcode", "source", "version"]
                .map(|name| Arg::new(name).long(name).action(clap::ArgAction::SetTrue));
            let path = Arg::new("path").num_args(1..);
            Command::new("edgewright").subcommand(Command::new("plan").args(flags).arg(path))
        };
        for (option, tip) in [
            ("--since", None),
            ("--revision", None),
            ("--dryrun", Some("omit it: `plan` never applies anything")),
            ("--dry-run", Some("omit it: `plan` never applies anything")),
            ("--prun", None),
            ("--detailed-exit-code", Some("'--detailed-exitcode'")),
        ] {
            let arguments = || ["edgewright", "plan", "m", option].map(OsString::from).into_iter();
            let error = program().try_get_matches_from(arguments()).err().unwrap();
            let text = add_tip(with_usage_of(error, program(), arguments()), arguments()).to_string();
            assert!(!text.contains("--prune") && text.contains("\n\nUsage: edgewright plan "), "{text}");
            assert_eq!(text.matches("tip:").count(), usize::from(tip.is_some()), "{text}");
            assert!(text.contains(tip.unwrap_or("unexpected argument")), "{text}");
        }
    }

    #[test]
    fn a_missing_argument_has_a_tip_and_the_usage_of_its_command() {
        // Cargo sets the variable.
        let server = Arg::new("server").long("server").value_name("URL").env("CARGO_MANIFEST_DIR");
        let get = Command::new("get").arg(Arg::new("kind").value_name("KIND").required(true)).arg(server);
        let program = Command::new("edgewright").subcommand(get);
        let arguments = || ["edgewright", "get"].map(OsString::from).into_iter();
        let error = program.clone().try_get_matches_from(arguments()).err().unwrap();
        let text = add_tip(with_usage_of(error, program, arguments()), arguments()).to_string();
        assert!(text.contains("tip: name a kind, such as `edges`"), "{text}");
        assert!(text.contains("\n\nUsage: edgewright get [OPTIONS] <KIND>\n"), "{text}");
    }

    #[test]
    fn an_invalid_value_has_the_name_of_its_option() {
        let role = Arg::new("role").short('r').long("role").value_name("ROLE").value_parser(["admin", "viewer"]);
        let number = Arg::new("limit").long("limit").value_parser(clap::value_parser!(u16));
        let command = Command::new("test").arg(role).arg(number);
        for (arguments, expected) in [
            (["test", "--role=king"].as_slice(), Some(("role", "king"))),
            (&["test", "--limit", "few"], Some(("limit", "few"))),
            (&["test", "--nothing"], None),
        ] {
            let error = command.clone().try_get_matches_from(arguments).err();
            let found = error.as_ref().and_then(invalid_value);
            let found = found.as_ref().map(|(option, value)| (option.as_str(), value.as_str()));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn no_argument_reaches_the_terminal_as_it_is() {
        let command = || Command::new("test").arg(Arg::new("role").long("role").value_parser(["admin", "viewer"]));
        for arguments in [&["--\u{1b}[31mx\u{202e}"] as &[&str], &["--role", "\u{1b}[31mx\u{202e}"]] {
            let parsed = command().try_get_matches_from(["test"].iter().chain(arguments));
            let text =
                parsed.map_err(|error| escape_arguments(error).render().ansi().to_string()).err().unwrap_or_default();
            assert!(text.contains("\\u{1b}[31mx\\u{202e}"), "{text:?}");
            assert!(!text.contains("\u{1b}[31mx") && !text.contains('\u{202e}'), "{text:?}");
        }
    }
}
