//! A journal in partitions, each of which several processes have: `journal FILE NODE PARTITION RINGS DIRECTORY PEERS`.
//!
//! `FILE` has the rings, `RINGS` are those of the partition (`1,4`), `DIRECTORY` has its checkpoints, `PEERS` are its replicas
//! (`1=10.0.0.1:7000,2=10.0.0.2:7000`). A line `RING TEXT` of its input is appended by all partitions that have the ring; the answer is its
//! number in the own one. `dump` shows all lines.

use std::error::Error;
use std::io::{self, BufRead as _, Read};
use std::time::Duration;

use rota_core::contract::NodeId;
use rota_multiring::Rank;
use rota_node::RingsConfig;
use rota_replica::{CallError, Client, Command, Machine, Replica, ReplicaConfig};

const PATIENCE: Duration = Duration::from_secs(5);

/// The state that all replicas of a partition have.
#[derive(Default)]
struct Journal(Vec<String>);

impl Machine for Journal {
    type Frozen = Vec<u8>;

    fn apply(&mut self, command: Command<'_>) -> Vec<u8> {
        let text = String::from_utf8_lossy(command.bytes);
        self.0.push(text.replace('\n', " "));
        self.0.len().to_string().into_bytes()
    }

    fn freeze(&mut self) -> Vec<u8> {
        self.0.join("\n").into_bytes()
    }

    fn install(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let text = io::read_to_string(state)?;
        self.0 = text.lines().map(str::to_owned).collect();
        Ok(())
    }
}

fn session(replica: &Replica<Journal>) -> Result<Client<Journal>, CallError> {
    loop {
        match replica.client(PATIENCE) {
            Err(CallError::Timeout { .. } | CallError::Busy) => {}
            session => return session,
        }
    }
}

/// Appends, however long that takes: what was not answered in time is given once more, and counts once.
fn append(client: &mut Client<Journal>, ring: Rank, text: &str) -> Result<String, CallError> {
    let mut answer = client.call(ring, text.as_bytes(), PATIENCE);
    while let Err(CallError::Timeout { .. } | CallError::Busy) = answer {
        answer = client.again(ring, client.last(), text.as_bytes(), PATIENCE);
    }
    answer.map(|number| String::from_utf8_lossy(&number).into_owned())
}

fn node(text: &str) -> Result<NodeId, Box<dyn Error>> {
    Ok(NodeId::new(text.parse()?).ok_or("0 is no node")?)
}

fn config(arguments: &[String]) -> Result<ReplicaConfig, Box<dyn Error>> {
    let [file, me, partition, rings, directory, peers] = arguments else {
        return Err("usage: journal FILE NODE PARTITION RINGS DIRECTORY PEERS".into());
    };
    let all = RingsConfig::from_toml(&std::fs::read_to_string(file)?)?;
    let rings: Result<Vec<u16>, _> = rings.split(',').map(str::parse).collect();
    let of = (partition.parse()?, &rings?[..]);
    let mut config = ReplicaConfig::new(all, node(me)?, of, directory.into());
    for peer in peers.split(',') {
        let (peer, address) = peer.split_once('=').ok_or("a peer is NODE=ADDRESS")?;
        config.peers.insert(node(peer)?, address.parse()?);
    }
    Ok(config)
}

fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<String>>())
}

/// One process, until its input ends.
pub fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let replica = Replica::start(&config(arguments)?, Journal::default())?;
    let mut client = None;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line == "dump" {
            let lines = replica.read(|journal| journal.0.clone());
            for (at, text) in lines.unwrap_or_default().iter().enumerate() {
                println!("= {} {text}", at + 1);
            }
            println!("= end");
            continue;
        }
        let (ring, text) = line.split_once(' ').ok_or("RING TEXT, or dump")?;
        let mut session = client.take().map_or_else(|| session(&replica), Ok)?;
        println!(
            "{} {line}",
            append(&mut session, Rank(ring.parse()?), text)?
        );
        client = Some(session);
    }
    Ok(())
}
