//! Commands that work on files alone: advice to work through a server is not for them.

use crate::{
    cli::{CommandResult, Failure},
    model::diagnostics::{code::Code, diagnostic::Name},
};

/// Leaves `--server` out of the help for a locked store.
pub(crate) fn without_server(result: CommandResult) -> CommandResult {
    result.map_err(|mut failure: Failure| {
        for diagnostic in failure.diagnostics.iter_mut().filter(|it| it.code == Name::Code(Code::StoreLocked)) {
            diagnostic.help = Some("Stop the other process.".to_owned());
        }
        failure
    })
}
