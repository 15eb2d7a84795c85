//! Every property, seen red and seen green: a trace that violates it, and one that nearly does.

#[path = "properties/basic.rs"]
mod basic;
#[path = "properties/clients.rs"]
mod clients;
#[path = "properties/configurations.rs"]
mod configurations;
#[path = "properties/early.rs"]
mod early;
#[path = "properties/groups.rs"]
mod groups;
#[path = "properties/model.rs"]
mod model;
#[path = "properties/online.rs"]
mod online;
#[path = "properties/order.rs"]
mod order;
#[path = "properties/primary.rs"]
mod primary;
#[path = "properties/safe.rs"]
mod safe;
#[path = "properties/story.rs"]
mod story;
#[path = "properties/uniform.rs"]
mod uniform;
#[path = "properties/uniform_back.rs"]
mod uniform_back;
#[path = "properties/uniform_online.rs"]
mod uniform_online;
#[path = "properties/uniform_story.rs"]
mod uniform_story;
#[path = "properties/whole_online.rs"]
mod whole_online;
