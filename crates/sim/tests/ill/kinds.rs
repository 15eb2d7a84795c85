//! Ways in which one member can be ill.

use rota_sim::plan::{Appetite, DiskLoss, Fault, FaultKind, MILLIS, Matrix, Plan};

use super::{BEGINS, ENDS};

/// One of them.
pub struct Kind {
    pub name: &'static str,
    pub make: fn(&mut Plan, usize),
}

pub const KINDS: &[Kind] = &[
    Kind {
        name: "is gone",
        make: |plan, ill| lasting(plan, FaultKind::Pause { host: ill }),
    },
    Kind {
        name: "is mute",
        make: |plan, ill| cut(plan, Matrix::mute(plan.nodes(), ill)),
    },
    Kind {
        name: "is deaf",
        make: |plan, ill| cut(plan, deaf(plan.nodes(), ill)),
    },
    Kind {
        name: "is mute for data",
        make: |plan, ill| lose_data(plan, Matrix::mute(plan.nodes(), ill), 100),
    },
    Kind {
        name: "is deaf for data",
        make: |plan, ill| lose_data(plan, deaf(plan.nodes(), ill), 100),
    },
    Kind {
        name: "is not heard by one",
        make: |plan, ill| {
            let links = one(plan.nodes(), ill, true);
            cut(plan, links)
        },
    },
    Kind {
        name: "does not hear one",
        make: |plan, ill| {
            let links = one(plan.nodes(), ill, false);
            cut(plan, links)
        },
    },
    Kind {
        name: "has no link to one",
        make: |plan, ill| {
            let mut links = one(plan.nodes(), ill, true);
            links.cut_both(ill, (ill + 1) % plan.nodes());
            cut(plan, links)
        },
    },
    Kind {
        name: "is mute to one for data",
        make: |plan, ill| {
            let links = one(plan.nodes(), ill, true);
            lose_data(plan, links, 100)
        },
    },
    Kind {
        name: "is deaf to one for data",
        make: |plan, ill| {
            let links = one(plan.nodes(), ill, false);
            lose_data(plan, links, 100)
        },
    },
    Kind {
        name: "loses half",
        make: |plan, ill| storm(plan, Matrix::alone(plan.nodes(), ill), 50, false),
    },
    Kind {
        name: "loses half of what it is told",
        make: |plan, ill| storm(plan, deaf(plan.nodes(), ill), 50, false),
    },
    Kind {
        name: "pauses 800 of 1500",
        make: |plan, ill| pauses(plan, ill, 800, 1500),
    },
    Kind {
        name: "pauses 400 of 3000",
        make: |plan, ill| pauses(plan, ill, 400, 3000),
    },
    Kind {
        name: "pauses 2500 of 6000",
        make: |plan, ill| pauses(plan, ill, 2500, 6000),
    },
    Kind {
        name: "pauses 600 of 10000",
        make: |plan, ill| pauses(plan, ill, 600, 10_000),
    },
    Kind {
        name: "pauses 200 of 250",
        make: |plan, ill| pauses(plan, ill, 200, 250),
    },
    Kind {
        name: "application hangs",
        make: |plan, ill| lasting(plan, FaultKind::Stall { host: ill }),
    },
    Kind {
        name: "application is slow",
        make: |plan, ill| {
            plan.hosts[ill].appetite = Appetite {
                take: 1,
                pause: 200 * MILLIS,
            }
        },
    },
    Kind {
        name: "flaps",
        make: |plan, ill| {
            let links = Matrix::alone(plan.nodes(), ill);
            lasting(
                plan,
                FaultKind::Flap {
                    links,
                    period: 700 * MILLIS,
                },
            )
        },
    },
    Kind {
        name: "flaps slowly",
        make: |plan, ill| {
            let links = Matrix::alone(plan.nodes(), ill);
            lasting(
                plan,
                FaultKind::Flap {
                    links,
                    period: 5000 * MILLIS,
                },
            )
        },
    },
    Kind {
        name: "dies again and again",
        make: |plan, ill| dies(plan, ill, 1000, false),
    },
    Kind {
        name: "its machine dies again and again",
        make: |plan, ill| dies(plan, ill, 4000, true),
    },
    Kind {
        name: "clock is slow",
        make: |plan, ill| plan.hosts[ill].clock.drift = -100,
    },
    Kind {
        name: "clock is fast",
        make: |plan, ill| plan.hosts[ill].clock.drift = 100,
    },
    Kind {
        name: "disk hangs",
        make: |plan, ill| lasting(plan, FaultKind::DiskHangs { host: ill }),
    },
    Kind {
        name: "disk fails",
        make: |plan, ill| {
            lasting(
                plan,
                FaultKind::DiskFails {
                    host: ill,
                    full: false,
                },
            )
        },
    },
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

fn lose_data(plan: &mut Plan, links: Matrix, percent: u8) {
    storm(plan, links, percent, true);
}

fn deaf(nodes: usize, ill: usize) -> Matrix {
    let mut links = Matrix::open(nodes);
    (0..nodes).for_each(|from| links.cut(from, ill));
    links
}

/// Between the ill one and the next, one direction.
fn one(nodes: usize, ill: usize, away: bool) -> Matrix {
    let mut links = Matrix::open(nodes);
    let peer = (ill + 1) % nodes;
    match away {
        true => links.cut(ill, peer),
        false => links.cut(peer, ill),
    }
    links
}

fn pauses(plan: &mut Plan, ill: usize, millis: u64, every: u64) {
    let times = (BEGINS..ENDS).step_by((every * MILLIS) as usize);
    plan.faults.extend(times.map(|at| Fault {
        at,
        lasts: millis * MILLIS,
        kind: FaultKind::Pause { host: ill },
    }));
}

fn dies(plan: &mut Plan, ill: usize, every: u64, host_too: bool) {
    let times = (BEGINS..ENDS).step_by((every * MILLIS) as usize);
    let kind = FaultKind::Kill {
        host: ill,
        outputs: 3,
        host_too,
        disk: DiskLoss::Unsynced,
        for_good: false,
    };
    plan.faults.extend(times.map(|at| Fault {
        at,
        lasts: 300 * MILLIS,
        kind: kind.clone(),
    }));
}
