//! `edgewright serve`.

use std::{fs, io::IsTerminal, path::PathBuf, sync::Arc};

use tracing_subscriber::EnvFilter;

use super::{
    CommandResult, Exit, Failure, StoreArgs,
    followed::ConfiguredSource,
    keys,
    show::{self, say},
    source::{Loading, Ownership},
};
use crate::{
    api::{App, Settings, VERSION_HEADER, bind, install_metrics, reconciliation::files::DEFAULT_MIB, router},
    model::{code::Code, diagnostic::Diagnostic, kind::owner::Role, rules, secret::Secret},
    plan::render::sign,
    reconcile::{
        LintLevels,
        following::{FollowedSource, Following, Handle, INTERVAL, SourceLocation},
        run::RunReport,
        suspension::Suspensions,
        token::write_token,
        watch::follow_source,
    },
    store::{Store, background::lower_priority_of_pool},
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
}

impl Args {
    /// Runs the command.
    pub(super) fn run(
        self,
        lints: LintLevels,
        sources: Vec<ConfiguredSource>,
        is_given: &dyn Fn(&str) -> bool,
    ) -> CommandResult {
        lower_priority_of_pool();
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
        if !sources.is_empty() {
            self.check_alone(is_given)?;
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
            say("Stopped.");
            return Ok(Exit::Done);
        }
        let following: Vec<Arc<Following>> = handles.iter().map(Handle::following).collect();
        let base_url = trimmed(self.base_url.clone().unwrap_or_else(|| format!("http://{address}")));
        let saml_base_url = self.saml_base_url.clone().map_or_else(|| base_url.clone(), trimmed);
        let settings =
            Settings { base_url: base_url.clone(), saml_base_url, version_header: self.version_header.clone() };
        let app = App::new(store, settings).following(following.clone());
        let router = router(app.file_cache(self.file_cache_mib.saturating_mul(1 << 20)));
        say(&format!("Serving {base_url} (listening on {address}). Stop with Ctrl-C."));
        server.run(router, following).map_err(|error| Diagnostic::error(Code::Internal, error.to_string()))?;
        drop(handles);
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
        for source in sources {
            followed.push((Some(source.name.clone()), source.followed(&self.loading, &self.ownership)?));
        }
        if followed.is_empty() && !self.manifests.is_empty() {
            let paths = self.manifests.clone();
            let options = self.ownership.options(self.loading.of(paths.clone()), lints);
            let location = SourceLocation { paths: paths.clone(), ..SourceLocation::default() };
            let source = FollowedSource { options, watched: paths, interval: INTERVAL, location, is_suspended: false };
            followed.push((None, source));
        }
        if followed.is_empty() {
            return Ok(Vec::new());
        }
        let suspensions = Arc::new(Suspensions::open(Arc::clone(store))?);
        let mut handles = Vec::new();
        for (label, source) in followed {
            let (shown, reported) = (label.clone(), Arc::clone(store));
            let handle = follow_source(Arc::clone(store), source, Arc::clone(&suspensions), move |report| {
                log(&report, reported.as_ref(), shown.as_deref());
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

/// The most changes of a plan that are logged.
const SHOWN_CHANGES: usize = 20;

fn trimmed(url: String) -> String {
    url.trim_end_matches('/').to_owned()
}

/// Logs a report. `label` is the source, if there may be several.
fn log(report: &RunReport, store: &Store, label: Option<&str>) {
    let say = |line: &str| match label {
        Some(label) => say(&format!("[{label}] {line}")),
        None => say(line),
    };
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
        RunReport::RolledBack { commit } => {
            let commit = commit.as_ref().map(|commit| format!(" (commit {commit})")).unwrap_or_default();
            say(&format!("A rollback left these manifests{commit}. They are not applied until they change."));
        }
        RunReport::Suspended(planned) => {
            show::diagnostics(&planned.diagnostics);
            let summary = planned.plan.as_ref().map(|plan| plan.summary()).unwrap_or_default();
            say(&format!("Not applied, because the source is suspended: {summary}."));
        }
        RunReport::Failed(diagnostics) => {
            show::diagnostics(diagnostics);
            say("The plan is not applied; the last good state stays in service.");
        }
    }
}
