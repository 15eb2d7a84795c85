//! The observer of a store.

use std::sync::Arc;

use rota_multiring::Place;

use super::changed::Changed;
use crate::map::{Map, Partitions};
use crate::outlook::Past;

/// An observer of the commands of several partitions, and of changes of keys.
pub trait Witness: Send {
    /// The store begins with a state. `applied`: the last command in it. What has changed up to that is not known.
    /// `past`: the last commands of each set of partitions.
    fn began(&mut self, applied: Option<Place>, past: &Past);

    /// A command of these partitions is delivered.
    fn delivered(&mut self, place: Place, of: &Partitions);

    /// The map, at the beginning and after each change.
    fn mapped(&mut self, map: &Arc<Map>);

    /// Whether [`Self::changed`] is called: nothing is noted for a witness that hears no changes.
    fn hears_changes(&self) -> bool {
        true
    }

    /// Keys have changed.
    fn changed(&mut self, changed: Changed) {
        let _ = changed;
    }
}
