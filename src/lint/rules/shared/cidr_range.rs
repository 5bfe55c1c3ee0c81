//! CIDR ranges in policies.

use std::net::{IpAddr, Ipv6Addr};

/// Returns what is wrong with a text that looks like a CIDR range. Any other text is fine.
pub(in crate::lint::rules) fn cidr_fault(text: &str) -> Option<&'static str> {
    let (address, length) = text.trim().split_once('/')?;
    let length = small_number(length)?;
    let bytes: Option<Vec<u32>> = address.split('.').map(small_number).collect();
    match bytes {
        Some(bytes) if bytes.len() == 4 => {
            if bytes.iter().any(|byte| *byte > 255) {
                Some("the IPv4 address of the CIDR range has a number above 255")
            } else {
                (length > 32).then_some("the prefix of an IPv4 CIDR range is longer than 32 bits")
            }
        }
        _ if address.parse::<Ipv6Addr>().is_ok() => {
            (length > 128).then_some("the prefix of an IPv6 CIDR range is longer than 128 bits")
        }
        _ => None,
    }
}

/// Whether a text is a valid CIDR range.
pub(in crate::lint::rules) fn is_range(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    small_number(length).is_some_and(|length| length <= most)
}

fn small_number(text: &str) -> Option<u32> {
    let is_number = text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
