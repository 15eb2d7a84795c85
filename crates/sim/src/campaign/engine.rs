//! What a campaign has to know of an engine.

use rota_core::EngineName;
use rota_ring::Protocol;

/// Those that are a ring and nothing else.
pub const RINGS: [EngineName; 2] = [EngineName::AcceleratedRing, EngineName::TotemRing];

/// The protocol of the ring, or of the idle one beside a data path; where there is none, of that whose time-outs it has.
pub const fn protocol(engine: EngineName) -> Protocol {
    match engine {
        EngineName::TotemRing => Protocol::Original,
        _ => Protocol::Accelerated,
    }
}
