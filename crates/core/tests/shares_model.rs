//! Bandwidth shares under a model of the path that carries them: each word reaches all members in one order, but each
//! at its own pace; acknowledgements come late, twice, out of turn or not at all; views end at any moment. At every
//! step the rates in force fit every link; when nothing more happens, all members know the same, and each has its
//! max-min fair share.

use rota_core::shares::{Capacity, Note, Shares, max_min};

/// A prime, so that nothing divides evenly.
const LINK: u64 = 999_999_937;

/// An acknowledgement on its way.
struct Said {
    view: usize,
    from: usize,
    to: usize,
    number: u64,
}

struct Host {
    shares: Shares,
    /// As configured, and what its link is found to take in.
    capacity: u64,
    link: u64,
    wish: u64,
    /// The view it has installed and its place in it, unless it is frozen.
    installed: Option<(usize, usize)>,
    /// How many words of its view were delivered.
    delivered: usize,
    /// Its note for the next view, once it is frozen for that.
    note: Option<Note>,
}

struct View {
    members: Vec<usize>,
    /// The one order: who sent which word.
    words: Vec<(usize, Vec<u8>)>,
    notes: Vec<Option<Note>>,
}

/// A view on its way: first all of its members freeze, then one after the other installs it.
struct Coming {
    members: Vec<usize>,
    /// Its number, once the first has installed it.
    view: Option<usize>,
}

struct World {
    rng: u64,
    hosts: Vec<Host>,
    views: Vec<View>,
    said: Vec<Said>,
    /// The members of the next view, while it is coming.
    coming: Option<Coming>,
    /// How often something happened that the test is about.
    increases: usize,
    views_amid_requests: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            rng: seed,
            hosts: Vec::new(),
            views: Vec::new(),
            said: Vec::new(),
            coming: None,
            increases: 0,
            views_amid_requests: 0,
        };
        let slow = world.below(3) == 0;
        for _ in 0..1 + world.below(7) {
            let capacity = if slow {
                LINK / (1 + world.below(4) as u64)
            } else {
                LINK
            };
            world.hosts.push(Host {
                shares: Shares::new(Capacity::new(capacity)),
                capacity,
                link: capacity,
                wish: 0,
                installed: None,
                delivered: 0,
                note: None,
            });
        }
        let members = (0..world.hosts.len()).collect();
        world.coming = Some(Coming {
            members,
            view: None,
        });
        world
    }

    /// A number below `end` (splitmix64).
    fn below(&mut self, end: usize) -> usize {
        self.rng = self.rng.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.rng ^ (self.rng >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    fn step(&mut self) {
        let host = self.below(self.hosts.len());
        match self.below(100) {
            0..10 => self.wishes(host),
            10..30 => self.sends(host),
            30..60 => {
                self.delivers(host);
            }
            60..78 => self.tells(host),
            78..97 => self.hears(),
            97 => self.view_ends(),
            98 => self.finds_out(host),
            _ => {}
        }
        self.view_comes();
    }

    fn wishes(&mut self, host: usize) {
        let wish = match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => LINK,
            3 => self.hosts[host].wish / 2,
            _ => self.below(LINK as usize) as u64,
        };
        self.hosts[host].wish = wish;
        self.hosts[host].shares.want(wish);
    }

    /// Its link is found to take in more or less than was thought.
    fn finds_out(&mut self, host: usize) {
        let link = self.hosts[host].capacity / (1 + self.below(5) as u64);
        self.hosts[host].link = link;
        self.hosts[host].shares.set_link(Capacity::new(link));
    }

    /// What it has to broadcast gets its place in the order.
    fn sends(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        if let Some((view, me)) = host.installed
            && let Some(word) = host.shares.poll_word()
        {
            self.views[view].words.push((me, word.encode().to_vec()));
        }
    }

    fn delivers(&mut self, host: usize) -> bool {
        let host = &mut self.hosts[host];
        let Some((view, _)) = host.installed else {
            return false;
        };
        let Some((sender, word)) = self.views[view].words.get(host.delivered) else {
            return false;
        };
        host.delivered += 1;
        let before = host.shares.requirements().to_vec();
        host.shares.on_word(*sender, word).expect("a word");
        self.increases += usize::from(before < host.shares.requirements().to_vec());
        true
    }

    /// Says to one of the others what it has applied; that may be lost.
    fn tells(&mut self, host: usize) {
        let Some((view, from)) = self.hosts[host].installed else {
            return;
        };
        let to = self.below(self.views[view].members.len());
        let number = self.hosts[host].shares.applied()[to];
        if self.below(3) > 0 {
            self.said.push(Said {
                view,
                from,
                to,
                number,
            });
        }
    }

    /// Any of what is on its way arrives, and may arrive again later.
    fn hears(&mut self) {
        if self.said.is_empty() {
            return;
        }
        let at = self.below(self.said.len());
        let Said {
            view,
            from,
            to,
            number,
        } = self.said[at];
        if self.below(4) > 0 {
            self.said.swap_remove(at);
        }
        let host = &mut self.hosts[self.views[view].members[to]];
        if host.installed.is_some_and(|(current, _)| current == view) {
            host.shares.on_applied(from, number);
        }
    }

    /// A new view begins to come, be the one before there or not: chance decides who is in it.
    fn view_ends(&mut self) {
        let hosts = self.hosts.len();
        let members: Vec<usize> = (0..hosts).filter(|_| self.below(4) > 0).collect();
        if members.is_empty() {
            return;
        }
        // Who is not in it has stopped, or hears and is heard by nobody.
        for out in (0..hosts).filter(|host| !members.contains(host)) {
            self.freeze(out);
        }
        self.hosts.iter_mut().for_each(|host| host.note = None);
        self.coming = Some(Coming {
            members,
            view: None,
        });
    }

    fn freeze(&mut self, host: usize) {
        let host = &mut self.hosts[host];
        self.views_amid_requests += usize::from(host.shares.ongoing_increase() > 0);
        host.installed = None;
        host.shares.freeze();
    }

    /// A step of the view on its way.
    fn view_comes(&mut self) {
        let Some(mut coming) = self.coming.take() else {
            return;
        };
        let member = coming.members[self.below(coming.members.len())];
        let notes = self.notes(&coming.members);
        if notes.iter().any(Option::is_none) {
            if self.hosts[member].note.is_none() {
                self.freeze(member);
                self.hosts[member].note = Some(self.hosts[member].shares.note());
            }
        } else {
            self.install(&mut coming, member, notes);
        }
        let installed = |&member: &usize| self.hosts[member].installed.is_some();
        if coming.view.is_none() || !coming.members.iter().all(installed) {
            self.coming = Some(coming);
        }
    }

    fn install(&mut self, coming: &mut Coming, member: usize, notes: Vec<Option<Note>>) {
        let view = *coming.view.get_or_insert_with(|| {
            self.views.push(View {
                members: coming.members.clone(),
                words: Vec::new(),
                notes,
            });
            self.views.len() - 1
        });
        let me = coming.members.iter().position(|&each| each == member);
        let me = me.expect("a member");
        let host = &mut self.hosts[member];
        if host.installed.is_none() {
            host.installed = Some((view, me));
            host.delivered = 0;
            host.shares.install(me, &self.views[view].notes);
        }
    }

    fn notes(&self, members: &[usize]) -> Vec<Option<Note>> {
        members
            .iter()
            .map(|&member| self.hosts[member].note)
            .collect()
    }

    /// No link takes in more than it can, as far as all have heard what it can: not more than the most that
    /// anybody goes by.
    fn fits(&self) -> Result<(), String> {
        let in_view = self.hosts.iter().filter(|host| host.installed.is_some());
        let known = in_view.map(|host| host.shares.capacity().bits_per_second());
        let known = known.max().unwrap_or(0);
        for (receiver, to) in self.hosts.iter().enumerate() {
            let others = self
                .hosts
                .iter()
                .enumerate()
                .filter(|&(at, _)| at != receiver);
            let rates: Vec<u64> = others.map(|(_, host)| host.shares.rate()).collect();
            let in_view = to.installed.is_some();
            let takes = to.capacity.min(known);
            if in_view && rates.iter().sum::<u64>() > takes {
                return Err(format!("{rates:?} for a link of {takes} to {receiver}"));
            }
        }
        Ok(())
    }

    /// Nothing more goes wrong, until nothing more happens.
    fn quiesce(&mut self) -> Result<(), String> {
        while self.coming.is_some() {
            self.view_comes();
            self.fits()?;
        }
        for _ in 0..8 {
            for host in 0..self.hosts.len() {
                self.sends(host);
            }
            for host in 0..self.hosts.len() {
                while self.delivers(host) {
                    self.fits()?;
                }
            }
            self.all_hear_all()?;
        }
        Ok(())
    }

    fn all_hear_all(&mut self) -> Result<(), String> {
        let Some(View { members, .. }) = self.views.last() else {
            return Ok(());
        };
        for (from, &teller) in members.iter().enumerate() {
            let applied = self.hosts[teller].shares.applied().to_vec();
            for (to, &hearer) in members.iter().enumerate() {
                self.hosts[hearer].shares.on_applied(from, applied[to]);
                self.fits()?;
            }
        }
        Ok(())
    }

    /// Everybody has got what it wanted last, as far as there is enough.
    fn settled(&self) -> Result<(), String> {
        let View { members, .. } = self.views.last().expect("there was a view");
        let links = members.iter().map(|&member| self.hosts[member].link);
        let link = links.min().expect("has members");
        let wished = |&at: &usize| {
            let most = Capacity::new(self.hosts[at].capacity).shared();
            self.hosts[at].wish.min(most)
        };
        let wishes: Vec<u64> = members.iter().map(wished).collect();
        for (me, &member) in members.iter().enumerate() {
            let shares = &self.hosts[member].shares;
            let capacity = shares.capacity();
            // What makes little difference is not said.
            if capacity.bits_per_second().abs_diff(link) > link / 32 {
                return Err(format!("{member} goes by {capacity:?}, not {link}"));
            }
            let share = max_min(&wishes, me, capacity.shared());
            if shares.requirements() != wishes || shares.share() != share || shares.acks() != 0 {
                return Err(format!("{member} wants {wishes:?}, {share}: {shares:?}"));
            }
        }
        Ok(())
    }
}

/// A world, and what it has to say at the end.
fn run(seed: u64) -> (World, Result<(), String>) {
    let mut world = World::new(seed);
    for step in 0..1_000 {
        world.step();
        if let Err(error) = world.fits() {
            return (world, Err(format!("step {step}: {error}")));
        }
    }
    let rest = world.quiesce();
    let settled = rest.and_then(|()| world.settled());
    (world, settled)
}

#[cfg(not(feature = "mutants"))]
#[test]
fn rates_fit_every_link_at_every_step() {
    let (mut increases, mut amid) = (0, 0);
    for seed in 0..600 {
        let (world, checked) = run(seed);
        assert_eq!(checked, Ok(()), "seed {seed}");
        increases += world.increases;
        amid += world.views_amid_requests;
    }
    println!("{increases} increases, {amid} views ended amid a request");
    assert!(increases > 10_000 && amid > 300, "{increases}, {amid}");
}

/// Each is found by what it breaks: rates that do not fit, or requests that never come to their end.
#[cfg(feature = "mutants")]
#[test]
fn each_mutant_is_found() {
    use rota_core::mutants::{self, Mutant};
    let unsafe_rates = [Mutant::B01, Mutant::B02, Mutant::B03, Mutant::B05];
    for mutant in unsafe_rates.into_iter().chain([Mutant::B04, Mutant::B06]) {
        mutants::set(Some(mutant));
        let found = (0..600).find_map(|seed| run(seed).1.err().map(|error| (seed, error)));
        mutants::set(None);
        let (seed, error) = found.unwrap_or_else(|| panic!("{mutant} survives"));
        println!("{mutant} at seed {seed}: {error}");
        let overload = error.contains("for a link of");
        assert!(
            overload || !unsafe_rates.contains(&mutant),
            "{mutant}: {error}"
        );
    }
    assert_eq!(run(0).1, Ok(()), "no mutant");
}
