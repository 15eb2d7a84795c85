//! A rule as it is written, and its errors.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::Deserialize;

use super::{AccessError, Pattern};

/// The rights of some clients.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRule {
    /// The peers that the rule is about.
    pub who: Who,
    /// They may be clients; true.
    #[serde(default = "yes")]
    pub connect: bool,
    /// They may ask for the daemon's status: at the admin socket, or at the address of the metrics; false.
    #[serde(default)]
    pub admin: bool,
    /// Groups that they may join; none.
    #[serde(default)]
    pub join: Vec<Pattern>,
    /// Groups and clients that they may send to; none.
    #[serde(default)]
    pub send: Vec<Pattern>,
}

const fn yes() -> bool {
    true
}

/// The peers that a rule is about: all that match each field that is set.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Who {
    /// All peers; then no other field is set.
    pub anyone: bool,
    /// Processes of this user of the host.
    pub user: Option<String>,
    /// The same, by number.
    pub uid: Option<u32>,
    /// Processes that are in this group of the host.
    pub group: Option<String>,
    /// The same, by number.
    pub gid: Option<u32>,
    /// Clients with a certificate for this name.
    pub certificate: Option<String>,
    /// Clients that come from these addresses, by TCP.
    pub address: Option<IpNet>,
}

impl Who {
    /// True for processes of this host, known by the kernel.
    const fn is_local(&self) -> bool {
        self.user.is_some() || self.uid.is_some() || self.group.is_some() || self.gid.is_some()
    }

    /// True for peers that come by TCP.
    const fn is_remote(&self) -> bool {
        self.certificate.is_some() || self.address.is_some()
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("user", self.user.clone()),
            ("uid", self.uid.map(|uid| uid.to_string())),
            ("group", self.group.clone()),
            ("gid", self.gid.map(|gid| gid.to_string())),
            ("certificate", self.certificate.clone()),
            ("address", self.address.map(|net| net.to_string())),
        ];
        let said = fields
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        let said: Vec<String> = said.collect();
        f.write_str(if self.anyone { "anyone" } else { "" })?;
        f.write_str(&said.join(", "))
    }
}

/// The addresses from which clients can come by TCP.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Addresses from which clients can come without a certificate.
    pub open: Vec<IpNet>,
    /// Addresses from which clients can come by TLS.
    pub tls: Vec<IpNet>,
    /// The TLS listeners ask clients for certificates.
    pub certificates: bool,
    /// Addresses from which metrics can be read.
    pub metrics: Vec<IpNet>,
}

impl Reach {
    /// This host.
    pub fn loopback() -> [IpNet; 2] {
        [
            IpNet::new_assert(Ipv4Addr::LOCALHOST.into(), 8).trunc(),
            IpNet::new_assert(Ipv6Addr::LOCALHOST.into(), 128),
        ]
    }

    /// Every host, as far as it reaches this address.
    pub fn through(listener: IpAddr) -> Vec<IpNet> {
        if listener.is_loopback() {
            return Self::loopback().to_vec();
        }
        vec![
            IpNet::new_assert(Ipv4Addr::UNSPECIFIED.into(), 0),
            IpNet::new_assert(Ipv6Addr::UNSPECIFIED.into(), 0),
        ]
    }

    fn has(nets: &[IpNet], net: &IpNet) -> bool {
        nets.iter()
            .any(|other| other.contains(net) || net.contains(other))
    }
}

impl AccessRule {
    /// Whether a peer can match the rule, and gets something by it.
    pub(crate) fn check(&self, reach: &Reach) -> Result<(), AccessError> {
        self.check_who(reach)?;
        if !self.connect {
            if !self.join.is_empty() || !self.send.is_empty() {
                return Err(AccessError::WithoutConnect);
            }
            if !self.admin {
                return Err(AccessError::Nothing);
            }
        }
        if self.admin && self.who.is_remote() {
            self.check_far_admin(reach)?;
        }
        match self.join.iter().find(|pattern| pattern.is_of_clients()) {
            Some(pattern) => Err(AccessError::JoinsClient(pattern.clone())),
            None => Ok(()),
        }
    }

    /// Only metrics can be read from other hosts, and peers show no certificate there.
    fn check_far_admin(&self, reach: &Reach) -> Result<(), AccessError> {
        match self.who.address {
            Some(net) if self.who.certificate.is_none() && Reach::has(&reach.metrics, &net) => {
                Ok(())
            }
            _ => Err(AccessError::RemoteAdmin),
        }
    }

    /// True if the rule lets some peer read metrics.
    pub(crate) const fn is_for_metrics(&self) -> bool {
        self.admin && (self.who.anyone || self.who.address.is_some())
    }

    fn check_who(&self, reach: &Reach) -> Result<(), AccessError> {
        let who = &self.who;
        if who.anyone != (*who == Who::anyone()) {
            return Err(AccessError::AnyoneAnd);
        }
        if !who.anyone && !who.is_local() && !who.is_remote() {
            return Err(AccessError::Nobody);
        }
        if who.user.is_some() && who.uid.is_some() || who.group.is_some() && who.gid.is_some() {
            return Err(AccessError::Twice);
        }
        if who.is_local() && who.is_remote() {
            return Err(AccessError::LocalAndRemote);
        }
        if who.certificate.is_some() && !reach.certificates {
            return Err(AccessError::NoTls);
        }
        if let Some(net) = &who.address
            && self.connect
        {
            let open = who.certificate.is_none() && Reach::has(&reach.open, net);
            if !open && !Reach::has(&reach.tls, net) {
                return Err(AccessError::Unreachable(*net));
            }
        }
        Ok(())
    }
}

impl Who {
    /// Everybody.
    pub fn anyone() -> Self {
        Self {
            anyone: true,
            ..Self::default()
        }
    }
}
