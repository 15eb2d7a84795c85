//! FastCast: uniform total order by a sequencer and acknowledgements from all, at the speed of the links
//! (FastCast §3).

pub mod shares;
