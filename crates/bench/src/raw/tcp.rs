//! One TCP stream from node 1 to node 2: what the kernel's own protocol makes of the link.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use super::node::{Measured, Task};
use crate::child::Coordinator;
use crate::clock::{now_ns, sleep_until, thread_cpu_ns};
use crate::error::BenchError;

const CHUNK: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(2);

/// Sends, receives, or (all other nodes) does nothing.
pub(super) fn run(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    match task.node {
        1 => send(task, coordinator),
        2 => receive(task, coordinator),
        _ => coordinator.ready().map(|_| Measured::default()),
    }
}

fn send(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let start = coordinator.ready()?;
    let failed = BenchError::io("cannot connect to node 2");
    let mut stream =
        TcpStream::connect_timeout(&task.unicast(2).into(), PATIENCE).map_err(failed)?;
    stream
        .set_write_timeout(Some(PATIENCE))
        .map_err(BenchError::io("cannot set a time-out"))?;
    sleep_until(start);
    let chunk = vec![0; CHUNK];
    let (from, until) = (
        start + task.warm_up_ns,
        start + task.warm_up_ns + task.duration_ns,
    );
    let mut cpu = None;
    loop {
        let now = now_ns();
        if cpu.is_none() && now >= from {
            cpu = Some(thread_cpu_ns());
        }
        if now >= until {
            break;
        }
        stream
            .write_all(&chunk)
            .map_err(BenchError::io("the stream broke"))?;
    }
    let cpu_ns = thread_cpu_ns().saturating_sub(cpu.unwrap_or_default());
    Ok(Measured {
        cpu_ns,
        elapsed_ns: task.duration_ns,
        ..Measured::default()
    })
}

fn receive(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let listener = TcpListener::bind(task.unicast(2)).map_err(BenchError::io("cannot listen"))?;
    let start = coordinator.ready()?;
    let (mut stream, _) = listener
        .accept()
        .map_err(BenchError::io("nobody connected"))?;
    stream
        .set_read_timeout(Some(PATIENCE))
        .map_err(BenchError::io("cannot set a time-out"))?;
    let mut buffer = vec![0; CHUNK];
    let from = start + task.warm_up_ns;
    let mut measured = Measured::default();
    let mut began = None;
    loop {
        let len = match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => {
                return Err(BenchError::Io {
                    what: "the stream broke",
                    error,
                });
            }
        };
        let now = now_ns();
        match began {
            None if now >= from => began = Some((now, thread_cpu_ns())),
            None => {}
            Some((at, _)) => {
                measured.bytes += len as u64;
                measured.elapsed_ns = now - at;
            }
        }
    }
    measured.cpu_ns = thread_cpu_ns().saturating_sub(began.map_or(0, |(_, cpu)| cpu));
    measured.received = measured.bytes / task.size as u64;
    Ok(measured)
}
