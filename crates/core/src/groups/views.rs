//! The names of views, and the last view that the local members of each group were told.

use alloc::collections::BTreeMap;

use super::event::ViewId;
use super::name::GroupName;
use crate::contract::RingId;
use crate::mutants::{self, Mutant};

/// The last view that the local members of a group were told.
#[derive(Clone, Copy, Debug)]
struct LastView {
    view: ViewId,
    /// There was a transitional signal since then.
    signaled: bool,
}

/// The views of one daemon's clients.
#[derive(Debug, Default)]
pub(super) struct Views {
    /// Views since the last configuration.
    issued: u64,
    last: BTreeMap<GroupName, LastView>,
}

impl Views {
    /// A configuration begins: its views are counted from the first on.
    pub const fn begin_configuration(&mut self) {
        self.issued = 0;
    }

    /// The name of the next view, of any group, in the configuration of this ring; `next` is the ring that follows, if
    /// the configuration is ending. All daemons name all views, of groups with local members or not.
    pub fn name(&mut self, ring: Option<RingId>, next: Option<RingId>) -> Option<ViewId> {
        self.issued += 1;
        Some(ViewId {
            ring: ring?,
            next,
            index: self.issued,
        })
    }

    /// The local members of a group are told this view.
    pub fn on_view(&mut self, name: GroupName, view: ViewId) {
        let signaled = false;
        self.last.insert(name, LastView { view, signaled });
    }

    /// The view of a group that is about to end, if its local members have not been told so.
    pub fn signal(&mut self, name: GroupName) -> Option<ViewId> {
        let last = self.last.get_mut(&name)?;
        if last.signaled && !mutants::on(Mutant::G01) {
            return None;
        }
        last.signaled = true;
        Some(last.view)
    }

    /// A group has no local members any more.
    pub fn forget(&mut self, name: GroupName) {
        self.last.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Incarnation, NodeId};

    fn ring() -> RingId {
        RingId {
            ring_seq: 4,
            rep: NodeId::new(1).expect("not 0"),
            incarnation: Incarnation(1),
        }
    }

    #[test]
    fn views_are_counted_in_each_configuration() {
        let mut views = Views::default();
        let mut index = || views.name(Some(ring()), None).map(|view| view.index);
        assert_eq!((index(), index()), (Some(1), Some(2)));
        views.begin_configuration();
        let view = views.name(Some(ring()), None);
        assert_eq!(view.map(|view| view.index), Some(1));
    }

    #[test]
    fn the_end_of_a_view_is_told_once() {
        let mut views = Views::default();
        let name = GroupName::new("g").expect("a name");
        assert_eq!(views.signal(name), None, "nobody was told of a view");
        let view = views.name(Some(ring()), None).expect("a ring");
        views.on_view(name, view);
        assert_eq!(views.signal(name), Some(view));
        assert_eq!(views.signal(name), None);
        views.on_view(name, view);
        views.forget(name);
        assert_eq!(views.signal(name), None);
    }
}
