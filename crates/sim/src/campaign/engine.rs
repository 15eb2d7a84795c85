//! The traits of an engine that a campaign has to know.

use rota_core::EngineName;
use rota_ring::Protocol;

/// The engines that are a ring and nothing else.
pub const RINGS: [EngineName; 2] = [EngineName::AcceleratedRing, EngineName::TotemRing];

/// The protocol of the ring, or of the idle one beside a data path; if there is no ring, the one whose time-outs the
/// engine has.
pub const fn protocol(engine: EngineName) -> Protocol {
    match engine {
        EngineName::TotemRing => Protocol::Original,
        _ => Protocol::Accelerated,
    }
}
