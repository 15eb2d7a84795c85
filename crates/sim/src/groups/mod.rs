//! Daemons and their clients: engines with the groups of `rota-core` over them, driven by simulated clients.
//!
//! [`Grouped`] puts the layer over another system's engines. The observers see the messages that the layer submits and
//! is delivered as ever, so the properties of the engine are checked under it. Each process has a desk where its
//! clients connect, ask and are told: the events that they see become events of clients, of which K1 to K9 speak.

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
    /// The groups as the daemon knows them.
    fn groups(&self) -> &Groups;

    /// Clients ask for something.
    fn request(&mut self, now: Time, ask: &mut dyn FnMut(&mut Groups));

    /// The next event that was polled and not taken.
    fn next_event(&mut self) -> Option<ClientEvent>;

    /// The number of these events.
    fn waiting_events(&self) -> usize;

    /// The next message that the layer has submitted: its counter, its guarantee, its bytes.
    fn next_submitted(&mut self) -> Option<(u64, Service, Bytes)>;
}
