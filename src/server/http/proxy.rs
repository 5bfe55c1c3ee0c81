//! The address of a client: that of the socket, or what a trusted proxy says (D98).

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;

pub(crate) use crate::model::network::Network;

/// The header in which each proxy appends the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The part of an address that belongs to one subscriber: an IPv4 address, or the first 64 bits of an IPv6 address.
pub(crate) fn subnet_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

/// The address of a hop. Some proxies add the port of their client.
fn hop_of(text: &str) -> Option<IpAddr> {
    let in_brackets = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    text.parse().ok().or_else(with_port).or_else(in_brackets)
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientAddress {
    /// The client's address.
    pub address: IpAddr,
    /// The trusted proxy that has sent the request, or the server that has forwarded it.
    pub proxy: Option<IpAddr>,
}

impl ClientAddress {
    /// The address of the socket, or the last one in the headers of a trusted proxy that is not a trusted proxy itself.
    /// The client may have written everything before it.
    pub(crate) fn resolve(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> Self {
        let peer = peer.to_canonical();
        let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
        if !is_trusted(peer) {
            return Self { address: peer, proxy: None };
        }
        let lines = headers.get_all(FORWARDED_FOR).iter().rev().map(|line| line.to_str().unwrap_or_default());
        let mut address = peer;
        for hop in lines.flat_map(|line| line.rsplit(',')) {
            let Some(hop) = hop_of(hop.trim()) else { break };
            address = hop.to_canonical();
            if !is_trusted(address) {
                break;
            }
        }
        Self { address, proxy: (address != peer).then_some(peer) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn client(peer: &str, lines: &[&'static str], trusted: &[&str]) -> (String, bool) {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let trusted: Vec<Network> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        let found = ClientAddress::resolve(peer.parse().unwrap(), &headers, &trusted);
        (found.address.to_string(), found.proxy.is_some())
    }

    #[test]
    fn only_a_trusted_proxy_says_who_its_client_is() {
        let of = |peer: &str, lines: &[&'static str]| client(peer, lines, &["10.0.0.0/8", "2001:db8::/32"]);
        let direct = |address: &str| (address.to_owned(), false);
        let proxied = |address: &str| (address.to_owned(), true);
        assert_eq!(of("192.0.2.1", &["198.51.100.7"]), direct("192.0.2.1"));
        assert_eq!(of("10.0.0.1", &[]), direct("10.0.0.1"));
        assert_eq!(of("10.0.0.1", &["198.51.100.7"]), proxied("198.51.100.7"));
        assert_eq!(of("::ffff:10.0.0.1", &["198.51.100.7"]), proxied("198.51.100.7"));
        assert_eq!(of("2001:db8::1", &["2001:db9::1"]), proxied("2001:db9::1"));
        assert_eq!(of("10.0.0.1", &["198.51.100.7:1234"]), proxied("198.51.100.7"));
        assert_eq!(of("10.0.0.1", &["[2001:db9::1]:1234"]), proxied("2001:db9::1"));
        assert_eq!(of("10.0.0.1", &["[2001:db9::1], 10.0.0.2:80"]), proxied("2001:db9::1"));
        // The client has written the first one itself.
        assert_eq!(of("10.0.0.1", &["203.0.113.9, 198.51.100.7"]), proxied("198.51.100.7"));
        assert_eq!(of("10.0.0.1", &["203.0.113.9", "198.51.100.7, 10.0.0.2"]), proxied("198.51.100.7"));
        assert_eq!(of("10.0.0.1", &["203.0.113.9, unknown"]), direct("10.0.0.1"));
        assert_eq!(of("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), proxied("10.0.0.3"));
        assert_eq!(client("10.0.0.1", &["198.51.100.7"], &[]), direct("10.0.0.1"));
    }

    #[test]
    fn a_subscriber_has_one_address_or_a_prefix() {
        let subnet = |text: &str| subnet_of(text.parse().unwrap()).to_string();
        assert_eq!(subnet("192.0.2.7"), "192.0.2.7");
        assert_eq!(subnet("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(subnet("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
