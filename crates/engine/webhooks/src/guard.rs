//! Where messages may go: to the public network, and where else the operator says. Somebody who can choose an address
//! must not reach through us what only we can reach.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

const URL_BYTES_MAX: usize = 2000;

/// Reads an address, or says what is wrong with how it is written.
fn read(url: &str) -> Result<Url, String> {
    let wrong = || "write it like https://example.com/path, without a name and a password.".to_owned();
    if url.len() > URL_BYTES_MAX {
        return Err(wrong());
    }
    let url: Url = url.parse().map_err(|_| wrong())?;
    let is_plain = matches!(url.scheme(), "http" | "https") && url.has_host();
    if is_plain && url.username().is_empty() && url.password().is_none() { Ok(url) } else { Err(wrong()) }
}

/// Where messages may go. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    allowed: Arc<[Allowed]>,
}

/// Something that is allowed although it is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    Host(String),
    Network(IpAddr, u8),
}

/// Text that names no host and no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is neither a host nor a network. Write it like hooks.internal, 10.1.2.3 or 10.0.0.0/8.")]
pub struct BadAllowed(String);

impl FromStr for Allowed {
    type Err = BadAllowed;

    fn from_str(text: &str) -> Result<Self, BadAllowed> {
        let bad = || BadAllowed(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        match (address.parse::<IpAddr>(), bits) {
            (Ok(address), bits) => {
                let all = if address.is_ipv4() { 32 } else { 128 };
                let bits = bits.map_or(Ok(all), str::parse).map_err(|_| bad())?;
                if bits <= all { Ok(Allowed::Network(address, bits)) } else { Err(bad()) }
            }
            (Err(_), None) if !text.is_empty() && !text.contains([':', '@', ' ']) => {
                Ok(Allowed::Host(text.to_lowercase()))
            }
            (Err(_), _) => Err(bad()),
        }
    }
}

impl Guard {
    /// The public network, and these hosts and networks.
    pub fn new<S: AsRef<str>>(allowed: impl IntoIterator<Item = S>) -> Result<Self, BadAllowed> {
        let allowed = allowed.into_iter().map(|text| text.as_ref().parse()).collect::<Result<_, _>>()?;
        Ok(Guard { allowed })
    }

    /// Says why a message may not be sent there, as far as the address itself says. What a name leads to is looked at
    /// when it is called.
    pub fn check(&self, url: &str) -> Result<(), String> {
        self.open(url).map(drop)
    }

    /// The address, if a message may be sent there.
    pub(crate) fn open(&self, url: &str) -> Result<Url, String> {
        let url = read(url)?;
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        let is_allowed = self.names(host) || literal.is_some_and(|address| self.holds(address));
        match literal {
            _ if is_allowed => Ok(url),
            _ if url.scheme() != "https" => {
                Err(format!("{host} is called by https only. Use it, or allow the host."))
            }
            Some(address) if !is_public(address) => Err(not_public(host)),
            _ => Ok(url),
        }
    }

    fn names(&self, host: &str) -> bool {
        let host = host.to_lowercase();
        self.allowed.iter().any(|allowed| matches!(allowed, Allowed::Host(name) if *name == host))
    }

    fn holds(&self, address: IpAddr) -> bool {
        let within = |allowed: &Allowed| match allowed {
            Allowed::Host(_) => false,
            Allowed::Network(network, bits) => is_within(address, *network, *bits),
        };
        self.allowed.iter().any(within)
    }

    fn may_reach(&self, host: &str, address: IpAddr) -> bool {
        self.names(host) || self.holds(address) || is_public(address)
    }
}

fn not_public(host: &str) -> String {
    format!("{host} is inside a private network, where nothing is sent. The operator can allow it.")
}

impl Resolve for Guard {
    /// Looks a name up and leaves out what must not be called, so that what was looked at is what is called.
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.filter(|found| guard.may_reach(&host, found.ip())).collect();
            if found.is_empty() {
                return Err(not_public(&host).into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    };
    let mask = if bits == 0 { 0 } else { u128::MAX << (128 - u32::from(bits)) };
    address.is_ipv4() == network.is_ipv4() && number(address) & mask == number(network) & mask
}

/// Networks of version 4 that are not the public one: private, local, shared, reserved, for tests, for many at once.
const CLOSED_V4: [(Ipv4Addr, u8); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Of version 6 only one block is in public use; within it these are not, and these carry an address of version 4.
const PUBLIC_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const CLOSED_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => {
            !CLOSED_V4.iter().any(|(network, bits)| is_within(address, IpAddr::V4(*network), *bits))
        }
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => is_public(IpAddr::V4(four)),
            None => {
                let within =
                    |(network, bits): &(Ipv6Addr, u8)| is_within(address, IpAddr::V6(*network), *bits);
                within(&PUBLIC_V6) && !CLOSED_V6.iter().any(within)
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, url: &str, expected: bool) {
        assert_eq!(guard.check(url).is_ok(), expected, "{url}");
    }

    #[test]
    fn what_only_we_can_reach_is_not_called() {
        let guard = Guard::default();
        check(&guard, "https://example.com/hook", true);
        check(&guard, "https://93.184.216.34/hook", true);
        check(&guard, "https://[2606:2800:220:1::1]/", true);
        for closed in [
            "http://example.com/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0/",
            "https://169.254.169.254/latest/meta-data",
            "https://10.1.2.3/",
            "https://192.168.0.1/",
            "https://172.31.255.255/",
            "https://100.64.0.1/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::a00:1]/",
            "https://[2002:7f00:1::]/",
            "https://user:word@example.com/",
            "ftp://example.com/",
            "file:///etc/passwd",
        ] {
            check(&guard, closed, false);
        }
        for address in ["10.0.0.1", "127.0.0.1", "::1", "::ffff:169.254.169.254"] {
            assert!(!guard.may_reach("example.com", address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn the_operator_can_allow_hosts_and_networks() {
        let guard = Guard::new(["hooks.internal", "127.0.0.0/8", "fd00::/8"]).unwrap();
        check(&guard, "http://127.0.0.1:8000/hook", true);
        check(&guard, "http://hooks.internal/", true);
        check(&guard, "https://[fd12::1]/", true);
        check(&guard, "https://10.0.0.1/", false);
        check(&guard, "http://example.com/", false);
        assert!(guard.may_reach("hooks.internal", "10.0.0.1".parse().unwrap()));
        for bad in ["10.0.0.0/33", "10.0.0.0/x", "http://a", "", "a b"] {
            assert!(Guard::new([bad]).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_not_called() {
        let resolved = Guard::default().resolve("localhost".parse().unwrap()).await;
        assert!(resolved.is_err());
        let allowed = Guard::new(["localhost"]).unwrap().resolve("localhost".parse().unwrap()).await;
        assert!(allowed.is_ok_and(|mut found| found.next().is_some()));
    }
}
