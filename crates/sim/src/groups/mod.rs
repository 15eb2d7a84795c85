//! Daemons and their clients: engines with the groups of `rota-core` over them, driven by simulated clients.
//!
//! [`Grouped`] puts the layer over another system's engines. What the layer submits and is delivered is
//! seen by the observers as ever, so the properties of the engine are checked under it. Each process has
//! a desk where its clients connect, ask and are told: what they see becomes events of
//! clients, of which K1 to K9 speak.

mod desk;
mod saw;
mod served;

use bytes::Bytes;
use rota_core::contract::{Service, Time};
use rota_core::groups::{ClientEvent, Groups};

pub(crate) use desk::{Ask, Given, SimulatedClients};
pub(crate) use saw::{private, saw};
pub use served::{Grouped, Served};

/// A daemon's groups, as the simulator drives them.
pub trait Layer {
    /// What the daemon knows.
    fn groups(&self) -> &Groups;

    /// Clients ask for something.
    fn request(&mut self, now: Time, ask: &mut dyn FnMut(&mut Groups));

    /// The next event that was polled and not taken.
    fn next_event(&mut self) -> Option<ClientEvent>;

    /// How many there are.
    fn waiting_events(&self) -> usize;

    /// The next message that the layer has submitted: its counter, its guarantee, its bytes.
    fn next_submitted(&mut self) -> Option<(u64, Service, Bytes)>;
}
