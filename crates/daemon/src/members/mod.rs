//! The nodes of the cluster, which an operator changes while daemons run.
//!
//! Every daemon has the numbered list of nodes ([`rota_node::members`]). On each new ring all daemons tell which list they
//! have, and the newest is given to those that have an older one. From then on changes are ordered with everything else: each
//! daemon judges one at its place in the order, by what all of them know, so that all make it or none. A daemon that is not on
//! the ring hears of a newer list by notices, which daemons send it under the cluster's key: alone on its ring it takes the list
//! over, and with others it has the list ordered, once, so that all of them take it over at one place.
//!
//! What is made counts at once, and is stored on each daemon's disk, again each second until it is: from the next start on it
//! counts there in place of the nodes in the configuration.
//!
//! | module | holds |
//! |---|---|
//! | `machine` | the list, and what is ordered about it; without I/O |
//! | `exchange` | what daemons tell of their lists on a new ring |
//! | `asked` | the change that an operator has asked for, from the request to the answer; without I/O |
//! | `keeping` | whether the list is on disk, and when that is tried again; without I/O |
//! | [`message`], [`notice`], `request` | what goes in the order, between nodes, and between operators and daemons |
//! | `voting` | which nodes vote, where the engine has acceptors: the engine orders changes of that |
//! | `keeper`, `desk` | threads of their own: the disk, and the operators' socket, whose requests wait in `control` |
//! | here | all of it at the daemon's loop |

mod asked;
mod desk;
mod exchange;
#[cfg(test)]
mod golden_tests;
mod keeper;
mod keeping;
mod machine;
pub mod message;
pub mod notice;
mod request;
mod voting;

use std::path::PathBuf;

use rota_core::contract::{Checked, NodeId, Process, Time};
use rota_core::groups::Directory;
use rota_net::monotonic;
use rota_node::members::why_fixed;
use rota_node::{
    Driver, DriverError, MemberFile, MemberFileError, MemberList, NodeConfig, NodeEngine,
};

use crate::control::{Control, MemberAsking};
use desk::Desk;
pub use desk::members_socket;
use keeper::Keeper;
use machine::Ability;
pub(crate) use machine::Members;
use notice::Parts;
pub use request::{AcceptorStatus, MemberPlace, MemberReply, MemberRequest, MemberStatus};
use voting::Voting;

/// The time from one notice to a node that is not on the ring to the next, in nanoseconds.
const NOTICE_NANOS: u64 = 1_000_000_000;

/// The list that a daemon starts with.
#[derive(Debug)]
pub(crate) struct Found {
    list: MemberList,
    file: Option<MemberFile>,
}

/// The nodes that daemon `me` starts with, and the configuration with these in place of its own: those kept on its disk, if
/// there are any.
pub(crate) fn find(
    config: &NodeConfig,
    me: NodeId,
) -> Result<(Found, NodeConfig), MemberFileError> {
    let first = || Found {
        list: MemberList::of(config),
        file: None,
    };
    let kept = MemberFile::find(config, me)?;
    let Some((file, list)) = kept else {
        return Ok((first(), config.clone()));
    };
    if why_fixed(config).is_some() {
        tracing::warn!(
            "this engine does not use the list of nodes that `rota member` has made: the nodes of the configuration count"
        );
        return Ok((first(), config.clone()));
    }
    let path = || MemberFile::path(config, me).unwrap_or_default();
    if list.node(me).is_none() {
        return Err(MemberFileError::Removed(me, path()));
    }
    let changed = list.put_into(config);
    let changed = changed.map_err(|error| MemberFileError::Nodes(path(), error))?;
    if list.nodes != MemberList::of(config).nodes {
        tracing::info!(
            number = list.version.number,
            "the nodes are those that `rota member` has made of the configuration's"
        );
    }
    let file = Some(file);
    Ok((Found { list, file }, changed))
}

/// The parts around the list that need the world.
#[derive(Debug)]
pub(crate) struct Secretary {
    config: NodeConfig,
    keeper: Option<Keeper>,
    parts: Parts,
    seal_bytes: usize,
    next_notice: Time,
    voting: Voting,
    _desk: Option<Desk>,
}

impl Secretary {
    /// Of daemon `me`, with the list that was found and the admin socket at this path.
    pub fn start(
        config: &NodeConfig,
        me: Process,
        found: Found,
        (admin, control): (PathBuf, &Control),
    ) -> std::io::Result<(Self, Members)> {
        let path = MemberFile::path(config, me.node);
        let ability = Ability {
            fixed: why_fixed(config),
            keeps: path.is_some(),
        };
        let Found { list, file } = found;
        let path = path.filter(|_| ability.fixed.is_none());
        let keeper = path.map(|path| Keeper::start(path, me.node, file, control.clone()));
        let socket = members_socket(&admin);
        let desk = Desk::open(socket.clone(), control.clone());
        let desk = desk.inspect_err(|error| {
            tracing::warn!(path = %socket.display(), %error, "`rota member` cannot reach this daemon");
        });
        let members = Members::new(me, list, ability, config.clone());
        let secretary = Self {
            config: config.clone(),
            keeper: keeper.transpose()?,
            parts: Parts::default(),
            seal_bytes: config.ring_config().seal_bytes,
            next_notice: Time(0),
            voting: Voting::default(),
            _desk: desk.ok(),
        };
        Ok((secretary, members))
    }

    /// Takes a request that is about acceptors, or may be. Hands any other back.
    pub fn take(&mut self, asking: MemberAsking) -> Option<MemberAsking> {
        let has_votes = self.config.engine.has_votes();
        self.voting.take(asking, has_votes)
    }

    /// The time in nanoseconds until notices are sent, if there is anybody to send them to, or a request about acceptors is
    /// looked at again.
    pub fn patience(&self, members: &Members) -> Option<u64> {
        let is_needed = !members.absent().is_empty();
        let notices = is_needed.then(|| self.next_notice.since(monotonic()));
        notices.into_iter().chain(self.voting.patience()).min()
    }

    /// Takes over what has happened: a new list, for the ring and the disk, and notices. The directory of names, if
    /// nodes have changed.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn turn(
        &mut self,
        driver: &mut Driver<Checked<NodeEngine>>,
        members: &mut Members,
        now: Time,
    ) -> Result<Option<Directory>, DriverError> {
        while let Some(notice) = driver.next_notice() {
            match self.parts.take(&notice, self.config.wire_cluster()) {
                Ok(Some(list)) => members.hear(list),
                Ok(None) => {}
                Err(notice::Nonsense) => members.count_nonsense(),
            }
        }
        self.voting.turn(driver, members, now)?;
        let news = members.take_news();
        if let (true, Some(keeper)) = (news.store, &self.keeper) {
            keeper.store(members.list().clone());
        }
        let directory = match news.relist {
            true => self.relist(driver, members)?,
            false => None,
        };
        if now >= self.next_notice {
            self.next_notice = now.after(NOTICE_NANOS);
            self.send_notices(driver, members)?;
        }
        Ok(directory)
    }

    /// Takes over what has become durable.
    pub fn look_at_disk(&self, members: &mut Members) {
        if let Some(keeper) = &self.keeper {
            for (version, outcome) in keeper.outcomes() {
                members.stored(version, outcome, monotonic());
            }
        }
    }

    fn relist(
        &mut self,
        driver: &mut Driver<Checked<NodeEngine>>,
        members: &mut Members,
    ) -> Result<Option<Directory>, DriverError> {
        let reachable = NodeConfig {
            nodes: members.reachable().nodes,
            ..self.config.clone()
        };
        if members.is_removed() {
            return Ok(None);
        }
        if !driver.relist(&reachable) {
            members.put_off_relisting();
            return Ok(None);
        }
        let nodes = reachable.members();
        if !driver.command(|engine, _| engine.set_members(nodes))? {
            tracing::error!("the engine does not take the new list of nodes: restart this daemon");
        }
        let listed = members.list().put_into(&self.config);
        Ok(listed.and_then(|config| config.directory()).ok())
    }

    fn send_notices(
        &self,
        driver: &mut Driver<Checked<NodeEngine>>,
        members: &Members,
    ) -> Result<(), DriverError> {
        let absent = members.absent();
        if absent.is_empty() {
            return Ok(());
        }
        let (cluster, seal_bytes) = (self.config.wire_cluster(), self.seal_bytes);
        for notice in notice::notices(members.list(), cluster, seal_bytes) {
            for node in absent {
                driver.send_notice(*node, notice.clone())?;
            }
        }
        Ok(())
    }
}
