//! The errors of an access rule.

use std::fmt;
use std::io;

use ipnet::IpNet;

use super::Pattern;

/// An error in a rule of `[[daemon.access]]`.
#[derive(Debug)]
pub enum AccessError {
    /// The rule is about nobody.
    Nobody,
    /// The rule is about everybody, and about some peers as well.
    AnyoneAnd,
    /// The rule names a user or a group twice.
    Twice,
    /// The rule can never match: processes of this host have no certificate and no address.
    LocalAndRemote,
    /// The rule can never match: no client shows a certificate.
    NoTls,
    /// The rule can never match: no client can connect from there.
    Unreachable(IpNet),
    /// The rule gives groups to clients that may not connect by it.
    WithoutConnect,
    /// The rule gives nothing.
    Nothing,
    /// Only processes of this host can connect to the admin socket, and metrics are not served at an address that these
    /// peers can reach.
    RemoteAdmin,
    /// Clients cannot be joined.
    JoinsClient(Pattern),
    /// This host has no such user.
    UnknownUser(String),
    /// This host has no such group.
    UnknownGroup(String),
    /// The look-up of this user or group of the host failed.
    Lookup(String, io::Error),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str(
                "`who` says nothing: name a user, uid, group, gid, certificate or address, or say \
                 `anyone = true`",
            ),
            Self::AnyoneAnd => f.write_str("`anyone` and somebody: say one of the two"),
            Self::Twice => f.write_str("say a user or a uid, a group or a gid, not both"),
            Self::LocalAndRemote => f.write_str(
                "it can never match: a process of this host, by its user or group, has no \
                 certificate and no address",
            ),
            Self::NoTls => f.write_str(
                "it can never match: certificates are looked at only where there is a section \
                 [daemon.tls] with `client_ca`",
            ),
            Self::Unreachable(net) => write!(
                f,
                "it can never match: nobody can connect from {net} to where this daemon listens"
            ),
            Self::WithoutConnect => {
                f.write_str("`join` and `send` are for those who may `connect`")
            }
            Self::Nothing => {
                f.write_str("it gives nothing (and no rule takes away what another one gives)")
            }
            Self::RemoteAdmin => f.write_str(
                "`admin` is for users and groups of this host: the admin socket is a Unix socket; and \
                 for an `address` alone, if it can reach where `metrics` are served",
            ),
            Self::JoinsClient(pattern) => {
                write!(
                    f,
                    "`join`: `{pattern}` is about clients, and only groups are joined"
                )
            }
            Self::UnknownUser(name) => write!(f, "this host has no user `{name}`"),
            Self::UnknownGroup(name) => write!(f, "this host has no group `{name}`"),
            Self::Lookup(name, error) => write!(f, "`{name}` cannot be looked up: {error}"),
        }
    }
}

impl std::error::Error for AccessError {}
