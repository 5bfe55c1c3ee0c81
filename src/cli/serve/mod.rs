//! `edgewright serve`.

mod activation;
pub(crate) mod core_dumps;
pub(crate) mod followed;
pub(crate) mod guards;
pub(crate) mod huge_pages;
mod listen;
pub(crate) mod log;
#[cfg(feature = "otlp")]
mod otlp;
mod reload;
mod service_manager;

use std::{
    collections::BTreeSet,
    fs,
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::http::{HeaderName, Uri};

use super::{
    CommandResult, Exit, Failure, StoreArgs,
    access::keys,
    config::Config,
    help,
    manifests::source_args::{Loading, Ownership},
};
use crate::{
    background::lower_priority_of_pool,
    model::{
        Kind,
        diagnostics::{code::Code, diagnostic::Diagnostic},
        kind::{api_key::ApiKey, owner::Role},
        rules,
        secrets::secret::Secret,
    },
    reconcile::{run::token::replace_token, sources::handle::SourceObserver, sync_loop::drift_policy::DriftPolicy},
    server::{
        ApiService, App, Server, Settings, Tls, VERSION_HEADER,
        auth::client_certificates::ClientCertificates,
        install_metrics,
        limits::slots::classes::DEFAULT_WATCHERS,
        notify::Notifier,
        operations::{hooks::read_secret, reconciliation::files::DEFAULT_MIB},
        resources::write_policy::RestWrites,
        telemetry::security::{LocalLog, SecurityLog, SecurityLogThread, log_sources},
    },
    store::{Store, checkpoint::maintain_from_time_to_time, ids, note_server, probe},
    syntax::text::escaped,
};
use followed::ConfiguredSource;
use guards::GuardArgs;
use listen::ListenArgs;
use log::LogFormat;
use reload::{ConfigWatch, LiveSources, Reloader};
use service_manager::ServiceManager;

/// Serve the management API, and follow sources of manifests.
///
/// `--manifests` follows one source. To follow several, or a branch of a Git repository, list them as `sources` in the
/// configuration file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Manifest file or folder to follow: applies valid changes, and reports invalid ones without applying them.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_MANIFESTS")]
    manifests: Vec<PathBuf>,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    ownership: Ownership,
    /// How to handle drift, which is any change that the source did not make: `enforce`, `warn` or `off`.
    ///
    /// `enforce` reverts them, `warn` leaves and reports them, `off` leaves and counts them.
    #[arg(long, value_name = "POLICY", env = "EDGEWRIGHT_DRIFT", default_value_t = DriftPolicy::Enforce)]
    drift: DriftPolicy,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    listen: ListenArgs,
    /// Public URL of the API, used for every `uri` in responses (default: the listen address).
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_BASE_URL", value_parser = public_url)]
    base_url: Option<String>,
    /// Public URL for SAML identity providers (default: the base URL).
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_SAML_BASE_URL", value_parser = public_url)]
    saml_base_url: Option<String>,
    /// Name of the header that selects the API version.
    #[arg(help_heading = help::CONNECTION)]
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_VERSION_HEADER", default_value = VERSION_HEADER,
        value_parser = header_name)]
    version_header: String,
    /// File to write the admin token to on the first start (mode 0600), instead of stderr.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_ADMIN_TOKEN_FILE")]
    admin_token_file: Option<PathBuf>,
    /// Maximum memory in MiB for cached manifests from clients, which then send only changed files; 0 disables the
    /// cache.
    #[arg(help_heading = help::REQUESTS)]
    #[arg(long, value_name = "MIB", env = "EDGEWRIGHT_FILE_CACHE_MIB", default_value_t = DEFAULT_MIB)]
    file_cache_mib: u64,
    /// Maximum number of clients that can watch changes at a time.
    #[arg(help_heading = help::REQUESTS)]
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_MAX_WATCHERS", default_value_t = DEFAULT_WATCHERS)]
    max_watchers: usize,
    /// Apply every blank (`""`, `[]`) of a PATCH. By default, blanks that some clients send for unset fields change
    /// nothing: the texts of a route along with a blank `match`, and `ip_policy_ids` along with other fields.
    #[arg(help_heading = help::REQUESTS, long, env = "EDGEWRIGHT_BLANKS_COUNT")]
    blanks_count: bool,
    #[command(flatten)]
    guards: GuardArgs,
    /// URL of an OpenTelemetry collector, such as `http://127.0.0.1:4318`, to export traces of requests and syncs to (OTLP
    /// over HTTP).
    #[cfg(feature = "otlp")]
    #[arg(help_heading = help::LOG)]
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_OTLP_ENDPOINT", value_parser = otlp::endpoint)]
    otlp_endpoint: Option<String>,
    /// Format of the log on stderr. EDGEWRIGHT_LOG sets its levels, such as `info,edgewright::access=warn`.
    #[arg(help_heading = help::LOG)]
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub(super) log_format: LogFormat,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self, config: Config, is_given: &dyn Fn(&str) -> bool) -> CommandResult {
        core_dumps::turn_off_for_server();
        huge_pages::turn_off();
        // Before there are other threads.
        let passed = activation::passed_socket();
        lower_priority_of_pool();
        log::start(self.log_format);
        self.serve(config, is_given, passed).map_err(|failure| match self.log_format {
            LogFormat::Text => failure,
            // Every line of the log can be parsed, the last one included.
            LogFormat::Json => {
                log::diagnostics(LogFormat::Json, &failure.diagnostics, None);
                Failure { diagnostics: Vec::new(), ..failure }
            }
        })
    }

    /// Serves: what is below depends on what is above it, and ends in the reverse order.
    fn serve(
        &self,
        mut config: Config,
        is_given: &dyn Fn(&str) -> bool,
        passed: Result<Option<TcpListener>, Diagnostic>,
    ) -> CommandResult {
        self.check(&config, is_given)?;
        let mut bound = self.open(passed?)?;
        let outlets = self.start_outlets(&bound, &mut config)?;
        let store = Arc::clone(&bound.store);
        let mut sources = LiveSources::new(&self.loading, &self.ownership, self.drift, self.log_format, store)
            .observed_by(outlets.notifier.as_ref().map(|notifier| notifier.outbox() as Arc<dyn SourceObserver>));
        let first_syncs = sources.start(self.wanted(&config))?;
        let following = sources.list();
        if following.iter().next().is_some() && !bound.server.wait(first_syncs) {
            bound.manager.stopping();
            // All loops stop at the same time.
            following.stop();
            tracing::info!("Stopped.");
            return Ok(Exit::Done);
        }
        self.answer(bound, &outlets, config, Self::from_file(is_given), sources)?;
        drop(outlets);
        tracing::info!("Stopped.");
        Ok(Exit::Done)
    }

    /// Checks what needs neither the socket nor the store.
    fn check(&self, config: &Config, is_given: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        if self.manifests.iter().any(|path| path.as_os_str() == "-") {
            let fault = Diagnostic::error(Code::Parameter, "`--manifests` cannot be standard input");
            return Err(fault.help("use a file or folder").into());
        }
        // Later, they may come back, and what they declared is served until then.
        let is_missing = |path: &&PathBuf| fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if let Some(path) = self.manifests.iter().find(is_missing)
            && !probe(self.store.folder())?
        {
            let fault = Diagnostic::error(Code::Unreadable, format!("{} does not exist", path.display()));
            return Err(fault
                .help("check the path; only a server that has a store starts without its manifests")
                .into());
        }
        if !config.sources.is_empty() {
            self.check_alone(is_given)?;
        }
        if let Some(file) = &config.git_hook {
            check_hook_secret(file)?;
        }
        if !config.client_certificates.is_empty() && !self.listen.knows_clients() {
            let fault = Diagnostic::error(Code::Parameter, "`client_certificates` requires `--tls-client-ca`");
            return Err(fault.help("set --tls-client-ca to the authorities of clients' certificates").into());
        }
        Ok(())
    }

    /// Binds the socket, and opens the store.
    fn open(&self, passed: Option<TcpListener>) -> Result<BoundServer, Failure> {
        // Its clock is compared with that of the system for a while, in which the store can be opened.
        drop(std::thread::Builder::new().name("metrics".into()).spawn(install_metrics));
        let (server, tls) = self.listen.bind(passed)?;
        let manager = ServiceManager::from_environment();
        if let Some(interval) = manager.signs_of_life() {
            let manager = manager.clone();
            server.every(interval, move || manager.alive());
        }
        let address = server.address().map_err(|error| internal(&error))?;
        let store = Arc::new(self.store.open_to_serve()?);
        maintain_from_time_to_time(&store);
        let base_url = self.base_url.clone().unwrap_or_else(|| {
            let scheme = if tls.is_some() { "https" } else { "http" };
            format!("{scheme}://{address}")
        });
        note_server(self.store.folder(), &local_url(address, tls.is_some(), &base_url));
        // The first run is over before there is a router. Waits for the other thread, and does it all if there is none.
        install_metrics();
        Ok(BoundServer { server, tls, manager, address, base_url, store })
    }

    /// Starts what tells others of the store's changes, and creates the first admin.
    fn start_outlets(&self, bound: &BoundServer, config: &mut Config) -> Result<Outlets, Failure> {
        let store = &bound.store;
        let notifier = Notifier::start(store, std::mem::take(&mut config.notifications), &bound.base_url)?;
        self.create_admin(store)?;
        if let Some(warning) = keys::wide_keys(&store.snapshot()) {
            tracing::warn!("{warning}");
        }
        let (log, logging) = self.guards.open_log(store)?.unzip();
        if let Some(log) = &log {
            log_sources(store, SecurityLog::clone(log)).map_err(|error| internal(&error))?;
        }
        #[cfg(feature = "otlp")]
        let exporting = self.otlp_endpoint.as_deref().map(otlp::start).transpose()?;
        Ok(Outlets {
            log,
            _logging: logging,
            notifier,
            #[cfg(feature = "otlp")]
            _exporting: exporting,
        })
    }

    /// The API of a bound server.
    fn api(&self, bound: &BoundServer, outlets: &Outlets, config: &Config, rest_writes: &RestWrites) -> App {
        let base_url = bound.base_url.clone();
        let saml_base_url = self.saml_base_url.clone().unwrap_or_else(|| base_url.clone());
        let settings = Settings { base_url, saml_base_url, version_header: self.version_header.clone() };
        let app = App::new(Arc::clone(&bound.store), settings)
            .stopped_by(&bound.server)
            .file_cache(self.file_cache_mib.saturating_mul(1 << 20))
            .max_watchers(self.max_watchers)
            .blanks_count(self.blanks_count)
            .outbox(outlets.notifier.as_ref().map(Notifier::outbox))
            .tls(bound.tls.clone(), ClientCertificates::new(config.client_certificates.clone()))
            .guarded(self.guards.settings(bound.server.most_connections()), outlets.log.clone())
            .rest_writes(rest_writes.clone());
        match &config.git_hook {
            Some(file) => app.git_hook(file.clone()),
            None => app,
        }
    }

    /// Answers requests, and applies changes of the configuration file, until the process is asked to stop.
    fn answer(
        &self,
        bound: BoundServer,
        outlets: &Outlets,
        config: Config,
        options: BTreeSet<String>,
        sources: LiveSources<'_>,
    ) -> Result<(), Failure> {
        let following = sources.list();
        let rest_writes = RestWrites::default();
        rest_writes.set(config.rest_writes.clone());
        let app = self.api(&bound, outlets, &config, &rest_writes).following_list(following.clone());
        let service = ApiService::new(app);
        let BoundServer { server, tls, manager, address, base_url, store } = bound;
        drop(store);
        tracing::info!("Serving {} (listening on {address}). Stop with Ctrl-C.", escaped(&base_url));
        let (watch, trigger) = ConfigWatch::new(Config::path());
        let told = (manager.clone(), base_url.clone());
        let reloader = Reloader::new(self, config, options, sources, outlets.log.clone(), told, rest_writes);
        let (hangup, looking) = (trigger.clone(), following.clone());
        let (reloading, stopping) = (manager.clone(), manager.clone());
        let on_hangup = move || {
            tracing::info!("SIGHUP: reading the configuration file and the manifests");
            reloading.reloading();
            if let Some(tls) = &tls {
                tls.reload();
            }
            hangup.reload();
            looking.iter().for_each(|following| following.request_sync());
        };
        let served = std::thread::scope(|scope| {
            let name = "configuration".to_owned();
            std::thread::Builder::new().name(name).spawn_scoped(scope, move || reloader.run(watch))?;
            manager.ready(&base_url);
            let served = server.run_following(service, following, on_hangup, move || stopping.stopping());
            trigger.stop();
            served
        });
        served.map_err(|error| internal(&error).into())
    }

    /// Creates an admin on the first start: without one, nobody could create keys (D23).
    fn create_admin(&self, store: &Store) -> Result<(), Failure> {
        if rules::has_admin(&store.snapshot()) {
            return Ok(());
        }
        let mut handed_out = false;
        let hand_out = |token: &Secret| -> Result<(), Failure> {
            match &self.admin_token_file {
                Some(file) => replace_token(file, token)?,
                None => {
                    log::admin_token(self.log_format, token).map_err(|error| {
                        let message = format!("cannot write the admin token to standard error: {error}");
                        Diagnostic::error(Code::Unreadable, message).help("set --admin-token-file")
                    })?;
                }
            }
            handed_out = true;
            Ok(())
        };
        // The server's log begins after its first admin.
        let log = LocalLog::default();
        let owner_id = ids::fresh_id(Kind::Owner).to_string();
        let spec = ApiKey { description: "first admin".into(), owner_id, ..ApiKey::default() };
        let created = keys::create(store, log, Some(Role::Admin), spec, hand_out);
        match (&created, &self.admin_token_file) {
            (Ok(()), Some(file)) => {
                tracing::info!("The admin token is in {}.", escaped(&file.display().to_string()));
            }
            (Err(_), Some(file)) if handed_out => drop(fs::remove_file(file)),
            (Err(_), None) if handed_out => {
                tracing::error!("The admin was not created: the token above does not work.");
            }
            _ => {}
        }
        created
    }

    /// Rejects the options of a single source if the configuration file lists sources: it would be unclear to which of
    /// them a limit applies.
    pub(super) fn check_alone(&self, is_given: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        let options = [
            ("manifests", "--manifests"),
            ("source", "--source"),
            ("prune", "--prune"),
            ("isolate", "--isolate"),
            ("max_deletes", "--max-deletes"),
            ("drift", "--drift"),
        ];
        // The configuration file can set `manifests`, too.
        let is_set = |id: &str| is_given(id) || (id == "manifests" && !self.manifests.is_empty());
        match options.into_iter().find(|(id, _)| is_set(id)) {
            None => Ok(()),
            Some((_, option)) => {
                let message = format!("`{option}` cannot be combined with `sources` in the configuration file");
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
    fn from_file(is_given: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
        let command = command();
        let free = command.get_arguments().filter(|argument| !is_given(argument.get_id().as_str()));
        free.filter_map(|argument| argument.get_long().map(str::to_owned)).collect()
    }
}

/// The command with its options, without the configuration file.
pub(super) fn command() -> clap::Command {
    <Args as clap::Args>::augment_args(clap::Command::new("serve"))
}

/// The parts that all others depend on.
struct BoundServer {
    server: Server,
    tls: Option<Arc<Tls>>,
    manager: ServiceManager,
    address: SocketAddr,
    base_url: String,
    store: Arc<Store>,
}

/// The parts that report changes of the store. Their threads end after the last request.
struct Outlets {
    log: Option<SecurityLog>,
    _logging: Option<SecurityLogThread>,
    notifier: Option<Notifier>,
    #[cfg(feature = "otlp")]
    _exporting: Option<otlp::SpanExport>,
}

fn internal(error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(Code::Internal, error.to_string())
}

/// Checks the secret of a webhook at the start. Later it is read for each request, so that it can be changed.
fn check_hook_secret(file: &Path) -> Result<(), Diagnostic> {
    read_secret(file).map(drop).map_err(|reason| {
        let message = format!("cannot read the webhook's `secret_file` {}: {reason}", file.display());
        Diagnostic::error(Code::Unreadable, message).help("write the secret that the forge signs with to the file")
    })
}

/// The URL of a server for processes on its machine. A certificate is for the name that clients use.
fn local_url(address: SocketAddr, has_tls: bool, base_url: &str) -> String {
    if has_tls {
        return base_url.to_owned();
    }
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// Parses the name of a header.
fn header_name(name: &str) -> Result<String, String> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(_) => Ok(name.to_owned()),
        Err(_) => Err("must be a valid header name".to_owned()),
    }
}

/// Parses a URL that others build theirs from (D13), without the slash at its end.
fn public_url(url: &str) -> Result<String, String> {
    // The parser drops fragments.
    let url = http_url(url).filter(|_| !url.contains('#'));
    url.ok_or_else(|| "must be an http or https URL without credentials, query or fragment".to_owned())
}

/// Parses an HTTP URL without credentials and query, and removes the slash at its end.
fn http_url(url: &str) -> Option<String> {
    let uri: Uri = url.parse().ok()?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    let authority = uri.authority()?.as_str();
    let is_valid = is_http && !authority.is_empty() && !authority.contains('@') && uri.query().is_none();
    is_valid.then(|| url.trim_end_matches('/').to_owned())
}
