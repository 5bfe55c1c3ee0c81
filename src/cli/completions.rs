//! `edgewright completions`.

use clap::Command;
use clap_complete::Shell;

use super::candidates::REQUEST;
use crate::cli::command_prelude::*;

/// Print a shell completion script.
///
/// The script completes commands and options, and in bash, zsh and fish also the kinds, names and sources of the store.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Shell to generate the script for.
    shell: Shell,
}

impl Args {
    /// Runs the command. The script is for `program`.
    pub(super) fn run(self, mut program: Command) -> CommandResult {
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
        compadd -- ${{(f)names}}
        return 0
    fi
"#
            ),
        ),
        Shell::Fish => {
            let asks = format!(
                "set -l words (commandline -opc); set -l program $words[1]; set -e words[1]; \
                 $program {REQUEST} $words (commandline -ct) 2>/dev/null"
            );
            return format!("{script}complete -c edgewright -f -n '{asks} >/dev/null' -a '({asks})'\n");
        }
        _ => return script.to_owned(),
    };
    script.replacen(start, &format!("{start}{asks}"), 1)
}
