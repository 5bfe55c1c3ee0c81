//! `edgewright trace`.

use std::{fmt::Write as _, net::IpAddr, path::PathBuf, sync::Arc};

use super::{
    CommandResult, Exit, Failure, StoreArgs,
    output::print,
    review::ContextArgs,
    show, snapshot_of,
    source::{Loading, Ownership},
};
use crate::{
    manifest::tree::Disk,
    model::{code::Code, diagnostic::Diagnostic, snapshot::Snapshot},
    reconcile::{ApplyError, LintLevels, Options, Prepared},
    routing::{HostRank, Named, RouteDecision, StepEffect, Trace, TracedRequest, trace},
    store::{CommitError, mint},
    text::{escaped, printable},
};

/// Show which edge and route would take a request, why other routes would not, and which modules it passes.
///
/// Reads the store, or only the files with --manifests. With --manifests and --after, compares the store before and
/// after the plan of these files. Sends no request and changes nothing. Exits with code 0 if a route takes the request
/// (with --after, once the plan is applied), and with code 1 otherwise.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Method (default: GET) and URL of the request (default scheme: https).
    #[arg(value_name = "[METHOD] URL", num_args = 1..=2, required = true)]
    request: Vec<String>,
    /// Manifest file or folder to read instead of the store. Repeatable.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_MANIFESTS")]
    manifests: Vec<PathBuf>,
    /// Trace in the current store and again as if the plan of the manifests had been applied.
    #[arg(long, env = "EDGEWRIGHT_AFTER", requires = "manifests")]
    after: bool,
    #[command(flatten)]
    context: ContextArgs,
    #[command(flatten)]
    loading: Loading,
    #[command(flatten)]
    ownership: Ownership,
    #[command(flatten)]
    store: StoreArgs,
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
    pub(super) fn reads_manifests(&self) -> bool {
        !self.manifests.is_empty()
    }

    /// Runs the command.
    pub(super) fn run(self, lints: LintLevels) -> CommandResult {
        let request = self.request()?;
        let mut out = format!("{}\n", plain(&request.to_string()));
        let last = if self.manifests.is_empty() {
            let trace = trace(&snapshot_of(Some(&self.store.read_existing()?)), &request);
            write_trace(&mut out, &request, &trace);
            trace
        } else if self.after {
            let store = self.store.read_if_there()?;
            let before = snapshot_of(store.as_ref());
            let (was, becomes) = (trace(&before, &request), trace(&self.applied(Some(&before), &lints)?, &request));
            out.push_str("\nbefore the plan");
            write_trace(&mut out, &request, &was);
            out.push_str("\nafter the plan");
            write_trace(&mut out, &request, &becomes);
            let same = (&was.edge, was.route(), &was.modules) == (&becomes.edge, becomes.route(), &becomes.modules);
            let does = if same { "does not change" } else { "changes" };
            let _ = writeln!(out, "\nThe plan {does} the handling of this request.");
            becomes
        } else {
            let trace = trace(&self.applied(None, &lints)?, &request);
            write_trace(&mut out, &request, &trace);
            trace
        };
        print(out)?;
        Ok(if last.route().is_some() { Exit::Done } else { Exit::Error })
    }

    fn request(&self) -> Result<TracedRequest, Failure> {
        let (method, url) = match self.request.as_slice() {
            [method, url] => (method.as_str(), url.as_str()),
            [url] => ("GET", url.as_str()),
            _ => ("GET", ""),
        };
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
        let tree = self.context.around(Arc::new(self.loading.of(self.manifests.clone())), &self.loading);
        let prepared = Prepared::load(Options { tree, ..self.ownership.options(Disk::default(), lints.clone()) });
        let snapshot = state.map_or_else(|| prepared.context_state(), Snapshot::clone);
        let planned = prepared.plan(&snapshot);
        if planned.has_errors() {
            show::diagnostics(&planned.diagnostics);
        }
        let Some(plan) = planned.plan else {
            return Err(Failure { diagnostics: Vec::new(), exit: Exit::Invalid });
        };
        if !plan.refusals.is_empty() {
            return Err(Failure { diagnostics: plan.refusals, exit: Exit::Refused });
        }
        let applied = snapshot.apply(&plan.operations(), mint::now());
        let applied = applied.map_err(|refusal| ApplyError::Commit(CommitError::Refused(refusal)).diagnostic())?;
        Ok(applied.0)
    }
}

/// Escapes the characters that a terminal interprets.
fn plain(text: &str) -> String {
    escaped(text).into_owned()
}

/// The name, if any, and the id.
fn cells(named: &Named) -> [String; 2] {
    [plain(named.name.as_deref().unwrap_or("(not owned)")), plain(named.key.id.as_str())]
}

fn write_trace(out: &mut String, request: &TracedRequest, trace: &Trace) {
    out.push('\n');
    let Some(choice) = &trace.edge else {
        let _ = writeln!(out, "No edge serves {}:{}.", plain(&request.host), request.port);
        return;
    };
    let why = match choice.rank {
        HostRank::Literal => "",
        HostRank::Wildcard(_) | HostRank::Any => ", a wildcard",
    };
    let blind = if choice.passes_through { "; TLS is passed through" } else { "" };
    let [name, id] = cells(&choice.edge);
    let mut head = vec![vec!["edge".into(), name, format!("by {}{why}{blind}", plain(&choice.hostport)), id]];
    if let Some(route) = trace.route() {
        let [name, id] = cells(&route.route);
        let by = route.match_type.map(|it| it.as_str()).unwrap_or_default();
        head.push(vec!["route".into(), name, format!("by {by} {}", plain(&route.matched)), id]);
    }
    write_table(out, "", &head);
    if trace.route().is_none() {
        let _ = writeln!(out, "No route matches.");
    }
    let routes = trace.routes.iter().map(|considered| {
        let mark = if considered.verdict == RouteDecision::Taken { "*" } else { "-" };
        let [name, id] = cells(&considered.route);
        let match_type = considered.match_type.map(|it| it.as_str()).unwrap_or_default();
        let verdict = plain(&considered.verdict.to_string());
        vec![mark.into(), name, match_type.into(), plain(&considered.matched), verdict, id]
    });
    let routes: Vec<Vec<String>> = routes.collect();
    if !routes.is_empty() {
        out.push_str("\nroutes considered\n");
        write_table(out, "  ", &routes);
    }
    let modules = trace.modules.iter().enumerate().map(|(index, passage)| {
        let effect = match passage.effect {
            StepEffect::Passes => "passes",
            StepEffect::Depends => "depends",
            StepEffect::Refused => "refused",
        };
        vec![(index + 1).to_string(), passage.module.into(), effect.into(), plain(&passage.note)]
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
pub(super) fn write_table(out: &mut String, indent: &str, rows: &[Vec<String>]) {
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
