//! The thread that waits for a coordination service.
//!
//! It has room for one question: an engine has one wish at a time, and one that comes later takes its place. While the
//! service does not answer it is asked again, less and less often.

use bytes::Bytes;
use rota_core::contract::{Input, Status};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::helper::{Helper, Shared};
use super::waker::Waker;
use crate::coordination::{Coordination, CoordinationError};

/// The first pause after a failure. It doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest one.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A question to the service: a number, and the configuration that is wanted under it.
type Question = (u64, Bytes);

/// The state of the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Health {
    /// The number of requests.
    pub(super) requests: u64,
    /// The number of requests without an answer.
    pub(super) failures: u64,
    /// The last request had no answer.
    pub(super) is_away: bool,
    /// The service was there then, and refused.
    pub(super) refuses: bool,
    /// The service was there then, and its stored data do not fit this cluster.
    pub(super) differs: bool,
}

/// The exchange between the ring's thread and this one.
#[derive(Debug, Default)]
struct Orders {
    question: Option<Question>,
    /// A number, and the configuration that has it.
    answer: Option<Question>,
    health: Health,
}

/// A coordination service, and the thread that waits for it.
#[derive(Debug)]
pub(super) struct Arbiter {
    helper: Helper<Orders>,
    /// A question without an answer yet.
    waits: bool,
}

impl Arbiter {
    pub(super) fn start(mut service: Box<dyn Coordination>, waker: Arc<Waker>) -> io::Result<Self> {
        let late = "the coordination service does not answer; a request to it is under way";
        let work = move |shared: &Shared<Orders>| work(service.as_mut(), shared);
        let helper = Helper::start(Shared::new(waker), "rota-arbiter", late, work)?;
        Ok(Self {
            helper,
            waits: false,
        })
    }

    /// Asks which configuration has a number.
    pub(super) fn ask(&mut self, number: u64, wanted: Bytes) {
        self.waits = true;
        let question = Some((number, wanted));
        self.helper.put(|desk| desk.question = question);
    }

    /// The answer that has come since the last call.
    pub(super) fn take(&mut self) -> Option<Input> {
        let mut desk = self.helper.desk();
        let (number, chosen) = desk.answer.take()?;
        self.waits = desk.question.is_some();
        Some(Input::Arbitrated { number, chosen })
    }

    /// Whether a question has no answer yet.
    pub(super) const fn waits(&self) -> bool {
        self.waits
    }

    /// Adds the state of the service to the status.
    pub(super) fn describe(&self, status: &mut Status) {
        let health = self.health();
        if health.refuses {
            status.state += "; the coordination service refuses what this node asks for";
        } else if health.differs {
            status.state +=
                "; what the coordination service has stored is not of this cluster as it is";
        } else if health.is_away {
            status.state += "; the coordination service cannot be reached";
        }
        status.counters.extend([
            ("coordination_requests", health.requests),
            ("coordination_failures", health.failures),
            ("coordination_away", u64::from(health.is_away)),
        ]);
    }

    fn health(&self) -> Health {
        let desk = self.helper.desk();
        Health {
            // A thread that panicked answers nothing any more.
            is_away: desk.health.is_away || desk.ended,
            ..desk.health
        }
    }
}

fn work(service: &mut dyn Coordination, shared: &Shared<Orders>) {
    let mut pause = FIRST_PAUSE;
    let mut trouble: Option<CoordinationError> = None;
    loop {
        let desk = shared.wait(None, |orders| orders.question.is_none());
        if desk.stop {
            return;
        }
        let Some((number, wanted)) = desk.question.clone() else {
            continue;
        };
        drop(desk);
        let asked = service.ask(number, &wanted);
        let mut desk = shared.desk();
        desk.health.requests += 1;
        desk.health.is_away = asked.is_err();
        desk.health.refuses = matches!(asked, Err(CoordinationError::Refused(_)));
        desk.health.differs = matches!(
            asked,
            Err(CoordinationError::Forgotten(_) | CoordinationError::Founded(_))
        );
        match asked {
            Ok(chosen) => {
                // Also the same question asked once more meanwhile: another wish under that number changes nothing.
                desk.question.take_if(|(asked, _)| *asked <= number);
                desk.answer = Some((number, chosen.clone()));
                drop(desk);
                shared.waker.ring();
                tell_of_answer(trouble.take().is_some(), number, chosen != wanted);
                pause = FIRST_PAUSE;
            }
            Err(error) => {
                desk.health.failures += 1;
                drop(desk);
                tell_of_trouble(trouble.as_ref(), &error);
                trouble = Some(error);
                if shared.wait(Some(pause), |_| true).stop {
                    return;
                }
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Once for each kind of trouble: a service that is away is asked often.
fn tell_of_trouble(before: Option<&CoordinationError>, error: &CoordinationError) {
    let kind = |error: &CoordinationError| std::mem::discriminant(error);
    if before.map(kind) == Some(kind(error)) {
        return;
    }
    match error {
        CoordinationError::Unreachable(_) => tracing::warn!(
            %error,
            "the coordination service cannot be reached: rings go on, and none changes until it can"
        ),
        CoordinationError::Refused(_) => tracing::error!(
            %error,
            "the coordination service refuses what this node asks for: rings go on, and this node changes none until that is \
             put right"
        ),
        CoordinationError::Forgotten(_) => tracing::error!(
            %error,
            "the coordination service has forgotten this cluster: no ring changes any more (see `etcd has lost its \
             data` in the manual; to found the cluster anew the logs of votes have to go, too: see `Founding anew`)"
        ),
        CoordinationError::Founded(_) => tracing::error!(
            %error,
            "the coordination service knows this cluster already: this node founds none; if all acceptors have lost their \
             stores, see `Founding anew` in the manual"
        ),
    }
}

fn tell_of_answer(was_away: bool, number: u64, is_other: bool) {
    if was_away {
        tracing::info!("the coordination service is back");
    }
    if number == 1 && is_other {
        tracing::warn!(
            "the coordination service has a first configuration already: this cluster was founded before, or another \
             one has its number (if nothing is ordered now, see `Founding anew` in the manual)"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Instant;

    /// Says what it is asked, and waits for what to answer.
    struct Scripted {
        asked: Sender<Question>,
        answers: Receiver<Result<Bytes, CoordinationError>>,
    }

    impl Coordination for Scripted {
        fn ask(&mut self, number: u64, wanted: &Bytes) -> Result<Bytes, CoordinationError> {
            let _ = self.asked.send((number, wanted.clone()));
            let ended = |_| CoordinationError::Unreachable("the test is over".into());
            self.answers.recv().map_err(ended)?
        }
    }

    struct World {
        arbiter: Arbiter,
        waker: Arc<Waker>,
        asked: Receiver<Question>,
        answers: Sender<Result<Bytes, CoordinationError>>,
    }

    fn world() -> World {
        let ((asked_there, asked), (answers, answers_there)) = (channel(), channel());
        let waker = Arc::new(Waker::new().unwrap());
        let service = Scripted {
            asked: asked_there,
            answers: answers_there,
        };
        World {
            arbiter: Arbiter::start(Box::new(service), Arc::clone(&waker)).unwrap(),
            waker,
            asked,
            answers,
        }
    }

    fn away() -> Result<Bytes, CoordinationError> {
        Err(CoordinationError::Unreachable("away".into()))
    }

    impl World {
        fn heard(&mut self) -> Question {
            let deadline = Instant::now() + Duration::from_secs(5);
            while !self.waker.answer() {
                assert!(Instant::now() < deadline, "no answer");
                std::thread::yield_now();
            }
            let Some(Input::Arbitrated { number, chosen }) = self.arbiter.take() else {
                panic!("rung for nothing");
            };
            (number, chosen)
        }
    }

    #[test]
    fn a_later_question_takes_the_place_of_one_that_waits() {
        let mut world = world();
        world.arbiter.ask(2, "a".into());
        assert_eq!(world.asked.recv().unwrap(), (2, "a".into()));
        // While that is under way; none but the last is asked.
        for wanted in ["b", "c"] {
            world.arbiter.ask(3, wanted.into());
        }
        world.answers.send(Ok("x".into())).unwrap();
        assert_eq!(world.heard(), (2, "x".into()));
        assert!(world.arbiter.waits);
        assert_eq!(world.asked.recv().unwrap(), (3, "c".into()));
        // The same number with another wish is answered by what is chosen.
        world.arbiter.ask(3, "d".into());
        world.answers.send(Ok("y".into())).unwrap();
        assert_eq!(world.heard(), (3, "y".into()));
        assert!(!world.arbiter.waits);
        assert!(world.asked.try_recv().is_err());
        assert!(world.arbiter.take().is_none());
    }

    #[test]
    fn a_service_that_is_away_is_asked_again_for_what_is_wanted_by_then() {
        let mut world = world();
        world.arbiter.ask(2, "a".into());
        assert_eq!(world.asked.recv().unwrap().1, "a");
        world.arbiter.ask(2, "b".into());
        for _ in 0..2 {
            world.answers.send(away()).unwrap();
            assert_eq!(world.asked.recv().unwrap().1, "b");
        }
        let health = Health {
            requests: 2,
            failures: 2,
            is_away: true,
            refuses: false,
            differs: false,
        };
        assert_eq!(world.arbiter.health(), health);
        world.answers.send(Ok("b".into())).unwrap();
        assert_eq!(world.heard(), (2, "b".into()));
        let health = Health {
            requests: 3,
            failures: 2,
            is_away: false,
            refuses: false,
            differs: false,
        };
        assert_eq!(world.arbiter.health(), health);
    }

    /// A pause does not keep the end waiting.
    #[test]
    fn it_ends_while_the_service_is_away() {
        struct Away(Mutex<Sender<()>>);
        impl Coordination for Away {
            fn ask(&mut self, _: u64, _: &Bytes) -> Result<Bytes, CoordinationError> {
                let _ = self.0.lock().unwrap().send(());
                away()
            }
        }
        let (sender, asked) = channel();
        let service = Box::new(Away(Mutex::new(sender)));
        let mut arbiter = Arbiter::start(service, Arc::new(Waker::new().unwrap())).unwrap();
        arbiter.ask(1, Bytes::new());
        // Now its pauses are long.
        for _ in 0..6 {
            asked.recv().unwrap();
        }
        let began = Instant::now();
        drop(arbiter);
        assert!(began.elapsed() < LONGEST_PAUSE);
        assert!(asked.recv().is_err());
    }

    #[test]
    fn a_thread_that_has_panicked_counts_as_away() {
        struct Broken;
        impl Coordination for Broken {
            fn ask(&mut self, _: u64, _: &Bytes) -> Result<Bytes, CoordinationError> {
                panic!("as the test wants")
            }
        }
        let waker = Arc::new(Waker::new().unwrap());
        let mut arbiter = Arbiter::start(Box::new(Broken), waker).unwrap();
        assert!(!arbiter.health().is_away);
        arbiter.ask(1, Bytes::new());
        while !arbiter.health().is_away {
            std::thread::yield_now();
        }
    }
}
