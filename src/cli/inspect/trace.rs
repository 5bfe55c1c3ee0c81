//! `edgewright trace`.

use std::{fmt::Write as _, net::IpAddr};

use crate::cli::command_prelude::*;
use crate::cli::input::option_origins::OptionOrigins;
use crate::cli::manifests::planned_state::{PlannedArgs, planned_state};
use crate::cli::output::table::{table_with_optional_end, wide_table, wrapped_table};
use crate::cli::store::store_args::snapshot_of;
use crate::plan::behaviour::request_difference;
use crate::routing::{TracedRequest, trace};
use crate::server::operations::trace::{HeaderToTrace, METHODS, PATH, RequestToTrace, TlsInTrace, TraceReport};

/// Show which route takes a request, and what happens to it.
///
/// Names the edge and the route, says why other routes do not take the request, and lists the modules that it passes.
/// Reads the store or, with --server, has a running server trace the request. With --manifests, reads only the files
/// or, with --store or --server, traces as if they had been applied there. With --manifests and --after, compares the store or the
/// server before and after the plan of these files. Sends no request and changes nothing. Exits with code 0 if a route
/// takes the request (with --after, once the plan is applied), and with code 1 otherwise.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Method (default: GET) and URL of the request (default scheme: https).
    #[arg(value_name = "[METHOD] URL", num_args = 1..=2, required = true)]
    request: Vec<String>,
    /// Manifest file or folder to read instead of the store. Repeatable.
    #[arg(long, value_name = "PATH", env = "EDGEWRIGHT_MANIFESTS")]
    manifests: Vec<PathBuf>,
    /// Trace in the store or server now, and again as if the plan of the manifests had been applied.
    #[arg(long, env = "EDGEWRIGHT_AFTER", requires = "manifests")]
    after: bool,
    #[command(flatten)]
    planned: PlannedArgs,
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

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("expected `Name: value`".into()),
    }
}

/// The trace of a request before a plan.
struct TraceBeforePlan {
    report: TraceReport,
    /// How the plan treats the request differently, in words; none if the server does not tell.
    difference: Option<String>,
}

impl TraceBeforePlan {
    /// The effect of the plan on the request, whose trace after the plan is given.
    fn conclusion(&self, last: &TraceReport) -> String {
        let was = &self.report;
        let is_same = (&was.edge, was.route(), &was.modules) == (&last.edge, last.route(), &last.modules);
        match self.difference.as_deref() {
            Some("") if is_same && was.tls != last.tls => "The plan changes only the certificate.".to_owned(),
            Some("") if is_same => "The plan does not change the handling of this request.".to_owned(),
            Some("") => "The plan changes the edge, route or modules of this request, which treat it alike.".to_owned(),
            Some(words) => format!("The plan changes the handling of this request: {}", escaped(words)),
            None if is_same => {
                "The traces are the same. Upgrade the server to compare what they do not show.".to_owned()
            }
            None => "The plan changes the handling of this request.".to_owned(),
        }
    }
}

impl Args {
    /// Whether the command reads manifests, and not only the store.
    pub(crate) fn reads_manifests(&self) -> bool {
        !self.manifests.is_empty()
    }

    /// Chooses between a store and a server. Manifests alone need neither, unless a flag names one.
    pub(crate) fn choose(&mut self, origins: &OptionOrigins<'_>) -> Result<(), Failure> {
        self.planned.place.choose_beside_files(self.reads_manifests() && !self.after, origins)
    }

    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let request = self.request()?;
        let (before, last) = self.traces(&request, lints)?;
        let conclusion = before.as_ref().map(|before| before.conclusion(&last));
        let mut out = format!("{}\n", escaped(&request.to_string()));
        if let Some(before) = &before {
            out.push_str("\nbefore the plan");
            write_trace(&mut out, &request, &before.report);
            out.push_str("\nafter the plan");
        }
        write_trace(&mut out, &request, &last);
        if let Some(conclusion) = conclusion {
            let _ = writeln!(out, "\n{conclusion}");
        }
        print(out)?;
        Ok(if last.route().is_some() { Exit::Done } else { Exit::Error })
    }

    /// Traces the request before the plan, if that is asked for, and in the last state.
    fn traces(
        &self,
        request: &TracedRequest,
        lints: LintLevels,
    ) -> Result<(Option<TraceBeforePlan>, TraceReport), Failure> {
        let place = &self.planned.place;
        if self.manifests.is_empty() {
            return Ok(match place.client()? {
                Some(client) => (None, client.query(PATH, &json::bytes(&self.to_send(), Secrets::Masked)?)?),
                None => {
                    let snapshot = place.store.read_existing()?.snapshot();
                    (None, TraceReport::new(request, &trace(&snapshot, request), &snapshot))
                }
            });
        }
        let options = self.planned.options(&self.manifests, lints);
        if let Some(url) = place.server.url() {
            let server = ServerTarget::new(url, &place.server, options)?;
            let (report, after, difference) = server.trace(self.to_send())?;
            return Ok((self.after.then_some(TraceBeforePlan { report, difference }), after));
        }
        let before = match (self.after, place.store.is_by_flag) {
            (true, _) => Some(snapshot_of(Some(&self.store_before()?))),
            (false, true) => Some(snapshot_of(place.store.read_for_plan()?.as_ref())),
            (false, false) => None,
        };
        let after = planned_state(options, before.as_ref())?;
        let now = trace(&after, request);
        let before = before.filter(|_| self.after).map(|before| {
            let then = trace(&before, request);
            let difference = request_difference([(&before, &then), (&after, &now)], request.port);
            TraceBeforePlan { report: TraceReport::new(request, &then, &before), difference: Some(difference) }
        });
        Ok((before, TraceReport::new(request, &now, &after)))
    }

    /// The store before the plan. A missing one is not an empty one: the server of a variable, which does not count, may be meant.
    fn store_before(&self) -> Result<Store, Failure> {
        let store = &self.planned.place.store;
        store.read_if_there()?.ok_or_else(|| {
            let message = format!("no store found in `{}`, so there is no state before the plan", store.shown());
            let help = "set --store to the folder of your store, or --server to the URL of your server: with --manifests, only \
                        the flag names a server";
            Diagnostic::error(Code::StoreFormat, message).help(help).into()
        })
    }

    /// The request, for a server.
    fn to_send(&self) -> RequestToTrace {
        let (method, url) = match self.request.as_slice() {
            [method, url] => (method.as_str(), url.as_str()),
            url => ("GET", url.first().map(String::as_str).unwrap_or_default()),
        };
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

    /// The request, for a store.
    fn request(&self) -> Result<TracedRequest, Failure> {
        // A host could have such a name, but a name alone is no URL.
        if let [method] = self.request.as_slice()
            && METHODS.contains(&method.as_str())
        {
            let message = format!("a URL is required after the method `{method}`");
            let help = format!("run `edgewright trace {method} https://…`");
            return Err(Diagnostic::error(Code::Parameter, message).help(help).into());
        }
        let sent = self.to_send();
        // A server takes an empty method for `GET`; an empty argument is probably an unset variable.
        let parsed = match sent.method.is_empty() {
            true => Err(Fault::new(Code::InvalidFormat, "`` is not an HTTP method").at("method")),
            false => sent.parse(),
        };
        let request = parsed.map_err(|fault| {
            let is_both = |argument: &String| argument.split_once(' ').is_some_and(|(it, _)| METHODS.contains(&it));
            let help = match fault.path == FieldPath::from("method") {
                true => "put the method first: `edgewright trace POST https://…`",
                false if self.request.iter().any(is_both) => {
                    "the method and the URL are two arguments: `edgewright trace POST https://…`"
                }
                false => "use a URL such as `https://shop.example.com/cart`",
            };
            Failure::from(fault.help(help))
        })?;
        // An empty User-Agent is a known one, which the body for a server cannot say.
        Ok(TracedRequest { user_agent: self.user_agent.clone(), ..request })
    }
}

fn write_trace(out: &mut String, request: &TracedRequest, trace: &TraceReport) {
    out.push('\n');
    let Some(edge) = &trace.edge else {
        let _ = writeln!(out, "No edge serves {}:{}.", escaped(&request.host), request.port);
        for other in &trace.on_other_ports {
            let name = other.name.as_deref().unwrap_or(&other.id);
            let _ = writeln!(out, "Edge {} serves {}.", escaped(name), escaped(&other.hostport));
        }
        return;
    };
    let why = if edge.wildcard { ", a wildcard" } else { "" };
    let passes_through = if edge.passes_through { "; TLS is passed through" } else { "" };
    let by_hostport = format!("by {}{why}{passes_through}", edge.hostport);
    let by_match = trace.route().map(|route| format!("by {} {}", route.match_type, route.r#match)).unwrap_or_default();
    let name = |name: Option<&String>| name.map_or("(not owned)", String::as_str).to_owned();
    let mut head = vec![vec!["edge".to_owned(), name(edge.name.as_ref()), by_hostport, edge.id.clone()]];
    if let Some(TlsInTrace { certificate_id: Some(id), certificate_name, valid }) = &trace.tls {
        let validity = if *valid { "certificate" } else { "certificate, not valid now" };
        head.push(vec!["tls".to_owned(), name(certificate_name.as_ref()), validity.to_owned(), id.clone()]);
    }
    head.extend(trace.route().map(|it| vec!["route".to_owned(), name(it.name.as_ref()), by_match, it.id.clone()]));
    // A part of an ID is of no use.
    out.push_str(&wide_table(&head));
    if let Some(TlsInTrace { certificate_id: None, .. }) = &trace.tls {
        let _ = writeln!(out, "No certificate covers {}: the gateway needs one of its own.", escaped(&edge.hostport));
    }
    if trace.route().is_none() {
        let _ = writeln!(out, "No route matches.");
    }
    let routes = trace.routes.iter().map(|route| {
        let (mark, name) = (if route.taken { "*" } else { "-" }, name(route.name.as_ref()));
        let (match_type, pattern) = (route.match_type.clone(), route.r#match.clone());
        vec![mark.to_owned(), name, match_type, pattern, route.verdict.clone(), route.id.clone()]
    });
    let modules = (1..)
        .zip(&trace.modules)
        .map(|(number, step)| vec![number.to_string(), step.module.clone(), step.effect.clone(), step.note.clone()]);
    let (routes, modules): (Vec<Vec<String>>, Vec<Vec<String>>) = (routes.collect(), modules.collect());
    let sections = [
        ("routes considered", table_with_optional_end("  ", &routes)),
        ("modules, in processing order", wrapped_table("  ", &modules)),
    ];
    for (title, rows) in sections.into_iter().filter(|(_, rows)| !rows.is_empty()) {
        let _ = write!(out, "\n{title}\n{rows}");
    }
}
