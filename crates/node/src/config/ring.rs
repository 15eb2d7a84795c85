//! The configuration of the ring engine.

use rota_core::EngineName;
use rota_net::seal::SEALED_BYTES;
use rota_ring::{PriorityMethod, Protocol, RingConfig};

use super::{NodeConfig, PrimaryName};

/// The bytes by which an IPv6 header is longer than one of IPv4.
const IPV6_EXTRA_BYTES: usize = 20;

/// The settings of the file over the engine's defaults.
pub(super) fn config(node: &NodeConfig) -> RingConfig {
    let mut ring = RingConfig::new(node.wire_cluster(), node.members());
    if node.engine == EngineName::TotemRing {
        ring = ring.original();
    }
    ring.closed = !node.open_membership;
    ring.timers = node.timers();
    ring.trace = node.trace.is_some();
    let set = |field: &mut u32, value: Option<u32>| *field = value.unwrap_or(*field);
    set(&mut ring.windows.personal, node.personal_window);
    if ring.protocol == Protocol::Accelerated {
        // A smaller personal window alone must not make the default accelerated one wrong.
        ring.windows.accelerated = ring.windows.accelerated.min(ring.windows.personal);
    }
    set(&mut ring.windows.accelerated, node.accelerated_window);
    set(&mut ring.windows.global, node.global_window);
    set(&mut ring.windows.outstanding, node.outstanding_window);
    match node.priority_method {
        Some(1) => ring.priority_method = PriorityMethod::First,
        Some(_) => ring.priority_method = PriorityMethod::Second,
        None => {}
    }
    let set = |field: &mut usize, value: Option<usize>| *field = value.unwrap_or(*field);
    if node.nodes.iter().any(|one| one.address.is_ipv6()) {
        ring.datagram_bytes -= IPV6_EXTRA_BYTES;
    }
    set(&mut ring.datagram_bytes, node.datagram_bytes);
    if node.key_file.is_some() {
        ring.seal_bytes = SEALED_BYTES;
    }
    set(&mut ring.message_bytes, node.message_bytes);
    set(&mut ring.backlog_bytes, node.backlog_bytes);
    node.make_room_for_primary(&mut ring);
    if node.primary_in_force() != PrimaryName::None {
        ring.electorate = node.counted_nodes();
    }
    ring
}
