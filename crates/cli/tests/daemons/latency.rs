//! The latency of messages while other clients misbehave. All messages have to arrive, in order; their times are
//! printed, and judged by the reader: `ROTA_ROUNDS` says how often, `ROTA_MILLIS` how long each time.

use std::collections::VecDeque;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rota_client::protocol::{Request, Send};
use rota_client::{Client, Destination, Event, Service};
use rota_net::monotonic;

use crate::bad_clients::{connect, frame, group, hello};
use crate::cluster::Cluster;
use crate::native::{PATIENCE, client, meet};
use crate::scale::{Ring, on_one_ring, raise_descriptors};

/// From one message to the next.
const PERIOD: Duration = Duration::from_millis(2);
const BYTES: usize = 1000;

fn setting(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    let number = |text: String| text.parse().expect("a number");
    text.map_or(default, number)
}

/// Somebody who does this again and again until dropped.
struct Trouble {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Trouble {
    fn new(mut act: impl FnMut() + std::marker::Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(SeqCst) {
                act();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || thread::panicking(),
                "it could not misbehave"
            );
        }
    }
}

/// Who misbehaves, by name. The first does nothing to a daemon: what it costs, it costs by the processor it takes.
const KINDS: [&str; 6] = [
    "flood at another program",
    "never reads",
    "garbage",
    "silent",
    "killed in mid-message",
    "flood",
];

fn trouble(kind: &str, socket: PathBuf) -> Trouble {
    match kind {
        "never reads" => Trouble::new(move || {
            let builder = Client::builder().timeout(PATIENCE);
            let mut deaf = builder.connect(socket.clone()).expect("let in");
            // It may have been disconnected before it hears that it has joined.
            let _ = deaf.join("g");
            thread::sleep(Duration::from_millis(900));
        }),
        "garbage" => {
            let garbage: Vec<u8> = (0..5000_u32).map(|at| ((at * 7919) >> 3) as u8).collect();
            Trouble::new(move || {
                let mut stream = connect(&socket);
                let _ = stream.write_all(&garbage);
                let _ = stream.read_to_end(&mut Vec::new());
                thread::sleep(Duration::from_millis(5));
            })
        }
        "silent" => {
            let silent: Vec<_> = (0..100).map(|_| connect(&socket)).collect();
            Trouble::new(move || {
                let _ = &silent;
                thread::sleep(Duration::from_millis(5));
            })
        }
        "killed in mid-message" => Trouble::new(move || {
            let mut stream = connect(&socket);
            let send = frame(&Request::Send(Send {
                service: Service::Agreed,
                self_discard: false,
                kind: 0,
                to: vec![Destination::Group(group("g"))],
                payload: vec![b'x'; 50_000].into(),
            }));
            let _ = stream.write_all(&hello("dying"));
            let _ = stream.write_all(&send[..25_000]);
            thread::sleep(Duration::from_millis(5));
        }),
        "flood at another program" => flood(another_program(&socket)),
        _ => flood(socket),
    }
}

/// Connects as fast as it can.
fn flood(socket: PathBuf) -> Trouble {
    let mut flood = VecDeque::new();
    Trouble::new(move || {
        flood.push_back(connect(&socket));
        if flood.len() > 200 {
            flood.pop_front();
        }
    })
}

/// Somebody else's socket, where one connection is taken each millisecond until a second has passed without any.
fn another_program(daemon: &Path) -> PathBuf {
    let path = daemon.with_extension("another");
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("nobody listens there");
    listener.set_nonblocking(true).expect("a listener");
    let _ = thread::spawn(move || {
        let mut last = Instant::now();
        while last.elapsed() < Duration::from_secs(1) {
            if listener.accept().is_ok() {
                last = Instant::now();
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    path
}

/// A client that sends, and one at each daemon that listens.
struct Measure {
    cluster: Cluster,
    ring: Ring,
    ann: Option<Client>,
    listeners: Vec<Client>,
}

impl Measure {
    fn new() -> Self {
        let cluster = Cluster::patient(2, "message_bytes = 100000\nclient_queue_bytes = 200000");
        meet(&cluster, &[1, 2]);
        let listeners = [1, 2].map(|id| {
            let mut client = client(&cluster, id, "listener");
            client.join("g").expect("it joins");
            client
        });
        Self {
            ring: Ring::new(&cluster),
            ann: Some(client(&cluster, 2, "ann")),
            listeners: listeners.into(),
            cluster,
        }
    }

    /// Sends for so long; answers with the quantiles of the times, in microseconds. `None` if the ring broke.
    fn measure(&mut self, time: Duration) -> Option<[f64; 2]> {
        let count = (time.as_nanos() / PERIOD.as_nanos()) as usize;
        let mut ann = self.ann.take().expect("it is back");
        let sending = thread::spawn(move || {
            let start = Instant::now();
            for at in 0..count {
                let due = start + PERIOD * at as u32;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                let mut text = format!("{at} {} ", monotonic().0).into_bytes();
                text.resize(BYTES, b'.');
                ann.send("g", &text).expect("it is sent");
            }
            ann
        });
        let listening = self.listeners.drain(..).map(|mut client| {
            thread::spawn(move || {
                let times = (0..count).map_while(|at| hear(&mut client, at));
                let times: Vec<u64> = times.collect();
                (client, times)
            })
        });
        let listening: Vec<_> = listening.collect();
        let mut times = Vec::new();
        for thread in listening {
            let (client, heard) = thread.join().expect("in order");
            self.listeners.push(client);
            times.extend(heard);
        }
        self.ann = Some(sending.join().expect("it has sent all"));
        if self.ring.is_broken(&self.cluster) {
            return None;
        }
        assert_eq!(times.len(), 2 * count, "messages are missing");
        times.sort_unstable();
        let at = |share: f64| times[(times.len() as f64 * share) as usize] as f64 / 1e3;
        Some([at(0.5), at(0.99)])
    }
}

/// How long the next message took; `None` if it never comes.
fn hear(client: &mut Client, expected: usize) -> Option<u64> {
    let event = client.recv_timeout(Duration::from_secs(20));
    let Event::Message(message) = event.expect("it is connected")? else {
        panic!("no message");
    };
    let now = monotonic().0;
    let text = String::from_utf8_lossy(&message.payload);
    let mut words = text.split(' ').map(|word| word.parse::<u64>());
    let mut number = || words.next().and_then(Result::ok).expect("a number");
    assert_eq!(number(), expected as u64, "another order");
    Some(now - number())
}

fn median(values: &[[f64; 2]], which: usize) -> f64 {
    let mut values: Vec<f64> = values.iter().map(|pair| pair[which]).collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn compare(kinds: &[&str], rounds: u64, time: Duration) -> Option<()> {
    let mut measure = Measure::new();
    measure.measure(Duration::from_millis(200))?;
    let (mut calm, mut troubled) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        calm.push(measure.measure(time)?);
        let socket = measure.cluster.socket(1);
        let troubles = kinds.iter().map(|kind| trouble(kind, socket.clone()));
        let troubles: Vec<Trouble> = troubles.collect();
        troubled.push(measure.measure(time)?);
        drop(troubles);
    }
    println!(
        "{}: p50 {:.0} us, before {:.0}; p99 {:.0} us, before {:.0} (medians of {rounds})",
        kinds.join(", "),
        median(&troubled, 0),
        median(&calm, 0),
        median(&troubled, 1),
        median(&calm, 1)
    );
    Some(())
}

#[test]
fn clients_that_misbehave_cost_the_others_no_message() {
    raise_descriptors();
    let rounds = setting("ROTA_ROUNDS", 1);
    let time = Duration::from_millis(setting("ROTA_MILLIS", 500));
    for kind in &KINDS {
        on_one_ring(|| compare(&[*kind], rounds, time));
    }
    on_one_ring(|| compare(&KINDS[1..], rounds, time));
}
