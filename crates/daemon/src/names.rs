//! The names of clients and daemons.

use std::collections::BTreeMap;

use rota_client::protocol::{self, PrivateName};
use rota_core::contract::NodeId;
use rota_core::groups::{ClientName, DaemonName, Destination, Directory, Member};

/// The names of all daemons.
#[derive(Debug)]
pub(crate) struct Names {
    directory: Directory,
    /// The names of the nodes that were asked for. There are at most 128 on a ring.
    daemons: BTreeMap<NodeId, DaemonName>,
    /// The number in the name that was invented last.
    invented: u32,
}

impl Names {
    pub fn new(directory: Directory) -> Self {
        Self {
            directory,
            daemons: BTreeMap::new(),
            invented: 0,
        }
    }

    /// Daemons have these names from now on. One that is not listed any more keeps its name as long as it is known here:
    /// its clients may have yet to leave.
    pub fn rename(&mut self, directory: Directory) {
        let has_none = |node: &NodeId| directory.daemon(*node) == node.to_string();
        self.daemons.retain(|node, _| has_none(node));
        self.directory = directory;
    }

    /// A name for a client that leaves it to the daemon: another one each time, which some client may have even so.
    pub fn invent(&mut self) -> ClientName {
        loop {
            self.invented = self.invented.wrapping_add(1);
            match ClientName::new(&format!("r{}", self.invented)) {
                Ok(name) => return name,
                Err(_) => self.invented = 0,
            }
        }
    }

    pub const fn directory(&self) -> &Directory {
        &self.directory
    }

    fn daemon(&mut self, node: NodeId) -> DaemonName {
        let Self {
            directory, daemons, ..
        } = self;
        *daemons.entry(node).or_insert_with(|| {
            let name = DaemonName::new(&directory.daemon(node));
            name.expect("the name of a node is one: checked, or a number")
        })
    }

    pub fn client(&mut self, client: ClientName, node: NodeId) -> PrivateName {
        let daemon = self.daemon(node);
        PrivateName { client, daemon }
    }

    pub fn member(&mut self, member: &Member) -> PrivateName {
        self.client(member.name, member.daemon.node)
    }

    /// The destination of a client's message; `None` if no daemon has the name.
    pub fn destination(&self, to: &protocol::Destination) -> Option<Destination> {
        match to {
            protocol::Destination::Group(group) => Some(Destination::Group(*group)),
            protocol::Destination::Client(name) => {
                let node = self.directory.node(name.daemon.as_str())?;
                Some(Destination::Client(name.client, node))
            }
        }
    }

    /// The same destination, as its receivers see it.
    pub fn told(&mut self, to: &Destination) -> protocol::Destination {
        match to {
            Destination::Group(group) => protocol::Destination::Group(*group),
            Destination::Client(name, node) => {
                protocol::Destination::Client(self.client(*name, *node))
            }
        }
    }
}
