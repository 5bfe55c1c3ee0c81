//! `edgewright serve`.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    CommandResult, Exit, Failure, StoreArgs,
    followed::{self, ConfiguredSource},
    keys,
    log::{self, LogFormat},
    source::{Loading, Ownership},
};
use crate::{
    api::{
        App, Settings, VERSION_HEADER, bind, hooks::read_secret, install_metrics, reconciliation::files::DEFAULT_MIB,
        router,
    },
    model::{code::Code, diagnostic::Diagnostic, kind::owner::Role, rules, secret::Secret},
    reconcile::{
        LintLevels,
        following::{FollowedSource, Following, Handle, INTERVAL, SourceLocation},
        suspension::Suspensions,
        token::write_token,
        watch::follow_source,
    },
    store::{Store, background::lower_priority_of_pool},
    text::escaped,
};

/// Serve the management API, and reconcile the store with folders of manifests.
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
    /// Form of the log on stderr. EDGEWRIGHT_LOG sets its levels, such as `info,edgewright::access=warn`.
    #[arg(long, value_name = "FORMAT", env = "EDGEWRIGHT_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

impl Args {
    /// Runs the command.
    pub(super) fn run(
        self,
        lints: LintLevels,
        sources: Vec<ConfiguredSource>,
        git_hook: Option<PathBuf>,
        is_given: &dyn Fn(&str) -> bool,
    ) -> CommandResult {
        lower_priority_of_pool();
        log::start(self.log_format);
        self.serve(lints, sources, git_hook, is_given).map_err(|failure| match self.log_format {
            LogFormat::Text => failure,
            // Every line of the log can be parsed, the last one included.
            LogFormat::Json => {
                log::diagnostics(LogFormat::Json, &failure.diagnostics, None);
                Failure { diagnostics: Vec::new(), ..failure }
            }
        })
    }

    fn serve(
        &self,
        lints: LintLevels,
        sources: Vec<ConfiguredSource>,
        git_hook: Option<PathBuf>,
        is_given: &dyn Fn(&str) -> bool,
    ) -> CommandResult {
        if axum::http::HeaderName::from_bytes(self.version_header.as_bytes()).is_err() {
            let message = format!("`{}` is not a valid header name", self.version_header);
            return Err(Diagnostic::error(Code::InvalidFormat, message).into());
        }
        if self.manifests.iter().any(|path| path.as_os_str() == "-") {
            let fault = Diagnostic::error(Code::Parameter, "`--manifests` cannot be standard input");
            return Err(fault.help("use a file or folder").into());
        }
        if !sources.is_empty() {
            self.check_alone(is_given)?;
        }
        if let Some(file) = &git_hook {
            check_hook_secret(file)?;
        }
        let mut server = bind(&self.listen).map_err(|error| {
            Diagnostic::error(Code::CannotListen, format!("cannot listen on {}: {error}", self.listen))
                .help("set --listen to an IP address and a free port, such as 127.0.0.1:8484")
        })?;
        let address = server.address().map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?;
        let store = Arc::new(self.store.open_to_serve()?);
        self.create_admin(&store)?;
        // The first run is over before there is a router.
        install_metrics();
        let mut handles = self.follow(&store, lints, sources)?;
        let looks: Vec<_> = handles.iter_mut().map(Handle::first_look).collect();
        let first_looks = async move {
            for look in looks {
                look.await;
            }
        };
        if !handles.is_empty() && !server.wait(first_looks) {
            // All loops stop at the same time.
            handles.iter().for_each(|handle| handle.following().stop());
            tracing::info!("Stopped.");
            return Ok(Exit::Done);
        }
        let following: Vec<Arc<Following>> = handles.iter().map(Handle::following).collect();
        let base_url = trimmed(self.base_url.clone().unwrap_or_else(|| format!("http://{address}")));
        let saml_base_url = self.saml_base_url.clone().map_or_else(|| base_url.clone(), trimmed);
        let settings =
            Settings { base_url: base_url.clone(), saml_base_url, version_header: self.version_header.clone() };
        let mut app = App::new(store, settings).following(following.clone());
        if let Some(file) = git_hook {
            app = app.git_hook(file);
        }
        let router = router(app.file_cache(self.file_cache_mib.saturating_mul(1 << 20)));
        tracing::info!("Serving {} (listening on {address}). Stop with Ctrl-C.", escaped(&base_url));
        server.run(router, following).map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?;
        drop(handles);
        tracing::info!("Stopped.");
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
                    log::admin_token(self.log_format, token).map_err(|error| {
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
    fn check_alone(&self, is_given: &dyn Fn(&str) -> bool) -> Result<(), Failure> {
        let options = [
            ("manifests", "--manifests"),
            ("source", "--source"),
            ("prune", "--prune"),
            ("isolate", "--isolate"),
            ("max_deletes", "--max-deletes"),
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

    /// Follows the sources of the configuration file, or the one of the options.
    fn follow(
        &self,
        store: &Arc<Store>,
        lints: LintLevels,
        sources: Vec<ConfiguredSource>,
    ) -> Result<Vec<Handle>, Failure> {
        let mut followed = Vec::new();
        let folder = store.beside().map(|on_disk| on_disk.folder);
        let mirrors = followed::mirrors(&sources, folder.as_deref())?;
        for source in sources {
            let name = source.name.clone();
            followed.push((Some(name), source.followed(&self.loading, &self.ownership, mirrors.as_ref())?));
        }
        if followed.is_empty() && !self.manifests.is_empty() {
            let paths = self.manifests.clone();
            let options = self.ownership.options(self.loading.of(paths.clone()), lints);
            let location = SourceLocation { paths: paths.clone(), ..SourceLocation::default() };
            let (interval, is_suspended, fetching) = (INTERVAL, false, None);
            let source = FollowedSource { options, watched: paths, interval, location, is_suspended, fetching };
            followed.push((None, source));
        }
        if followed.is_empty() {
            return Ok(Vec::new());
        }
        let suspensions = Arc::new(Suspensions::open(Arc::clone(store))?);
        let mut handles = Vec::new();
        for (label, source) in followed {
            let (reported, format) = (Arc::clone(store), self.log_format);
            let handle = follow_source(Arc::clone(store), source, Arc::clone(&suspensions), move |report, author| {
                log::run(format, &report, author, reported.snapshot().revision);
            });
            let handle = handle.map_err(|error| {
                let of = label.map(|name| format!(" of source `{name}`")).unwrap_or_default();
                Diagnostic::error(Code::Unreadable, format!("cannot watch the manifests{of}: {error}"))
            });
            handles.push(handle?);
        }
        Ok(handles)
    }
}

/// Checks the secret of a webhook at the start. Later it is read for each request, so that it can be changed.
fn check_hook_secret(file: &Path) -> Result<(), Diagnostic> {
    read_secret(file).map(drop).map_err(|reason| {
        let message = format!("cannot read the webhook's `secret_file` {}: {reason}", file.display());
        Diagnostic::error(Code::Unreadable, message).help("write the secret that the forge signs with to the file")
    })
}

fn trimmed(url: String) -> String {
    url.trim_end_matches('/').to_owned()
}
