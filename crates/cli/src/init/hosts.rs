//! The hosts of a new cluster, as they are written on the command line.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;

/// A host for one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// The name of its daemon; its number if it has none.
    pub name: Option<String>,
    /// Its address, or its name where configurations may have that.
    pub address: String,
}

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = match text.split_once('=') {
            Some((name, address)) => (Some(name.trim()), address.trim()),
            None => (None, text.trim()),
        };
        if name.is_some_and(str::is_empty) {
            return Err("there is no name before the =".to_owned());
        }
        let is_in_a_host = |c: char| c.is_ascii_alphanumeric() || "-.:".contains(c);
        if address.is_empty() || !address.chars().all(is_in_a_host) {
            return Err(format!(
                "{address:?} is no address of a host: write NAME=ADDRESS, as in left=10.0.0.1"
            ));
        }
        Ok(Self {
            name: name.map(str::to_owned),
            address: address.to_owned(),
        })
    }
}

impl Host {
    /// Its address, if that is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.parse().ok()
    }
}

/// Whether nodes have to share a host.
pub fn share_an_address(hosts: &[Host]) -> bool {
    let addresses: BTreeSet<&str> = hosts.iter().map(|host| &*host.address).collect();
    let is_loopback = |host: &Host| host.ip().is_some_and(|ip| ip.is_loopback());
    addresses.len() < hosts.len() || hosts.iter().any(is_loopback)
}
