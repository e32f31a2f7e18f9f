//! Built-in functions about networks. None of them uses one.

use std::net::IpAddr;

use super::term::Term;
use super::work::Work;

/// Of an address that is written, and of two networks that are compared.
const ADDRESS: u64 = 1_000;
const PAIR: u64 = 400;

/// Addresses of a network that are listed.
const MOST: u32 = 16;

/// Addresses with the same first bits.
#[derive(Clone, Copy)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

/// The bits of an address, from the first on.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    }
}

fn mask(prefix: u32) -> u128 {
    u128::MAX.checked_shl(128 - prefix).unwrap_or(0)
}

impl Network {
    /// Reads an address, `/`, and how many bits are the same.
    fn read(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        let digits = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|prefix| digits && *prefix <= width(address))?;
        Some(Self { address, prefix })
    }

    fn holds(self, other: Self) -> bool {
        let same = |a: u128, b: u128| (a ^ b) & mask(self.prefix) == 0;
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.prefix <= other.prefix
            && same(bits(self.address), bits(other.address))
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Reads a network. An address of IPv4 that is written as one of IPv6 is one or the other, depending on who reads it.
fn network(term: &Term) -> Result<Network, String> {
    let found = Network::read(term.text()?).ok_or_else(|| format!("{} is no network", term.shown()))?;
    plain(found.address).map(|()| found)
}

fn plain(address: IpAddr) -> Result<(), String> {
    match address {
        IpAddr::V6(six) if six.to_ipv4_mapped().is_some() => Err(format!("{address} is not supported")),
        _ => Ok(()),
    }
}

/// Reads a network, or an address as the network that is this address alone.
fn address_or_network(term: &Term) -> Result<Network, String> {
    match term.text()?.parse::<IpAddr>() {
        Ok(address) => plain(address).map(|()| Network { address, prefix: width(address) }),
        Err(_) => network(term),
    }
}

/// `net.cidr_is_valid`: what is no string is none.
pub(super) fn is_valid(values: &[Term], _: &mut Work) -> Result<Term, String> {
    Ok(Term::Bool(matches!(values, [Term::Text(text)] if Network::read(text).is_some())))
}

/// `net.cidr_expand`: all addresses of a network.
pub(super) fn expand(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [text] = values else { return Err("it takes one value".to_owned()) };
    let Network { address, prefix } = network(text)?;
    let free = width(address) - prefix;
    if free > MOST {
        return Err(format!("{} has more addresses than can be listed", text.shown()));
    }
    let count = 1_u32 << free;
    work.charge(u64::from(count) * ADDRESS)?;
    let first = bits(address) & mask(prefix);
    let addresses = (0..count).map(|number| match address {
        IpAddr::V4(_) => IpAddr::V4((u32::try_from(first >> 96).unwrap_or(0) | number).into()),
        IpAddr::V6(_) => IpAddr::V6((first | u128::from(number)).into()),
    });
    Ok(Term::set(addresses.map(|address| Term::Text(address.to_string())).collect()))
}

/// `net.cidr_contains_matches`: of networks and of networks or addresses, which of the first hold which of the second.
pub(super) fn contains_matches(values: &[Term], work: &mut Work) -> Result<Term, String> {
    let [networks, others] = values else { return Err("it takes two values".to_owned()) };
    let (networks, others) = (named(networks)?, named(others)?);
    work.charge((networks.len() as u64).saturating_mul(others.len() as u64).saturating_mul(PAIR))?;
    if networks.is_empty() || others.is_empty() {
        return Ok(Term::Set(Vec::new()));
    }
    let inner = others.iter().map(|(_, other)| address_or_network(other)).collect::<Result<Vec<Network>, String>>()?;
    let mut pairs = Vec::new();
    for (name, one) in &networks {
        let one = network(one)?;
        let held = others.iter().zip(&inner).filter(|(_, inner)| one.holds(**inner));
        for ((other_name, _), _) in held {
            work.charge(PAIR + 4 * (name.size() + other_name.size()))?;
            pairs.push(Term::Array(vec![name.clone(), other_name.clone()]));
        }
    }
    Ok(Term::set(pairs))
}

/// Networks by what names them in an answer: their place, themselves, or their key.
fn named(term: &Term) -> Result<Vec<(Term, &Term)>, String> {
    match term {
        Term::Text(_) => Ok(vec![(term.clone(), term)]),
        Term::Array(members) => {
            let numbered = members.iter().enumerate();
            numbered.map(|(place, member)| Ok((Term::Number(place.to_string()), inner(member)?))).collect()
        }
        Term::Set(members) => members.iter().map(|member| Ok((member.clone(), inner(member)?))).collect(),
        Term::Object(members) => members.iter().map(|(key, value)| Ok((key.clone(), inner(value)?))).collect(),
        other => Err(format!("{} names no networks", other.shown())),
    }
}

/// The network of a member, which may be the first of several things.
fn inner(member: &Term) -> Result<&Term, String> {
    match member {
        Term::Text(_) => Ok(member),
        Term::Array(members) => members.first().ok_or_else(|| "an empty array names no network".to_owned()),
        other => Err(format!("{} names no network", other.shown())),
    }
}
