//! Whether enough members of a configuration remember: a view lives in its members' memories, and a node
//! that was restarted has forgotten what it was in.

use super::message::Recover;
use crate::contract::{NodeId, Process};
use crate::mutants::{self, Mutant};

/// Whether no view of which nobody here knows can have a living member. Every view has a majority of the
/// configured nodes, and whoever remembers any view was in none that is newer than what is
/// known here; so such a view can only have nodes that are not here or have forgotten.
///
/// If a majority of the nodes has forgotten, there is nothing to wait for.
pub(super) fn remembers_enough(
    configured: &[NodeId],
    members: &[Process],
    told: &[&Recover],
) -> bool {
    if mutants::on(Mutant::V09) {
        return true;
    }
    let told_by = |node: &NodeId| {
        let at = members.iter().position(|member| member.node == *node)?;
        told.get(at)
    };
    let absent = configured.iter().filter(|node| told_by(node).is_none());
    let forgot = configured
        .iter()
        .filter(|node| told_by(node).is_some_and(|told| told.forgot));
    let (absent, forgot) = (absent.count(), forgot.count());
    let majority = configured.len() / 2 + 1;
    absent == 0 || absent + forgot < majority || forgot >= majority
}
