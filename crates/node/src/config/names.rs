//! The names of the daemons, as clients know them.

use rota_core::contract::NodeId;
use rota_core::groups::{DaemonName, Directory};
use rota_net::NodeAddress;

use super::ConfigError;

/// The directory of the listed nodes.
///
/// # Errors
/// [`ConfigError`]: a name that is none, or that could be taken for another node's.
pub(super) fn directory(nodes: &[NodeAddress]) -> Result<Directory, ConfigError> {
    let mut names = Vec::new();
    for node in nodes {
        let (Some(id), Some(name)) = (NodeId::new(node.id), &node.name) else {
            continue;
        };
        let wrong = |error| ConfigError::NodeName(node.id, error);
        names.push((id, DaemonName::new(name).map_err(wrong)?));
    }
    for (at, (id, name)) in names.iter().enumerate() {
        let number = nodes
            .iter()
            .find(|node| node.id.to_string() == name.as_str());
        let taken = names[..at].iter().any(|(_, other)| other == name);
        if taken || number.is_some_and(|node| node.id != id.get()) {
            return Err(ConfigError::DuplicateName(name.to_string()));
        }
    }
    Ok(Directory::new(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;

    fn named(names: &[&str]) -> NodeConfig {
        let mut config = NodeConfig::loopback(names.len() as u16, 7700);
        for (node, name) in config.nodes.iter_mut().zip(names) {
            node.name = (!name.is_empty()).then(|| (*name).to_owned());
        }
        config
    }

    #[test]
    fn a_daemon_is_called_by_its_name_or_else_its_number() {
        let directory = named(&["left", "", "3"]).directory().expect("good names");
        let called = |id| directory.daemon(NodeId::new(id).expect("not 0"));
        assert_eq!([called(1), called(2), called(3)], ["left", "2", "3"]);
        assert_eq!(directory.node("left"), NodeId::new(1));
        assert_eq!(directory.node("1"), None);
    }

    #[test]
    fn a_name_that_could_be_two_nodes_is_refused() {
        for names in [["a", "a"], ["2", ""], ["", "1"]] {
            let refused = named(&names).check();
            assert!(
                matches!(refused, Err(ConfigError::DuplicateName(_))),
                "{names:?}: {refused:?}"
            );
        }
        for name in ["a b", "#a", "12345678901234567890"] {
            let refused = named(&[name]).check();
            assert!(
                matches!(refused, Err(ConfigError::NodeName(1, _))),
                "{name}: {refused:?}"
            );
        }
    }
}
