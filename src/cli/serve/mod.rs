//! `edgewright serve`: `args.rs` has the options, and this file starts what they ask for.
//!
//! A server serves in rounds, with one role in each: it writes to its store, it follows the server that does, or it reads a local
//! copy until the database answers (`role`). There is only one round unless the store is in a database.

mod activation;
mod args;
pub(crate) mod core_dumps;
pub(crate) mod huge_pages;
pub(crate) mod limit_args;
mod listen;
pub(crate) mod log;
#[cfg(feature = "otlp")]
mod otlp;
mod reload;
mod role;
mod service_manager;
pub(crate) mod source_config;
mod urls;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use clap::{ArgMatches, Command};

use crate::background::{ThreadGuard, lower_priority_of_pool};
use crate::cli::access::keys;
use crate::cli::access::wide_keys::wide_keys;
use crate::cli::config::Config;
use crate::cli::config::location::config_path;
use crate::cli::prelude::*;
use crate::model::{ApiKey, rules};
use crate::reconcile::run::token::replace_token;
use crate::reconcile::sources::handle::SourceObserver;
use crate::server::auth::client_certificates::ClientCertificates;
use crate::server::notify::Notifier;
use crate::server::resources::write_policy::RestWrites;
use crate::server::telemetry::security::{LocalLog, SecurityLog, SecurityLogThread, log_sources};
use crate::server::{ApiService, App, Server, Settings, Tls, install_metrics};
use crate::store::checkpoint::maintain_from_time_to_time;
use crate::store::local_copy::LocalCopy;
use crate::store::note_server;
pub(super) use args::{Args, check_file, command};
use log::LogFormat;
use reload::{ConfigWatch, LiveSources, Reloader};
use role::RoleWatch;
use service_manager::ServiceManager;

impl Args {
    /// Runs the command of a program with the arguments of the process.
    pub(super) fn run(self, config: Config, program: &Command, matches: &ArgMatches) -> CommandResult {
        core_dumps::turn_off_for_server();
        huge_pages::turn_off();
        // Before there are other threads.
        let passed = activation::passed_socket();
        lower_priority_of_pool();
        log::start(self.log_format);
        self.serve(config, program, matches, passed).map_err(|failure| match self.log_format {
            LogFormat::Text => failure,
            // Every line of the log can be parsed, the last one included.
            LogFormat::Json => {
                log::diagnostics(LogFormat::Json, &failure.diagnostics, None);
                Failure { diagnostics: Vec::new(), ..failure }
            }
        })
    }

    /// Serves in rounds. The order of a start is that of its types: `open` makes a [`BoundServer`], `start_parts` takes it and makes
    /// the rest of a [`Round`], and `answer` takes both.
    fn serve(
        &self,
        config: Config,
        program: &Command,
        matches: &ArgMatches,
        passed: Result<Option<TcpListener>, Diagnostic>,
    ) -> CommandResult {
        self.check(&config, matches)?;
        let (mut next, mut lasting) = (Some((self.open(passed?)?, config)), None);
        while let Some((bound, config)) = next {
            next = self.round(bound, config, &mut lasting, program, matches)?;
        }
        drop(lasting);
        tracing::info!("Stopped.");
        Ok(Exit::Done)
    }

    /// Serves until the process is asked to stop, or has another role. Then returns what the next round begins with. A server that
    /// serves already never ends because a part does not start, for example while the database is away.
    fn round(
        &self,
        mut bound: BoundServer,
        config: Config,
        lasting: &mut Option<BackgroundOutputs>,
        program: &Command,
        matches: &ArgMatches,
    ) -> Result<Option<(BoundServer, Config)>, Failure> {
        let is_first = lasting.is_none();
        // Before everything that takes long.
        let role = loop {
            match RoleWatch::start(&self.store, &self.retention, &bound.store) {
                Err(error) if !is_first => {
                    tracing::error!("cannot keep the role of this server, trying again: {error}");
                    std::thread::sleep(Duration::from_secs(1));
                }
                started => break started.map_err(|error| internal(&error))?,
            }
        };
        let (outputs, sources) = match self.start_parts(&bound, &config, lasting) {
            Ok((outputs, sources, first_syncs)) => {
                let registry = sources.list();
                if !is_first {
                    // The store has what the server before has applied, and clients wait.
                    registry.iter().for_each(|source| source.health.set_optional());
                } else if registry.iter().next().is_some() && !bound.server.wait(first_syncs) {
                    bound.manager.stopping();
                    // All loops stop at the same time.
                    registry.stop();
                    return Ok(None);
                }
                (outputs, sources)
            }
            Err(failure) if is_first => return Err(failure),
            Err(failure) => {
                for diagnostic in &failure.diagnostics {
                    tracing::error!("sources and notifications do not start, trying again: {}", diagnostic.message);
                }
                role.try_again();
                let log = lasting.as_ref().and_then(|lasting| lasting.log.clone());
                let outputs = RoundOutputs { log, notifier: None, _maintenance: None };
                let reasons: Vec<&str> = failure.diagnostics.iter().map(|it| it.message.as_str()).collect();
                let sources = LiveSources::new(self, Arc::clone(&bound.store), None);
                sources.set_unstarted(&self.wanted(&config), reasons.join("; "));
                (outputs, sources)
            }
        };
        self.answer(bound, Round { outputs, sources, role }, config, program, Self::from_file(matches))
    }

    /// Starts what a round has besides the API. The future completes after the first runs of the sources.
    fn start_parts(
        &self,
        bound: &BoundServer,
        config: &Config,
        lasting: &mut Option<BackgroundOutputs>,
    ) -> Result<(RoundOutputs, LiveSources<'_>, impl Future<Output = ()> + use<>), Failure> {
        let outputs = self.start_outputs(bound, config, lasting)?;
        let observer = outputs.notifier.as_ref().map(|notifier| notifier.outbox() as Arc<dyn SourceObserver>);
        let mut sources = LiveSources::new(self, Arc::clone(&bound.store), observer);
        // Nobody logs them if the sources do not start: another round does then.
        let revisions = outputs.log.clone().map(|log| (bound.store.subscribe(), log));
        let first_syncs = sources.start(self.wanted(config))?;
        if let Some((revisions, log)) = revisions.filter(|_| bound.store.followed_writer().is_none()) {
            log_sources(revisions, log).map_err(|error| internal(&error))?;
        }
        Ok((outputs, sources, first_syncs))
    }

    fn open(&self, passed: Option<TcpListener>) -> Result<BoundServer, Failure> {
        // Its clock is compared with that of the system for a while, in which the store can be opened.
        drop(std::thread::Builder::new().name("metrics".into()).spawn(install_metrics));
        let (server, tls) = self.listen.bind(passed)?;
        let manager = ServiceManager::from_environment();
        show_life(&server, &manager);
        let address = server.address().map_err(|error| internal(&error))?;
        let copy = self.local_copy.as_deref().map(|folder| self.store.local_copy(folder, &self.retention));
        let copy = copy.transpose()?.map(Arc::new);
        let store = Arc::new(self.open_store(copy.as_deref())?);
        let base_url = self.base_url.clone().unwrap_or_else(|| {
            let scheme = if tls.is_some() { "https" } else { "http" };
            format!("{scheme}://{address}")
        });
        note_server(self.store.folder(), &local_url(address, tls.is_some(), &base_url));
        // The first run is over before there is a router. Waits for the other thread, and does it all if there is none.
        install_metrics();
        Ok(BoundServer { server, tls, manager, address, base_url, store, copy })
    }

    /// Opens the store or, if its database is away, the local copy of it.
    fn open_store(&self, copy: Option<&LocalCopy>) -> Result<Store, Failure> {
        let away = match self.store.open_to_serve(&self.retention, None) {
            Err(failure) if failure.has_code(Code::StoreUnavailable) => failure,
            opened => return opened,
        };
        match copy.map(LocalCopy::stand_in).transpose().map(Option::flatten) {
            Ok(Some(stand_in)) => {
                // It may not pass by itself.
                log::diagnostics(self.log_format, &away.diagnostics, None);
                Ok(stand_in)
            }
            Ok(None) => Err(away),
            Err(error) => {
                tracing::warn!(code = %error.code, "cannot open the local copy: {error}");
                Err(away)
            }
        }
    }

    /// Starts what tells others of the store's changes, and creates the first admin. A server that follows does neither.
    fn start_outputs(
        &self,
        bound: &BoundServer,
        config: &Config,
        lasting: &mut Option<BackgroundOutputs>,
    ) -> Result<RoundOutputs, Failure> {
        let (store, followed) = (&bound.store, bound.store.followed_writer());
        let (mut notifier, mut maintenance) = (None, None);
        if store.stands_in_since().is_some() {
            let revision = store.snapshot().revision;
            tracing::warn!(
                "The database does not answer. This server answers from its local copy of revision {revision}, and only \
                 reads until the database is back."
            );
        } else if let Some(writer) = &followed {
            let name = escaped(&writer.name);
            let does = if writer.url.is_some() { "forwards changes to it" } else { "only reads" };
            tracing::info!("Another server writes to the store ({name}). This one follows it, and {does}.");
        } else {
            match &self.advertise_url {
                Some(url) => store.advertise(url)?,
                None if store.is_shared() => {
                    tracing::info!("Servers that follow this one refuse changes: it has no `--advertise-url`.");
                }
                None => {}
            }
            maintenance = maintain_from_time_to_time(store);
            notifier = Notifier::start(store, config.notifications.clone(), &bound.base_url)?;
            self.create_admin(store)?;
        }
        if let Some(warning) = wide_keys(&store.snapshot()) {
            tracing::warn!("{warning}");
        }
        if lasting.is_none() {
            *lasting = Some(self.start_lasting(store)?);
        }
        let log = lasting.as_ref().and_then(|lasting| lasting.log.clone());
        Ok(RoundOutputs { log, notifier, _maintenance: maintenance })
    }

    /// Starts what reports until the process ends.
    fn start_lasting(&self, store: &Store) -> Result<BackgroundOutputs, Failure> {
        let (log, logging) = self.limits.open_log(store)?.unzip();
        #[cfg(feature = "otlp")]
        let exporting = self.otlp_endpoint.as_deref().map(otlp::start).transpose()?;
        Ok(BackgroundOutputs {
            log,
            _logging: logging,
            #[cfg(feature = "otlp")]
            _exporting: exporting,
        })
    }

    fn api(&self, bound: &BoundServer, outputs: &RoundOutputs, config: &Config, rest_writes: &RestWrites) -> App {
        let base_url = bound.base_url.clone();
        let saml_base_url = self.saml_base_url.clone().unwrap_or_else(|| base_url.clone());
        let settings = Settings { base_url, saml_base_url, version_header: self.version_header.clone() };
        let app = App::new(Arc::clone(&bound.store), settings)
            .stopped_by(&bound.server)
            .file_cache(self.file_cache_mib.saturating_mul(1 << 20))
            .max_watchers(self.max_watchers)
            .blanks_count(self.blanks_count)
            .dashboard(!self.no_dashboard)
            .outbox(outputs.notifier.as_ref().map(Notifier::outbox))
            .tls(bound.tls.clone(), ClientCertificates::new(config.client_certificates.clone()))
            .guarded(self.limits.settings(bound.server.limits.most), outputs.log.clone())
            .openid_connect(config.openid_connect.clone())
            .rest_writes(rest_writes.clone());
        match &config.git_hook {
            Some(file) => app.git_hook(file.clone()),
            None => app,
        }
    }

    /// Answers requests, and applies changes of the configuration file, until the round ends.
    fn answer(
        &self,
        bound: BoundServer,
        round: Round<'_>,
        config: Config,
        program: &Command,
        options: BTreeSet<String>,
    ) -> Result<Option<(BoundServer, Config)>, Failure> {
        let Round { outputs, sources, mut role } = round;
        let registry = sources.list();
        let rest_writes = RestWrites::default();
        rest_writes.set(config.rest_writes.clone());
        sources.warn_of_unknown(&config.rest_writes);
        let app = self.api(&bound, &outputs, &config, &rest_writes).source_registry(registry.clone());
        let service = ApiService::new(app);
        let ends = role.ends();
        let BoundServer { server, tls, manager, address, base_url, store, copy } = bound;
        // One that stands in for the database has nothing to take in.
        let copied = copy.as_ref().filter(|_| store.stands_in_since().is_none());
        let _keeper = copied.map(|copy| copy.keep(&store)).transpose().map_err(|error| internal(&error))?;
        drop(store);
        tracing::info!("Serving {} (listening on {address}). Stop with Ctrl-C.", escaped(&base_url));
        let (watch, trigger) = ConfigWatch::new(config_path());
        let told = (manager.clone(), base_url.clone());
        let reloader = Reloader::new(self, config, options, sources, outputs.log.clone(), told, rest_writes);
        let (hangup, to_sync) = (trigger.clone(), registry.clone());
        let (reloading, stopping, renewed) = (manager.clone(), manager.clone(), tls.clone());
        let on_hangup = move || {
            tracing::info!("SIGHUP: reading the configuration file and the manifests");
            reloading.reloading();
            if let Some(tls) = &renewed {
                tls.reload();
            }
            hangup.reload();
            to_sync.iter().for_each(|handle| handle.request_sync());
        };
        let served: std::io::Result<(Option<Server>, Config)> = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("configuration".to_owned());
            let configuring = thread.spawn_scoped(scope, move || reloader.run(watch, program))?;
            manager.ready(&base_url);
            let answer = Box::new(move |request| service.answer(request));
            let served = server.run_round(answer, registry, on_hangup, move || stopping.stopping(), ends);
            trigger.stop();
            let config = configuring.join().map_err(|_| std::io::Error::other("the configuration is unknown"))?;
            Ok((served?, config))
        });
        let (server, config) = served.map_err(|error| internal(&error))?;
        // Whoever has to stop needs no other store.
        let (Some(server), Some(store)) = (server, role.next()) else { return Ok(None) };
        show_life(&server, &manager);
        Ok(Some((BoundServer { server, tls, manager, address, base_url, store, copy }, config)))
    }

    /// Creates an admin on the first start: without one, nobody could create keys (D23).
    fn create_admin(&self, store: &Store) -> Result<(), Failure> {
        if rules::has_admin(&store.snapshot()) {
            // Users would wait for a file that is never written.
            if let Some(file) = self.admin_token_file.as_ref().filter(|file| !file.exists()) {
                let file = file.display().to_string();
                let file = escaped(&file);
                tracing::info!(
                    "The store already has an admin: {file} was not written. For a new token, stop the server, and run \
                     `edgewright keys create --role admin --token-file {file}` on its store."
                );
            }
            return Ok(());
        }
        let hand_out = |token: &Secret| -> Result<(), Failure> {
            let (written, place) = match &self.admin_token_file {
                Some(file) => (replace_token(file, token), file.display().to_string()),
                None => (log::admin_token(self.log_format, token), "standard error".to_owned()),
            };
            written.map_err(|error| {
                let message = format!("cannot write the admin token to {place}: {error}");
                Diagnostic::error(Code::Unreadable, message).help("set --admin-token-file to a new file").into()
            })
        };
        let take_back = || match &self.admin_token_file {
            Some(file) => drop(fs::remove_file(file)),
            None => tracing::error!("The admin was not created: the token above does not work."),
        };
        // The server's log begins after its first admin.
        let log = LocalLog::default();
        let owner_id = ids::fresh_id(Kind::Owner).to_string();
        let spec = ApiKey { description: "first admin".into(), owner_id, ..ApiKey::default() };
        keys::create(store, log, Some(Role::Admin), spec, hand_out, take_back)?;
        if let Some(file) = &self.admin_token_file {
            tracing::info!("The admin token is in {}.", escaped(&file.display().to_string()));
        }
        Ok(())
    }
}

/// The parts that all others depend on.
struct BoundServer {
    server: Server,
    tls: Option<Arc<Tls>>,
    manager: ServiceManager,
    address: SocketAddr,
    base_url: String,
    store: Arc<Store>,
    copy: Option<Arc<LocalCopy>>,
}

/// The parts of one round besides the API.
struct Round<'a> {
    outputs: RoundOutputs,
    sources: LiveSources<'a>,
    role: RoleWatch,
}

/// The parts that report changes of the store in one round, and maintain it. Their threads end after its last request.
struct RoundOutputs {
    log: Option<SecurityLog>,
    notifier: Option<Notifier>,
    _maintenance: Option<ThreadGuard>,
}

/// The parts that report until the process ends.
struct BackgroundOutputs {
    log: Option<SecurityLog>,
    _logging: Option<SecurityLogThread>,
    #[cfg(feature = "otlp")]
    _exporting: Option<otlp::SpanExport>,
}

/// Has a server show the service manager that it lives.
fn show_life(server: &Server, manager: &ServiceManager) {
    if let Some(interval) = manager.signs_of_life() {
        let manager = manager.clone();
        server.every(interval, move || manager.alive());
    }
}

fn internal(error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(Code::Internal, error.to_string())
}

/// The URL of a server for processes on its machine. A certificate is for the name that clients use.
fn local_url(address: SocketAddr, has_tls: bool, base_url: &str) -> String {
    if has_tls {
        return base_url.to_owned();
    }
    format!("http://{}", on_this_machine(address))
}

/// The address at which this machine reaches a server that listens on an address: that of all addresses stands for loopback.
pub(crate) fn on_this_machine(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}
