//! Networks: an address, or an address with the length of its prefix.

use std::{net::IpAddr, str::FromStr};

/// A network such as `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    address: u128,
    is_v4: bool,
    /// The bits of an IPv6 address that are the same in the whole network.
    mask: u128,
}

/// An IPv4 address is compared in its mapped form.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected an address or a network such as 10.0.0.0/8".to_owned();
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address = address.parse::<IpAddr>().map_err(|_| wrong())?.to_canonical();
        let (before, whole) = if address.is_ipv4() { (96, 32) } else { (0, 128) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let length: u32 = match length {
            None => whole,
            Some(length) if is_number(length) => length.parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        if length > whole {
            return Err(wrong());
        }
        let mask = u128::MAX.checked_shl(128 - before - length).unwrap_or_default();
        if bits(address) & !mask != 0 {
            return Err(format!("{text} has bits after its first {length}; expected a network such as 10.0.0.0/8"));
        }
        Ok(Self { address: bits(address), is_v4: address.is_ipv4(), mask })
    }
}

impl Network {
    /// Whether an address is in the network.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.is_v4 && bits(address) & self.mask == self.address
    }

    /// Whether all addresses of another network are in this one.
    pub(crate) fn includes(&self, other: &Network) -> bool {
        self.is_v4 == other.is_v4 && self.mask & other.mask == self.mask && other.address & self.mask == self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_address_and_the_length_of_its_prefix() {
        let in_network = |network: &str, address: &str| {
            network
                .parse::<Network>()
                .map(|network| address.parse().is_ok_and(|address: IpAddr| network.contains(address)))
        };
        assert_eq!(in_network("127.0.0.1", "127.0.0.1"), Ok(true));
        assert_eq!(in_network("127.0.0.1", "127.0.0.2"), Ok(false));
        assert_eq!(in_network("0.0.0.0/0", "192.0.2.1"), Ok(true));
        assert_eq!(in_network("0.0.0.0/0", "2001:db8::1"), Ok(false));
        assert_eq!(in_network("::/0", "2001:db8::1"), Ok(true));
        assert_eq!(in_network("172.16.0.0/12", "172.31.255.255"), Ok(true));
        assert_eq!(in_network("172.16.0.0/12", "172.32.0.0"), Ok(false));
        for wrong in ["", "proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.1/8", "::/129", "10.0.0.0/8/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_network_includes_smaller_ones_of_its_family() {
        let includes = |wide: &str, narrow: &str| {
            let parsed = wide.parse::<Network>().ok().zip(narrow.parse::<Network>().ok());
            parsed.is_some_and(|(wide, narrow)| wide.includes(&narrow))
        };
        assert!(includes("10.0.0.0/8", "10.1.0.0/16") && includes("10.0.0.0/8", "10.0.0.0/8"));
        assert!(includes("2001:db8::/32", "2001:db8:1::/48") && includes("::/0", "2001:db8::1"));
        assert!(!includes("10.1.0.0/16", "10.0.0.0/8") && !includes("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!includes("::/0", "10.0.0.0/8") && !includes("0.0.0.0/0", "::1"));
    }
}
