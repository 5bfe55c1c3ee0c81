//! `edgewright completions`.

use clap::Command;
use clap_complete::Shell;

use crate::cli::command_prelude::*;
use crate::model::build;

/// The first argument of a request for candidates, before the words of the line after the program. It is no command, because
/// nobody types it.
pub(super) const REQUEST: &str = "__complete";

/// Print a shell completion script.
///
/// The script completes commands and options, and in bash, zsh and fish also the kinds, names and sources of the store
/// or the server.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shell to generate the script for.
    shell: Shell,
}

impl Args {
    /// Runs the command. The script is for `program`.
    pub(super) fn run(self, program: Command) -> CommandResult {
        // The generator would offer hidden commands.
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
        let shown = Command::new("edgewright").version(build::VERSION).propagate_version(true);
        let mut program = shown.subcommands(commands.collect::<Vec<Command>>());
        // The generator panics on a write error, so it writes to memory.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut program, "edgewright", &mut script);
        let script = String::from_utf8_lossy(&script);
        print(with_candidates(self.shell, &script))
    }
}

/// Adds to a script that it asks the program for candidates first. If the program does not answer, it goes on as generated.
fn with_candidates(shell: Shell, script: &str) -> String {
    // The start of the function that completes, and what follows it.
    let (start, asks) = match shell {
        Shell::Bash => (
            "    COMPREPLY=()\n",
            format!(
                r#"    local names IFS=$' \t\n'
    if names=$("${{COMP_WORDS[0]}}" {REQUEST} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null); then
        compopt +o bashdefault +o default 2>/dev/null
        COMPREPLY=( $names )
        # The line keeps what is typed before the last : or @.
        local typed=${{COMP_LINE:0:COMP_POINT}}
        typed=${{typed##*[[:space:]=]}}
        [[ $typed == "${{COMP_WORDS[COMP_CWORD]}}" ]] ||
            COMPREPLY=( "${{COMPREPLY[@]#"${{typed%"${{typed##*[:@]}}"}}"}}" )
        [[ $names == */ ]] && compopt -o nospace 2>/dev/null
        return 0
    fi
"#
            ),
        ),
        Shell::Zsh => (
            "_edgewright() {\n",
            format!(
                r#"    local names
    if names=$("${{words[1]}}" {REQUEST} "${{(@)words[2,CURRENT]}}" 2>/dev/null); then
        [[ $PREFIX == --*=* ]] && compset -P '*='
        compadd -S '' -- ${{(M)${{(f)names}}:#*/}}
        compadd -- ${{${{(f)names}}:#*/}}
        return 0
    fi
"#
            ),
        ),
        Shell::Fish => {
            // The value of an option without candidates of its own is completed by its line alone, and as a file.
            let asks_for_values = script.replace(" -r\n", " -r -f -a '(__edgewright_ask)'\n");
            return format!(
                r#"function __edgewright_ask
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program {REQUEST} $words (commandline -ct) 2>/dev/null
end
{asks_for_values}complete -c edgewright -f -n '__edgewright_ask >/dev/null' -a '(__edgewright_ask)'
"#
            );
        }
        _ => return script.to_owned(),
    };
    script.replacen(start, &format!("{start}{asks}"), 1)
}
