//! Reading in the order the engine asks for, with as few system calls as that allows.

use rota_core::contract::{Class, Time};
use std::collections::VecDeque;
use std::io;

use rota_net::fault::FaultLayer;
use rota_net::sockets::{Arrival, Ready, Sockets};

/// Reads without anything to hand in before the loop looks at its timers again.
const READS_AT_ONCE: usize = 64;

/// Reads of one socket that bring nothing, before the other is looked at.
const READS_IN_VAIN: usize = 4;

/// Bursts that were read and not handed in yet, and what is known about the sockets.
#[derive(Debug)]
pub(super) struct Arrivals {
    data: VecDeque<Arrival>,
    token: VecDeque<Arrival>,
    /// The sockets that may have something.
    ready: Ready,
    /// `ready` is what the kernel said just now: a class without is empty, not merely seen empty a
    /// while ago.
    fresh: bool,
    /// The time at which the newest token came to this host.
    token_at: Option<Time>,
    faults: Option<FaultLayer>,
    scratch: VecDeque<Arrival>,
}

impl Arrivals {
    pub(super) fn new(faults: Option<FaultLayer>) -> Self {
        Self {
            data: VecDeque::new(),
            token: VecDeque::new(),
            ready: Ready {
                data: true,
                token: true,
                ..Ready::default()
            },
            fresh: false,
            token_at: None,
            faults,
            scratch: VecDeque::new(),
        }
    }

    pub(super) fn faults(&self) -> u64 {
        self.faults.as_ref().map_or(0, FaultLayer::faults)
    }

    pub(super) fn next_due(&self) -> Option<Time> {
        self.faults.as_ref().and_then(FaultLayer::next_due)
    }

    /// Takes over what the kernel said.
    pub(super) const fn know(&mut self, ready: Ready) {
        self.ready = ready;
        self.fresh = true;
    }

    /// Lets delayed datagrams arrive whose time has come.
    pub(super) fn release(&mut self, now: Time) {
        while let Some((class, arrival)) = self.faults.as_mut().and_then(|f| f.take_due(now)) {
            if class == Class::Token {
                self.token_at = Some(now);
            }
            self.queue(class).push_back(arrival);
        }
    }

    /// The time at which the newest token came to this host, as far as is known; once for each token.
    pub(super) const fn take_token_at(&mut self) -> Option<Time> {
        self.token_at.take()
    }

    /// Drops all that has come and was not handed in; says how many bursts that were.
    pub(super) fn forget(&mut self) -> u64 {
        let bursts = self.data.len() + self.token.len();
        self.data.clear();
        self.token.clear();
        bursts as u64
    }

    /// Undoes [`Self::next`].
    pub(super) fn put_back(&mut self, class: Class, arrival: Arrival) {
        self.queue(class).push_front(arrival);
    }

    /// The next burst: of class `first` if there is one, else of the other. Tokens only if `tokens`.
    pub(super) fn next(
        &mut self,
        sockets: &mut Sockets,
        first: Class,
        tokens: bool,
        now: Time,
    ) -> io::Result<Option<(Class, Arrival)>> {
        let both = [first, first.other()];
        let classes: &[Class] = if tokens { &both } else { &[Class::Data] };
        // All of a read may have been dropped or delayed; then the next read may bring more.
        let mut in_vain = 0;
        'again: for _ in 0..READS_AT_ONCE {
            if in_vain == READS_IN_VAIN && tokens {
                in_vain = 0;
                if let Some(arrival) = self.look_beside(sockets, first.other(), now)? {
                    return Ok(Some((first.other(), arrival)));
                }
            }
            for &class in classes {
                if let Some(arrival) = self.queue(class).pop_front() {
                    return Ok(Some((class, arrival)));
                }
                if self.read_class(sockets, class, class == classes[0], now)? {
                    in_vain += usize::from(class == classes[0]);
                    continue 'again;
                }
            }
            break;
        }
        Ok(None)
    }

    /// Reads the socket that is not preferred, whatever was known about it: a sender that floods the other would keep
    /// it, with the token in it, from being read.
    fn look_beside(
        &mut self,
        sockets: &mut Sockets,
        class: Class,
        now: Time,
    ) -> io::Result<Option<Arrival>> {
        match class {
            Class::Data => self.ready.data = true,
            Class::Token => self.ready.token = true,
        }
        self.read_class(sockets, class, false, now)?;
        Ok(self.queue(class).pop_front())
    }

    /// Looks into both sockets, whatever was known about them; says whether something came.
    pub(super) fn look(
        &mut self,
        sockets: &mut Sockets,
        first: Class,
        now: Time,
    ) -> io::Result<bool> {
        self.ready = Ready {
            data: true,
            token: true,
            ..Ready::default()
        };
        self.fresh = false;
        let next = self.next(sockets, first, true, now)?;
        let came = next.is_some();
        if let Some((class, arrival)) = next {
            self.put_back(class, arrival);
        }
        Ok(came)
    }

    /// Reads one burst of a class. The preferred class is tried unless the kernel has just said that
    /// it is empty; the other only if it may have something.
    fn read_class(
        &mut self,
        sockets: &mut Sockets,
        class: Class,
        preferred: bool,
        now: Time,
    ) -> io::Result<bool> {
        let ready = match class {
            Class::Data => &mut self.ready.data,
            Class::Token => &mut self.ready.token,
        };
        if !*ready && (self.fresh || !preferred) {
            return Ok(false);
        }
        let Some(faults) = &mut self.faults else {
            let queue = match class {
                Class::Data => &mut self.data,
                Class::Token => &mut self.token,
            };
            *ready = sockets.receive(class, queue)?;
            if *ready && class == Class::Token {
                self.token_at = Some(arrived(sockets.waited()));
            }
            // The kernel's word about the other socket is now a while old.
            self.fresh &= !*ready;
            return Ok(*ready);
        };
        *ready = sockets.receive(class, &mut self.scratch)?;
        if *ready && class == Class::Token {
            self.token_at = Some(arrived(sockets.waited()));
        }
        self.fresh &= !*ready;
        let read = *ready;
        while let Some(arrival) = self.scratch.pop_front() {
            let queue = match class {
                Class::Data => &mut self.data,
                Class::Token => &mut self.token,
            };
            faults.pass(now, class, arrival, queue);
        }
        Ok(read)
    }

    const fn queue(&mut self, class: Class) -> &mut VecDeque<Arrival> {
        match class {
            Class::Data => &mut self.data,
            Class::Token => &mut self.token,
        }
    }
}

/// The arrival time of a burst that was read just now, and has waited for `waited` nanoseconds.
fn arrived(waited: u64) -> Time {
    Time(rota_net::monotonic().0.saturating_sub(waited))
}
