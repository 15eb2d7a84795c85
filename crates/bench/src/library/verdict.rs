//! The verdict whether a run kept the promises of a ring, apart from its speed.

use super::node::Measured;

/// The verdict on the nodes' deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// All nodes delivered the same order, as far as each came, and nothing that was not sent.
    pub identical: bool,
    /// All nodes delivered everything that was submitted.
    pub complete: bool,
    /// The first failure, if there is one: a sentence.
    pub failure: Option<String>,
}

impl Verdict {
    pub(super) fn new(results: &[Measured]) -> Self {
        let disagreement = disagreement(results).or_else(|| disagreement_in_rings(results));
        let has_rings = results.iter().any(|result| !result.orders.is_empty());
        let missing = match has_rings {
            true => missing_in_rings(results),
            false => missing(results),
        };
        Self {
            identical: disagreement.is_none(),
            complete: missing.is_none(),
            // A wrong order is a bug; a load that is too much may also be the cause of the other.
            failure: disagreement.or(missing),
        }
    }
}

fn disagreement(results: &[Measured]) -> Option<String> {
    for (index, result) in results.iter().enumerate() {
        if result.garbled > 0 {
            return Some(format!(
                "{} messages arrived at node {} garbled",
                result.garbled,
                index + 1
            ));
        }
        if let Some(at) = results[0].order.differs(&result.order) {
            return Some(format!(
                "the nodes disagree about the order: nodes 1 and {} differ before message {at}",
                index + 1
            ));
        }
    }
    None
}

fn missing(results: &[Measured]) -> Option<String> {
    let submitted: u64 = results.iter().map(|result| result.submitted_ever).sum();
    let delivered = results.iter().map(|result| result.order.count());
    let (index, delivered) = delivered
        .enumerate()
        .find(|(_, delivered)| *delivered != submitted)?;
    Some(format!(
        "not complete: {submitted} messages were submitted, and node {} delivered {delivered}; was the \
         load more than the ring takes?",
        index + 1
    ))
}

/// Nodes that deliver a ring, and the ring.
fn rings(results: &[Measured]) -> std::collections::BTreeSet<u16> {
    let all = results.iter().flat_map(|result| result.orders.keys());
    all.copied().collect()
}

fn disagreement_in_rings(results: &[Measured]) -> Option<String> {
    for ring in rings(results) {
        let nodes = (1..).zip(results);
        let mut orders = nodes.filter_map(|(node, result)| Some((node, result.orders.get(&ring)?)));
        let (first, order) = orders.next()?;
        for (node, other) in orders {
            if let Some(at) = order.differs(other) {
                return Some(format!(
                    "nodes {first} and {node} disagree about ring {ring}: they differ before message {at}"
                ));
            }
        }
    }
    None
}

fn missing_in_rings(results: &[Measured]) -> Option<String> {
    for ring in rings(results) {
        let submitted = results
            .iter()
            .filter_map(|result| result.submitted_to.get(&ring));
        let submitted: u64 = submitted.sum();
        for (node, result) in (1..).zip(results) {
            let delivered = result.orders.get(&ring).map(super::order::Order::count);
            if let Some(delivered) = delivered.filter(|delivered| *delivered != submitted) {
                return Some(format!(
                    "not complete: {submitted} messages were submitted to ring {ring}, and node {node} delivered {delivered}; was \
                     the load more than the rings take?"
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that submitted so many messages, and delivered these of node 1.
    fn node(submitted: u64, delivered: &[u64]) -> Measured {
        let mut node = Measured {
            submitted_ever: submitted,
            ..Measured::default()
        };
        delivered
            .iter()
            .for_each(|counter| node.order.note(1, *counter));
        node
    }

    #[test]
    fn the_same_everything_everywhere_is_well() {
        let verdict = Verdict::new(&[node(2, &[1, 2]), node(0, &[1, 2])]);
        assert!(verdict.identical && verdict.complete);
        assert_eq!(verdict.failure, None);
    }

    #[test]
    fn a_node_that_lacks_a_message_is_named() {
        let verdict = Verdict::new(&[node(2, &[1, 2]), node(0, &[1])]);
        assert!(verdict.identical && !verdict.complete);
        let failure = verdict.failure.unwrap();
        assert!(failure.contains("2 messages were submitted"), "{failure}");
        assert!(failure.contains("node 2 delivered 1"), "{failure}");
    }

    #[test]
    fn a_message_that_nobody_submitted_is_no_completeness() {
        let verdict = Verdict::new(&[node(1, &[1, 2]), node(0, &[1, 2])]);
        assert!(!verdict.complete);
    }

    #[test]
    fn another_order_is_worse_than_a_missing_message() {
        let verdict = Verdict::new(&[node(3, &[1, 2]), node(0, &[2, 1])]);
        assert!(!verdict.identical && !verdict.complete);
        let failure = verdict.failure.unwrap();
        assert!(failure.contains("nodes 1 and 2 differ"), "{failure}");
    }

    #[test]
    fn garbled_contents_are_not_the_same() {
        let mut garbled = node(0, &[1]);
        garbled.garbled = 1;
        let verdict = Verdict::new(&[node(1, &[1]), garbled]);
        assert!(!verdict.identical);
        assert!(verdict.failure.unwrap().contains("node 2 garbled"));
    }
}
