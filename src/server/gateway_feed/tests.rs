//! Which certificates the gateway configuration has.

use super::certificates::Certificates;
use super::presented::{KnownTlsHostports, TlsHostport};
use crate::model::secrets::Text;
use crate::model::{HttpsEdge, Operation, Secret, TlsCertificate};
use crate::server::prelude::*;
use crate::store::clock::now;

/// One key for all certificates of these tests.
const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIPa1ke9VS/oaOlw79yRd3tfXFE7xqpNTtRwuEqHPa0As
-----END PRIVATE KEY-----
";
/// `*.example.com`, valid from 2026.
const ONE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBBzCBuqADAgECAgEBMAUGAytlcDAOMQwwCgYDVQQDDANvbmUwIBcNMjYwMTAx
MDAwMDAwWhgPMjA5MDAxMDEwMDAwMDBaMA4xDDAKBgNVBAMMA29uZTAqMAUGAytl
cAMhAJZIjZz6ZYGOLNLhnqmrskGeiJNZnFcnwjaG+TiCN7wcozswOTAYBgNVHREE
ETAPgg0qLmV4YW1wbGUuY29tMB0GA1UdDgQWBBR+ACr7eYqRakc2PP59f1+pt1w7
RDAFBgMrZXADQQAoUao2xWOVpIkyldkeoDnTRalXG/7QUzJ0uOlXmhaM0P7I/sQM
bE+B3zm9ShlU1mSN1PHIG5TA3Sxgg4D4ExoK
-----END CERTIFICATE-----
";
/// `a.example.com` and `A.example.com`, valid from 2024.
const TWO: &str = "\
-----BEGIN CERTIFICATE-----
MIIBFjCByaADAgECAgECMAUGAytlcDAOMQwwCgYDVQQDDAN0d28wIBcNMjQwMTAx
MDAwMDAwWhgPMjA5MDAxMDEwMDAwMDBaMA4xDDAKBgNVBAMMA3R3bzAqMAUGAytl
cAMhAJZIjZz6ZYGOLNLhnqmrskGeiJNZnFcnwjaG+TiCN7wco0owSDAnBgNVHREE
IDAegg1hLmV4YW1wbGUuY29tgg1BLmV4YW1wbGUuY29tMB0GA1UdDgQWBBR+ACr7
eYqRakc2PP59f1+pt1w7RDAFBgMrZXADQQBLe+z8C+MXlBEKBysPYCJkiQjkdO0A
oI8S4MxzRP356uDiCqmGINNGrbGEOm/gGDk+UNLPIkRmlfChbAOv0PIA
-----END CERTIFICATE-----
";
/// `a.example.com` and `*.example.com`, valid from 2025.
const THREE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBGjCBzaADAgECAgEDMAUGAytlcDAQMQ4wDAYDVQQDDAV0aHJlZTAgFw0yNTAx
MDEwMDAwMDBaGA8yMDkwMDEwMTAwMDAwMFowEDEOMAwGA1UEAwwFdGhyZWUwKjAF
BgMrZXADIQCWSI2c+mWBjizS4Z6pq7JBnoiTWZxXJ8I2hvk4gje8HKNKMEgwJwYD
VR0RBCAwHoINYS5leGFtcGxlLmNvbYINKi5leGFtcGxlLmNvbTAdBgNVHQ4EFgQU
fgAq+3mKkWpHNjz+fX9fqbdcO0QwBQYDK2VwA0EAsAPB9gotKgLwB9m/o0lbZ0YG
LrCw8IBBefG3xX/Tx0PY0CYx743Dz/8WuZsWmnFxdmkv8+bFkgGdUmZnUF6VBQ==
-----END CERTIFICATE-----
";
/// `192.0.2.7`, valid from 2026.
const FOUR: &str = "\
-----BEGIN CERTIFICATE-----
MIIBADCBs6ADAgECAgEEMAUGAytlcDAPMQ0wCwYDVQQDDARmb3VyMCAXDTI2MDEw
MTAwMDAwMFoYDzIwOTAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQDDARmb3VyMCowBQYD
K2VwAyEAlkiNnPplgY4s0uGeqauyQZ6Ik1mcVyfCNob5OII3vByjMjAwMA8GA1Ud
EQQIMAaHBMAAAgcwHQYDVR0OBBYEFH4AKvt5ipFqRzY8/n1/X6m3XDtEMAUGAytl
cANBABzQci+a5+OgWd34SVbbH8QgW5Ete1MPsl0eFvEC9rtCfulXA66ndAKfTrQR
pwc9irqoAHOdr+tSfTdvG827awE=
-----END CERTIFICATE-----
";

fn create((id, chain): (&str, &str)) -> Operation {
    let spec = TlsCertificate {
        certificate_pem: Text::new(chain),
        private_key_pem: Secret::new(KEY),
        ..TlsCertificate::default()
    };
    Operation::create(Key::new(Kind::TlsCertificate, Id::new(id)), Arc::new(spec))
}

fn create_edge(id: &str, hostports: &[&str]) -> Operation {
    let hostports = hostports.iter().map(|it| (*it).to_owned()).collect();
    let spec = HttpsEdge { hostports, ..HttpsEdge::default() };
    Operation::create(Key::new(Kind::HttpsEdge, Id::new(id)), Arc::new(spec))
}

#[test]
fn hostports_are_known_by_the_certificates_that_they_present_now() {
    let after = |state: &Snapshot, operations: &[Operation]| {
        state.apply(operations, now()).map(|(snapshot, _)| Arc::new(snapshot)).unwrap_or_default()
    };
    let known = KnownTlsHostports::default();
    let edges = [create_edge("edghts_1", &["a.example.com:443", "b.example.com:8443", "b.example.com:80"])];
    let before = after(&Snapshot::default(), &edges);
    let shown = |hostports: Vec<&TlsHostport>| hostports.into_iter().map(|it| it.hostport.clone()).collect::<Vec<_>>();
    let bare = known.at(&before);
    assert_eq!(shown(bare.without_certificate().collect()), ["a.example.com:443", "b.example.com:8443"]);
    let state = after(&before, &[create(("cert_1", ONE)), create(("cert_2", TWO)), create(("cert_4", FOUR))]);
    let hostports = known.at(&state);
    let at: jiff::Timestamp = "2030-01-01T00:00:00Z".parse().unwrap_or_default();
    let of = |id: &str, at| {
        let (presenting, others) = hostports.of_certificate(id, at);
        (shown(presenting), others)
    };
    assert_eq!(of("cert_1", at), (vec!["b.example.com:8443".to_owned()], 1));
    assert_eq!(of("cert_2", at), (vec!["a.example.com:443".to_owned()], 0));
    assert_eq!(of("cert_4", at), (vec![], 0));
    let late: jiff::Timestamp = "2095-01-01T00:00:00Z".parse().unwrap_or_default();
    assert_eq!(of("cert_2", late), (vec![], 1), "it has expired");
    assert_eq!(hostports.without_certificate().count(), 0);
}

#[test]
fn exact_names_come_before_wildcards_and_newer_certificates_before_older_ones() {
    let operations = [("cert_1", ONE), ("cert_2", TWO), ("cert_3", THREE), ("cert_4", FOUR)].map(create);
    let applied = Snapshot::default().apply(&operations, now());
    let snapshot = applied.map(|(snapshot, _)| snapshot).unwrap_or_default();
    let certificates = Certificates::new(&snapshot);
    let of = |host: &str| -> Vec<String> {
        certificates.for_host(host, &HttpsEdge::default(), None).iter().map(|it| it.id.to_owned()).collect()
    };
    assert_eq!(of("a.example.com"), ["cert_3", "cert_2", "cert_1"]);
    assert_eq!(of("b.example.com"), ["cert_1", "cert_3"]);
    assert_eq!(of("*.example.com"), ["cert_1", "cert_3"]);
    assert_eq!(of("192.0.2.7"), ["cert_4"]);
    for none in ["example.com", "a.b.example.com", "unknown.test"] {
        assert!(of(none).is_empty(), "{none}");
    }
}
