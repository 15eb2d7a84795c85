//! Networks, and the rules that have to hold of them.

use super::network::Network;
use super::plan::Plan;

/// Runs a plan to its end: what went wrong, if anything.
pub fn run(plan: Plan) -> Result<Network, String> {
    let mut network = Network::new(plan);
    network.run()?;
    complete(&network)?;
    bounded(&network)?;
    for name in ["lcr_messages_refused", "lcr_packets_duplicate"] {
        let many = network.counted(name);
        if many > 0 {
            return Err(format!("{name}: {many}"));
        }
    }
    Ok(network)
}

/// All who are left have delivered everything of each other, and the same of whoever went.
fn complete(network: &Network) -> Result<(), String> {
    let nodes = &network.nodes;
    for (index, node) in nodes.iter().enumerate().filter(|(_, node)| node.alive) {
        for (sender, &messages) in node.messages.iter().enumerate() {
            if nodes[sender].alive && messages != network.plan.messages[sender] {
                let all = network.plan.messages[sender];
                return Err(format!(
                    "complete: {index} has {messages} of {all} of {sender}"
                ));
            }
        }
        if node.packets != network.order.len() {
            return Err(format!(
                "complete: {index} delivered {} packets",
                node.packets
            ));
        }
    }
    Ok(())
}

/// Nobody keeps more than a window for each member, and what it costs to keep it.
fn bounded(network: &Network) -> Result<(), String> {
    let plan = &network.plan;
    // One packet is always let through, whatever the window.
    let window = plan.window.max(plan.frame + 256);
    let bound = plan.count * window;
    for (index, node) in network.nodes.iter().enumerate() {
        if node.kept > bound {
            return Err(format!("memory: {index} kept {}, not {bound}", node.kept));
        }
    }
    Ok(())
}

/// How many packets each sender had delivered when the first of them was through.
fn shares(network: &Network) -> Vec<usize> {
    let count = network.plan.count;
    let total = |sender: usize| {
        let of = network.order.iter();
        of.filter(|id| usize::from(id.sender) == sender).count()
    };
    let totals: Vec<_> = (0..count).map(total).collect();
    let mut shares = vec![0; count];
    for id in &network.order {
        let sender = usize::from(id.sender);
        shares[sender] += 1;
        if shares[sender] == totals[sender] {
            break;
        }
    }
    shares
}

/// Where all have the same to send, and windows that fill the links, all get the same.
pub fn even(count: usize) -> Result<(), String> {
    let mut plan = Plan::calm(count);
    plan.window *= count;
    nearly(&shares(&run(plan)?), 90)
}

/// The same where one process of five has a slow link. What its successor sends does not come that way.
pub fn even_where_slow(slow: usize) -> Result<(), String> {
    let mut plan = Plan::calm(5);
    plan.rate[slow] = 2;
    let mut shares = shares(&run(plan)?);
    shares.remove((slow + 1) % 5);
    nearly(&shares, 60)
}

/// Whether each has so many percent of the most.
fn nearly(shares: &[usize], percent: usize) -> Result<(), String> {
    println!("{shares:?}");
    let most = shares.iter().max().copied().unwrap_or(0);
    if shares.iter().all(|&share| share * 100 >= most * percent) {
        Ok(())
    } else {
        Err(format!("shares: {shares:?}"))
    }
}
