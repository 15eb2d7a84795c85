//! Replicas that are held back, so that others are ahead of them for as long as a test wants: only in builds with
//! `mutants`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rota_core::contract::NodeId;

use crate::config::ReplicaConfig;

/// The time between two looks.
const LOOK: Duration = Duration::from_millis(5);

/// A cluster, and a node of it.
type Name = (u32, NodeId);

static HELD: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());

fn held() -> MutexGuard<'static, BTreeSet<Name>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A replica applies nothing until this is dropped.
#[derive(Debug)]
pub struct Held(Name);

impl Drop for Held {
    fn drop(&mut self) {
        held().remove(&self.0);
    }
}

/// Has the replica of a node of a cluster, in this process, apply nothing of what is ordered from now on. Its rings go
/// on, and it answers as if nothing had been delivered.
pub fn hold(cluster: u32, node: NodeId) -> Held {
    held().insert((cluster, node));
    Held((cluster, node))
}

/// Waits while a replica is held back, and does not stop.
pub(crate) fn wait(config: &ReplicaConfig, stop: &AtomicBool) {
    let name = (config.rings.common.cluster, config.node);
    while held().contains(&name) && !stop.load(SeqCst) {
        sleep(LOOK);
    }
}
