//! Edges with everything that a gateway needs to serve them.

use super::certificates::{Candidate, Certificates};
use super::view::{
    GatewayAuthority, GatewayEdge, GatewayHostport, GatewayIpRestriction, GatewayModule, GatewayMutualTls,
    GatewayRoute, GatewayTermination, GatewayTlsEdge,
};
use crate::model::diagnostics::check::parse_hostport;
use crate::model::kind::ip_restriction::Traffic;
use crate::model::module::mutual_tls::MutualTls;
use crate::model::module::saml::Saml;
use crate::model::module::tls_termination::TerminateAt;
use crate::model::traffic::{PLAIN_HTTP, host_name};
use crate::model::{
    AnyResource, CertificateAuthority, Entry, HttpsEdge, HttpsEdgeRoute, IpRestriction, JsonError, MatchType, Module,
};
use crate::routing::order::{in_match_order, in_traffic_order};
use crate::routing::passes_tls_through;
use crate::server::operations::saml::signer::Signer;
use crate::server::prelude::*;

/// The field for the key of a service provider.
const SAML_KEY: &str = "request_signing_private_key_pem";

/// Where TLS of an edge terminates. Without the module, it does so at the edge.
pub(super) fn termination(edge: &HttpsEdge) -> GatewayTermination {
    match edge.tls_termination.as_deref().map(|tls| (tls.enabled, tls.terminate_at)) {
        Some((false, _)) => GatewayTermination::None,
        Some((true, TerminateAt::Upstream)) => GatewayTermination::Upstream,
        Some((true, TerminateAt::Edge)) | None => GatewayTermination::Edge,
    }
}

/// The host of a hostport in its normal form, its port, and whether TLS terminates there if the edge does that.
pub(super) fn tls_host(hostport: &str, terminates: bool) -> Option<(String, u16, bool)> {
    // What was stored was checked, so it can be read.
    let (host, port) = parse_hostport(hostport).ok()?;
    Some((host_name(host), port, terminates && port != PLAIN_HTTP))
}

/// Resolves the references of one revision.
pub(super) struct EdgeResolver<'s> {
    base_urls: &'s BaseUrls,
    snapshot: &'s Snapshot,
    certificates: Certificates<'s>,
    signer: Signer,
}

impl<'s> EdgeResolver<'s> {
    /// Prepares to resolve the references of a revision.
    pub(super) fn new(store: &Store, base_urls: &'s BaseUrls, snapshot: &'s Snapshot) -> Self {
        let (certificates, signer) = (Certificates::new(snapshot), Signer::new(store.root_secret()));
        Self { base_urls, snapshot, certificates, signer }
    }

    /// Returns all HTTPS edges, without their versions.
    pub(super) fn edges(&self) -> Result<Vec<GatewayEdge>, JsonError> {
        let edges = self.snapshot.newest_first(Kind::HttpsEdge, None, u64::MAX);
        edges.filter_map(|entry| Some(self.edge(entry, entry.spec_as::<HttpsEdge>()?))).collect()
    }

    /// Returns all TLS edges, in the order of their IDs.
    pub(super) fn tls_edges(&self) -> Result<Vec<GatewayTlsEdge>, JsonError> {
        let edges = self.snapshot.entries_after(Key::new(Kind::TlsEdge, Id::new("")));
        let resolved = edges.map(|entry| {
            let modules = self.modules(&entry.key, entry.spec().as_ref())?;
            Ok(GatewayTlsEdge { id: entry.key.id.to_string(), name: name_of(entry), modules })
        });
        resolved.collect()
    }

    /// Returns the restrictions of all endpoints, in the order of their IDs.
    pub(super) fn ip_restrictions(&self) -> Vec<GatewayIpRestriction> {
        let restrictions = self.snapshot.entries_after(Key::new(Kind::IpRestriction, Id::new("")));
        let of_endpoints = restrictions.filter_map(|entry| {
            let restriction = entry.spec_as::<IpRestriction>().filter(|it| it.r#type == Some(Traffic::Endpoints))?;
            Some(GatewayIpRestriction {
                id: entry.key.id.to_string(),
                enforced: restriction.enforced,
                ip_policy_ids: restriction.ip_policy_ids.clone(),
            })
        });
        of_endpoints.collect()
    }

    fn edge(&self, entry: &Entry, edge: &HttpsEdge) -> Result<GatewayEdge, JsonError> {
        let key = &entry.key;
        // An edge without the module terminates TLS.
        let tls = edge.tls_termination.as_deref().cloned().unwrap_or_default().view(key, self.base_urls);
        let terminate_at = termination(edge);
        let terminates = terminate_at == GatewayTermination::Edge;
        let mutual_tls = edge.mutual_tls.as_deref().filter(|it| it.enabled);
        let hostports = edge.hostports.iter().filter_map(|text| self.hostport(text, terminates, entry, edge)).collect();
        Ok(GatewayEdge {
            id: key.id.to_string(),
            version: String::new(),
            name: name_of(entry),
            terminate_at,
            min_version: tls.min_version.filter(|_| terminates),
            hostports,
            mutual_tls: mutual_tls.map(|it| self.mutual_tls(it)).transpose()?,
            routes: self.routes(key, passes_tls_through(edge))?,
        })
    }

    fn routes(&self, edge: &Key, passes_through: bool) -> Result<Vec<GatewayRoute>, JsonError> {
        let children = self.snapshot.children(edge);
        let known = children.filter_map(|child| Some((&child.key, child.spec_as::<HttpsEdgeRoute>()?)));
        let mut routes = Vec::new();
        for ((key, route), selector) in in_match_order(passes_through, known) {
            routes.push(GatewayRoute {
                id: key.id.to_string(),
                name: self.snapshot.get(key).map(|entry| name_of(entry)).unwrap_or_default(),
                host: selector.host.clone(),
                port: selector.port,
                match_type: if selector.is_exact { MatchType::ExactPath } else { MatchType::PathPrefix },
                path: selector.path.to_owned(),
                modules: self.modules(key, route)?,
            });
        }
        Ok(routes)
    }

    fn hostport(&self, text: &str, terminates: bool, entry: &Entry, edge: &HttpsEdge) -> Option<GatewayHostport> {
        let (host, port, tls) = tls_host(text, terminates)?;
        let candidates = if tls { self.certificates.for_host(&host, edge, entry.claim.as_deref()) } else { Vec::new() };
        let certificates = candidates.into_iter().map(Candidate::form).collect();
        Some(GatewayHostport { hostport: text.to_owned(), host, port, tls, certificates })
    }

    /// A missing authority is an error: with fewer authorities, other clients would be admitted.
    fn mutual_tls(&self, mutual_tls: &MutualTls) -> Result<GatewayMutualTls, JsonError> {
        let resolve = |id: &String| -> Result<GatewayAuthority, JsonError> {
            let entry = self.snapshot.get(&Key::new(Kind::CertificateAuthority, Id::new(id)));
            let authority = entry.and_then(|entry| entry.spec_as::<CertificateAuthority>());
            let authority = authority.ok_or_else(|| JsonError::new("a certificate authority is missing"))?;
            Ok(GatewayAuthority { id: id.clone(), ca_pem: authority.ca_pem.as_str().to_owned() })
        };
        let authorities = mutual_tls.certificate_authority_ids.iter().map(resolve);
        Ok(GatewayMutualTls { certificate_authorities: authorities.collect::<Result<_, JsonError>>()? })
    }

    fn modules(&self, host: &Key, resource: &dyn AnyResource) -> Result<Vec<GatewayModule>, JsonError> {
        let mut modules = Vec::new();
        for ordered in in_traffic_order(resource) {
            let form = ordered.module.view_json(host, self.base_urls, Secrets::Revealed)?;
            // The reason could quote a secret.
            let mut config: Map<String, Value> =
                serde_json::from_slice(&form).map_err(|_| JsonError::new("the form of a module is not an object"))?;
            if ordered.slot.name == Saml::SLOT {
                let key = self.signer.private_key_pem(&host.id);
                let key = key.ok_or_else(|| JsonError::new("a route has no signing key"))?;
                config.insert(SAML_KEY.into(), Value::String(key.expose().to_owned()));
            }
            let stages = ordered.stages.iter().map(|stage| stage.as_str().to_owned()).collect();
            modules.push(GatewayModule { module: ordered.slot.name.to_owned(), stages, config });
        }
        Ok(modules)
    }
}

fn name_of(entry: &Entry) -> String {
    entry.name().unwrap_or_default().to_owned()
}
