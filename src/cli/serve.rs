//! `edgewright serve`.

use std::{fs, io::IsTerminal, path::PathBuf, sync::Arc};

use tracing_subscriber::EnvFilter;

use super::{
    CommandResult, Exit, Failure, StoreArgs, keys,
    show::{self, say},
    source::{Loading, Ownership},
};
use crate::{
    api::{
        App, Settings, VERSION_HEADER, bind, install_metrics,
        notify::{Notifier, config::NotificationTarget},
        reconciliation::files::DEFAULT_MIB,
        router,
        watch::DEFAULT_WATCHERS,
    },
    model::{code::Code, diagnostic::Diagnostic, kind::owner::Role, rules, secret::Secret},
    plan::render::sign,
    reconcile::{
        LintLevels,
        token::write_token,
        watch::{Handle, RunReport, follow},
    },
    store::Store,
};

/// Serve the management API, and reconcile the store with a folder of manifests.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Manifest file or folder to follow: applies valid changes, and reports invalid ones without applying them.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_MANIFESTS")]
    manifests: Vec<PathBuf>,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    store: StoreArgs,
    /// Address to listen on; port 0 picks a free port.
    #[arg(long, value_name = "ADDR", env = "EDGEWRIGHT_LISTEN", default_value = "127.0.0.1:8484")]
    listen: String,
    /// Public URL of the API, used for every `uri` in responses (default: the listen address).
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_BASE_URL")]
    base_url: Option<String>,
    /// Public URL for SAML identity providers (default: the base URL).
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_SAML_BASE_URL")]
    saml_base_url: Option<String>,
    /// Name of the header that selects the API version.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_VERSION_HEADER", default_value = VERSION_HEADER)]
    version_header: String,
    /// File to write the admin token to on the first start (mode 0600), instead of stderr.
    #[arg(long, value_name = "FILE", env = "EDGEWRIGHT_ADMIN_TOKEN_FILE")]
    admin_token_file: Option<PathBuf>,
    /// Maximum memory in MiB for manifests from clients, which then send only changed files; 0 keeps none.
    #[arg(long, value_name = "MIB", env = "EDGEWRIGHT_FILE_CACHE_MIB", default_value_t = DEFAULT_MIB)]
    file_cache_mib: u64,
    /// Maximum number of clients that watch changes at a time.
    #[arg(long, value_name = "N", env = "EDGEWRIGHT_MAX_WATCHERS", default_value_t = DEFAULT_WATCHERS)]
    max_watchers: usize,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(self, lints: LintLevels, notifications: Vec<NotificationTarget>) -> CommandResult {
        let filter = EnvFilter::try_from_env("EDGEWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info,notify=warn"));
        let _ = tracing_subscriber::fmt()
            .with_ansi(std::io::stderr().is_terminal())
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .try_init();
        if axum::http::HeaderName::from_bytes(self.version_header.as_bytes()).is_err() {
            let message = format!("`{}` is not a valid header name", self.version_header);
            return Err(Diagnostic::error(Code::InvalidFormat, message).into());
        }
        if self.manifests.iter().any(|path| path.as_os_str() == "-") {
            let fault = Diagnostic::error(Code::Parameter, "`--manifests` cannot be standard input");
            return Err(fault.help("use a file or folder").into());
        }
        let mut server = bind(&self.listen).map_err(|error| {
            Diagnostic::error(Code::CannotListen, format!("cannot listen on {}: {error}", self.listen))
                .help("set --listen to an IP address and a free port, such as 127.0.0.1:8484")
        })?;
        let address = server.address().map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?;
        let store = Arc::new(self.store.open_to_serve()?);
        let base_url = trimmed(self.base_url.clone().unwrap_or_else(|| format!("http://{address}")));
        // The first run is over before there is a router.
        install_metrics();
        let notifier = Notifier::start(&store, notifications, &base_url)?;
        self.create_admin(&store)?;
        let mut handle = self.follow(&store, lints)?;
        if let Some(handle) = &mut handle
            && !server.wait(handle.first_look())
        {
            say("Stopped.");
            return Ok(Exit::Done);
        }
        let following = handle.as_ref().map(Handle::following);
        let saml_base_url = self.saml_base_url.clone().map_or_else(|| base_url.clone(), trimmed);
        let settings =
            Settings { base_url: base_url.clone(), saml_base_url, version_header: self.version_header.clone() };
        let app = App::new(store, settings).following(following.clone()).stopped_by(&server);
        let app = app.outbox(notifier.as_ref().map(Notifier::outbox));
        let app = app.file_cache(self.file_cache_mib.saturating_mul(1 << 20)).max_watchers(self.max_watchers);
        let router = router(app);
        say(&format!("Serving {base_url} (listening on {address}). Stop with Ctrl-C."));
        server.run(router, following).map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?;
        drop((handle, notifier));
        say("Stopped.");
        Ok(Exit::Done)
    }

    /// Creates an admin on the first start: without one, nobody could create keys (D23).
    fn create_admin(&self, store: &Store) -> Result<(), Failure> {
        if !rules::has_no_admin(&store.snapshot()) {
            return Ok(());
        }
        let mut handed_out = false;
        let hand_out = |token: &Secret| -> Result<(), Failure> {
            match &self.admin_token_file {
                Some(file) => write_token(file, token.expose()).map_err(|error| {
                    let message = format!("cannot write the admin token to `{}`: {error}", file.display());
                    Diagnostic::error(Code::Unreadable, message)
                })?,
                None => {
                    let line = format!("Admin token (shown only once): {}", token.expose());
                    show::try_say(&line).map_err(|error| {
                        let message = format!("cannot write the admin token to standard error: {error}");
                        Diagnostic::error(Code::Unreadable, message).help("set --admin-token-file")
                    })?;
                }
            }
            handed_out = true;
            Ok(())
        };
        let created = keys::create(store, Some(Role::Admin), None, "first admin".into(), hand_out);
        match (&created, &self.admin_token_file) {
            (Ok(()), Some(file)) => say(&format!("The admin token is in {}.", file.display())),
            (Err(_), Some(file)) if handed_out => drop(fs::remove_file(file)),
            (Err(_), None) if handed_out => say("The admin was not created: the token above does not work."),
            _ => {}
        }
        created
    }

    fn follow(&self, store: &Arc<Store>, lints: LintLevels) -> Result<Option<Handle>, Failure> {
        if self.manifests.is_empty() {
            return Ok(None);
        }
        let options = self.ownership.options(self.loading.of(self.manifests.clone()), lints);
        let reported = Arc::clone(store);
        let handle = follow(Arc::clone(store), options, &self.manifests, move |report| log(&report, reported.as_ref()));
        handle
            .map(Some)
            .map_err(|error| Diagnostic::error(Code::Unreadable, format!("cannot watch the manifests: {error}")).into())
    }
}

/// The most changes of a plan that are logged.
const SHOWN_CHANGES: usize = 20;

fn trimmed(url: String) -> String {
    url.trim_end_matches('/').to_owned()
}

fn log(report: &RunReport, store: &Store) {
    match report {
        RunReport::Applied { plan, revision } => {
            for change in plan.changes.iter().take(SHOWN_CHANGES) {
                say(&format!("{} {} {}", sign(change.effect), change.key.kind, change.name));
            }
            if plan.changes.len() > SHOWN_CHANGES {
                say(&format!("… and {} more", plan.changes.len() - SHOWN_CHANGES));
            }
            say(&format!("Applied as revision {revision}: {}.", plan.summary()));
        }
        RunReport::InSync { unchanged, .. } => say(&format!("In sync with the manifests: {unchanged} unchanged.")),
        RunReport::Invalid(planned) => {
            show::diagnostics(&planned.diagnostics);
            show::count(&planned.diagnostics, planned.files.len());
            say("The manifests are not applied; the last good state stays in service.");
        }
        RunReport::Partly(planned) => {
            show::diagnostics(&planned.diagnostics);
            show::count(&planned.diagnostics, planned.files.len());
            for left_out in planned.left_out_names() {
                say(&format!("Skipped: {left_out}"));
            }
            say("No resource is deleted until these errors are fixed.");
            say(&format!("The rest is applied; the store is at revision {}.", store.snapshot().revision));
        }
        RunReport::Failed(diagnostics) => {
            show::diagnostics(diagnostics);
            say("The plan is not applied; the last good state stays in service.");
        }
    }
}
