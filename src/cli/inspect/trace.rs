//! `edgewright trace`.

use std::{fmt::Write as _, net::IpAddr, path::PathBuf, sync::Arc};

use crate::{
    cli::{
        CommandResult, Exit, Failure,
        input::option_origin::Given,
        manifests::{
            review::ContextArgs,
            source_args::{Loading, Ownership},
        },
        output::{diagnostics, print},
        snapshot_of,
        target::{ApiClient, ServerTarget, store_or_server::StoreOrServer},
    },
    manifest::tree::{Disk, Tree},
    model::{
        diagnostics::{code::Code, diagnostic::Diagnostic},
        json,
        secrets::secret::Secrets,
        snapshot::Snapshot,
    },
    reconcile::{ApplyError, LintLevels, Options, Prepared},
    routing::{TracedRequest, trace},
    server::operations::trace::{HeaderToTrace, PATH, RequestToTrace, TraceReport},
    store::{CommitError, ids_and_clock},
    syntax::text::{escaped, printable},
};

/// Show which edge and route would take a request, why other routes would not, and which modules it passes.
///
/// Reads the store or, with --server, has a running server trace the request. With --manifests, reads only the files or, with
/// --server, traces as if the server had applied them. With --manifests and --after, compares the store or the server before and
/// after the plan of these files. Sends no request and changes nothing. Exits with code 0 if a route takes the request
/// (with --after, once the plan is applied), and with code 1 otherwise.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Method (default: GET) and URL of the request (default scheme: https).
    #[arg(value_name = "[METHOD] URL", num_args = 1..=2, required = true)]
    request: Vec<String>,
    /// Manifest file or folder to read instead of the store. Repeatable.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_MANIFESTS")]
    manifests: Vec<PathBuf>,
    /// Trace in the store or server as it is, and again as if the plan of the manifests had been applied.
    #[arg(long, env = "EDGEWRIGHT_AFTER", requires = "manifests")]
    after: bool,
    #[command(flatten)]
    context: ContextArgs,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    place: StoreOrServer,
    /// Client IP address of the request.
    #[arg(long, value_name = "IP", env = "EDGEWRIGHT_CLIENT_IP")]
    client_ip: Option<IpAddr>,
    /// Request header, as `Name: value`. Repeatable.
    #[arg(long = "header", value_name = "HEADER", env = "EDGEWRIGHT_HEADER", value_parser = header)]
    headers: Vec<(String, String)>,
    /// User-Agent of the request.
    #[arg(long, value_name = "TEXT", env = "EDGEWRIGHT_USER_AGENT")]
    user_agent: Option<String>,
}

/// Parses a header in curl's form.
fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected `Name: value`".into()),
    }
}

impl Args {
    /// Whether the command reads manifests, and not only the store.
    pub(crate) fn reads_manifests(&self) -> bool {
        !self.manifests.is_empty()
    }

    /// Chooses between a store and a server. Manifests alone need neither.
    pub(crate) fn choose(&mut self, given: &Given<'_>) -> Result<(), Failure> {
        match self.reads_manifests() && !self.after {
            true => self.place.server.choose(given),
            false => self.place.choose(given),
        }
    }

    /// Runs the command.
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let request = self.request()?;
        let mut out = format!("{}\n", plain(&request.to_string()));
        let last = if self.manifests.is_empty() {
            let trace = match self.place.client()? {
                Some(client) => self.of_server(&client)?,
                None => report(&snapshot_of(Some(&self.place.store.read_existing()?)), &request),
            };
            write_trace(&mut out, &request, &trace);
            trace
        } else if self.after {
            let (was, becomes) = match self.place.server.url() {
                Some(url) => self.through_server(url, lints)?,
                None => {
                    let before = snapshot_of(self.place.store.read_if_there()?.as_ref());
                    (report(&before, &request), report(&self.applied(Some(&before), &lints)?, &request))
                }
            };
            out.push_str("\nbefore the plan");
            write_trace(&mut out, &request, &was);
            out.push_str("\nafter the plan");
            write_trace(&mut out, &request, &becomes);
            let same = (&was.edge, was.route(), &was.modules) == (&becomes.edge, becomes.route(), &becomes.modules);
            let does = if same { "does not change" } else { "changes" };
            let _ = writeln!(out, "\nThe plan {does} the handling of this request.");
            becomes
        } else {
            let trace = match self.place.server.url() {
                Some(url) => self.through_server(url, lints)?.1,
                None => report(&self.applied(None, &lints)?, &request),
            };
            write_trace(&mut out, &request, &trace);
            trace
        };
        print(out)?;
        Ok(if last.route().is_some() { Exit::Done } else { Exit::Error })
    }

    /// Has a server trace the request, which is valid.
    fn of_server(&self, client: &ApiClient) -> Result<TraceReport, Failure> {
        client.request(PATH, &json::bytes(&self.to_send(), Secrets::Masked)?)
    }

    /// Has a server plan the manifests, and trace the request before and after the plan.
    fn through_server(&self, url: &str, lints: LintLevels) -> Result<(TraceReport, TraceReport), Failure> {
        let options = Options { tree: self.tree(), ..self.ownership.options(Disk::default(), lints) };
        let (planned, traced) = ServerTarget::new(url, &self.place.server, options)?.trace(self.to_send())?;
        if planned.has_errors() {
            diagnostics::diagnostics(&planned.diagnostics);
        }
        match traced.map(|traced| (traced.before, traced.after)) {
            Some((before, Some(after))) => Ok((before, after)),
            _ if planned.refusals.is_empty() => Err(Failure { diagnostics: Vec::new(), exit: Exit::Invalid }),
            _ => Err(Failure { diagnostics: planned.refusals, exit: Exit::Refused }),
        }
    }

    /// The request, for a server.
    fn to_send(&self) -> RequestToTrace {
        let (method, url) = self.method_and_url();
        let headers =
            self.headers.iter().map(|(name, value)| HeaderToTrace { name: name.clone(), value: value.clone() });
        RequestToTrace {
            url: url.to_owned(),
            method: method.to_owned(),
            client_ip: self.client_ip.map(|ip| ip.to_string()).unwrap_or_default(),
            user_agent: self.user_agent.clone().unwrap_or_default(),
            headers: headers.collect(),
        }
    }

    /// The manifests in their context.
    fn tree(&self) -> Arc<dyn Tree> {
        self.context.around(Arc::new(self.loading.of(self.manifests.clone())), &self.loading)
    }

    fn method_and_url(&self) -> (&str, &str) {
        match self.request.as_slice() {
            [method, url] => (method.as_str(), url.as_str()),
            [url] => ("GET", url.as_str()),
            _ => ("GET", ""),
        }
    }

    fn request(&self) -> Result<TracedRequest, Failure> {
        let (method, url) = self.method_and_url();
        if method.is_empty() || !method.bytes().all(|b| b.is_ascii_alphabetic()) {
            let fault =
                Diagnostic::error(Code::InvalidFormat, format!("`{}` is not an HTTP method", printable(method)));
            return Err(fault.help("put the method first: `edgewright trace POST https://…`").into());
        }
        let request = TracedRequest::new(method, url).map_err(|reason| {
            Diagnostic::error(Code::InvalidFormat, format!("invalid URL `{}`: {reason}", printable(url)))
                .help("use a URL such as `https://shop.example.com/cart`")
        })?;
        let (client_ip, user_agent) = (self.client_ip, self.user_agent.clone());
        Ok(TracedRequest { client_ip, user_agent, headers: self.headers.clone(), ..request })
    }

    /// Returns a copy of a store's state with the manifests' plan applied. Without a store, only the context is there.
    fn applied(&self, state: Option<&Snapshot>, lints: &LintLevels) -> Result<Snapshot, Failure> {
        let prepared =
            Prepared::load(Options { tree: self.tree(), ..self.ownership.options(Disk::default(), lints.clone()) });
        let snapshot = state.map_or_else(|| prepared.context_state(), Snapshot::clone);
        let planned = prepared.plan(&snapshot);
        if planned.has_errors() {
            diagnostics::diagnostics(&planned.diagnostics);
        }
        let Some(plan) = planned.plan else {
            return Err(Failure { diagnostics: Vec::new(), exit: Exit::Invalid });
        };
        if !plan.refusals.is_empty() {
            return Err(Failure { diagnostics: plan.refusals, exit: Exit::Refused });
        }
        let applied = snapshot.apply(&plan.operations(), ids_and_clock::now());
        let applied = applied.map_err(|refusal| ApplyError::Commit(CommitError::Refused(refusal)).diagnostic())?;
        Ok(applied.0)
    }
}

/// Escapes the characters that a terminal interprets.
fn plain(text: &str) -> String {
    escaped(text).into_owned()
}

/// Traces a request through a state.
fn report(snapshot: &Snapshot, request: &TracedRequest) -> TraceReport {
    TraceReport::of(request, &trace(snapshot, request))
}

/// The name, if any, and the id.
fn cells(name: Option<&str>, id: &str) -> [String; 2] {
    [plain(name.unwrap_or("(not owned)")), plain(id)]
}

fn write_trace(out: &mut String, request: &TracedRequest, trace: &TraceReport) {
    out.push('\n');
    let Some(edge) = &trace.edge else {
        let _ = writeln!(out, "No edge serves {}:{}.", plain(&request.host), request.port);
        return;
    };
    let why = if edge.wildcard { ", a wildcard" } else { "" };
    let blind = if edge.passes_through { "; TLS is passed through" } else { "" };
    let [name, id] = cells(edge.name.as_deref(), &edge.id);
    let mut head = vec![vec!["edge".into(), name, format!("by {}{why}{blind}", plain(&edge.hostport)), id]];
    if let Some(route) = trace.route() {
        let [name, id] = cells(route.name.as_deref(), &route.id);
        head.push(vec!["route".into(), name, format!("by {} {}", plain(&route.match_type), plain(&route.r#match)), id]);
    }
    write_table(out, "", &head);
    if trace.route().is_none() {
        let _ = writeln!(out, "No route matches.");
    }
    let routes = trace.routes.iter().map(|route| {
        let mark = if route.taken { "*" } else { "-" };
        let [name, id] = cells(route.name.as_deref(), &route.id);
        vec![mark.into(), name, plain(&route.match_type), plain(&route.r#match), plain(&route.verdict), id]
    });
    let routes: Vec<Vec<String>> = routes.collect();
    if !routes.is_empty() {
        out.push_str("\nroutes considered\n");
        write_table(out, "  ", &routes);
    }
    let modules = trace.modules.iter().enumerate().map(|(index, passage)| {
        vec![(index + 1).to_string(), plain(&passage.module), plain(&passage.effect), plain(&passage.note)]
    });
    let modules: Vec<Vec<String>> = modules.collect();
    if !modules.is_empty() {
        out.push_str("\nmodules, in processing order\n");
        write_table(out, "  ", &modules);
    }
}

/// A formatter's width has 16 bits, and no terminal is wider than this.
const WIDEST: usize = 200;

/// Writes rows with aligned columns.
pub(crate) fn write_table(out: &mut String, indent: &str, rows: &[Vec<String>]) {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
            .min(WIDEST)
    };
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        let _ = writeln!(out, "{indent}{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
