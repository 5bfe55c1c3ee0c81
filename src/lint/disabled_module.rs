//! `disabled-module`: a module with `enabled: false`.

use super::{Findings, Level, Lint, World};
use crate::model::{
    kind::{https_edge::HttpsEdge, https_edge_route::HttpsEdgeRoute, tls_edge::TlsEdge},
    resource::Resource,
};

/// The lint.
pub static LINT: Lint = Lint {
    name: "disabled-module",
    default: Level::Allow,
    summary: "A module is configured but disabled.",
    why: "A disabled module has no effect but looks like protection. Modules disabled for an hour tend to stay disabled.",
    example: r#"apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ["shop.example.com:443"]
  routes:
    - name: account
      match_type: path_prefix
      match: /account
      backend: {backend_id: bkd_shop}
      oauth: {enabled: false, provider: {google: {}}}
"#,
    cure: "Remove `enabled: false`, or the module; version control keeps the old configuration.",
    check,
};

/// A module's name, and a check whether a host has it disabled.
type Switch<H> = (&'static str, fn(&H) -> bool);

macro_rules! switches {
    ($($module:ident)*) => {
        &[$((stringify!($module), |host| host.$module.as_ref().is_some_and(|module| !module.enabled))),*]
    };
}

const EDGE: &[Switch<HttpsEdge>] = switches!(mutual_tls tls_termination);
const ROUTE: &[Switch<HttpsEdgeRoute>] = switches!(
    backend ip_restriction circuit_breaker compression request_headers response_headers webhook_verification oauth saml
    oidc websocket_tcp_converter user_agent_filter jwt_validation policies
);
const TLS_EDGE: &[Switch<TlsEdge>] = switches!(ip_restriction policies backend);

fn check(world: &World<'_>, findings: &mut Findings) {
    check_kind(world, findings, EDGE);
    check_kind(world, findings, ROUTE);
    check_kind(world, findings, TLS_EDGE);
}

fn check_kind<H: Resource>(world: &World<'_>, findings: &mut Findings, switches: &[Switch<H>]) {
    for (key, host) in world.all::<H>() {
        for (name, _) in switches.iter().filter(|(_, is_off)| is_off(host)) {
            findings.report(key, [*name, "enabled"], format!("`{name}` is configured but disabled"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_has_a_switch() {
        fn names<H: Resource>(switches: &[Switch<H>]) -> (Vec<&str>, Vec<&str>) {
            let slots = H::INFO.slots.iter().map(|slot| slot.name);
            (switches.iter().map(|(name, _)| *name).collect(), slots.collect())
        }
        for (switches, slots) in [names(EDGE), names(ROUTE), names(TLS_EDGE)] {
            assert_eq!(switches, slots);
        }
    }
}
