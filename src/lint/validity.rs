//! The validity of findings: some depend on the time.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::Offset};

use super::manifest_facts::ManifestFacts;
use super::rules::saml_metadata::declared;
use super::rules::shared::certificate_chain::chains;
use super::view::EdgeView;
use super::world::World;
use crate::model::{Desired, Invariant, Key};

/// The time from which a lint may report something else about the same resources, or none.
pub(crate) fn findings_valid_until(
    desired: &BTreeMap<Key, Desired>,
    now: Timestamp,
    expiry_days: u32,
) -> Option<Timestamp> {
    let judged: Vec<&Desired> = desired.values().collect();
    let world = World {
        judged: &judged,
        is_whole: true,
        others: &[],
        manifests: &ManifestFacts::default(),
        now,
        expiry_days,
        allowed_labels: None,
    };
    next_change(&EdgeView::new(&world, &judged))
}

/// Like [`findings_valid_until`], for the resources of a view.
pub(super) fn next_change(view: &EdgeView<'_>) -> Option<Timestamp> {
    let here = Offset::UTC.to_datetime(view.now());
    let mut turns: Vec<DateTime> = Vec::new();
    for link in chains(view).flat_map(|chain| chain.links) {
        let notice = SignedDuration::from_hours(i64::from(view.expiry_days()) * 24);
        turns.extend([link.not_before, link.not_after, link.not_after.saturating_sub(notice)]);
        // A warning names the days that are left.
        let days = link.not_after.duration_since(here).as_hours() / 24;
        turns.push(link.not_after.saturating_sub(SignedDuration::from_hours(days * 24)));
    }
    let certificates = turns.into_iter().filter_map(|turn| Offset::UTC.to_timestamp(turn).ok());
    let metadata = declared(view).filter_map(|(_, facts)| facts.valid_until);
    let notice = SignedDuration::from_hours(i64::from(view.expiry_days()) * 24);
    let exemptions = view.all::<Invariant>().flat_map(|(_, invariant)| &invariant.exemptions);
    let exemptions = exemptions.filter_map(|exemption| exemption.end());
    let exemptions = exemptions.flat_map(|end| [Some(end), end.checked_sub(notice).ok()]).flatten();
    // A certificate that ends in this second has not expired yet.
    certificates.chain(metadata).chain(exemptions).filter(|turn| *turn >= view.now()).min()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{CertificateAuthority, Claim, Id, Kind, secrets::Text};

    /// A certificate from 2029-01-01 to 2030-01-15.
    const PEM: &str = "-----BEGIN CERTIFICATE-----
MIIBAzCBtqADAgECAgEBMAUGAytlcDAbMRkwFwYDVQQDDBBzaG9wLmV4YW1wbGUu
Y29tMB4XDTI5MDEwMTAwMDAwMFoXDTMwMDExNTAwMDAwMFowGzEZMBcGA1UEAwwQ
c2hvcC5leGFtcGxlLmNvbTAqMAUGAytlcAMhADzhlzyIGFT7rQhiQHUIHLhQykzZ
yGPU6Lul5AEVk03zox8wHTAbBgNVHREEFDASghBzaG9wLmV4YW1wbGUuY29tMAUG
AytlcANBAMX2jkJdx/cDyPzVTARWrv8ftBdqLOE0vL/fE7f0p/IUOBTkESUOaGtr
D9WvFEY515hxqjsxiLovIkMyHPQRtQo=
-----END CERTIFICATE-----
";

    #[test]
    fn findings_hold_until_the_next_turn_of_a_certificate() {
        let key = Key::new(Kind::CertificateAuthority, Id::new("ca_1"));
        let claim = Arc::new(Claim::new("s", "n"));
        let spec = Arc::new(CertificateAuthority { ca_pem: Text::new(PEM), ..CertificateAuthority::default() });
        let desired = BTreeMap::from([(key.clone(), Desired::new(key, spec, claim))]);
        let until = |now: &str| {
            let until = findings_valid_until(&desired, now.parse().unwrap(), 30);
            until.map(|until| until.to_string()).unwrap_or_default()
        };
        assert_eq!(until("2028-12-31T12:00:00Z"), "2029-01-01T00:00:00Z");
        assert_eq!(until("2030-01-03T07:00:00Z"), "2030-01-04T00:00:00Z");
        assert_eq!(until("2030-01-14T07:00:00Z"), "2030-01-15T00:00:00Z");
        assert_eq!(until("2030-01-15T00:00:00Z"), "2030-01-15T00:00:00Z", "valid until the end of this second");
        assert_eq!(until("2030-01-15T07:00:00Z"), "");
        assert_eq!(findings_valid_until(&BTreeMap::new(), "2030-01-15T07:00:00Z".parse().unwrap(), 30), None);
    }
}
