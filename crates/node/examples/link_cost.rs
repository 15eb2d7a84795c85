//! The cost of links: messages a second over one link on the loopback interface, as fast as it takes them, and
//! processor time for each, both ends and the kernel's part in their name together.
//!
//! `cargo run --release -p rota-node --example link_cost [SECONDS]`

use std::collections::VecDeque;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rota_core::contract::{
    Channel, Class, Delivery, Engine, Input, NodeId, Output, Process, Service, Session, Status,
    SubmitError, Time, TimerReason,
};
use rota_net::{KeyRing, Sockets};
use rota_node::{App, Driver, NodeConfig, Submitter};

/// Sends messages of one size while its link takes them, or counts what comes.
#[derive(Default)]
struct Stream {
    message: Option<Bytes>,
    link: Option<(Process, Session)>,
    credit: usize,
    counted: Arc<AtomicU64>,
    outputs: VecDeque<Output>,
}

impl Stream {
    fn fill(&mut self) {
        let (Some(message), Some((peer, session))) = (&self.message, self.link) else {
            return;
        };
        while message.len() <= self.credit {
            self.credit -= message.len();
            self.outputs.push_back(Output::LinkSend {
                peer: peer.node,
                session,
                channel: Channel(0),
                bytes: message.clone().into(),
            });
        }
    }
}

impl Engine for Stream {
    fn handle(&mut self, _: Time, input: Input) {
        match input {
            Input::LinkUp { peer, session } => self.link = Some((peer, session)),
            Input::LinkMessage { .. } => {
                self.counted.fetch_add(1, Relaxed);
            }
            Input::Writable { bytes, .. } => {
                self.credit = bytes;
                self.fill();
            }
            _ => {}
        }
    }
    fn submit(&mut self, _: Time, _: Service, _: &[u8]) -> Result<u64, SubmitError> {
        Err(SubmitError::Unsupported)
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn poll_delivery(&mut self) -> Option<Delivery> {
        None
    }
    fn reading(&self) -> Class {
        Class::Data
    }
    fn next_timer(&self) -> Option<(Time, TimerReason)> {
        None
    }
    fn wants_links(&self) -> bool {
        true
    }
    fn status(&self) -> Status {
        Status::default()
    }
}

struct Until(Arc<AtomicBool>);

impl App for Until {
    fn deliver(&mut self, _: Delivery) {}
    fn fill(&mut self, _: Time, _: &mut dyn Submitter) {}
    fn next_wake(&self) -> Option<Time> {
        Some(rota_net::monotonic().after(100_000_000))
    }
    fn stop(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Processor time of this process so far.
fn cpu() -> Result<Duration, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().ok_or("no fields")?;
    let ticks: u64 = fields
        .split_whitespace()
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap_or(0))
        .sum();
    Ok(Duration::from_millis(ticks * 10))
}

fn measure(config: &NodeConfig, size: usize, seconds: u64) -> Result<(), Box<dyn Error>> {
    let stop = Arc::new(AtomicBool::new(false));
    let counted = Arc::new(AtomicU64::new(0));
    let mut threads = Vec::new();
    for number in 1..=2 {
        let id = NodeId::new(number).ok_or("no node")?;
        let engine = Stream {
            message: (number == 1).then(|| Bytes::from(vec![7; size])),
            counted: Arc::clone(&counted),
            ..Stream::default()
        };
        let mut driver = Driver::new(engine, Sockets::open(&config.network(), id)?, id, config)?;
        let mut app = Until(Arc::clone(&stop));
        threads.push(std::thread::spawn(move || driver.run(&mut app)));
    }
    std::thread::sleep(Duration::from_millis(500));
    let (from, began, used) = (counted.load(Relaxed), Instant::now(), cpu()?);
    std::thread::sleep(Duration::from_secs(seconds));
    let messages = counted.load(Relaxed) - from;
    let (took, used) = (began.elapsed().as_secs_f64(), cpu()? - used);
    stop.store(true, Relaxed);
    for thread in threads {
        thread.join().map_err(|_| "a node panicked")??;
    }
    println!(
        "{:9} {size:7} bytes: {:9.0} messages/s {:8.1} MB/s {:8.0} ns of processor a message",
        if config.insecure {
            "insecure"
        } else {
            "sealed"
        },
        messages as f64 / took,
        messages as f64 * size as f64 / took / 1e6,
        used.as_nanos() as f64 / messages.max(1) as f64,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |text| text.parse())?;
    let directory = std::env::temp_dir().join(format!("rota-link-cost-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let key_file = directory.join("key");
    KeyRing::generate()?.create(&key_file)?;
    let insecure = NodeConfig::loopback(2, 27_600);
    let sealed = NodeConfig {
        insecure: false,
        key_file: Some(key_file),
        ..insecure.clone()
    };
    let measured = [&insecure, &sealed].into_iter().try_for_each(|config| {
        let sizes = [64, 1350, 10_000, 100_000];
        sizes
            .into_iter()
            .try_for_each(|size| measure(config, size, seconds))
    });
    std::fs::remove_dir_all(&directory)?;
    measured
}
