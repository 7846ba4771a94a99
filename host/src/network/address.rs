//! Classes of IP addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// The class of an IP address, by the special-purpose registries of IANA and the address plans of clouds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Reachable from the whole internet.
    Public,
    /// Private networks (RFC 1918) and unique local addresses (RFC 4193).
    Private,
    /// Shared by the customers of a carrier (RFC 6598), and used by some clusters for Pods.
    Shared,
    /// Set aside for documentation, benchmarks, protocols or the future.
    Reserved,
    /// This machine.
    Loopback,
    /// The local link, where clouds also serve metadata.
    LinkLocal,
    /// A metadata service of a cloud, outside of the local link.
    Metadata,
    /// No address, which connects to this machine on many systems.
    Unspecified,
    /// A group of machines.
    Multicast,
    /// All machines of the local network.
    Broadcast,
    /// An IPv6 address that leads to another address inside of it: 6to4, Teredo, ISATAP, and NAT64 within a network.
    Tunnel,
}

impl AddressClass {
    /// The class of an address. An IPv4 address that is written as an IPv6 address, or is reached through NAT64, has the
    /// class of the IPv4 address.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(v4) => Self::of_v4(v4),
            IpAddr::V6(v6) => Self::of_v6(v6),
        }
    }

    /// Whether an address of this class is permitted only when an operator lists the address itself, and never as a part
    /// of a class or a network.
    #[must_use]
    pub const fn needs_exact_address(self) -> bool {
        match self {
            Self::Public | Self::Private | Self::Shared | Self::Reserved => false,
            Self::Loopback
            | Self::LinkLocal
            | Self::Metadata
            | Self::Unspecified
            | Self::Multicast
            | Self::Broadcast
            | Self::Tunnel => true,
        }
    }

    /// The name of the class in settings and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Shared => "shared",
            Self::Reserved => "reserved",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "metadata",
            Self::Unspecified => "unspecified",
            Self::Multicast => "multicast",
            Self::Broadcast => "broadcast",
            Self::Tunnel => "tunnel",
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let mut special = SPECIAL_V4.iter();
        let found = special.find(|(network, _)| network.contains(&address));
        found.map_or(Self::Public, |(_, class)| *class)
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let mut special = SPECIAL_V6.iter();
        let found = special.find(|(network, _)| network.contains(&address));
        match found {
            Some((_, Inside::Class(class))) => *class,
            Some((_, Inside::V4)) => Self::of_v4(last_v4(address)),
            Some((_, Inside::ObsoleteV4)) => match Self::of_v4(last_v4(address)) {
                Self::Public => Self::Reserved,
                class => class,
            },
            None if is_isatap(address) => Self::Tunnel,
            None if GLOBAL.contains(&address) => Self::Public,
            None => Self::Reserved,
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What decides the class of an IPv6 address.
enum Inside {
    /// Its network.
    Class(AddressClass),
    /// The IPv4 address in its last 32 bits.
    V4,
    /// The same. The form is obsolete, so no such address is public.
    ObsoleteV4,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(segments: [u16; 8], length: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

/// IPv4 networks that are not public; the first that contains an address counts.
/// <https://www.iana.org/assignments/iana-ipv4-special-registry>
const SPECIAL_V4: [(Ipv4Net, AddressClass); 19] = [
    // Azure, Alibaba Cloud, Oracle Cloud Classic.
    (v4(168, 63, 129, 16, 32), AddressClass::Metadata),
    (v4(100, 100, 100, 200, 32), AddressClass::Metadata),
    (v4(192, 0, 0, 192, 32), AddressClass::Metadata),
    (v4(0, 0, 0, 0, 8), AddressClass::Unspecified),
    (v4(10, 0, 0, 0, 8), AddressClass::Private),
    (v4(100, 64, 0, 0, 10), AddressClass::Shared),
    (v4(127, 0, 0, 0, 8), AddressClass::Loopback),
    // Also the metadata services of AWS, Azure, Google Cloud, Oracle Cloud and OpenStack.
    (v4(169, 254, 0, 0, 16), AddressClass::LinkLocal),
    (v4(172, 16, 0, 0, 12), AddressClass::Private),
    // Protocol assignments.
    (v4(192, 0, 0, 0, 24), AddressClass::Reserved),
    // Documentation.
    (v4(192, 0, 2, 0, 24), AddressClass::Reserved),
    (v4(198, 51, 100, 0, 24), AddressClass::Reserved),
    (v4(203, 0, 113, 0, 24), AddressClass::Reserved),
    // Relays of 6to4.
    (v4(192, 88, 99, 0, 24), AddressClass::Tunnel),
    (v4(192, 168, 0, 0, 16), AddressClass::Private),
    // Benchmarks.
    (v4(198, 18, 0, 0, 15), AddressClass::Reserved),
    (v4(224, 0, 0, 0, 4), AddressClass::Multicast),
    (v4(255, 255, 255, 255, 32), AddressClass::Broadcast),
    (v4(240, 0, 0, 0, 4), AddressClass::Reserved),
];

/// IPv6 networks that are not public, or hold IPv4 addresses; the first that contains an address counts.
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>
const SPECIAL_V6: [(Ipv6Net, Inside); 20] = [
    (v6([0; 8], 128), Inside::Class(AddressClass::Unspecified)),
    (
        v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
        Inside::Class(AddressClass::Loopback),
    ),
    // IPv4-mapped, IPv4-translated and IPv4-compatible.
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), Inside::V4),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), Inside::ObsoleteV4),
    (v6([0; 8], 96), Inside::ObsoleteV4),
    // NAT64: the prefix for all networks, and the one for use within a network, where the place of the IPv4 address varies.
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96), Inside::V4),
    (
        v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48),
        Inside::Class(AddressClass::Tunnel),
    ),
    // Discarded, and the dummy prefix.
    (
        v6([0x100, 0, 0, 0, 0, 0, 0, 0], 63),
        Inside::Class(AddressClass::Reserved),
    ),
    // Teredo, and the other protocol assignments: benchmarks, ORCHID.
    (
        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32),
        Inside::Class(AddressClass::Tunnel),
    ),
    (
        v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
        Inside::Class(AddressClass::Reserved),
    ),
    // Documentation.
    (
        v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
        Inside::Class(AddressClass::Reserved),
    ),
    (
        v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
        Inside::Class(AddressClass::Reserved),
    ),
    // 6to4.
    (
        v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16),
        Inside::Class(AddressClass::Tunnel),
    ),
    // AWS, Google Cloud, Oracle Cloud, Scaleway.
    (
        v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32),
        Inside::Class(AddressClass::Metadata),
    ),
    (
        v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
        Inside::Class(AddressClass::Metadata),
    ),
    (
        v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128),
        Inside::Class(AddressClass::Metadata),
    ),
    (
        v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128),
        Inside::Class(AddressClass::Metadata),
    ),
    (
        v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7),
        Inside::Class(AddressClass::Private),
    ),
    (
        v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
        Inside::Class(AddressClass::LinkLocal),
    ),
    (
        v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
        Inside::Class(AddressClass::Multicast),
    ),
];

/// The only part of IPv6 that is assigned to the internet.
const GLOBAL: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

fn last_v4(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

/// Whether the last half of an address holds an IPv4 address by ISATAP (RFC 5214), under any prefix.
const fn is_isatap(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _])
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(addresses: &[&str], expected: Expect) {
        let classes: Vec<String> = addresses
            .iter()
            .map(|address| format!("{address} {}", AddressClass::of(address.parse().unwrap())))
            .collect();
        expected.assert_eq(&classes.join("\n"));
    }

    #[test]
    fn ipv4_addresses_have_the_class_of_their_network() {
        check(
            &[
                "1.1.1.1",
                "9.255.255.255",
                "10.0.0.0",
                "10.255.255.255",
                "11.0.0.0",
                "172.15.255.255",
                "172.16.0.0",
                "172.31.255.255",
                "172.32.0.0",
                "192.168.0.0",
                "192.168.255.255",
                "192.169.0.0",
                "100.63.255.255",
                "100.64.0.0",
                "100.127.255.255",
                "100.128.0.0",
                "0.0.0.0",
                "0.1.2.3",
                "127.0.0.1",
                "127.255.255.254",
                "169.254.169.254",
                "169.254.170.2",
                "168.63.129.15",
                "168.63.129.16",
                "100.100.100.200",
                "192.0.0.192",
                "192.0.0.8",
                "192.0.1.1",
                "192.0.2.1",
                "198.51.100.1",
                "203.0.113.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.20.0.0",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.254",
                "255.255.255.255",
            ],
            expect![[r#"
                1.1.1.1 public
                9.255.255.255 public
                10.0.0.0 private
                10.255.255.255 private
                11.0.0.0 public
                172.15.255.255 public
                172.16.0.0 private
                172.31.255.255 private
                172.32.0.0 public
                192.168.0.0 private
                192.168.255.255 private
                192.169.0.0 public
                100.63.255.255 public
                100.64.0.0 shared
                100.127.255.255 shared
                100.128.0.0 public
                0.0.0.0 unspecified
                0.1.2.3 unspecified
                127.0.0.1 loopback
                127.255.255.254 loopback
                169.254.169.254 link-local
                169.254.170.2 link-local
                168.63.129.15 public
                168.63.129.16 metadata
                100.100.100.200 metadata
                192.0.0.192 metadata
                192.0.0.8 reserved
                192.0.1.1 public
                192.0.2.1 reserved
                198.51.100.1 reserved
                203.0.113.1 reserved
                192.88.99.1 tunnel
                198.18.0.1 reserved
                198.19.255.255 reserved
                198.20.0.0 public
                224.0.0.1 multicast
                239.255.255.255 multicast
                240.0.0.1 reserved
                255.255.255.254 reserved
                255.255.255.255 broadcast"#]],
        );
    }

    #[test]
    fn ipv6_addresses_have_the_class_of_their_network_or_of_the_address_inside() {
        check(
            &[
                "2606:4700::1111",
                "2a00::1",
                "3ffe::1",
                "::",
                "::1",
                "::2",
                "::7f00:1",
                "::a00:1",
                "::101:101",
                "::ffff:1.1.1.1",
                "::ffff:10.0.0.1",
                "::ffff:169.254.169.254",
                "::ffff:168.63.129.16",
                "::ffff:0:127.0.0.1",
                "64:ff9b::1.1.1.1",
                "64:ff9b::10.0.0.1",
                "64:ff9b::169.254.169.254",
                "64:ff9b:1::101:101",
                "100::1",
                "100:0:0:1::1",
                "2001::1",
                "2001:0:7f00:1::",
                "2001:2::1",
                "2001:20::1",
                "2001:1ff::1",
                "2001:200::1",
                "2001:db8::1",
                "3fff::1",
                "2002:7f00:1::",
                "2002:101:101::1",
                "2606:4700::5efe:a00:1",
                "2606:4700::200:5efe:101:101",
                "fc00::1",
                "fd12:3456::1",
                "fd00:ec2::254",
                "fd00:ec2::23",
                "fd20:ce::254",
                "fd00:c1::a9fe:a9fe",
                "fd00:42::42",
                "fe80::1",
                "fe80::a9fe:a9fe",
                "febf::1",
                "fec0::1",
                "ff02::1",
                "5f00::1",
                "4000::1",
            ],
            expect![[r#"
                2606:4700::1111 public
                2a00::1 public
                3ffe::1 public
                :: unspecified
                ::1 loopback
                ::2 unspecified
                ::7f00:1 loopback
                ::a00:1 private
                ::101:101 reserved
                ::ffff:1.1.1.1 public
                ::ffff:10.0.0.1 private
                ::ffff:169.254.169.254 link-local
                ::ffff:168.63.129.16 metadata
                ::ffff:0:127.0.0.1 loopback
                64:ff9b::1.1.1.1 public
                64:ff9b::10.0.0.1 private
                64:ff9b::169.254.169.254 link-local
                64:ff9b:1::101:101 tunnel
                100::1 reserved
                100:0:0:1::1 reserved
                2001::1 tunnel
                2001:0:7f00:1:: tunnel
                2001:2::1 reserved
                2001:20::1 reserved
                2001:1ff::1 reserved
                2001:200::1 public
                2001:db8::1 reserved
                3fff::1 reserved
                2002:7f00:1:: tunnel
                2002:101:101::1 tunnel
                2606:4700::5efe:a00:1 tunnel
                2606:4700::200:5efe:101:101 tunnel
                fc00::1 private
                fd12:3456::1 private
                fd00:ec2::254 metadata
                fd00:ec2::23 metadata
                fd20:ce::254 metadata
                fd00:c1::a9fe:a9fe metadata
                fd00:42::42 metadata
                fe80::1 link-local
                fe80::a9fe:a9fe link-local
                febf::1 link-local
                fec0::1 reserved
                ff02::1 multicast
                5f00::1 reserved
                4000::1 reserved"#]],
        );
    }

    #[test]
    fn loopback_metadata_and_tunnels_need_an_exact_address() {
        use AddressClass::{Private, Public, Reserved, Shared};
        let loose = [Public, Private, Shared, Reserved];
        assert!(loose.iter().all(|class| !class.needs_exact_address()));
        for address in ["127.0.0.1", "::1", "169.254.169.254", "2002::", "0.0.0.0"] {
            let class = AddressClass::of(address.parse().unwrap());
            assert!(class.needs_exact_address(), "{address}");
        }
    }
}
