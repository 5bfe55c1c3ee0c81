//! A store behind a running server, reached through `/reconciliations`.

use std::{
    collections::{BTreeMap, HashMap},
    io::Write,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use axum::http::Uri;
use serde::Deserialize;
use ureq::Agent;

use super::{PlanFile, Proposal, Target};
use crate::{
    api::{
        VERSION_HEADER,
        body::Limits,
        reconciliation::wire::{Request, Run},
    },
    cli::{Exit, Failure, progress::during, show},
    manifest::tree::{SentFile, collect},
    model::{
        Kind,
        code::Code,
        diagnostic::{Diagnostic, Name, Severity, SourceFile, sort},
        id::Id,
        json,
        secret::{Secret, Secrets},
    },
    plan::{
        Effect,
        format::json::{Item, ReportDocument},
        report::Report,
        saved::SavedPlan,
    },
    reconcile::{
        Options, Planned,
        token::{TokenFiles, Tokens},
        validate_loaded,
    },
};

/// The environment variable with the token. A flag would expose it in the process list.
const TOKEN: &str = "EDGEWRIGHT_TOKEN";
/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(10);
/// The response timeout.
const RESPONSE: Duration = Duration::from_secs(600);

/// The server that a command works through.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServerArgs {
    /// Plan and apply through a running `edgewright serve` instead of a local store. Reads the token from the
    /// environment variable EDGEWRIGHT_TOKEN.
    #[arg(long, value_name = "URL", env = "EDGEWRIGHT_SERVER")]
    server: Option<String>,
    /// Name of the server's version header.
    #[arg(long, value_name = "NAME", env = "EDGEWRIGHT_VERSION_HEADER", default_value = VERSION_HEADER)]
    version_header: String,
}

impl ServerArgs {
    /// Lets `--store` on the command line override a server from the environment; both flags together are an error.
    pub(crate) fn give_way(&mut self, store_by_flag: bool, server_by_flag: bool) -> Result<(), Failure> {
        if store_by_flag && server_by_flag {
            let fault = Diagnostic::error(Code::Parameter, "`--store` and `--server` cannot be used together");
            return Err(fault.help("remove one of them").into());
        }
        if store_by_flag {
            self.server = None;
        }
        Ok(())
    }

    /// The server's URL, if one is set.
    pub(crate) fn url(&self) -> Option<&str> {
        self.server.as_deref().filter(|url| !url.is_empty())
    }
}

/// Plans and applies through a server. Errors in the files alone are reported before anything is sent.
pub(crate) struct ServerTarget {
    agent: Agent,
    url: String,
    version_header: String,
    token: Secret,
    options: Options,
    proposed: Option<Proposed>,
}

/// The last proposal.
struct Proposed {
    files: Vec<SentFile>,
    /// New API keys and the paths of their token files.
    keys: Vec<(Id, PathBuf)>,
    outcome: String,
    /// The plan as it was shown, to say how another one differs.
    shown: Option<SavedPlan>,
}

/// A server's error response (D9).
#[derive(Deserialize)]
struct ErrorResponse {
    error_code: String,
    msg: String,
    #[serde(default)]
    errors: Vec<ErrorItem>,
}

#[derive(Deserialize)]
struct ErrorItem {
    error_code: String,
    msg: String,
}

impl ServerTarget {
    /// Prepares a client. Sends nothing yet.
    pub(crate) fn new(url: &str, args: &ServerArgs, options: Options) -> Result<Self, Failure> {
        let (url, uri) = address(url)?;
        let token = std::env::var(TOKEN).unwrap_or_default();
        if token.trim().is_empty() {
            let fault = Diagnostic::error(Code::Unauthenticated, format!("no token is set for {url}"));
            return Err(fault.help(format!("set {TOKEN} to the token of an API key")).into());
        }
        if uri.scheme_str() == Some("http") && !is_this_machine(&uri) {
            let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
            let _ = writeln!(
                anstream::stderr(),
                "Warning: the token and all secrets are sent to {host} over unencrypted HTTP."
            );
        }
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(RESPONSE))
            .max_redirects(0)
            .user_agent(concat!("edgewright/", env!("CARGO_PKG_VERSION")))
            .tls_config(ureq::tls::TlsConfig::builder().root_certs(ureq::tls::RootCerts::PlatformVerifier).build())
            .build();
        Ok(Self {
            agent: Agent::new_with_config(agent),
            url: format!("{url}/reconciliations"),
            version_header: args.version_header.clone(),
            token: Secret::new(token.trim()),
            options,
            proposed: None,
        })
    }

    fn request(&self, files: Vec<SentFile>) -> Request {
        let lints = &self.options.lints;
        let author = self.options.tree.commit_author();
        let (name, email) = author.map(|author| (author.name, author.email)).unwrap_or_default();
        let levels = lints.levels.iter().map(|(name, level)| (name.clone(), level.as_str().to_owned()));
        Request {
            files,
            dry_run: true,
            source: self.options.source.clone(),
            prune: self.options.prune,
            isolate: self.options.isolate,
            max_deletes: self.options.budget,
            commit: self.options.tree.commit().unwrap_or_default(),
            commit_author_name: name,
            commit_author_email: email,
            lints: levels.collect(),
            allowed_labels: lints.allowed_labels.clone(),
            certificate_expiry_days: lints.certificate_expiry_days,
            expect: String::new(),
            token_hashes: BTreeMap::new(),
        }
    }

    fn send(&self, request: &Request) -> Result<Run, SendError> {
        let no_response = |reason: String| match request.dry_run {
            true => SendError::Refused(self.unreachable(&reason)),
            // Without a response, it is unknown whether the plan was applied.
            false => SendError::NoResponse(format!("no response from {}: {reason}", self.url)),
        };
        let body = json::bytes(request, Secrets::Revealed).map_err(|error| no_response(error.to_string()))?;
        if body.len() > Limits::MANIFESTS.bytes {
            let (size, most) = (body.len() >> 20, Limits::MANIFESTS.bytes >> 20);
            let message = format!("the manifests and their values are too large: {size} MiB, the limit is {most} MiB");
            let help = "split the manifests into several sources, or run reconcile on the store's machine";
            return Err(SendError::Refused(Diagnostic::error(Code::BodyTooLarge, message).help(help).into()));
        }
        let sent = self
            .agent
            .post(&self.url)
            .header("Authorization", format!("Bearer {}", self.token.expose()))
            .header(&self.version_header, "2")
            .header("Content-Type", "application/json")
            .send(&body);
        let mut response = sent.map_err(|error| match error {
            ureq::Error::Io(error) => no_response(error.to_string()),
            error => no_response(error.to_string()),
        })?;
        let status = response.status().as_u16();
        let text = response.body_mut().with_config().limit(u64::MAX).read_to_vec();
        let text = text.map_err(|error| no_response(error.to_string()))?;
        if status >= 500 && !request.dry_run && !is_turned_away(&text) {
            return Err(no_response(format!("status {status}")));
        }
        if !matches!(status, 200 | 201) {
            return Err(SendError::Refused(self.refused(status, &text)));
        }
        serde_json::from_slice(&text).map_err(|_| match request.dry_run {
            true => SendError::Refused(self.foreign_response(status)),
            false => no_response("the response is not a report".into()),
        })
    }

    /// The failure for a response that is not from edgewright.
    fn foreign_response(&self, status: u16) -> Failure {
        let message = format!("unexpected response from {} (status {status}): not an edgewright server", self.url);
        let help = "check the URL in --server and any proxy in front of the server";
        Diagnostic::error(Code::Unreadable, message).help(help).into()
    }

    fn unreachable(&self, reason: &str) -> Failure {
        Diagnostic::error(Code::Unreadable, format!("cannot reach {}: {reason}", self.url))
            .help("check the URL in --server, and that the server is running")
            .into()
    }

    /// Converts an error response into a failure.
    fn refused(&self, status: u16, text: &[u8]) -> Failure {
        let Ok(refusal) = serde_json::from_slice::<ErrorResponse>(text) else { return self.foreign_response(status) };
        let one = |code: &str, msg: &str| {
            let known = Code::from_name(code);
            let help = match known {
                Some(Code::Unauthenticated) => "set EDGEWRIGHT_TOKEN to the token of an API key that is not revoked",
                Some(Code::VersionHeader) => "set --version-header to the name of the server's version header",
                Some(Code::NotFound) => "check the path of the URL in --server",
                Some(code) => code.info().cure,
                None => "use the same edgewright version as the server",
            };
            Diagnostic::error(known.unwrap_or(Code::Internal), format!("rejected by the server: {msg}")).help(help)
        };
        let exit = match Code::from_name(&refusal.error_code) {
            Some(Code::Stale) => Exit::Stale,
            Some(Code::PreventDestroy | Code::TooManyDeletions) => Exit::Refused,
            _ => Exit::Error,
        };
        let several = refusal.errors.iter().map(|it| one(&it.error_code, &it.msg));
        let mut diagnostics: Vec<Diagnostic> = several.collect();
        if diagnostics.is_empty() {
            diagnostics.push(one(&refusal.error_code, &refusal.msg));
        }
        Failure { diagnostics, exit }
    }

    /// Converts the server's run into a proposal, with places in the local files.
    fn proposal(&mut self, run: Run, files: Vec<SentFile>, validated: Planned) -> Proposal {
        let known: HashMap<&str, Arc<SourceFile>> =
            validated.files.iter().map(|file| (file.source.name.as_str(), Arc::clone(&file.source))).collect();
        // For an unset variable or unreadable file, the local diagnostic says more: the values are read on this
        // machine.
        let here = |it: Diagnostic| {
            let of_value = matches!(it.code, Name::Code(Code::EnvUnset | Code::FileUnreadable));
            let same = |own: &&Diagnostic| of_value && own.place.is_some() && own.position() == it.position();
            validated.diagnostics.iter().find(same).cloned().unwrap_or(it)
        };
        let diagnostics = |items: &[Item]| items.iter().map(|item| here(item.diagnostic(&known))).collect();
        let report = Report {
            command: "plan",
            diagnostics: diagnostics(&run.report.diagnostics),
            refusals: diagnostics(&run.report.refusals),
            plan: run.report.plan,
            files: validated.files.len(),
            first_file: validated.files.first().map(|file| file.source.name.clone()),
            applied: None,
        };
        let wanted = |name: &str| {
            let mut keys = validated.desired.values().filter(|wanted| wanted.key.kind == Kind::ApiKey);
            keys.find(|wanted| wanted.claim.name == name)
        };
        let changes = report.plan.iter().flat_map(|plan| &plan.changes);
        let created = changes.filter(|change| matches!(change.effect, Effect::Create | Effect::Replace));
        let keys = created.filter(|change| change.kind == Kind::ApiKey.info().name);
        let keys: Vec<_> = keys.filter_map(|change| Some((Id::new(&change.id), wanted(&change.name)?))).collect();
        let unwritable = keys.iter().filter_map(|(_, wanted)| validated.token_fault(&wanted.key)).collect();
        let keys = keys.into_iter().filter_map(|(id, wanted)| Some((id, wanted.token_file.clone()?))).collect();
        self.proposed = Some(Proposed { files, keys, outcome: run.outcome, shown: run.saved_plan.clone() });
        Proposal { report, left_out: run.left_out, saved: run.saved_plan, unwritable }
    }

    /// Plans once more, and shows how the plan differs from the one that was shown before.
    fn show_difference(&self, proposed: Proposed) {
        let now = self.send(&self.request(proposed.files)).ok().and_then(|run| run.saved_plan);
        if let (Some(shown), Some(now)) = (proposed.shown, now) {
            show::difference(&shown.diff(&now));
        }
    }

    /// Sends the apply of what was proposed, once.
    fn send_apply(&self, proposed: &Proposed, tokens: &mut TokenFiles) -> Result<Run, SendError> {
        let mut request =
            Request { dry_run: false, expect: proposed.outcome.clone(), ..self.request(proposed.files.clone()) };
        for (key, file) in &proposed.keys {
            match tokens.hash(key, file) {
                Ok(hash) => request.token_hashes.insert(key.to_string(), hash),
                Err(error) => return Err(SendError::Refused(error.diagnostic().into())),
            };
        }
        self.send(&request)
    }
}

/// Whether the server itself turned the request away before starting on it. A proxy's 503 does not prove that.
fn is_turned_away(text: &[u8]) -> bool {
    let refusal = serde_json::from_slice::<ErrorResponse>(text);
    refusal.is_ok_and(|refusal| Code::from_name(&refusal.error_code) == Some(Code::Unavailable))
}

/// Validates a server URL and removes trailing slashes.
fn address(text: &str) -> Result<(String, Uri), Failure> {
    // A password does not belong on a command line, or in the messages that show the URL.
    let text = text.trim_end_matches('/');
    let parsed = text.parse::<Uri>().ok().filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    match parsed {
        Some(uri) if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            let fault = Diagnostic::error(
                Code::InvalidFormat,
                "the URL in `--server` must not contain a user name or password",
            );
            Err(fault.help(format!("remove it, and set {TOKEN} to the token of an API key")).into())
        }
        Some(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok((text.to_owned(), uri)),
        _ => {
            let fault = Diagnostic::error(Code::InvalidFormat, format!("`{text}` is not an HTTP or HTTPS URL"));
            Err(fault.help("use a URL such as `https://edge.example.com`").into())
        }
    }
}

/// Whether a server runs on this machine.
fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
}

/// Why a request has no report.
enum SendError {
    /// The server rejected the request or was not reached: nothing has changed.
    Refused(Failure),
    /// There is no usable response: the plan may have been applied or not.
    NoResponse(String),
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Refused(failure) => failure,
            SendError::NoResponse(reason) => Diagnostic::error(Code::Timeout, reason)
                .help("run plan again to see whether the changes were applied")
                .into(),
        }
    }
}

impl Target for ServerTarget {
    fn propose(&mut self, _document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
        let (loaded, files) = during("Reading", || collect(&self.options.tree));
        let validated = validate_loaded(&loaded, &self.options.lints);
        // Only the server can resolve every reference: another source may own the target.
        let is_local_error =
            |it: &Diagnostic| it.severity == Severity::Error && it.code != Name::Code(Code::UnknownReference);
        let stops = validated.diagnostics.iter().any(is_local_error) && !self.options.isolate;
        if stops || (validated.has_errors() && files.is_empty()) {
            let (report, unwritable) = (validated.report("plan"), Vec::new());
            return Ok(Proposal { report, left_out: Vec::new(), saved: None, unwritable });
        }
        // Unreadable files are not sent. With pruning, their resources would be deleted.
        let unread = [Code::Unreadable, Code::EmptySource, Code::EmptyFile, Code::NotUtf8].map(Name::Code);
        let unread: Vec<Diagnostic> =
            validated.diagnostics.iter().filter(|it| unread.contains(&it.code)).cloned().collect();
        self.options.prune &= unread.is_empty();
        let run = during("Planning", || self.send(&self.request(files.clone())))?;
        // Without the outcome, the server could not check that it applies this very plan.
        if run.report.plan.is_some() && run.outcome.is_empty() {
            return Err(self.foreign_response(200));
        }
        let mut proposal = self.proposal(run, files, validated);
        proposal.report.diagnostics.extend(unread);
        sort(&mut proposal.report.diagnostics);
        Ok(proposal)
    }

    fn apply(&mut self) -> Result<u64, Failure> {
        let Some(proposed) = self.proposed.take() else { return Ok(0) };
        let mut tokens = TokenFiles::default();
        let answer = during("Applying", || self.send_apply(&proposed, &mut tokens));
        match answer {
            Ok(Run { report: ReportDocument { applied: Some(revision), .. }, .. }) => Ok(revision),
            Ok(_) => {
                Err(SendError::NoResponse(format!("the response from {} has no applied revision", self.url)).into())
            }
            Err(SendError::Refused(failure)) => {
                tokens.take_back();
                if failure.exit == Exit::Stale {
                    self.show_difference(proposed);
                }
                Err(failure)
            }
            // Keep the token files: their keys may exist by now.
            Err(error @ SendError::NoResponse(_)) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Uri, is_this_machine};

    #[test]
    fn only_a_loopback_address_is_this_machine() {
        let is_this_machine =
            |address: &str| is_this_machine(&format!("http://{address}").parse::<Uri>().unwrap_or_default());
        for address in ["localhost", "LOCALHOST:8484", "127.0.0.1:8484/base", "127.0.0.2", "[::1]:8484"] {
            assert!(is_this_machine(address), "{address}");
        }
        for address in ["edge.example.com", "localhost.example.com:80", "10.0.0.1:8484", "[fe80::1]:80", ""] {
            assert!(!is_this_machine(address), "{address}");
        }
    }
}
