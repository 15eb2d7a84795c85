//! Rings that have decided something, learners of some of them, and a judge who knows the order of all.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use rota_multiring::{Constants, Instance, Merge, Place, Point, Rank, Round};

/// What an instance carries: so many messages.
pub type Load = u32;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

pub fn ring(rank: u16, per_round: u32, origin: Round) -> Constants {
    Constants {
        rank: Rank(rank),
        per_round: NonZeroU32::new(per_round).expect("not 0"),
        origin,
    }
}

/// A ring and what it has decided: the instances from 1 on.
#[derive(Clone, Debug)]
pub struct Ring {
    pub of: Constants,
    pub decided: Vec<Load>,
}

impl Ring {
    /// Where all of its messages stand.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        (1..).zip(&self.decided).flat_map(|(instance, load)| {
            let place = self.of.place(instance);
            (0..*load).map(move |index| Place { index, ..place })
        })
    }

    pub fn next(&self) -> Instance {
        self.decided.len() as Instance + 1
    }
}

/// All messages of some rings, from a point on, in the order of all, as far as every one of these rings is known.
pub fn order(rings: &[&Ring], from: Option<Point>) -> Vec<Place> {
    let frontier = rings.iter().map(|ring| ring.of.place(ring.next())).min();
    let places = rings
        .iter()
        .flat_map(|ring| ring.places().map(|place| (ring.of, place)));
    let is_ahead =
        |of: &Constants, place: &Place| from.is_none_or(|from| place.instance >= from.next_of(of));
    let is_known = |place: &Place| {
        let of_ring = |ring: &&&Ring| ring.of.rank == place.rank;
        // Of its own ring nothing has to be known behind it.
        let others = rings.iter().filter(|ring| !of_ring(ring));
        frontier.is_some_and(|_| {
            others
                .map(|ring| ring.of.place(ring.next()))
                .all(|next| *place < next)
        })
    };
    let mut places: Vec<Place> = places
        .filter(|(of, place)| is_ahead(of, place) && is_known(place))
        .map(|(_, place)| place)
        .collect();
    places.sort_unstable();
    places
}

/// A learner that is told what rings have decided, in pieces.
#[derive(Clone)]
pub struct Learner {
    pub merge: Merge<Place>,
    /// Up to where it was told of each ring.
    pub told: BTreeMap<Rank, Instance>,
    pub delivered: Vec<Place>,
    /// The same, each with the place at which the merge says that it stands.
    pub placed: Vec<(Place, Place)>,
}

impl Learner {
    pub fn new(rings: &[&Ring]) -> Self {
        Self {
            merge: Merge::new(rings.iter().map(|ring| ring.of)),
            told: rings.iter().map(|ring| (ring.of.rank, 1)).collect(),
            delivered: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// One that goes on from a point.
    pub fn at(point: Point, rings: &[&Ring]) -> Self {
        let next = |ring: &&Ring| (ring.of.rank, point.next_of(&ring.of));
        Self {
            merge: Merge::at(point, rings.iter().map(|ring| ring.of)),
            told: rings.iter().map(next).collect(),
            delivered: Vec::new(),
            placed: Vec::new(),
        }
    }

    /// It is told of the next instance of a ring. Whether there is one.
    pub fn tell(&mut self, ring: &Ring) -> bool {
        let told = self.told.entry(ring.of.rank).or_insert(1);
        let Some(load) = ring.decided.get(*told as usize - 1) else {
            return false;
        };
        for index in 0..*load {
            let place = ring.of.place(*told);
            let message = (Place { index, ..place }, 100);
            let pushed = self.merge.push(ring.of.rank, (*told, index), message);
            pushed.expect("it ascends");
        }
        *told += 1;
        self.merge
            .passed(ring.of.rank, *told, 1)
            .expect("it is subscribed");
        true
    }

    /// Delivers all that it can.
    pub fn drain(&mut self) {
        while let Some(merged) = self.merge.poll() {
            self.placed.push((merged.place, merged.message));
            self.delivered.push(merged.message);
        }
    }
}
