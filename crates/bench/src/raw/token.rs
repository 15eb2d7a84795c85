//! A 64-byte token round the ring: the shortest rotation there can be.

use std::time::Duration;

use super::node::{Measured, Task};
use crate::child::Coordinator;
use crate::clock::{now_ns, sleep_until, thread_cpu_ns};
use crate::error::BenchError;
use crate::hist::Latencies;
use crate::socket::UdpPort;

const TOKEN_BYTES: usize = 64;

/// Passes the token on until the time is over; node 1 also starts it and takes the time.
pub(super) fn run(task: &Task, coordinator: &Coordinator) -> Result<Measured, BenchError> {
    let io = BenchError::io("the token's socket failed");
    let port = UdpPort::unicast(task.unicast(task.node), false).map_err(io)?;
    port.set_patience(Duration::from_millis(100))
        .map_err(BenchError::io("cannot set a time-out"))?;
    let next = task.unicast(task.node % task.addresses.len() + 1);
    let start = coordinator.ready()?;
    let from = start + task.warm_up_ns;
    let until = from + task.duration_ns;
    let first = task.node == 1;
    let mut buffer = [0; 2048];
    let (mut measured, mut latencies) = (Measured::default(), Latencies::new());
    sleep_until(start);
    let send = |bytes: &[u8]| {
        port.send(bytes, next)
            .map_err(BenchError::io("cannot send the token"))
    };
    if first {
        send(&[0; TOKEN_BYTES])?;
    }
    let (mut last, mut began) = (now_ns(), None);
    loop {
        let got = port
            .receive(&mut buffer)
            .map_err(BenchError::io("cannot receive the token"))?;
        let now = now_ns();
        if began.is_none() && now >= from {
            began = Some((now, thread_cpu_ns()));
        }
        if now >= until {
            break;
        }
        match got {
            Some(_) => {
                if began.is_some() {
                    measured.received += 1;
                    if first && last >= from {
                        latencies.record(now - last);
                    }
                }
                last = now;
                send(&buffer[..TOKEN_BYTES])?;
            }
            // Lost, or the ring is only just starting.
            None if first => {
                measured.stalls += 1;
                last = now_ns();
                send(&[0; TOKEN_BYTES])?;
            }
            None => {}
        }
    }
    if let Some((at, cpu)) = began {
        measured.elapsed_ns = now_ns() - at;
        measured.cpu_ns = thread_cpu_ns().saturating_sub(cpu);
    }
    measured.latencies = latencies.to_counts();
    Ok(measured)
}
