//! Whether a request was meant for this host.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// A page in a browser of this host can have a name of its own lead to a loopback address, and then read what is served
/// there as if it were its own: the browser sends that name. So at such an address only requests for an address, for
/// `localhost` or for this host's own name are answered, and those that name no host, which no browser sends. Whoever
/// reaches another address may read, as the configuration has said of it.
pub(super) fn is_here(host: Option<&[u8]>, local: IpAddr) -> bool {
    let Some(host) = host else { return true };
    let own = nix::unistd::gethostname().unwrap_or_default();
    !local.to_canonical().is_loopback()
        || std::str::from_utf8(host).is_ok_and(|host| is_named(host, &own.to_string_lossy()))
}

fn is_named(host: &str, own: &str) -> bool {
    let host = host.trim();
    if host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok() {
        return true;
    }
    let bracketed = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if bracketed.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok()) {
        return true;
    }
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || !own.is_empty() && name.eq_ignore_ascii_case(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_this_hosts_is_refused_at_loopback_addresses() {
        let good = [
            "127.0.0.1",
            "127.0.0.1:9464",
            "[::1]",
            "[::1]:9464",
            "localhost",
            "LOCALHOST:9464",
            "ring-1",
            "Ring-1.:80",
            "10.0.0.1:1",
        ];
        for host in good {
            assert!(is_named(host, "ring-1"), "{host}");
        }
        let bad = [
            "",
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "ring-1.evil.example",
            "ring-1:x",
        ];
        for host in bad {
            assert!(!is_named(host, "ring-1"), "{host}");
        }
        assert!(!is_named("", ""));
        let at = |address: &str| address.parse::<IpAddr>().expect("an address");
        for address in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            assert!(!is_here(Some(b"evil.example"), at(address)), "{address}");
            assert!(!is_here(Some(b"\xff"), at(address)));
            assert!(is_here(None, at(address)));
        }
        assert!(is_here(Some(b"rota.monitoring.svc"), at("10.0.0.1")));
    }
}
