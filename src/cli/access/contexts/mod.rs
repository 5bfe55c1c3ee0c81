//! Contexts: the servers that a user has logged in to, with their tokens, in a file that only the user can read (D105).

mod file;

use crate::cli::prelude::*;

const LONGEST_NAME: usize = 100;

/// A server that a user has logged in to, as the file has it. An empty text is unset.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ServerContext {
    pub server: String,
    /// The token, unless a command prints it.
    #[serde(skip_serializing_if = "Secret::is_empty")]
    pub token: Secret,
    /// A shell command that prints the token. It can contain credentials.
    #[serde(skip_serializing_if = "Secret::is_empty")]
    pub token_command: Secret,
    /// The PEM file with the authorities to trust, instead of those of the system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ca_file: String,
    /// The default of `--source`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The name of the server's version header, unless it is the default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version_header: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The name of the current context, or empty.
    pub current: String,
    #[serde(rename = "contexts")]
    pub all: BTreeMap<String, ServerContext>,
}

impl Contexts {
    /// Reads the contexts of the user; none if there is no file.
    pub(crate) fn read() -> Result<Self, Failure> {
        file::folder().map_or_else(|| Ok(Self::default()), |folder| file::read(&folder))
    }

    /// Changes the contexts of the user, one process at a time.
    pub(super) fn change<T>(change: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
        let Some(folder) = file::folder() else {
            let fault = Diagnostic::error(Code::Unreadable, "this user has no configuration folder");
            return Err(fault.help("set HOME or XDG_CONFIG_HOME to the path of a folder").into());
        };
        file::change(&folder, change)
    }

    pub(crate) fn get(&self, name: &str) -> Result<&ServerContext, Failure> {
        self.all.get(name).ok_or_else(|| self.unknown(name))
    }

    /// Returns the context with this name or, without one, the current context.
    pub(super) fn named_or_current(&self, name: Option<&str>) -> Result<(String, &ServerContext), Failure> {
        let name = name.unwrap_or(&self.current);
        if name.is_empty() {
            let fault = Diagnostic::error(Code::NotFound, "there is no current context");
            return Err(fault.help("name a context; `edgewright context list` lists them").into());
        }
        Ok((name.to_owned(), self.get(name)?))
    }

    fn unknown(&self, name: &str) -> Failure {
        let message = format!("the context `{}` does not exist", printable(name));
        let otherwise = "list the contexts with `edgewright context list`, or create one with `edgewright login`";
        let help = suggest(name, self.all.keys().map(String::as_str), otherwise);
        Diagnostic::error(Code::NotFound, message).help(help).into()
    }

    /// Finds the context that a command without a store or a server works with. Nobody may change a server only because
    /// they have forgotten which context is current, nor a store because they think of that server.
    pub(crate) fn current_for(&self, is_allowed: bool) -> Result<Option<(&str, &ServerContext)>, Failure> {
        if self.current.is_empty() {
            return Ok(None);
        }
        let Some((name, context)) = self.all.get_key_value(&self.current) else {
            let message = format!("the current context `{}` does not exist", printable(&self.current));
            let help = "choose one with `edgewright context use`, or add --context, --server or --store";
            return Err(Diagnostic::error(Code::NotFound, message).help(help).into());
        };
        if is_allowed {
            return Ok(Some((name.as_str(), context)));
        }
        let message = format!(
            "commands that make changes do not use the current context `{}` ({}) by default",
            printable(name),
            printable(&context.server)
        );
        let help = format!("add `--context {}` to change that server, or --store to change a store", printable(name));
        Err(Diagnostic::error(Code::Parameter, message).help(help).into())
    }
}

pub(crate) fn context_name(name: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "._-:[]".contains(c);
    if !name.is_empty() && !name.starts_with('-') && name.len() <= LONGEST_NAME && name.chars().all(is_allowed) {
        return Ok(name.to_owned());
    }
    Err(format!("expected 1 to {LONGEST_NAME} letters, digits, dots, hyphens and underscores"))
}
