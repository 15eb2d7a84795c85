//! The report of `rota bench` as text.

use std::fmt;

use super::{BenchReport, Point, Setting};
use crate::hist::Summary;
use crate::host::Host;
use crate::options::Load;

impl BenchReport {
    fn cpu(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ns, percent) = (self.cpu_ns_per_delivery, self.cpu_percent_per_node);
        if !self.setting.connect.is_empty() {
            let client = self.client_cpu_ns_per_delivery.unwrap_or(0.0);
            return writeln!(f, "  CPU         {client:10.0} ns a delivery, clients only");
        }
        if self.messages > 0 {
            writeln!(
                f,
                "  CPU         {ns:10.0} ns a delivery, {percent:.2} % of a core a node"
            )?;
            if let Some(percent) = self.cpu_percent_coordinator {
                writeln!(f, "  coordinator {percent:10.2} % of a core")?;
            }
            if let Some(client) = self.client_cpu_ns_per_delivery {
                let us = self.cpu_us_per_message;
                writeln!(
                    f,
                    "  CPU         {us:10.2} us an ordered message, all daemons; clients {client:.0} ns a delivery"
                )?;
            }
        } else {
            writeln!(f, "  CPU         {percent:10.3} % of a core a node, idle")?;
        }
        Ok(())
    }
}

impl BenchReport {
    /// Writes the settings of the engine and of the load.
    fn setting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(storage) = self.setting.storage {
            let numbers: Vec<String> = self.setting.acceptors.iter().map(u16::to_string).collect();
            let of = if numbers.is_empty() {
                ""
            } else {
                ", of nodes "
            };
            let each = if self.setting.instance_per_message {
                ", an instance for each message"
            } else {
                ""
            };
            writeln!(f, "  votes: {storage}{of}{}{each}", numbers.join(", "))?;
        }
        if self.setting.slow > 1 {
            writeln!(
                f,
                "  slow motion: links and hops {} times slower, and times and rates as if they were not",
                self.setting.slow
            )?;
        }
        if !self.setting.events.is_empty() {
            writeln!(f, "  events: {}", self.setting.events.join(", "))?;
        }
        if let Load::Outstanding(count) = self.setting.load {
            writeln!(
                f,
                "  load: {count} messages under way in all, a closed loop"
            )?;
        }
        if let Some([personal, accelerated, global]) = self.setting.windows {
            writeln!(
                f,
                "  windows: personal {personal}, accelerated {accelerated}, global {global}"
            )?;
        }
        Ok(())
    }
}

impl BenchReport {
    fn series(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.series.is_empty() {
            return Ok(());
        }
        writeln!(f, "  over time, from the start of the load on:")?;
        for Point {
            at_s,
            mbps,
            mean_us,
            max_us,
        } in &self.series
        {
            writeln!(
                f,
                "    {at_s:7.2} s {mbps:10.1} Mbit/s  {mean_us:10.1} us mean, {max_us:.1} max"
            )?;
        }
        Ok(())
    }
}

impl BenchReport {
    fn order(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let no = |is: bool| if is { "" } else { "NOT " };
        let (identical, complete) = (no(self.identical), no(self.complete));
        writeln!(
            f,
            "  order       {identical}identical at all nodes, {complete}complete"
        )
    }
}

impl BenchReport {
    fn host(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Host {
            foreign_cpu_percent: foreign,
            stolen_cpu_percent: stolen,
            ..
        } = self.host;
        writeln!(
            f,
            "  host        {foreign:10.1} % of all processors used by others, {stolen:.1} % stolen"
        )
    }

    fn latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        latency(f, "latency, us", self.latency_us)?;
        latency(f, "at sender  ", self.latency_sender_us)?;
        latency(f, "slowest    ", self.latency_slowest_us)?;
        latency(f, "first msg  ", self.first_message_us)?;
        latency(f, "sender late", self.generator_late_us)
    }
}

impl fmt::Display for BenchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setting {
            engine,
            mode,
            nodes,
            senders,
            size_bytes,
            service,
            ..
        } = &self.setting;
        let sealed = if self.setting.sealed { ", sealed" } else { "" };
        writeln!(
            f,
            "{engine}, {mode}: {nodes} nodes, {senders} sending {size_bytes} bytes, {service}{sealed}"
        )?;
        self.setting(f)?;
        writeln!(f, "  {}", self.testbed)?;
        writeln!(
            f,
            "  goodput     {:10.1} Mbit/s at each node, own included",
            self.goodput_mbps
        )?;
        writeln!(
            f,
            "  received    {:10.1} Mbit/s at each node, without own",
            self.received_mbps
        )?;
        writeln!(
            f,
            "  messages    {:10} in {:.2} s",
            self.messages, self.seconds
        )?;
        if let Some(mbps) = self.tcp_mbps {
            writeln!(
                f,
                "  beside it   {mbps:10.1} Mbit/s by TCP from node 1 to node 2"
            )?;
        }
        if let Some(offered) = self.setting.offered_mbps.filter(|offered| *offered > 0.0) {
            writeln!(
                f,
                "  offered     {offered:10.1} Mbit/s, {:.1} were taken",
                self.submitted_mbps
            )?;
        }
        self.latencies(f)?;
        writeln!(
            f,
            "  ring        {:10} rotations, {} retransmissions, {} reconfigurations",
            self.token_rotations, self.retransmissions, self.reconfigurations
        )?;
        self.cpu(f)?;
        self.series(f)?;
        self.host(f)?;
        self.order(f)
    }
}

fn latency(f: &mut fmt::Formatter<'_>, name: &str, summary: Option<Summary>) -> fmt::Result {
    let Some(us) = summary else { return Ok(()) };
    let Summary {
        mean,
        p50,
        p90,
        p99,
        p999,
        max,
        worst5_mean,
    } = us;
    writeln!(
        f,
        "  {name} {mean:10.1} mean, {p50:.1} p50, {p90:.1} p90, {p99:.1} p99, {p999:.1} p99.9, {max:.1} max, {worst5_mean:.1} worst 5 %"
    )
}
