//! Faults of links: packets from one node to another that vanish, and ports that are switched off.
//!
//! A cut is made where the bridge hands packets to the receiver's port, so multicast is cut with the
//! rest, each direction on its own, and nobody is told. Every kernel with `tc` can redirect, not every
//! one can drop: what is cut goes to an interface that leads nowhere.

use std::fmt::Write as _;

use super::{Testbed, netns};
use crate::error::BenchError;

/// The interface that leads nowhere.
const SINK: &str = "sink0";
/// Filters of streams have numbers behind those of nodes.
const STREAMS: usize = 1000;

impl Testbed {
    /// The namespace of the bridge.
    fn switch(&self) -> Result<String, BenchError> {
        let hint = "links can be cut between network namespaces only";
        let namespaces = self.namespaces.as_ref();
        let switch = namespaces.map(netns::Namespaces::switch);
        switch.ok_or_else(|| BenchError::Usage(hint.into()))
    }

    /// Makes ready for [`Testbed::cut`].
    ///
    /// # Errors
    /// Not a testbed of namespaces, or what `ip` or `tc` say.
    pub fn prepare_cuts(&self) -> Result<(), BenchError> {
        let switch = self.switch()?;
        let sink = format!(
            "link add name {SINK} type veth peer name sink1\n\
             link set {SINK} up\nlink set sink1 up\n"
        );
        netns::run_batch(&["ip", "-n", &switch], &sink)?;
        let mut ports = String::new();
        for node in 1..=self.nodes {
            // Writing to a string cannot fail.
            let _ = writeln!(ports, "qdisc add dev port{node} clsact");
        }
        netns::run_batch(&["tc", "-n", &switch], &ports)
    }

    /// From now on nothing gets from the first to the second of each pair of nodes; all at once, as far
    /// as that goes.
    ///
    /// # Errors
    /// What `tc` says, above all about a pair that is cut already.
    pub fn cut(&self, pairs: &[(usize, usize)]) -> Result<(), BenchError> {
        let switch = self.switch()?;
        let mut filters = String::new();
        for (from, to) in pairs {
            let address = netns::address(*from);
            let _ = writeln!(
                filters,
                "filter add dev port{to} egress protocol ip prio {from} u32 \
                 match ip src {address} action mirred egress redirect dev {SINK}"
            );
        }
        netns::run_batch(&["tc", "-n", &switch], &filters)
    }

    /// From now on nothing of TCP gets from the first to the second of each pair of nodes.
    ///
    /// # Errors
    /// What `tc` says, above all about a pair that is cut already.
    pub fn cut_streams(&self, pairs: &[(usize, usize)]) -> Result<(), BenchError> {
        let switch = self.switch()?;
        let mut filters = String::new();
        for (from, to) in pairs {
            let (address, prio) = (netns::address(*from), STREAMS + from);
            let _ = writeln!(
                filters,
                "filter add dev port{to} egress protocol ip prio {prio} u32 \
                 match ip src {address} match ip protocol 6 0xff action mirred egress redirect dev {SINK}"
            );
        }
        netns::run_batch(&["tc", "-n", &switch], &filters)
    }

    /// Undoes [`Testbed::cut_streams`].
    ///
    /// # Errors
    /// What `tc` says, above all about a pair that is not cut.
    pub fn mend_streams(&self, pairs: &[(usize, usize)]) -> Result<(), BenchError> {
        let wide = |(from, to): &(usize, usize)| (STREAMS + from, *to);
        self.mend(&pairs.iter().map(wide).collect::<Vec<_>>())
    }

    /// Undoes [`Testbed::cut`].
    ///
    /// # Errors
    /// What `tc` says, above all about a pair that is not cut.
    pub fn mend(&self, pairs: &[(usize, usize)]) -> Result<(), BenchError> {
        let switch = self.switch()?;
        let mut filters = String::new();
        for (from, to) in pairs {
            let _ = writeln!(
                filters,
                "filter del dev port{to} egress protocol ip prio {from}"
            );
        }
        netns::run_batch(&["tc", "-n", &switch], &filters)
    }

    /// Switches a node's port on the bridge on or off; the node sees its link go.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn set_port(&self, node: usize, up: bool) -> Result<(), BenchError> {
        let switch = self.switch()?;
        let state = if up { "up" } else { "down" };
        let line = format!("link set port{node} {state}\n");
        netns::run_batch(&["ip", "-n", &switch], &line)
    }
}
