//! Completion candidates for a command line: kinds, names, sources, contexts, codes and other values, for the scripts of
//! `edgewright completions`.
//!
//! A script asks on every press of a key, so that this never takes long, never reports an error, and only reads. It reads the
//! store or the server on which the command would work.

use std::{sync::mpsc::channel, thread};

use clap::{Arg, Command, FromArgMatches, ValueHint};

use super::access::contexts::Contexts;
use super::access::{context, keys, owners};
use super::command::{Cli, current_context};
use super::config::Config;
use super::config::untrusted_file::CheckedOptions;
use super::input::empty_variables::without_empty_variables;
use super::input::option_origins::{CurrentContext, OptionOrigins};
use super::inspect::get::{self, ResourceReader, kinds, parse_kind, plurals, short_name_of};
use super::inspect::status;
use crate::cli::command_prelude::*;
use crate::cli::output::list::option_value;
use crate::lint::LINTS;
use crate::model::diagnostics::code::REGISTRY;

/// No answer takes longer.
const LONGEST: Duration = Duration::from_secs(1);
/// The most candidates of an answer.
const MOST: usize = 1000;

/// The candidates for the last word of a line.
#[derive(Debug, PartialEq)]
enum Candidates {
    Kinds,
    /// The names of resources, of one kind or of all.
    Names(Option<Kind>),
    /// Names with their kinds, such as `edge/storefront`.
    KindsAndNames,
    /// The identifiers of resources.
    Ids(Kind),
    Sources,
    Contexts,
    Codes,
    /// The values that an argument accepts, or none if nobody knows them.
    Values(Vec<String>),
}

/// Prints the candidates for the last word of a line of `program`, or for the value in a last word such as `--source=shop`.
/// Perhaps there are none. Fails if the script is to complete the word itself.
pub(super) fn answer(program: Command, words: Vec<String>) -> CommandResult {
    let words = joined(words);
    let Some(wanted) = wanted(&program, &words) else { return Ok(Exit::Error) };
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(candidates(wanted, program, &words).unwrap_or_default()));
    print(receiver.recv_timeout(LONGEST).unwrap_or_default())
}

/// Joins `--source`, `=` and `shop`, and `http`, `:` and `//host`: bash splits a word at its `=`, `:` and `@`, and keeps
/// several of these together.
fn joined(words: Vec<String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in words {
        let is_sign = !word.is_empty() && word.chars().all(|c| "=:@".contains(c));
        let is_equals = word.starts_with('=');
        let joins = |before: &str| match is_open {
            true => !word.is_empty(),
            false if is_equals => is_sign && before.starts_with("--"),
            // A value can begin with a sign, such as `--listen :80`.
            false => is_sign && (option_and_value(before).is_some() || !before.starts_with('-')),
        };
        match all.last_mut().filter(|before| joins(before.as_str())) {
            Some(before) => {
                before.push_str(&word);
                is_open = is_sign && !is_open;
            }
            None => {
                is_open = is_sign && !is_equals;
                all.push(word);
            }
        }
    }
    all
}

/// The option of a word such as `--source=shop`, and its value.
fn option_and_value(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(option, _)| option.starts_with("--"))
}

/// The candidates that begin with what is typed, on a line each.
fn candidates(wanted: Candidates, program: Command, words: &[String]) -> Option<String> {
    let last = words.last()?;
    let typed = option_and_value(last).map_or(last.as_str(), |(_, value)| value);
    let all: BTreeSet<String> = match wanted {
        Candidates::Kinds => plurals().into_iter().collect(),
        Candidates::Contexts => Contexts::read().ok()?.all.into_keys().collect(),
        Candidates::Codes => {
            let codes = REGISTRY.iter().map(|info| info.code.to_string());
            codes.chain(LINTS.iter().map(|lint| lint.name.to_owned())).collect()
        }
        Candidates::Values(values) => values.into_iter().collect(),
        Candidates::Sources => resources(program, words)?.sources(),
        Candidates::Ids(kind) => resources(program, words)?.ids(kind).ok()?.into_iter().collect(),
        Candidates::Names(Some(kind)) => resources(program, words)?.names(kind, typed).ok()?.into_iter().collect(),
        Candidates::Names(None) => {
            let resources = resources(program, words)?;
            kinds().flat_map(|kind| resources.names(kind, typed).unwrap_or_default()).collect()
        }
        Candidates::KindsAndNames => {
            let resources = resources(program, words)?;
            let names = |kind: Kind| {
                let beginning = format!("{}/", short_name_of(kind));
                let name = typed.strip_prefix(&beginning).or_else(|| beginning.starts_with(typed).then_some(""));
                let names = name.and_then(|name| resources.names(kind, name).ok()).unwrap_or_default();
                names.into_iter().map(move |name| format!("{beginning}{name}"))
            };
            kinds().flat_map(names).collect()
        }
    };
    // A shell would interpret others.
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c));
    let found = all.into_iter().filter(|name| name.starts_with(typed) && is_plain(name));
    Some(found.take(MOST).map(|name| name + "\n").collect())
}

/// Returns the candidates for the last word of a line that the scripts do not know themselves.
fn wanted(program: &Command, words: &[String]) -> Option<Candidates> {
    let (last, before) = words.split_last()?;
    let (mut path, mut command) = (Vec::new(), program);
    let (mut arguments, mut option): (Vec<&str>, Option<&Arg>) = (Vec::new(), None);
    for word in before {
        if option.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            option = option_with_value(command, word).filter(|option| !option.is_require_equals_set());
        } else if let Some(subcommand) = command.find_subcommand(word).filter(|_| arguments.is_empty()) {
            command = subcommand;
            path.push(subcommand.get_name());
        } else {
            arguments.push(word);
        }
    }
    if let Some((name, _)) = option_and_value(last) {
        option = option.or_else(|| option_with_value(command, name));
    }
    let of_kind = |word: Option<&&str>| Some(Candidates::Names(Some(parse_kind(word?).ok()?)));
    match (path.as_slice(), option.map(|option| option.get_id().as_str())) {
        (["transfer"], Some("from" | "to")) | (_, Some("source")) => Some(Candidates::Sources),
        (["keys", "create"], Some("apply" | "plan")) => Some(Candidates::Sources),
        (_, Some("context")) => Some(Candidates::Contexts),
        (["get"], Some("edge")) => Some(Candidates::Names(Some(Kind::HttpsEdge))),
        (["get"], Some("subscription")) => Some(Candidates::Names(Some(Kind::EventSubscription))),
        (["history"], Some("resource")) => Some(Candidates::Names(None)),
        (path, Some("sort_by")) => columns(path),
        (["keys", "create"], Some("owner")) => Some(Candidates::Ids(Kind::Owner)),
        (_, Some(_)) => option.and_then(values),
        _ if last.starts_with('-') => None,
        (["get"], None) if arguments.is_empty() => Some(Candidates::Kinds),
        (["blame"], None) if arguments.is_empty() => Some(Candidates::Names(None)),
        (["get" | "blame"], None) if arguments.len() == 1 => of_kind(arguments.first()),
        (["transfer"], None) => Some(Candidates::KindsAndNames),
        (["suspend" | "resume"], None) => Some(Candidates::Sources),
        (["logout"] | ["context", "use" | "show"], None) => Some(Candidates::Contexts),
        (["explain"], None) => Some(Candidates::Codes),
        (["keys", "revoke"], None) => Some(Candidates::Ids(Kind::ApiKey)),
        (["owners", "set-role"], None) if arguments.is_empty() => Some(Candidates::Ids(Kind::Owner)),
        _ => command.get_positionals().nth(arguments.len()).and_then(values),
    }
}

/// The columns by which a command sorts.
fn columns(path: &[&str]) -> Option<Candidates> {
    let columns = match path {
        ["get"] => get::sort_columns(),
        ["status"] => status::text::sort_columns(),
        ["keys", "list"] => [keys::COLUMNS.as_slice(), &keys::WIDE_COLUMNS].concat(),
        ["owners", "list"] => owners::COLUMNS.to_vec(),
        ["context", "list"] => context::COLUMNS.to_vec(),
        _ => return None,
    };
    Some(Candidates::Values(columns.into_iter().map(option_value).collect()))
}

/// The option of a command that a word names, such as `--source` or `-o`, if it has a value.
fn option_with_value<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let is_named = |argument: &&Arg| {
        let is_long = argument.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
        is_long || argument.get_short().is_some_and(|short| *word == format!("-{short}"))
    };
    command.get_arguments().find(is_named).filter(|argument| argument.get_action().takes_values())
}

/// The values that an argument accepts. A script completes paths itself.
fn values(argument: &Arg) -> Option<Candidates> {
    let shown = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    let names = shown.map(|value| value.get_name().to_owned()).collect();
    (argument.get_value_hint() == ValueHint::Unknown).then_some(Candidates::Values(names))
}

/// The resources of the store or server that the command of a line chooses (D105). None if a command of the user would print the
/// token or the master key: it may ask for something.
fn resources(program: Command, words: &[String]) -> Option<ResourceReader> {
    let (last, before) = words.split_last()?;
    // With any last word, the line is whole more often.
    let last = option_and_value(last).map_or_else(|| "1".to_owned(), |(option, _)| format!("{option}=1"));
    let line = ["edgewright"].into_iter().chain(before.iter().map(String::as_str)).chain([last.as_str()]);
    let config = Config::read().ok()?;
    let program = without_empty_variables(config.apply(program).ok()?).ignore_errors(true);
    let arguments = program.clone().try_get_matches_from(line).ok()?;
    config.check_options(&program, &arguments, CheckedOptions::BeforeChoice { server_by_flag_only: false }).ok()?;
    let parsed = Cli::from_arg_matches(&arguments);
    let current_context = parsed.map_or(CurrentContext::Refused, |cli| current_context(&cli.command));
    let origins = OptionOrigins { command: &program, arguments: &arguments, config: &config, current_context };
    // An unknown option ends the reading of a line that is not whole. What follows it must not be missed.
    let is_missed =
        |place: &str| words.iter().any(|word| word.starts_with(&format!("--{place}"))) && !origins.is_flag(place);
    if ["store", "server", "context"].into_iter().any(is_missed) {
        return None;
    }
    let (mut command, mut matches) = (&program, &arguments);
    while let Some((name, inside)) = matches.subcommand() {
        (command, matches) = (command.find_subcommand(name)?, inside);
    }
    let has = |name: &str| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let asks = |server: &ServerArgs| server.used_context().is_some_and(|(_, context)| context.token.is_empty());
    match (has("server"), has("store")) {
        (true, true) => {
            let mut place = StoreOrServer::from_arg_matches(matches).ok()?;
            place.choose(&origins).ok()?;
            let key_command = matches.try_get_one::<String>("master_key_command").ok().flatten();
            let asks_for_key = place.server.url().is_none() && key_command.is_some_and(|command| !command.is_empty());
            (!asks_for_key && !asks(&place.server)).then(|| ResourceReader::open(&place, None).ok()).flatten()
        }
        (true, false) => {
            let mut server = ServerArgs::from_arg_matches(matches).ok()?;
            server.choose(&origins).ok()?;
            let url = server.url().filter(|_| !asks(&server))?;
            Some(ResourceReader::Server(server.connect(url).ok()?, None))
        }
        (false, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_last_word_of_a_line_is_what_its_place_asks_for() {
        let program = Cli::command();
        let values = |names: &[&str]| Some(Candidates::Values(names.iter().map(|name| (*name).to_owned()).collect()));
        for (line, expected) in [
            ("get ", Some(Candidates::Kinds)),
            ("get ed", Some(Candidates::Kinds)),
            ("get edges ", Some(Candidates::Names(Some(Kind::HttpsEdge)))),
            ("get --store x -o json route storefront/", Some(Candidates::Names(Some(Kind::HttpsEdgeRoute)))),
            ("get routes --edge ", Some(Candidates::Names(Some(Kind::HttpsEdge)))),
            ("get edges --sto", None),
            ("get edges --store ", None),
            ("blame ", Some(Candidates::Names(None))),
            ("history --resource ", Some(Candidates::Names(None))),
            ("apply m --source ", Some(Candidates::Sources)),
            ("apply ", None),
            ("suspend ", Some(Candidates::Sources)),
            ("transfer --from a --to ", Some(Candidates::Sources)),
            ("transfer --from a --to b ", Some(Candidates::KindsAndNames)),
            ("status --wait --context ", Some(Candidates::Contexts)),
            ("context use ", Some(Candidates::Contexts)),
            ("history show ", Some(Candidates::Values(Vec::new()))),
            ("plan --source=s", Some(Candidates::Sources)),
            ("rollback --to ", Some(Candidates::Values(Vec::new()))),
            ("keys create --scope-role pl", values(&["viewer", "planner", "editor", "admin"])),
            ("keys create --action=", values(&["create", "update", "delete"])),
            ("keys create --owner ", Some(Candidates::Ids(Kind::Owner))),
            ("owners list --sort-by ", values(&["role", "id"])),
            ("keys list --sort-by=", values(&["description", "role", "scope", "id", "owner", "created-at"])),
            ("keys revoke ", Some(Candidates::Ids(Kind::ApiKey))),
            ("owners set-role ", Some(Candidates::Ids(Kind::Owner))),
            ("owners set-role usr_1 ", values(&["gateway", "viewer", "planner", "editor", "admin"])),
            ("plan --secrets ", values(&["require", "assume"])),
            ("plan --output=", None),
            ("explain ERR", Some(Candidates::Codes)),
            ("nothing ", None),
            ("", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(wanted(&program, &words), expected, "{line}");
        }
    }
    #[test]
    fn words_that_bash_splits_are_joined() {
        for (line, expected) in [
            ("plan --source = shop x", "plan --source=shop x"),
            ("plan --source =", "plan --source="),
            ("plan --source = ", "plan --source= "),
            ("get --filter a = b", "get --filter a = b"),
            ("get --server http : //h : 1 edges ", "get --server http://h:1 edges "),
            ("get --server = http : //[ :: 1] : 80 ", "get --server=http://[::1]:80 "),
            ("get --store postgres : //u : p @ h/db edges", "get --store postgres://u:p@h/db edges"),
            ("serve --listen : 80 x", "serve --listen :80 x"),
            ("trace = =", "trace = ="),
        ] {
            let words = joined(line.split(' ').map(str::to_owned).collect());
            assert_eq!(words.join(" "), expected);
        }
    }
}
