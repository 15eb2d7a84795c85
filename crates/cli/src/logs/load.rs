//! Clients that load logs, and write down what they ask and are told.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_check::logs::{Step, What};
use rota_core::random::Random;

use super::read::some;
use super::replies::{Told, entries, placed, told};
use crate::service::talk::RpcConnection;

/// An answer may take so long: longer than a process waits for its rings.
const PATIENCE: Duration = Duration::from_secs(15);
/// Before somebody who was told to try again does.
const PAUSE: Duration = Duration::from_millis(20);
/// The number of entries that are read at once.
const READ: u64 = 200;

/// The measurement of an append.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// To several logs at once.
    pub is_several: bool,
    /// The time at which it was told, since the load began.
    pub at: Duration,
    pub took: Duration,
}

/// The state that all clients have in common.
pub struct Load {
    pub addresses: Vec<SocketAddr>,
    pub logs: Vec<String>,
    pub began: Instant,
    stop: AtomicBool,
    /// The number of requests that were refused, and so not done.
    pub refused: AtomicU64,
    history: Mutex<(Vec<Step>, Vec<Took>)>,
}

/// Running clients.
pub struct Clients {
    load: Arc<Load>,
    threads: Vec<JoinHandle<()>>,
}

/// The number of clients of each kind.
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    pub writers: u64,
    pub readers: u64,
    pub tails: u64,
}

impl Clients {
    /// Starts this number of clients of each kind.
    pub fn start(
        (addresses, logs): (Vec<SocketAddr>, Vec<String>),
        kinds: Kinds,
        seed: u64,
    ) -> Self {
        let load = Arc::new(Load {
            addresses,
            logs,
            began: Instant::now(),
            stop: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            history: Mutex::default(),
        });
        let client = |number: u64| Client {
            load: Arc::clone(&load),
            number,
            random: Random::new(seed ^ (number << 32)),
            written: 0,
            talk: None,
            steps: Vec::new(),
            took: Vec::new(),
        };
        let last = kinds.writers + kinds.readers + kinds.tails;
        let threads = (1..=last).map(|number| {
            let client = client(number);
            thread::spawn(move || match number {
                writer if writer <= kinds.writers => client.write(),
                reader if reader <= kinds.writers + kinds.readers => client.read(),
                _ => client.tail(),
            })
        });
        let threads = threads.collect();
        Self { load, threads }
    }

    /// Ends the clients; returns their steps, with requests and answers, and the measurements.
    pub fn end(self) -> (Vec<Step>, Vec<Took>) {
        self.load.stop.store(true, SeqCst);
        for thread in self.threads {
            let _ = thread.join();
        }
        let history = self.load.history.lock();
        std::mem::take(&mut *history.unwrap_or_else(PoisonError::into_inner))
    }
}

struct Client {
    load: Arc<Load>,
    number: u64,
    random: Random,
    written: u64,
    talk: Option<RpcConnection>,
    steps: Vec<Step>,
    took: Vec<Took>,
}

impl Client {
    fn is_over(&self) -> bool {
        self.load.stop.load(SeqCst)
    }

    fn end(mut self) {
        let history = self.load.history.lock();
        let mut history = history.unwrap_or_else(PoisonError::into_inner);
        history.0.append(&mut self.steps);
        history.1.append(&mut self.took);
    }

    fn now(&self) -> u64 {
        self.load.began.elapsed().as_nanos() as u64
    }

    /// A connection to any process.
    fn talk(&mut self) -> Option<&mut RpcConnection> {
        if self.talk.is_none() {
            let all = &self.load.addresses;
            let address = all[self.random.below(all.len() as u64) as usize];
            self.talk = RpcConnection::connect(address, PATIENCE).ok();
        }
        if self.talk.is_none() {
            thread::sleep(PAUSE);
        }
        self.talk.as_mut()
    }

    fn log(&mut self) -> String {
        let all = &self.load.logs;
        all[self.random.below(all.len() as u64) as usize].clone()
    }

    fn write(mut self) {
        // Each second one names what it appends, and asks again until it is told.
        let names = self.number.is_multiple_of(2);
        while !self.is_over() {
            let count = match self.random.below(10) {
                0..7 => 1,
                7 => 2 + self.random.below(3),
                _ => 2,
            };
            let is_one = self.random.below(2) == 0;
            let first = self.log();
            let values: Vec<(String, String)> = (0..count)
                .map(|_| {
                    self.written += 1;
                    let log = if is_one { first.clone() } else { self.log() };
                    (log, format!("{}.{}", self.number, self.written))
                })
                .collect();
            self.append(&values, names);
        }
        self.end();
    }

    fn append(&mut self, values: &[(String, String)], names: bool) {
        let commands = self.commands(values, names);
        let began = self.now();
        let told = loop {
            let Some(talk) = self.talk() else {
                if self.is_over() {
                    break Told::Nothing;
                }
                continue;
            };
            let told = talk
                .say(&commands)
                .map(|replies| told(&replies, values.len()));
            match told {
                Ok(Told::Nothing) | Err(_) => {
                    self.talk = None;
                    if !names || self.is_over() {
                        break Told::Nothing;
                    }
                    thread::sleep(PAUSE);
                }
                // It was not done this time, and may have been before.
                Ok(Told::Refused) if names && !self.is_over() => {
                    self.talk = None;
                    thread::sleep(PAUSE);
                }
                Ok(Told::Refused) if names => break Told::Nothing,
                Ok(told) => break told,
            }
        };
        let ended = self.now();
        self.note((began, ended), values, told);
    }

    fn note(&mut self, (began, ended): (u64, u64), values: &[(String, String)], told: Told) {
        let with = |positions: &[Option<u64>]| {
            let all = values.iter().zip(positions);
            let all = all.map(|((log, value), at)| (log.clone(), value.clone(), *at));
            What::Append {
                values: all.collect(),
            }
        };
        let (ended, what) = match told {
            Told::Positions(positions) => {
                let at = Duration::from_nanos(ended);
                self.took.push(Took {
                    is_several: values.len() > 1,
                    at,
                    took: at.saturating_sub(Duration::from_nanos(began)),
                });
                let positions: Vec<_> = positions.into_iter().map(Some).collect();
                (Some(ended), with(&positions))
            }
            Told::Refused => {
                self.load.refused.fetch_add(1, SeqCst);
                thread::sleep(PAUSE);
                let values = values.to_vec();
                (Some(ended), What::Refused { values })
            }
            Told::Nothing => (None, with(&vec![None; values.len()])),
        };
        self.steps.push(Step {
            client: self.number,
            began,
            ended,
            what,
        });
    }

    fn commands(&self, values: &[(String, String)], names: bool) -> Vec<Vec<String>> {
        let one = |(log, value): &(String, String)| {
            let mut words = vec!["XADD".to_owned(), log.clone()];
            if names {
                let producer = format!("client-{}", self.number);
                words.extend(["IDMP".to_owned(), producer, value.clone()]);
            }
            words.extend(["*", "value", value].map(str::to_owned));
            words
        };
        let mut commands: Vec<Vec<String>> = values.iter().map(one).collect();
        if values.len() > 1 {
            commands.insert(0, vec!["MULTI".to_owned()]);
            commands.push(vec!["EXEC".to_owned()]);
        }
        commands
    }

    fn read(mut self) {
        while !self.is_over() {
            let log = self.log();
            // Often near to the end, and sometimes all of it.
            let count = if self.random.below(8) == 0 {
                None
            } else {
                Some(READ)
            };
            let near = self.steps.iter().rev().find_map(|step| match &step.what {
                What::Read {
                    log: other, found, ..
                } if *other == log => found.last().map(|last| last.0),
                _ => None,
            });
            let from = match count {
                Some(_) => near
                    .unwrap_or(1)
                    .saturating_sub(self.random.below(READ))
                    .max(1),
                None => near.unwrap_or(1).saturating_sub(10 * READ).max(1),
            };
            self.range(log, from, count);
            thread::sleep(PAUSE);
        }
        self.end();
    }

    fn range(&mut self, log: String, from: u64, count: Option<u64>) {
        let mut words = vec![
            "XRANGE".to_owned(),
            log.clone(),
            from.to_string(),
            "+".to_owned(),
        ];
        words.extend(
            count
                .into_iter()
                .flat_map(|count| ["COUNT".to_owned(), count.to_string()]),
        );
        let began = self.now();
        let Some(talk) = self.talk() else { return };
        let told = talk.say(&[words]);
        let Some(found) = told.ok().and_then(|replies| entries(replies.first()?)) else {
            // It was told to ask another one, or nothing.
            self.talk = None;
            return thread::sleep(PAUSE);
        };
        let to_end = count.is_none_or(|count| (found.len() as u64) < count);
        let ended = Some(self.now());
        self.steps.push(Step {
            client: self.number,
            began,
            ended,
            what: What::Read {
                log,
                from,
                found,
                to_end,
            },
        });
    }

    fn tail(mut self) {
        let logs = self.load.logs.clone();
        let mut of: Vec<(String, String)> = logs
            .iter()
            .map(|log| (log.clone(), "0-0".to_owned()))
            .collect();
        let (began, mut found) = (self.now(), Vec::new());
        while !self.is_over() {
            let Some(talk) = self.talk() else { continue };
            match some(talk, &of, (1_000, Some("200"))) {
                Ok(entries) => found.extend(entries.iter().filter_map(|entry| {
                    let behind = of.iter_mut().filter(|(log, _)| *log == entry.log);
                    behind.for_each(|(_, after)| *after = format!("{}-0", entry.position));
                    placed(entry)
                })),
                Err(_) => {
                    self.talk = None;
                    thread::sleep(PAUSE);
                }
            }
            // From time to time it goes on elsewhere.
            if self.random.below(50) == 0 {
                self.talk = None;
            }
        }
        let ended = Some(self.now());
        self.steps.push(Step {
            client: self.number,
            began,
            ended,
            what: What::Merged { logs, found },
        });
        self.end();
    }
}
