//! Three nodes in one process: each says hello, and all hear the same in the same order.
//!
//! `cargo run --example hello_ring`

use rota_core::contract::{Delivery, NodeId, Service};
use rota_node::{Node, NodeConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = NodeConfig::loopback(3, 7700);
    let ids = (1..=3).filter_map(NodeId::new);
    let nodes = ids
        .map(|id| Node::start(config.clone(), id))
        .collect::<Result<Vec<_>, _>>()?;

    // Each starts on a ring of its own: what is sent there, the others never get.
    for node in &nodes {
        while let Some(delivery) = node.recv() {
            if matches!(delivery, Delivery::Configuration(now) if now.members.len() == nodes.len())
            {
                break;
            }
        }
    }
    for (node, name) in nodes.iter().zip(["one", "two", "three"]) {
        node.submit(Service::Agreed, format!("hello from {name}").as_bytes())?;
    }

    let mut orders = Vec::new();
    for (node, number) in nodes.iter().zip(1..) {
        let mut order = Vec::new();
        while order.len() < nodes.len()
            && let Some(delivery) = node.recv()
        {
            if let Delivery::Message(message) = delivery {
                let text = String::from_utf8_lossy(&message.payload).into_owned();
                println!("node {number}: {} {text}", message.id);
                order.push(text);
            }
        }
        orders.push(order);
    }
    let same = orders.windows(2).all(|pair| pair[0] == pair[1]);
    println!(
        "{}",
        if same {
            "the same order everywhere"
        } else {
            "the orders differ"
        }
    );
    if same {
        Ok(())
    } else {
        Err("the orders differ".into())
    }
}
