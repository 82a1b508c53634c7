//! IP addresses that Earshot may contact for a customer.
//!
//! The rule is an allowlist: an address must be globally routable unicast according to the IANA special-purpose
//! registries, so that a forgotten block is refused. [`AddressPolicy`] has the operator's exceptions in both
//! directions; a denied address stays denied even if another rule allows it. Ports that browsers refuse are
//! refused, because they belong to other protocols than HTTP. `outbound` checks every address before each
//! connection; [`crate::web_url`] checks literal addresses when a customer enters them.
//!
//! Registries: <https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::host_name::{HostName, is_reserved_name};

/// The operator's rules for customers' addresses. The default allows the public internet over https.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Allowed even if not public.
    pub allow_cidrs: Vec<IpNet>,
    /// Refused even if public or allowed.
    pub deny_cidrs: Vec<IpNet>,
    /// The only internal names that are allowed; if empty, all as soon as `allow_cidrs` opens a network.
    pub allow_hosts: Vec<HostName>,
    /// The only ports that are allowed; empty for all that are not [bad](is_bad_port).
    pub allow_ports: Vec<u16>,
    /// True if Connections may be `http://`. Seeds always may.
    pub allow_http: bool,
}

impl AddressPolicy {
    /// Returns true if a connection to `ip` is permitted.
    ///
    /// An IPv4-mapped address is checked against the lists in both forms, because the system connects it to the
    /// IPv4 one. An address that embeds an IPv4 address for NAT64 is also checked against the denied networks.
    pub fn permits(&self, ip: IpAddr) -> bool {
        let canonical = ip.to_canonical();
        let listed = |cidrs: &[IpNet], ip: IpAddr| cidrs.iter().any(|cidr| cidr.contains(&ip));
        let denied = [Some(ip), Some(canonical), nat64_target(ip)]
            .into_iter()
            .flatten()
            .any(|ip| listed(&self.deny_cidrs, ip));
        let allowed = listed(&self.allow_cidrs, ip) || listed(&self.allow_cidrs, canonical);
        !denied && (is_public(ip) || allowed)
    }

    /// Returns true if addresses of a host with this name are permitted at all. It permits none by itself: an
    /// internal name only leads to networks that the operator opened, whose addresses customers can also write.
    pub fn permits_name(&self, name: &str) -> bool {
        !is_reserved_name(name)
            || if self.allow_hosts.is_empty() {
                self.allow_cidrs.iter().any(|cidr| !is_loopback(*cidr))
            } else {
                self.allow_hosts.iter().any(|host| host.covers(name))
            }
    }

    /// Returns true if a connection to this port is permitted.
    pub fn permits_port(&self, port: u16) -> bool {
        let listed = self.allow_ports.is_empty() || self.allow_ports.contains(&port);
        listed && !is_bad_port(port)
    }

    /// The permitted loopback addresses of this machine, for `localhost` (RFC 6761 6.3).
    pub fn permitted_loopback(&self) -> Vec<IpAddr> {
        [
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ]
        .into_iter()
        .filter(|ip| self.permits(*ip))
        .collect()
    }
}

/// Returns true if the network is within loopback, which has the name `localhost` and opens nothing else.
fn is_loopback(cidr: IpNet) -> bool {
    cidr.network().is_loopback() && cidr.broadcast().is_loopback()
}

/// Ports of other protocols, whose servers may accept an HTTP request as a command: the "bad ports" of the
/// Fetch standard, <https://fetch.spec.whatwg.org/#port-blocking>. Ascending.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101,
    102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427,
    465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990,
    993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667,
    6668, 6669, 6679, 6697, 10080,
];

/// Returns true if browsers refuse to speak HTTP to this port.
pub fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok()
}

/// Returns true if `ip` is globally routable unicast and not a cloud's metadata service.
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

/// Base and prefix length of each IPv4 block that is not globally routable unicast.
const REFUSED_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),        // "this network", RFC 791
    (Ipv4Addr::new(10, 0, 0, 0), 8),       // private, RFC 1918
    (Ipv4Addr::new(100, 64, 0, 0), 10),    // CGNAT, RFC 6598; Alibaba's metadata
    (Ipv4Addr::new(127, 0, 0, 0), 8),      // loopback, RFC 1122
    (Ipv4Addr::new(168, 63, 129, 16), 32), // Azure's platform services, reached from inside only
    (Ipv4Addr::new(169, 254, 0, 0), 16),   // link-local, RFC 3927; most clouds' metadata
    (Ipv4Addr::new(172, 16, 0, 0), 12),    // private, RFC 1918
    (Ipv4Addr::new(192, 0, 0, 0), 24),     // protocol assignments, RFC 6890; Oracle's metadata
    (Ipv4Addr::new(192, 0, 2, 0), 24),     // documentation, RFC 5737
    (Ipv4Addr::new(192, 88, 99, 0), 24),   // 6to4 relays, deprecated by RFC 7526
    (Ipv4Addr::new(192, 168, 0, 0), 16),   // private, RFC 1918
    (Ipv4Addr::new(198, 18, 0, 0), 15),    // benchmarking, RFC 2544
    (Ipv4Addr::new(198, 51, 100, 0), 24),  // documentation, RFC 5737
    (Ipv4Addr::new(203, 0, 113, 0), 24),   // documentation, RFC 5737
    (Ipv4Addr::new(224, 0, 0, 0), 4),      // multicast, RFC 5771
    (Ipv4Addr::new(240, 0, 0, 0), 4),      // reserved, RFC 1112; limited broadcast, RFC 919
];

fn is_public_v4(ip: Ipv4Addr) -> bool {
    !REFUSED_V4.iter().any(|(base, prefix)| {
        let mask = u32::MAX << (32 - prefix);
        ip.to_bits() & mask == base.to_bits()
    })
}

/// Blocks inside global unicast, 2000::/3, that are not for hosts on the public internet.
const REFUSED_V6: &[(Ipv6Addr, u8)] = &[
    // Protocol assignments, RFC 2928: Teredo, benchmarking, ORCHID, DRIP. The few global ones are anycast for
    // protocols other than HTTP.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation, RFC 3849
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),     // 6to4, RFC 3056: embeds any IPv4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),     // documentation, RFC 9637
];

/// Global unicast is 2000::/3 (RFC 4291, and nothing else is assigned). Everything outside is refused:
/// unspecified, loopback, IPv4-mapped and -compatible, local NAT64 (RFC 8215), discard (RFC 6666), SRv6, unique
/// local (including AWS's metadata), link- and site-local, multicast.
///
/// The exception is 64:ff9b::/96 (RFC 6052): on a NAT64 network every IPv4 site has such an address, and it
/// reaches exactly the IPv4 address that it embeds.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let Some(IpAddr::V4(target)) = nat64_target(ip.into()) {
        return is_public_v4(target);
    }
    let within = |base: Ipv6Addr, prefix: u8| {
        let mask = u128::MAX << (128 - prefix);
        ip.to_bits() & mask == base.to_bits()
    };
    within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3)
        && !REFUSED_V6
            .iter()
            .any(|(base, prefix)| within(*base, *prefix))
}

/// The IPv4 address that an address in 64:ff9b::/96 reaches.
fn nat64_target(ip: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(ip) = ip else { return None };
    let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = ip.segments() else {
        return None;
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{AddressPolicy, BAD_PORTS, is_public};

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_global_unicast_is_public() {
        let public = [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.215.14",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.15",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700:4700::1111",
            "2a00:1450:4001:80b::200e",
            "3ffe::1",
            "64:ff9b::8.8.8.8",
            "64:ff9b::5db8:d70e",
        ];
        for text in public {
            assert!(is_public(ip(text)), "{text} is public");
        }
        let refused = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.1.2.3",
            "127.255.255.255",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "192.168.255.255",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:0:0:0:1:0808:0808",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b:1::10.0.0.1",
            "100::1",
            "100:0:0:1::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:2::1",
            "2001:3::1",
            "2001:10::1",
            "2001:20::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:0808:0808::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fe80::1",
            "fe80::a9fe:a9fe",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ];
        for text in refused {
            assert!(!is_public(ip(text)), "{text} is not public");
        }
    }

    #[test]
    fn operators_exceptions_apply_to_both_forms_of_an_ipv4_address() {
        let policy = AddressPolicy {
            allow_cidrs: vec!["127.0.0.0/8".parse().unwrap(), "fd12::/16".parse().unwrap()],
            ..AddressPolicy::default()
        };
        for allowed in [
            "127.0.0.1",
            "127.9.9.9",
            "::ffff:127.0.0.1",
            "fd12::5",
            "8.8.8.8",
        ] {
            assert!(policy.permits(ip(allowed)), "{allowed}");
        }
        for refused in [
            "10.0.0.1",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::127.0.0.1",
            "fd13::5",
        ] {
            assert!(!policy.permits(ip(refused)), "{refused}");
        }
        assert_eq!(policy.permitted_loopback(), [ip("127.0.0.1")]);
        assert!(AddressPolicy::default().permitted_loopback().is_empty());
    }

    #[test]
    fn denied_networks_win_over_allowed_and_public_ones() {
        let nets = |nets: &[&str]| nets.iter().map(|net| net.parse().unwrap()).collect();
        let policy = AddressPolicy {
            allow_cidrs: nets(&["10.0.0.0/8", "::1/128"]),
            deny_cidrs: nets(&["10.1.0.0/16", "8.8.8.0/24", "::1/128", "2606:4700::/32"]),
            ..AddressPolicy::default()
        };
        for allowed in [
            "10.0.0.1",
            "8.8.4.4",
            "2001:4860:4860::8888",
            "64:ff9b::8.8.4.4",
        ] {
            assert!(policy.permits(ip(allowed)), "{allowed}");
        }
        for denied in [
            "10.1.0.1",
            "::ffff:10.1.0.1",
            "8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2606:4700:4700::1111",
        ] {
            assert!(!policy.permits(ip(denied)), "{denied}");
        }
        assert!(policy.permitted_loopback().is_empty());
    }

    #[test]
    fn bad_ports_and_unlisted_ports_are_refused() {
        assert!(BAD_PORTS.is_sorted());
        let any = AddressPolicy::default();
        let listed = AddressPolicy {
            allow_ports: vec![443, 8443, 25],
            ..AddressPolicy::default()
        };
        for (port, by_default, when_listed) in [
            (80, true, false),
            (443, true, true),
            (8443, true, true),
            (5432, true, false),
            (0, false, false),
            (22, false, false),
            (25, false, false),
            (6000, false, false),
            (10080, false, false),
        ] {
            assert_eq!(any.permits_port(port), by_default, "{port}");
            assert_eq!(listed.permits_port(port), when_listed, "{port}");
        }
    }
}
