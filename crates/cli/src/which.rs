//! The number of a node: as a number, or as the name of its host has it.

use std::fmt;
use std::str::FromStr;

use rota_core::contract::NodeId;

/// The node that is meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The one with this id.
    Id(NodeId),
    /// The one whose id the name of this host ends with: `rota-2` is node 2.
    FromHostname,
    /// The same, where hosts are counted from 0 as those of a StatefulSet are: `rota-2` is node 3.
    FromOrdinal,
}

impl FromStr for Which {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "from-hostname" => return Ok(Self::FromHostname),
            "from-ordinal" => return Ok(Self::FromOrdinal),
            _ => {}
        }
        let id = text.parse().ok().and_then(NodeId::new);
        id.map(Self::Id).ok_or_else(|| {
            "not a node's number from 1 to 65535, from-hostname or from-ordinal".to_owned()
        })
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::FromHostname => f.write_str("from-hostname"),
            Self::FromOrdinal => f.write_str("from-ordinal"),
        }
    }
}

impl Which {
    /// The id. An error says in words why the name of this host has none.
    pub fn id(self) -> Result<NodeId, String> {
        if let Self::Id(id) = self {
            return Ok(id);
        }
        let name = nix::unistd::gethostname().map_err(|error| format!("host name: {error}"))?;
        self.id_on(&name.to_string_lossy())
    }

    /// The id on a host of this name.
    fn id_on(self, name: &str) -> Result<NodeId, String> {
        // A name may come with its domain, as in rota-2.rota.default.svc.
        let host = name.split('.').next().unwrap_or_default();
        let digits = host.rsplit(|c: char| !c.is_ascii_digit()).next();
        let number = digits.and_then(|digits| digits.parse::<u16>().ok());
        let id = match (self, number) {
            (Self::Id(id), _) => Some(id),
            (Self::FromHostname, Some(number)) => NodeId::new(number),
            (Self::FromOrdinal, Some(number)) => number.checked_add(1).and_then(NodeId::new),
            (_, None) => None,
        };
        id.ok_or_else(|| {
            format!(
                "the name of this host, {name}, does not end with the number of a node ({self})"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_number_or_the_number_at_the_end_of_the_hosts_name() {
        let on = |text: &str, name: &str| {
            let which: Which = text.parse().expect(text);
            assert_eq!(which.to_string(), text);
            which.id_on(name).map(NodeId::get).ok()
        };
        assert_eq!(on("7", "anything"), Some(7));
        assert_eq!(on("from-hostname", "rota-2"), Some(2));
        assert_eq!(on("from-ordinal", "rota-2"), Some(3));
        assert_eq!(
            on("from-ordinal", "rota-0.rota.default.svc.cluster.local"),
            Some(1)
        );
        assert_eq!(on("from-hostname", "n12x07"), Some(7));
        for (text, name) in [
            ("from-hostname", "rota-0"),
            ("from-hostname", "rota"),
            ("from-hostname", "rota-2a"),
            ("from-ordinal", "rota-65535"),
            ("from-ordinal", "rota-99999999"),
            ("from-ordinal", ""),
            ("from-ordinal", ".7"),
        ] {
            assert_eq!(on(text, name), None, "{text} on {name:?}");
        }
        for text in ["0", "65536", "-1", "hostname", ""] {
            assert!(text.parse::<Which>().is_err(), "{text:?}");
        }
    }
}
