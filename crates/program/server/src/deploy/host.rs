//! The address of a server, as `--hosts` has it.

use std::{collections::BTreeSet, net::IpAddr};

/// The most servers of a configuration.
const MOST: usize = 1000;
/// The most letters of a name, as in DNS.
const MOST_LETTERS: usize = 253;

/// A server: its address and the ports of HTTP and gRPC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Host {
    pub address: String,
    pub http: u16,
    pub grpc: u16,
}

impl Host {
    /// Reads a list of `HOST[:HTTP[:GRPC]]`, where an address of IPv6 stands in brackets.
    ///
    /// # Errors
    /// A host is wrong or there twice, or there are none or too many.
    pub fn read_list(text: &str) -> Result<Vec<Self>, String> {
        let hosts = text.split(',').map(|one| Self::read(one.trim()));
        let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
        if hosts.len() > MOST {
            return Err(format!("there are {} hosts: {MOST} are the most", hosts.len()));
        }
        let mut known = BTreeSet::new();
        match hosts.iter().find(|host| !known.insert(*host)) {
            Some(twice) => Err(format!("the host '{}' is there twice", twice.address)),
            None => Ok(hosts),
        }
    }

    /// Returns whether it is an address of IP, and not a name.
    pub fn is_ip(&self) -> bool {
        self.address.parse::<IpAddr>().is_ok()
    }

    fn read(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}' is no host: HOST, HOST:HTTP-PORT or HOST:HTTP-PORT:GRPC-PORT is expected, \
                 with an address of IPv6 in brackets"
            )
        };
        let (address, ports) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']').ok_or_else(wrong)?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let is_in_brackets = text.starts_with('[');
        let is_address = match is_in_brackets {
            true => address.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()),
            false => is_name(address),
        };
        let mut ports = ports.split(':').skip(1).map(port);
        let http = ports.next().unwrap_or(Some(8000));
        let grpc = ports.next().unwrap_or(Some(8001));
        let has_colon = text.len() == address.len() + 2 * usize::from(is_in_brackets)
            || text[address.len() + 2 * usize::from(is_in_brackets)..].starts_with(':');
        match (http, grpc, ports.next()) {
            (Some(http), Some(grpc), None) if is_address && has_colon => {
                Ok(Self { address: address.to_owned(), http, grpc })
            }
            _ => Err(wrong()),
        }
    }
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|&port| port > 0)
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=MOST_LETTERS).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports_or_tritons() {
        let host = |address: &str, http, grpc| Host { address: address.to_owned(), http, grpc };
        assert_eq!(
            Host::read_list("a.b,10.0.0.1:80, [::1]:1:2,[fe80::2]").expect("hosts"),
            [
                host("a.b", 8000, 8001),
                host("10.0.0.1", 80, 8001),
                host("::1", 1, 2),
                host("fe80::2", 8000, 8001)
            ]
        );
    }

    #[test]
    fn wrong_hosts_are_named() {
        for wrong in [
            "", "a,", "a:0", "a:1:2:3", "a:x", "::1", "[::1", "[a]", "[::1]x", "a b", "a\nb", "-a",
            "a:65536",
        ] {
            let error = Host::read_list(wrong).expect_err(wrong);
            assert!(error.contains("is no host"), "{wrong}: {error}");
        }
        assert!(Host::read_list("a,b,a").expect_err("twice").contains("'a' is there twice"));
        let many: Vec<_> = (0..=MOST).map(|n| format!("h{n}")).collect();
        assert!(Host::read_list(&many.join(",")).expect_err("many").contains("1001 hosts"));
    }
}
