//! Real daemons on this host, and clients that talk to them.

mod access;
mod bad_clients;
mod both_protocols;
mod cluster;
mod crowds;
mod from_c;
mod groups;
mod large;
mod latency;
mod lines;
mod metrics;
mod native;
mod operate;
mod order;
mod scale;
mod sealed;
mod service;
mod slow;
mod spread;
mod starting;
mod throttle;
mod tls;
mod traces;
