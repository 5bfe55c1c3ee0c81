//! The help of the program: the groups of commands, the headings of options that commands share, and examples.
//!
//! `examples.txt` names each command once. A command shows its own options first; the options that it shares with
//! others have one of the headings, in their order below.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::sync::LazyLock;

use clap::{Arg, Command};

/// The heading of the options that select records of the history.
pub(crate) const FILTER: &str = "Filter options";
/// The heading of the options for a source and what it owns.
pub(crate) const OWNERSHIP: &str = "Ownership options";
/// The heading of the options for reading manifests.
pub(crate) const MANIFESTS: &str = "Manifest options";
/// The heading of the options for the scope of a key.
pub(crate) const SCOPE: &str = "Scope options";
/// The heading of the options for when and from where a key works.
pub(crate) const VALIDITY: &str = "Validity options";
/// The heading of the options of a store in a folder.
pub(crate) const STORE: &str = "Store options";
/// The heading of the options for how a client reaches a server, and a server its clients.
pub(crate) const CONNECTION: &str = "Connection options";
/// The heading of the options for what a store keeps after a change.
pub(crate) const RETENTION: &str = "Retention options";
/// The heading of the options for how a server handles requests.
pub(crate) const REQUESTS: &str = "Request options";
/// The heading of the options of reports.
pub(crate) const OUTPUT: &str = "Output options";
/// The heading of the options of logs.
pub(crate) const LOG: &str = "Log options";

/// A command, with examples: what each does, and its line.
type CommandExamples = (&'static str, Vec<(&'static str, &'static str)>);

/// Every command, in the groups and the order in which the help lists them.
static GROUPS: LazyLock<Vec<(&'static str, Vec<CommandExamples>)>> = LazyLock::new(|| {
    let group = |text: &'static str| {
        let (title, commands) = text.split_once("\n\n")?;
        Some((title, commands.split("\n\n").filter_map(command_examples).collect()))
    };
    include_str!("examples.txt").split("\n= ").skip(1).filter_map(group).collect()
});

/// The command and the examples of a paragraph.
fn command_examples(text: &'static str) -> Option<CommandExamples> {
    let (name, examples) = text.trim_end().split_once('\n')?;
    let mut lines = examples.lines();
    let examples = std::iter::from_fn(|| Some((lines.next()?.strip_prefix("# ")?, lines.next()?)));
    Some((name, examples.collect()))
}

/// The groups with the names of their commands.
pub(super) fn groups() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    GROUPS.iter().map(|(group, commands)| (*group, commands.iter().map(|(name, _)| *name).collect()))
}

/// Adds the groups of commands to the help of the program, and examples to that of each command.
pub(super) fn with_help(command: Command) -> Command {
    let template = template(&command);
    let command = command.mut_subcommands(|subcommand| {
        let all = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
        let examples = all.filter(|(name, _)| *name == subcommand.get_name()).flat_map(|(_, examples)| examples.iter());
        let examples: Vec<(&str, &str)> = examples.copied().collect();
        let path = format!("edgewright {}", subcommand.get_name());
        with_examples(subcommand, &path, &examples)
    });
    command.help_template(template)
}

/// Leaves the variables of the options to the long help.
pub(super) fn without_variables(command: Command) -> Command {
    command.mut_args(|argument| argument.hide_env(true)).mut_subcommands(without_variables)
}

/// Lays out the long help of the command that the words name like the short help: an option takes one line if it fits, and no
/// blank line separates two. What only the long texts of options say is in the reference and the manual pages.
pub(super) fn with_short_layout(command: Command, words: &[OsString]) -> Command {
    match next_subcommand(&command, words) {
        Some((name, rest)) => command.mut_subcommand(name, |nested| innermost_laid_out(nested, rest)),
        None => command,
    }
}

/// Lays out the help of the innermost subcommand. Those above list their subcommands by the first lines of their help.
fn innermost_laid_out(command: Command, words: &[OsString]) -> Command {
    match next_subcommand(&command, words) {
        Some((name, rest)) => command.mut_subcommand(name, |nested| innermost_laid_out(nested, rest)),
        None => laid_out(command),
    }
}

/// The first word that names a subcommand, with the words behind it.
fn next_subcommand<'w>(command: &Command, words: &'w [OsString]) -> Option<(String, &'w [OsString])> {
    words.iter().enumerate().find_map(|(at, word)| {
        let name = command.find_subcommand(word)?.get_name().to_owned();
        Some((name, words.get(at + 1..)?))
    })
}

/// clap lays out help as short if no part of it is long.
fn laid_out(command: Command) -> Command {
    const NONE: Option<&str> = None;
    let about = command.get_long_about().or(command.get_about()).cloned().unwrap_or_default();
    let examples = command.get_after_long_help().cloned().unwrap_or_default();
    let short = |argument: Arg| argument.long_help(NONE).hide_short_help(false).hide_env_values(true);
    command.mut_args(short).long_about(NONE).about(about).after_long_help(NONE).after_help(examples)
}

/// The help of the program. clap lists all commands under one heading.
fn template(command: &Command) -> String {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let find = |name: &str| command.get_subcommands().find(|subcommand| subcommand.get_name() == name);
    let width = command.get_subcommands().map(|subcommand| subcommand.get_name().len()).max().unwrap_or_default();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for (group, commands) in GROUPS.iter() {
        let _ = writeln!(text, "{header}{group}:{header:#}");
        for (name, about) in commands.iter().filter_map(|(name, _)| Some((*name, summary(find(name)?)))) {
            let _ = writeln!(text, "  {literal}{name}{literal:#}{:1$}  {about}", "", width - name.len());
        }
        text.push('\n');
    }
    let _ = write!(text, "{header}Options:{header:#}\n{{options}}\n\n");
    text + "Run `edgewright COMMAND --help` for the options of a command, with examples."
}

/// The one-line description of a command.
fn summary(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let aliases: Vec<&str> = command.get_visible_aliases().collect();
    if aliases.is_empty() { about } else { format!("{about} [alias: {}]", aliases.join(", ")) }
}

/// Adds to a command its examples, and to its subcommands theirs.
fn with_examples(command: Command, path: &str, examples: &[(&str, &str)]) -> Command {
    let header = *command.get_styles().get_header();
    let (mut text, mut shown) = (String::new(), BTreeSet::new());
    for (what, line) in examples.iter().filter(|(_, line)| shows_command(line, path, &command)) {
        // One of each subcommand is enough: its own help has the others.
        let nested = line.strip_prefix(path).and_then(|rest| rest.split_whitespace().next());
        let nested = nested.filter(|word| command.find_subcommand(word).is_some());
        if nested.is_none_or(|name| shown.insert(name)) {
            let _ = write!(text, "\n  # {what}\n  {line}");
        }
    }
    let command = command.mut_subcommands(|nested| {
        let path = format!("{path} {}", nested.get_name());
        with_examples(nested, &path, examples)
    });
    if text.is_empty() { command } else { command.after_long_help(format!("{header}Examples:{header:#}{text}")) }
}

/// Whether an example shows a command. Those of a command without subcommands are all its own, also under another name.
fn shows_command(line: &str, path: &str, command: &Command) -> bool {
    let is_alone = !command.has_subcommands() && path.split(' ').count() == 2;
    is_alone || line == path || line.strip_prefix(path).is_some_and(|rest| rest.starts_with(' '))
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::command::Cli;

    /// The headings of shared options, in the order in which every command has them.
    const HEADINGS: [&str; 11] =
        [FILTER, OWNERSHIP, MANIFESTS, SCOPE, VALIDITY, STORE, CONNECTION, RETENTION, REQUESTS, OUTPUT, LOG];
    /// The room for a command's own options, in lines.
    const SCREEN: usize = 40;
    /// The room for what a command does, beside the longest name in 80 columns.
    const SUMMARY: usize = 80 - "  security-log  ".len();
    /// The room for an example.
    const LINE: usize = 78;

    fn program() -> Command {
        let mut program = with_help(Cli::command()).term_width(100);
        program.build();
        program
    }

    /// A command and its subcommands with their paths.
    fn all(command: &Command, path: &str) -> Vec<(String, Command)> {
        let nested = command.get_subcommands().filter(|nested| nested.get_name() != "help" && !nested.is_hide_set());
        let nested = nested.flat_map(|nested| all(nested, &format!("{path} {}", nested.get_name())));
        std::iter::once((path.to_owned(), command.clone())).chain(nested).collect()
    }

    /// The words of a line of a shell, which has quotes of one kind at most.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (at, part) in line.split('\'').enumerate() {
            match at % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_command_is_in_one_group_and_its_summary_is_a_line() {
        let program = with_help(Cli::command());
        program.clone().debug_assert();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, all)| all.iter().map(|(name, _)| *name)).collect();
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
        let mut commands: Vec<&str> = commands.map(Command::get_name).collect();
        listed.sort_unstable();
        commands.sort_unstable();
        assert_eq!(listed, commands);
        for command in program.get_subcommands() {
            let summary = summary(command);
            assert!(summary.chars().count() <= SUMMARY, "{}: {summary}", command.get_name());
        }
        let help = program.clone().render_help().to_string();
        for (group, commands) in GROUPS.iter() {
            assert_eq!(help.matches(&format!("\n{group}:\n")).count(), 1, "{help}");
            assert!(commands.iter().all(|(name, _)| help.contains(&format!("\n  {name} "))), "{help}");
        }
    }

    #[test]
    fn every_example_is_read() {
        let written = include_str!("examples.txt").lines().filter(|line| line.starts_with("# ")).count();
        let read: usize = GROUPS.iter().flat_map(|(_, commands)| commands).map(|(_, examples)| examples.len()).sum();
        assert_eq!(read, written, "a paragraph of examples.txt is malformed");
    }

    #[test]
    fn every_example_is_a_valid_line() {
        for (name, examples) in GROUPS.iter().flat_map(|(_, commands)| commands.iter()) {
            assert!(!examples.is_empty(), "{name}");
            for (_, line) in examples {
                assert!(line.len() <= LINE, "{line}");
                let line = line.strip_prefix("source <(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(line);
                let line = line.split_once(" > ").map_or(line, |(line, _)| line);
                // The start of a line can set a variable.
                let line = line.find("edgewright ").and_then(|at| line.get(at..)).unwrap_or(line);
                let matches = with_help(Cli::command()).try_get_matches_from(words(line));
                let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
                assert_eq!(matches.subcommand_name(), Some(*name), "{line}");
            }
        }
    }

    #[test]
    fn the_own_options_of_a_command_come_first_and_fit_on_a_screen() {
        for (path, command) in all(&program(), "edgewright") {
            let mut ordered: Vec<&str> = Vec::new();
            for heading in command.get_arguments().filter_map(Arg::get_help_heading) {
                if !ordered.contains(&heading) {
                    ordered.push(heading);
                }
            }
            let expected: Vec<&str> = HEADINGS.into_iter().filter(|heading| ordered.contains(heading)).collect();
            assert_eq!(ordered, expected, "{path}");
            let shared = |line: &&str| HEADINGS.iter().any(|heading| line.strip_suffix(':') == Some(*heading));
            for mut shown in [command.clone(), laid_out(command.clone())] {
                let help = shown.render_help().to_string();
                let own = help.lines().take_while(|line| !shared(line) && *line != "Examples:").count();
                assert!(own <= SCREEN || path == "edgewright", "{path}: {own} lines\n{help}");
            }
        }
    }

    #[test]
    fn no_option_makes_clap_lay_out_the_help_of_its_command_as_long() {
        for (path, command) in all(&program(), "edgewright") {
            let help = laid_out(command).render_long_help().to_string();
            assert!(!help.contains("Possible values:"), "{path}\n{help}");
        }
    }

    #[test]
    fn the_help_of_each_command_ends_with_two_or_three_examples_of_it() {
        for (path, command) in all(&program(), "edgewright").into_iter().skip(1) {
            let help = command.clone().render_long_help().to_string();
            let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{path}\n{help}"));
            let count = examples.lines().filter(|line| line.starts_with("  # ")).count();
            // A command with subcommands shows what each of them does.
            let most = if command.has_subcommands() { usize::MAX } else { 3 };
            assert!((2..=most).contains(&count), "{path}: {count}\n{help}");
            let is_nested = path.split(' ').count() > 2;
            assert!(!is_nested || help.contains(&format!("\n  {path}")), "{path}\n{help}");
        }
    }
}
