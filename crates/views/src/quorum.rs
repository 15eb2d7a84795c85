//! The quorum of members that remember: a view lives in its members' memories, and a node that was restarted has
//! forgotten the views it was in.

use super::message::Recover;
use rota_core::contract::{NodeId, Process};
use rota_core::mutants::{self, Mutant};

/// Whether no view that is unknown here can have a living member. Every view has a majority of the configured nodes,
/// and a member that remembers any view was in none that is newer than the views known here; so an unknown view can
/// only have nodes that are not here or have forgotten. A member that knows of no view is counted among these, though
/// it may be new: without a disk, or with another one, no process can tell a first life from a later one.
///
/// If a majority of the nodes has forgotten, there is nothing to wait for. If no member knows of having lived before, a
/// majority of members that know of no view is enough: so a cluster begins.
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
    let count = |is_one: fn(&Recover) -> bool| {
        let told = configured.iter().filter_map(told_by);
        told.filter(|told| is_one(told)).count()
    };
    let absent = configured.len() - count(|_| true);
    let forgot = count(|told| told.forgot);
    let blank = count(|told| !told.forgot && told.knows_no_view());
    let blank = if mutants::on(Mutant::V12) { 0 } else { blank };
    let majority = configured.len() / 2 + 1;
    let is_new = forgot == 0 && blank >= majority;
    absent == 0 || absent + forgot + blank < majority || forgot >= majority || is_new
}
