//! Completion candidates for a command line: kinds, names, sources, contexts and codes, for the scripts of `edgewright
//! completions`.
//!
//! A script asks on every press of a key, so that this never takes long, never reports an error, and only reads. It knows the
//! store in a folder: a server is not asked, and nothing is offered in place of its names.

use std::{sync::mpsc::channel, thread};

use clap::{Arg, Command};

use super::access::contexts::Contexts;
use super::inspect::get::{full_name, parse_kind, plurals, short_name_of};
use crate::cli::command_prelude::*;
use crate::cli::store::store_args::StoreArgs;
use crate::lint::LINTS;
use crate::model::diagnostics::code::REGISTRY;

/// The first argument of a request, before the words of the line after the program. It is no command, because nobody types it.
pub(super) const REQUEST: &str = "__complete";
/// No answer takes longer.
const LONGEST: Duration = Duration::from_millis(250);
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
    Sources,
    Contexts,
    Codes,
}

/// Prints the candidates for the last word of a line of `program`, perhaps none. Fails if the script is to complete the word
/// itself.
pub(super) fn answer(program: &Command, words: Vec<String>) -> CommandResult {
    let Some(wanted) = wanted(program, &words) else { return Ok(Exit::Error) };
    let (sender, receiver) = channel();
    thread::spawn(move || sender.send(candidates(&wanted, &words).unwrap_or_default()));
    print(receiver.recv_timeout(LONGEST).unwrap_or_default())
}

/// The candidates that begin with the last word, on a line each.
fn candidates(wanted: &Candidates, words: &[String]) -> Option<String> {
    let last = words.last()?;
    let all: BTreeSet<String> = match wanted {
        Candidates::Kinds => plurals().into_iter().collect(),
        Candidates::Contexts => Contexts::read().ok()?.all.into_keys().collect(),
        Candidates::Codes => {
            let codes = REGISTRY.iter().map(|info| info.code.to_string());
            codes.chain(LINTS.iter().map(|lint| lint.name.to_owned())).collect()
        }
        Candidates::Sources => {
            let snapshot = snapshot(words)?;
            snapshot.iter().filter_map(|entry| Some(entry.claim.as_deref()?.source.clone())).collect()
        }
        Candidates::Names(kind) => {
            let snapshot = snapshot(words)?;
            let entries = snapshot.iter().filter(|entry| kind.is_none_or(|kind| entry.key.kind == kind));
            entries.filter_map(|entry| full_name(&snapshot, entry)).collect()
        }
        Candidates::KindsAndNames => {
            let snapshot = snapshot(words)?;
            let typed = |kind: Kind, name: String| format!("{}/{name}", short_name_of(kind));
            snapshot.iter().filter_map(|entry| Some(typed(entry.key.kind, full_name(&snapshot, entry)?))).collect()
        }
    };
    // A shell would interpret others.
    let is_plain = |name: &String| name.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c));
    let found = all.into_iter().filter(|name| name.starts_with(last.as_str()) && is_plain(name));
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
            let is_named = |argument: &&Arg| {
                let is_long = argument.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
                is_long || argument.get_short().is_some_and(|short| *word == format!("-{short}"))
            };
            let takes_next =
                |argument: &&Arg| argument.get_action().takes_values() && !argument.is_require_equals_set();
            option = command.get_arguments().find(is_named).filter(takes_next);
        } else if let Some(subcommand) = command.find_subcommand(word).filter(|_| arguments.is_empty()) {
            command = subcommand;
            path.push(subcommand.get_name());
        } else {
            arguments.push(word);
        }
    }
    let of_kind = |word: Option<&&str>| Some(Candidates::Names(Some(parse_kind(word?).ok()?)));
    match (path.as_slice(), option.map(|option| option.get_id().as_str())) {
        (["transfer"], Some("from" | "to")) | (_, Some("source")) => Some(Candidates::Sources),
        (["keys", "create"], Some("apply" | "plan")) => Some(Candidates::Sources),
        (_, Some("context")) => Some(Candidates::Contexts),
        (["get"], Some("edge")) => Some(Candidates::Names(Some(Kind::HttpsEdge))),
        (["get"], Some("subscription")) => Some(Candidates::Names(Some(Kind::EventSubscription))),
        (["history"], Some("resource")) => Some(Candidates::Names(None)),
        (_, Some(_)) => None,
        _ if last.starts_with('-') => None,
        (["get"], None) if arguments.is_empty() => Some(Candidates::Kinds),
        (["blame"], None) if arguments.is_empty() => Some(Candidates::Names(None)),
        (["get" | "blame"], None) if arguments.len() == 1 => of_kind(arguments.first()),
        (["transfer"], None) => Some(Candidates::KindsAndNames),
        (["suspend" | "resume"], None) => Some(Candidates::Sources),
        (["logout"] | ["context", "use" | "show"], None) => Some(Candidates::Contexts),
        (["explain"], None) => Some(Candidates::Codes),
        _ => None,
    }
}

/// The state of the store that the line names, unless it works through a server or a command prints the master key.
fn snapshot(words: &[String]) -> Option<Arc<Snapshot>> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_server = words.iter().any(|word| word.starts_with("--server") || word.starts_with("--context"));
    let variables = ["EDGEWRIGHT_SERVER", "EDGEWRIGHT_CONTEXT", "EDGEWRIGHT_MASTER_KEY_COMMAND"];
    if is_server || variables.into_iter().any(is_set) {
        return None;
    }
    let named = words.iter().zip(words.iter().skip(1)).find(|(option, _)| *option == "--store");
    let arguments = named.into_iter().flat_map(|(option, folder)| [option.as_str(), folder.as_str()]);
    let command = <StoreArgs as clap::Args>::augment_args(Command::new("store"));
    let matches = command.try_get_matches_from(std::iter::once("store").chain(arguments)).ok()?;
    let store = <StoreArgs as clap::FromArgMatches>::from_arg_matches(&matches).ok()?;
    Some(store.read_if_there().ok()??.snapshot())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::command::Cli;

    #[test]
    fn the_last_word_of_a_line_is_what_its_place_asks_for() {
        let program = Cli::command();
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
            ("history show ", None),
            ("explain ERR", Some(Candidates::Codes)),
            ("nothing ", None),
            ("", None),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(wanted(&program, &words), expected, "{line}");
        }
    }
}
