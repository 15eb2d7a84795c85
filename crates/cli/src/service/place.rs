//! Places in the order, as histories have them.

use rota_check::history::Place;
use rota_front::place::place_of;

/// The place that a service has told; `None` for anything else, and for the beginning.
pub fn of(text: &[u8]) -> Option<Place> {
    let place = place_of(text)??;
    Some((place.round, place.rank.0, place.instance, place.index))
}
