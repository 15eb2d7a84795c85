//! Ways in which one member can be ill.

use rota_sim::campaign::EngineName::{self, AcceleratedRing, FastCast, Lcr, TotemRing};
use rota_sim::plan::{Appetite, DiskLoss, Fault, FaultKind, MILLIS, Matrix, Plan};

use super::{BEGINS, ENDS};

/// One of them.
pub struct Kind {
    pub name: &'static str,
    pub make: fn(&mut Plan, usize),
    /// It is the link to the next one that is ill: either end may be left out.
    pub is_of_a_link: bool,
    /// With these the others are not served as they should be.
    pub open: &'static [EngineName],
}

const fn kind(name: &'static str, make: fn(&mut Plan, usize)) -> Kind {
    Kind {
        name,
        make,
        is_of_a_link: false,
        open: &[],
    }
}

const fn of_a_link(name: &'static str, make: fn(&mut Plan, usize)) -> Kind {
    Kind {
        is_of_a_link: true,
        ..kind(name, make)
    }
}

impl Kind {
    const fn open_with(mut self, open: &'static [EngineName]) -> Self {
        self.open = open;
        self
    }
}

const RINGS: &[EngineName] = &[AcceleratedRing, TotemRing, FastCast, Lcr];

pub const KINDS: [Kind; 27] = [
    kind("is gone", |plan, host| {
        lasting(plan, FaultKind::Pause { host })
    }),
    kind("is mute", |plan, ill| cut(plan, mute(plan, ill))),
    kind("is deaf", |plan, ill| cut(plan, deaf(plan, ill))),
    kind("is mute for data", |plan, ill| {
        lose_data(plan, mute(plan, ill))
    }),
    kind("is deaf for data", |plan, ill| {
        lose_data(plan, deaf(plan, ill))
    }),
    of_a_link("is not heard by one", |plan, ill| {
        cut(plan, to_next(plan, ill))
    }),
    of_a_link("does not hear one", |plan, ill| {
        cut(plan, from_next(plan, ill))
    }),
    of_a_link("has no link to one", |plan, ill| {
        let mut links = to_next(plan, ill);
        links.cut_both(ill, next(plan, ill));
        cut(plan, links);
    }),
    of_a_link("is mute to one for data", |plan, ill| {
        lose_data(plan, to_next(plan, ill))
    }),
    of_a_link("is deaf to one for data", |plan, ill| {
        lose_data(plan, from_next(plan, ill))
    }),
    kind("loses half", |plan, ill| {
        storm(plan, Matrix::alone(plan.nodes(), ill), 50, false);
    })
    .open_with(&[FastCast]),
    kind("loses half of what it is told", |plan, ill| {
        storm(plan, deaf(plan, ill), 50, false)
    })
    .open_with(&[FastCast]),
    kind("pauses 800 of 1500 ms", |plan, ill| {
        pauses(plan, ill, 800, 1500)
    }),
    kind("pauses 400 of 3000 ms", |plan, ill| {
        pauses(plan, ill, 400, 3000)
    }),
    kind("pauses 2500 of 6000 ms", |plan, ill| {
        pauses(plan, ill, 2500, 6000)
    }),
    kind("pauses 600 of 10000 ms", |plan, ill| {
        pauses(plan, ill, 600, 10_000)
    }),
    kind("pauses 200 of 250 ms", |plan, ill| {
        pauses(plan, ill, 200, 250)
    }),
    kind("has an application that hangs", |plan, host| {
        lasting(plan, FaultKind::Stall { host });
    }),
    // A slow application slows the others down, as it should: it is flow control.
    kind("has a slow application", |plan, ill| {
        plan.hosts[ill].appetite = Appetite {
            take: 1,
            pause: 200 * MILLIS,
        };
    })
    .open_with(RINGS),
    kind("flaps", |plan, ill| flaps(plan, ill, 700)),
    kind("flaps slowly", |plan, ill| flaps(plan, ill, 5000)),
    kind("dies again and again", |plan, ill| {
        dies(plan, ill, 1000, false)
    }),
    kind("dies again and again with its machine", |plan, ill| {
        dies(plan, ill, 4000, true)
    }),
    kind("has a slow clock", |plan, ill| {
        plan.hosts[ill].clock.drift = -100
    }),
    kind("has a fast clock", |plan, ill| {
        plan.hosts[ill].clock.drift = 100
    }),
    kind("has a disk that hangs", |plan, host| {
        lasting(plan, FaultKind::DiskHangs { host });
    }),
    kind("has a disk that fails", |plan, host| {
        lasting(plan, FaultKind::DiskFails { host, full: false });
    }),
];

fn lasting(plan: &mut Plan, kind: FaultKind) {
    plan.faults.push(Fault {
        at: BEGINS,
        lasts: u64::MAX,
        kind,
    });
}

fn cut(plan: &mut Plan, links: Matrix) {
    lasting(
        plan,
        FaultKind::Cut {
            shape: "ill",
            links,
        },
    );
}

fn storm(plan: &mut Plan, links: Matrix, percent: u8, data_only: bool) {
    lasting(
        plan,
        FaultKind::Storm {
            links,
            percent,
            data_only,
        },
    );
}

fn lose_data(plan: &mut Plan, links: Matrix) {
    storm(plan, links, 100, true);
}

fn mute(plan: &Plan, ill: usize) -> Matrix {
    Matrix::mute(plan.nodes(), ill)
}

fn deaf(plan: &Plan, ill: usize) -> Matrix {
    Matrix::deaf(plan.nodes(), ill)
}

fn next(plan: &Plan, ill: usize) -> usize {
    (ill + 1) % plan.nodes()
}

fn to_next(plan: &Plan, ill: usize) -> Matrix {
    let mut links = Matrix::open(plan.nodes());
    links.cut(ill, next(plan, ill));
    links
}

fn from_next(plan: &Plan, ill: usize) -> Matrix {
    let mut links = Matrix::open(plan.nodes());
    links.cut(next(plan, ill), ill);
    links
}

/// Each so many milliseconds, at these times.
fn times(every: u64) -> impl Iterator<Item = u64> {
    (BEGINS..ENDS).step_by((every * MILLIS) as usize)
}

fn pauses(plan: &mut Plan, host: usize, millis: u64, every: u64) {
    let pause = |at| Fault {
        at,
        lasts: millis * MILLIS,
        kind: FaultKind::Pause { host },
    };
    plan.faults.extend(times(every).map(pause));
}

fn flaps(plan: &mut Plan, ill: usize, millis: u64) {
    let links = Matrix::alone(plan.nodes(), ill);
    let period = millis * MILLIS;
    lasting(plan, FaultKind::Flap { links, period });
}

fn dies(plan: &mut Plan, host: usize, every: u64, host_too: bool) {
    let kind = FaultKind::Kill {
        host,
        outputs: 3,
        host_too,
        disk: DiskLoss::Unsynced,
        for_good: false,
    };
    let death = |at| Fault {
        at,
        lasts: 300 * MILLIS,
        kind: kind.clone(),
    };
    plan.faults.extend(times(every).map(death));
}
