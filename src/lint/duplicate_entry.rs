//! `duplicate-entry`: a list with one entry twice.
//!
//! Email addresses and domains are the subject of `email-not-lowercase`.

use std::collections::HashMap;

use super::{Findings, Level, Lint, Subject, World, duplicate_hostport::host_port, expired_certificate::chains};
use crate::{
    model::{
        Kind,
        fault::{Path, Segment},
        id::Id,
        key::Key,
        kind::{
            https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute, ip_restriction::IpRestriction, tls_edge::TlsEdge,
        },
    },
    text::printable,
};

/// The lint.
pub(crate) static LINT: Lint = Lint {
    name: "duplicate-entry",
    default: Level::Warn,
    summary: "A list has one entry twice: a hostport, ID, scope, group, team, organization or certificate.",
    why: "The second entry has no effect. Often it was meant to be another one, such as a copied line that was not \
          edited. Hostports, teams and organizations are the same in any spelling that means the same.",
    example: "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443', 'Shop.Example.com:443']
",
    cure: "Remove one of the two entries, or correct it.",
    check,
};

fn check(world: &World<'_>, findings: &mut Findings) {
    for (key, edge) in world.all::<HttpsEdge>() {
        repeated(findings, key, &["hostports"], &edge.hostports, spelled_alike);
        if let Some(mutual_tls) = &edge.mutual_tls {
            // As in the manifest: references by name are resolved to IDs.
            let name = |id: &String| {
                let authority = world.desired.get(&Key::new(Kind::CertificateAuthority, Id::new(id)));
                authority.map_or_else(|| id.clone(), |authority| authority.claim.name.clone())
            };
            let names: Vec<String> = mutual_tls.certificate_authority_ids.iter().map(name).collect();
            repeated(findings, key, &["mutual_tls", "certificate_authority_ids"], &names, exact);
        }
    }
    for (key, restriction) in world.all::<IpRestriction>() {
        repeated(findings, key, &["ip_policy_ids"], &restriction.ip_policy_ids, exact);
    }
    let of_routes = world.all::<HttpsEdgeRoute>().map(|(key, route)| (key, &route.ip_restriction));
    let of_tls_edges = world.all::<TlsEdge>().map(|(key, edge)| (key, &edge.ip_restriction));
    for (key, module) in of_routes.chain(of_tls_edges) {
        if let Some(module) = module {
            repeated(findings, key, &["ip_restriction", "ip_policy_ids"], &module.ip_policy_ids, exact);
        }
    }
    for (key, route) in world.all::<HttpsEdgeRoute>() {
        logins(findings, key, route);
    }
    for chain in chains(world) {
        for link in chain.links.iter().filter(|link| link.is_repeated) {
            findings.report(chain.key, [chain.field], format!("`{}` contains {link} twice", chain.field));
        }
    }
}

fn logins(findings: &mut Findings, key: &Key, route: &HttpsEdgeRoute) {
    if let Some(oauth) = &route.oauth {
        for app in oauth.provider.apps() {
            repeated(findings, key, &["oauth", "provider", app.provider, "scopes"], app.scopes, exact);
        }
        if let Some(github) = &oauth.provider.github {
            let lists = [("teams", &github.teams), ("organizations", &github.organizations)];
            for (field, entries) in lists {
                repeated(findings, key, &["oauth", "provider", "github", field], entries, in_lower_case);
            }
        }
    }
    if let Some(oidc) = &route.oidc {
        repeated(findings, key, &["oidc", "scopes"], &oidc.scopes, exact);
    }
    if let Some(saml) = &route.saml {
        repeated(findings, key, &["saml", "authorized_groups"], &saml.authorized_groups, exact);
    }
}

/// Reports every entry that an earlier one repeats; `normal` maps entries that mean the same to one text.
fn repeated(findings: &mut Findings, key: &Key, fields: &[&str], entries: &[String], normal: fn(&str) -> String) {
    let list = Path(fields.iter().map(|field| Segment::from(*field)).collect());
    let mut first = HashMap::new();
    for (index, text) in entries.iter().enumerate() {
        let earlier = *first.entry(normal(text)).or_insert(index);
        if earlier < index {
            let field = fields.last().copied().unwrap_or_default();
            let message = format!("duplicate entry `{}` in `{field}`", printable(text));
            let finding = findings.report(key, list.join(index), message);
            finding.related = Some((Subject::Resource(key.clone()), list.join(earlier), "first entry"));
        }
    }
}

fn exact(text: &str) -> String {
    text.to_owned()
}

/// GitHub ignores the case of slugs.
fn in_lower_case(text: &str) -> String {
    text.to_lowercase()
}

fn spelled_alike(hostport: &str) -> String {
    host_port(hostport).map_or_else(|| hostport.to_owned(), |(host, port)| format!("{host}:{port}"))
}
