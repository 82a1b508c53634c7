//! Which IP addresses Earshot may talk to on a customer's word.
//!
//! The rule is by allowance, not by blame: an address must be globally routable unicast by the IANA
//! special-purpose registries, so that a block nobody thought of is refused. What an operator allows
//! on top stands in [`AddressPolicy`]. `outbound` asks for every address before each connection;
//! [`crate::web_url`] asks for literal addresses when a customer enters them.
//!
//! Registries: <https://www.iana.org/assignments/iana-ipv4-special-registry>,
//! <https://www.iana.org/assignments/iana-ipv6-special-registry>.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// What the operator lets customers' addresses be, beyond the public internet over https.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Allowed although not public.
    pub allow_cidrs: Vec<IpNet>,
    /// Whether Connections may be `http://`. Seeds always may.
    pub allow_http: bool,
}

impl AddressPolicy {
    /// Whether a connection to `ip` may be made.
    ///
    /// An IPv4-mapped address is judged by the list in both its forms, since the system connects it
    /// to the IPv4 one.
    #[must_use]
    pub fn permits(&self, ip: IpAddr) -> bool {
        let canonical = ip.to_canonical();
        is_public(ip)
            || self
                .allow_cidrs
                .iter()
                .any(|cidr| cidr.contains(&ip) || cidr.contains(&canonical))
    }

    /// What of this machine's own loopback is permitted: where `localhost` leads (RFC 6761 6.3).
    #[must_use]
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

/// Whether `ip` is globally routable unicast, and no cloud's metadata service.
#[must_use]
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

/// Blocks inside global unicast, 2000::/3, that are not for hosts of the public internet.
const REFUSED_V6: &[(Ipv6Addr, u8)] = &[
    // Protocol assignments, RFC 2928: Teredo, benchmarking, ORCHID, DRIP. The few global ones among
    // them are anycast for protocols other than HTTP.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation, RFC 3849
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),     // 6to4, RFC 3056: embeds any IPv4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),     // documentation, RFC 9637
];

/// Global unicast is 2000::/3 (RFC 4291, and nothing else is assigned). What lies outside is
/// refused as it is: unspecified, loopback, IPv4-mapped and -compatible, local NAT64 (RFC 8215),
/// discard (RFC 6666), SRv6, unique local (AWS's metadata among it), link- and site-local, multicast.
///
/// The exception is 64:ff9b::/96 (RFC 6052): on a NAT64 network every IPv4 site looks like that, and
/// the address reaches exactly the IPv4 one that it embeds.
fn is_public_v6(ip: Ipv6Addr) -> bool {
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = ip.segments() {
        return is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{AddressPolicy, is_public};

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
    fn the_operators_list_widens_in_both_forms_of_an_ipv4_address() {
        let policy = AddressPolicy {
            allow_cidrs: vec!["127.0.0.0/8".parse().unwrap(), "fd12::/16".parse().unwrap()],
            allow_http: false,
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
}
