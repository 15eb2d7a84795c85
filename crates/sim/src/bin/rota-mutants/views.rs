//! Mutants of views, FastCast and LCR, as the simulator finds them out.

use rota_core::mutants::Mutant;
use rota_core::mutants::Mutant::*;
use rota_sim::campaign::EngineName;

use super::table::{Known, known};

/// The engine in which a seed looks for a mutant. Mutants of views are in both engines that have views.
pub fn engine(mutant: Mutant, seed: u64) -> EngineName {
    let name = mutant.to_string();
    match name.as_bytes()[0] {
        b'L' => EngineName::Lcr,
        b'F' => EngineName::FastCast,
        // Reliable links lose no packet before another.
        b'V' if mutant == V07 => EngineName::FastCast,
        b'V' if seed % 2 == 1 => EngineName::Lcr,
        b'V' => EngineName::FastCast,
        _ if mutant == M38 => EngineName::FastCast,
        _ => EngineName::AcceleratedRing,
    }
}

/// The mutants that must be found out.
#[rustfmt::skip]
pub const TABLE: &[Known] = &[
    known(V01, &["VS1", "VS2", "UTO", "UA", "UV", "C8"], "a view begins when a majority has ended the exchange"),
    known(V02, &["VS1", "VS2", "UTO", "UA", "UV", "fifo"], "what may have been installed elsewhere is forgotten"),
    known(V03, &["VS1", "UTO"], "what may have been installed counts as installed though a member knows better"),
    known(V04, &["fifo", "UTO", "UI", "VS5"], "joiners keep their own watermarks"),
    known(V05, &["UV", "UTO", "UI", "fifo"], "a large message goes on in the next view"),
    known(V06, &["UTO"], "what is forced is delivered in the order of its arrival"),
    known(V07, &["fifo", "UTO", "UI"], "packets behind a gap that nobody can fill are delivered"),
    known(V08, &["lost", "UV", "UTO", "UI", "fifo"], "a large message is not sent again from its beginning"),
    known(V09, &["UTO", "VS1", "VS2", "VS5", "UA"], "a view begins though too few remember the last one"),
    known(V10, &["VS1", "VS2", "UTO", "UA"], "a view is installed in a transitional configuration, too"),
    known(M38, &["held"], "a packet is delivered when a majority has acknowledged it"),
    known(F01, &["held"], "a place is acknowledged without its packet"),
    known(F02, &["S1"], "acknowledgements are not said again"),
    known(F03, &["held"], "packets are acknowledged without their places"),
    known(F04, &["held", "UTO"], "the leader gives other places when it says them again"),
    known(F06, &["UTO", "held"], "places are taken as if none before them had been lost"),
    known(F07, &["held", "counters", "S1"], "there is no window"),
    known(F08, &["UTO"], "places are forgotten when a view ends"),
    known(F09, &["S1"], "nothing is sent again"),
    known(F10, &["UTO"], "at the end of a view packets are delivered by name alone"),
    known(L01, &["S1"], "stability is not told to the last process that needs it"),
    known(L02, &["UTO"], "packets of two members are ordered by their own numbers"),
    known(L03, &["held", "UTO"], "the first of what is pending is delivered though not stable"),
    known(L04, &["S1", "counters"], "packets are passed on to their sender"),
    known(L05, &["S1"], "a new session goes on where the old one ended"),
    known(L06, &["UTO"], "stability counts when it arrives, before packets that wait"),
    known(L07, &["S1", "counters"], "the clock counts what has arrived, not what was passed on"),
    known(L08, &["counters", "S1"], "windows open when packets are stable, not when all have delivered them"),
    known(L09, &["counters", "UTO"], "batches of an older view are taken"),
];

/// The mutants that the simulation does not have to find, with the reasons.
pub const SURVIVORS: &[(Mutant, &str)] = &[
    (
        V11,
        "takes a place that only a process without the packet knows, when a view ends: crates/views/tests/views_model.rs notices",
    ),
    (
        F05,
        "only costs time in a world that heals: what nobody asks for its sender sends again by itself. crates/views/tests/fastcast notices, where it cannot",
    ),
    (
        L10,
        "is only unfair: crates/views/tests/lcr notices, where links are slow",
    ),
];
