//! Paths of which each node has its own.

use rota_core::contract::NodeId;
use std::path::{Path, PathBuf};

/// Stands for the node's number in paths, so that all nodes of a host can share one file.
const NODE: &str = "{node}";

/// A text of this node's own: `{node}` stands for its number.
pub(crate) fn text_of(text: &str, node: NodeId) -> String {
    text.replace(NODE, &node.to_string())
}

/// A path of this node's own: `{node}` stands for its number.
pub fn path_of(path: &Path, node: NodeId) -> PathBuf {
    match path.to_str() {
        Some(text) => PathBuf::from(text_of(text, node)),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_name_its_node() {
        let node = NodeId::new(7).expect("not 0");
        let path = path_of(Path::new("/run/rota/{node}.sock"), node);
        assert_eq!(path, Path::new("/run/rota/7.sock"));
    }
}
