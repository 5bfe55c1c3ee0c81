//! The options of `serve`.

use axum::http::HeaderName;
use clap::{ArgMatches, Command, FromArgMatches};

#[cfg(feature = "otlp")]
use super::otlp;
use super::{
    limit_args::LimitArgs, listen::ListenArgs, log::LogFormat, source_config::ConfiguredSource, urls::public_url,
};
use crate::cli::config::Config;
use crate::cli::input::option_origins::overrides_file;
use crate::cli::manifests::source_args::{Loading, Ownership};
use crate::cli::output::destination::check_folder;
use crate::cli::prelude::*;
use crate::cli::store::{retention_args::RetentionArgs, store_args::StoreArgs};
use crate::files::{folder_of, if_exists};
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::server::auth::oidc::config::OidcConfig;
use crate::server::limits::slots::classes::DEFAULT_WATCHERS;
use crate::server::operations::hooks::read_secret;
use crate::server::operations::reconciliation::files::DEFAULT_MIB;
use crate::server::resources::write_policy::unknown_sources;
use crate::store::store_exists;

/// Serve the management API, and follow sources of manifests.
///
/// `--manifests` follows one source. To follow several, or a branch of a Git repository, list them as `sources` in the
/// configuration file.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Manifest file or folder to follow: applies valid changes, and reports invalid ones without applying them.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_MANIFESTS")]
    pub(super) manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) ownership: Ownership,
    #[command(flatten)]
    pub(super) loading: Loading,
    /// How to handle drift, that is, changes by others to the source's resources: `enforce`, `warn` or `off`.
    ///
    /// `enforce` reverts them, `warn` leaves and reports them, `off` leaves and counts them.
    #[arg(long, value_name = "POLICY", env = "EDGEWRIGHT_DRIFT", default_value_t = DriftPolicy::Enforce)]
    pub(super) drift: DriftPolicy,
    #[command(flatten)]
    pub(super) store: StoreArgs,
    /// Folder for a local copy of a store in PostgreSQL: a server that starts while the database is unavailable answers from it.
    #[arg(help_heading = help::STORE, hide_short_help = true)]
    #[arg(long, value_name = "DIR", env = "EDGEWRIGHT_LOCAL_COPY")]
    pub(super) local_copy: Option<PathBuf>,
    #[command(flatten)]
    pub(super) listen: ListenArgs,
    /// Public URL of the API, used for every `uri` in responses (default: the listen address).
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_BASE_URL", value_parser = public_url)]
    pub(super) base_url: Option<String>,
    /// URL at which the other servers of a store in a database reach this one, to forward changes while it writes.
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_ADVERTISE_URL", value_parser = public_url)]
    pub(super) advertise_url: Option<String>,
    /// Public URL for SAML identity providers (default: the base URL).
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_SAML_BASE_URL", value_parser = public_url)]
    pub(super) saml_base_url: Option<String>,
    /// Name of the header that selects the API version.
    #[arg(help_heading = help::CONNECTION, value_parser = header_name)]
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_VERSION_HEADER", default_value = VERSION_HEADER)]
    pub(super) version_header: String,
    #[command(flatten)]
    pub(super) retention: RetentionArgs,
    /// File to write the admin token to on the first start (mode 0600), instead of stderr.
    // The heading of the options before it would continue.
    #[arg(help_heading = None::<&'static str>, long, value_name = "FILE", env = "EDGEWRIGHT_ADMIN_TOKEN_FILE")]
    pub(super) admin_token_file: Option<PathBuf>,
    /// Maximum memory in MiB for cached manifests from clients, which then send only changed files; 0 disables the
    /// cache.
    #[arg(help_heading = help::REQUESTS)]
    #[arg(long, value_name = "MIB", env = "EDGEWRIGHT_FILE_CACHE_MIB", default_value_t = DEFAULT_MIB)]
    pub(super) file_cache_mib: u64,
    /// Maximum number of clients that can watch changes at a time.
    #[arg(help_heading = help::REQUESTS)]
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_MAX_WATCHERS", default_value_t = DEFAULT_WATCHERS)]
    pub(super) max_watchers: usize,
    /// Apply every blank (`""`, `[]`) of a PATCH. By default, blanks that some clients send for unset fields change
    /// nothing: the texts of a route along with a blank `match`, and `ip_policy_ids` along with other fields.
    #[arg(help_heading = help::REQUESTS, long, env = "EDGEWRIGHT_BLANKS_COUNT")]
    pub(super) blanks_count: bool,
    /// Do not serve the dashboard, the pages for browsers at `/ui/`.
    #[arg(help_heading = help::REQUESTS, long, env = "EDGEWRIGHT_NO_DASHBOARD")]
    pub(super) no_dashboard: bool,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// URL of an OpenTelemetry collector, such as `http://127.0.0.1:4318`, to export traces of requests and syncs to (OTLP
    /// over HTTP).
    #[cfg(feature = "otlp")]
    #[arg(help_heading = help::LOG)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_OTLP_ENDPOINT", value_parser = otlp::endpoint)]
    pub(super) otlp_endpoint: Option<String>,
    /// Format of the log on stderr: text, or one JSON object per event. EDGEWRIGHT_LOG sets its levels, such as
    /// `info,edgewright::access=warn`.
    #[arg(help_heading = help::LOG)]
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(super) log_format: LogFormat,
}

impl Args {
    /// Checks what needs neither the socket nor an open store.
    pub(super) fn check(&self, config: &Config, matches: &ArgMatches) -> Result<(), Failure> {
        self.check_exclusive(config, matches)?;
        self.check_complete(config)?;
        // Later, they may come back, and what they declared is served until then.
        let is_missing = |path: &&PathBuf| if_exists(fs::metadata(path)).is_ok_and(|found| found.is_none());
        if let Some(path) = self.manifests.iter().find(is_missing)
            && !store_exists(self.store.folder())?
        {
            let fault = Diagnostic::error(Code::Unreadable, format!("{} does not exist", path.display()));
            return Err(fault
                .help("check the path; only a server that has a store starts without its manifests")
                .into());
        }
        self.check_admin_token_file()?;
        // Later, the secret is read for each request, so that it can be changed.
        if let Some(file) = &config.git_hook
            && let Err(reason) = read_secret(file)
        {
            let message = format!("cannot read the webhook's `secret_file` {}: {reason}", file.display());
            let fault = Diagnostic::error(Code::Unreadable, message);
            return Err(fault.help("write the secret that the forge signs with to the file").into());
        }
        if let Some(Err(reason)) = config.openid_connect.as_ref().map(OidcConfig::check_files) {
            let fault = Diagnostic::error(Code::Unreadable, format!("cannot use `openid_connect`: {reason}"));
            return Err(fault.help("check the files and the command that the section names").into());
        }
        Ok(())
    }

    /// Fails before a new store is made whose first admin nobody would have the token of. Later, there is no token to write.
    fn check_admin_token_file(&self) -> Result<(), Failure> {
        let Some(file) = &self.admin_token_file else { return Ok(()) };
        let store = self.store.folder();
        // A new store makes the folders that it is in.
        let makes = |folder: &Path| {
            let paths = (std::path::absolute(store), std::path::absolute(folder));
            matches!(paths, (Ok(store), Ok(folder)) if store.starts_with(&folder))
        };
        match check_folder(file, &format!("cannot write the admin token to {}", file.display())) {
            Err(fault) if !makes(folder_of(file)) && matches!(store_exists(store), Ok(false)) => Err(fault.into()),
            _ => Ok(()),
        }
    }

    /// Rejects options that exclude each other, or the sources of the configuration file: no other option makes them right.
    fn check_exclusive(&self, config: &Config, matches: &ArgMatches) -> Result<(), Failure> {
        if self.manifests.iter().any(|path| path.as_os_str() == "-") {
            let fault = Diagnostic::error(Code::Parameter, "`--manifests` cannot be standard input");
            return Err(fault.help("use a file or folder").into());
        }
        if !config.sources.is_empty() {
            self.check_alone(matches)?;
        }
        self.store.check()
    }

    /// Rejects options and keys of the configuration file that need another option.
    fn check_complete(&self, config: &Config) -> Result<(), Failure> {
        if self.local_copy.is_some() && !self.store.is_in_database() {
            let fault = Diagnostic::error(Code::Parameter, "`--local-copy` requires a store in a database");
            return Err(fault.help("remove `--local-copy`, or set --store to the URL of a database").into());
        }
        if !config.client_certificates.is_empty() && self.listen.tls_client_ca.is_none() {
            let fault = Diagnostic::error(Code::Parameter, "`client_certificates` requires `--tls-client-ca`");
            return Err(fault.help("set --tls-client-ca to the authorities of clients' certificates").into());
        }
        self.listen.files().map(drop)
    }

    /// Rejects the options of a single source if the configuration file lists sources: it would be unclear to which of
    /// them a limit applies.
    pub(super) fn check_alone(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let options = ["manifests", "source", "prune", "isolate", "max_deletes", "drift"];
        // The configuration file can set `manifests`, too.
        let is_set = |id: &str| overrides_file(matches, id) || (id == "manifests" && !self.manifests.is_empty());
        match options.into_iter().find(|id| is_set(id)) {
            None => Ok(()),
            Some(id) => {
                let option = id.replace('_', "-");
                let message = format!("`--{option}` cannot be combined with `sources` in the configuration file");
                let fault = Diagnostic::error(Code::Parameter, message);
                Err(fault.help("set it for each source in the file, or remove `sources`").into())
            }
        }
    }

    /// The sources to follow: those of the configuration file, or the one of the options.
    pub(super) fn wanted(&self, config: &Config) -> Vec<ConfiguredSource> {
        if config.sources.is_empty() && !self.manifests.is_empty() {
            return vec![ConfiguredSource::from_options(self.manifests.clone(), &self.ownership, config.lints.clone())];
        }
        config.sources.clone()
    }

    /// The long names of the options that the configuration file sets: no flag or variable overrides them.
    pub(super) fn from_file(matches: &ArgMatches) -> BTreeSet<String> {
        let command = command();
        let free = command.get_arguments().filter(|argument| !overrides_file(matches, argument.get_id().as_str()));
        free.filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
    }
}

/// The command with its options, without the configuration file.
pub(crate) fn command() -> Command {
    <Args as clap::Args>::augment_args(Command::new("serve"))
}

/// Adds the errors of a server whose options are those of the configuration file alone, except for what is on its machine. Returns
/// warnings about what lacks an option: the server may have it as a flag or variable.
pub(crate) fn check_file(config: &mut Config) -> Vec<Diagnostic> {
    let command = command();
    config.check_values(&command);
    let Some(matches) = config.matches(command) else { return Vec::new() };
    let Ok(args) = Args::from_arg_matches(&matches) else { return Vec::new() };
    let path = config.origin().map(|(path, _)| path.display().to_string()).unwrap_or_default();
    if let Err(mut failure) = args.check_exclusive(config, &matches) {
        for diagnostic in &mut failure.diagnostics {
            diagnostic.message = format!("`serve` refuses {path}: {}", diagnostic.message);
        }
        config.add_error_of_server(failure);
    }
    let lacking = args.check_complete(config).err().into_iter().flat_map(|failure| failure.diagnostics);
    let warn = |diagnostic: Diagnostic| Diagnostic {
        severity: Severity::Warning,
        message: format!("`serve` refuses {path} without another option: {}", diagnostic.message),
        ..diagnostic
    };
    let followed: BTreeSet<String> = args.wanted(config).iter().map(|source| source.name.clone()).collect();
    let misspelt = unknown_sources(&config.rest_writes, &followed, "the configuration file does not follow");
    // Others may be those that clients apply.
    let misspelt = misspelt.into_iter().filter(|fault| fault.help.is_some());
    let misspelt =
        misspelt.map(|Fault { code, message, help, .. }| Diagnostic { help, ..Diagnostic::warning(code, message) });
    lacking.map(warn).chain(misspelt).collect()
}

fn header_name(name: &str) -> Result<String, String> {
    let parsed = HeaderName::from_bytes(name.as_bytes());
    parsed.map(|_| name.to_owned()).map_err(|_| "must be a valid header name".to_owned())
}
