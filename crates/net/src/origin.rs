//! The check that a request by HTTP was meant for this host.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Configured, it stands for every name.
const ANY: &str = "*";

/// A page in a browser can have a name of its own lead to any address that the browser reaches, and then read what is
/// served there as if it were its own: the browser sends that name. So only requests for an address, for `localhost`, for
/// the host's `own` name (empty: none) or for a configured one are answered, and those that name no host, which no browser sends.
pub fn is_meant_for(host: Option<&[u8]>, own: &str, configured: &[String]) -> bool {
    let Some(host) = host else { return true };
    std::str::from_utf8(host).is_ok_and(|host| is_named(host, own, configured))
}

fn is_named(host: &str, own: &str, configured: &[String]) -> bool {
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
    let is = |known: &str| {
        let known = known.strip_suffix('.').unwrap_or(known);
        !known.is_empty() && name.eq_ignore_ascii_case(known)
    };
    is("localhost") || is(own) || configured.iter().any(|known| known == ANY || is(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_neither_this_hosts_nor_configured_is_refused() {
        let configured = ["rota.monitoring.svc".to_owned(), "ring.example.".to_owned()];
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
            "rota.monitoring.svc:9464",
            "RING.example",
        ];
        for host in good {
            assert!(is_named(host, "ring-1", &configured), "{host}");
        }
        let bad = [
            "",
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "ring-1.evil.example",
            "ring-1:x",
            "monitoring.svc",
        ];
        for host in bad {
            assert!(!is_named(host, "ring-1", &configured), "{host}");
        }
        assert!(!is_named("", "", &[String::new()]));
        assert!(is_named("evil.example", "ring-1", &["*".to_owned()]));
        assert!(is_meant_for(None, "ring-1", &[]));
        assert!(!is_meant_for(Some(b"evil.example"), "ring-1", &[]));
        assert!(!is_meant_for(Some(b"\xff"), "ring-1", &["*".to_owned()]));
    }
}
