//! `edgewright transfer`: moves resources from one source to another (D104).

use super::store_change::{ChangeOptions, ChangeTarget, StoreChange};
use crate::cli::command_prelude::*;
use crate::cli::inspect::get::{parse_kind, plurals};
use crate::cli::manifests::source_args::new_source_name;
use crate::plan::transfer::Transfer;
use crate::server::operations::transfer::{PATH, TransferRequest};

/// Move resources from one source to another.
///
/// The resources keep their identifiers and content, and an edge moves with its routes. Move the manifests as well: as long
/// as the old source declares a resource that it no longer owns, its runs fail. To move resources through reviewed
/// manifests alone, use `metadata.transfer_to` and `metadata.transfer_from`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Resources, as KIND/NAME such as edge/shop and route/shop/cart, or by ID.
    #[arg(value_name = "RESOURCE", required_unless_present = "all", conflicts_with = "all")]
    resources: Vec<String>,
    /// Name of the source that owns the resources.
    #[arg(long, value_name = "SOURCE", env = "EDGEWRIGHT_TRANSFER_FROM", value_parser = source_name)]
    from: String,
    /// Name of the source that owns them afterwards.
    #[arg(long, value_name = "SOURCE", env = "EDGEWRIGHT_TRANSFER_TO", value_parser = new_source_name)]
    to: String,
    /// Move every resource of the source.
    #[arg(long, env = "EDGEWRIGHT_TRANSFER_ALL")]
    all: bool,
    #[command(flatten)]
    pub options: ChangeOptions,
}

impl Args {
    pub(crate) fn run(self) -> CommandResult {
        if self.from == self.to {
            let error = Diagnostic::error(Code::NotAllowed, "`--from` and `--to` are the same source");
            return Err(error.help("name two sources").into());
        }
        let resources = self.resources.iter().map(|resource| full_name(resource));
        let resources = resources.collect::<Result<Vec<String>, Failure>>()?;
        let transfer = Transfer { from: self.from.clone(), to: self.to.clone(), resources };
        ChangeTarget::open(&self.options)?.run(&transfer, &self.options, None, || Ok(()))
    }
}

/// A resource with the full name of its kind, for which the command line has short ones.
fn full_name(resource: &str) -> Result<String, Failure> {
    let Some((kind, name)) = resource.split_once('/') else { return Ok(resource.to_owned()) };
    let found = parse_kind(kind).map_err(|mut unknown| {
        // What is not a misspelt kind is probably the edge of a route.
        if nearest(kind, plurals().iter().map(String::as_str)).is_none() {
            let help = format!("name the kind first: `route/{}`", printable(resource));
            unknown.diagnostics.iter_mut().for_each(|it| it.help = Some(help.clone()));
        }
        unknown
    });
    Ok(format!("{}/{name}", found?))
}

impl StoreChange for Transfer {
    const COMMAND: &'static str = "transfer";

    type Change = Transfer;

    fn path(&self) -> String {
        PATH.to_owned()
    }

    fn request(&self, behaviour: bool, expect: Option<String>) -> impl Serialize {
        let Transfer { from, to, resources } = self.clone();
        let (all, dry_run) = (resources.is_empty(), expect.is_none());
        TransferRequest { from, to, all, resources, dry_run, behaviour, expect }
    }

    fn in_store(&self, _: &Store) -> Result<Transfer, Failure> {
        Ok(self.clone())
    }

    fn author(&self) -> Author {
        Author::Local
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_names_of_get() {
        for (given, expected) in [
            ("edge/shop", "HttpsEdge/shop"),
            ("route/shop/path_prefix /cart", "HttpsEdgeRoute/shop/path_prefix /cart"),
            ("edghts_1", "edghts_1"),
        ] {
            assert_eq!(full_name(given).ok().as_deref(), Some(expected));
        }
        for (given, expected) in
            [("shop/cart", "name the kind first: `route/shop/cart`"), ("egdes/shop", "did you mean `edges`?")]
        {
            let help = full_name(given).err().and_then(|failure| failure.diagnostics.into_iter().next()?.help);
            assert_eq!(help.as_deref(), Some(expected));
        }
    }
}
