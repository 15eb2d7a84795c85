//! How fast the simulation is: eight nodes on 10 Gbit/s that send as much as they can, one virtual second.

use std::time::Instant;

use rota_core::contract::Service;
use rota_ring::{PriorityMethod, Protocol};
use rota_wire::{
    Costs, DiskPlan, EnginePlan, Generated, Interface, LinkPlan, Load, RingPlan, Setup, Span,
    WirePlan, run,
};

fn main() {
    let setup = Setup {
        nodes: 8,
        wire: WirePlan {
            rate: 10_000_000_000,
            path: 30_000,
            switch: 3_300,
            cut_through: true,
            port_bytes: 2_000_000,
            pool_bytes: None,
            card_bytes: 200_000,
            mtu: 1500,
            socket_bytes: 8_000_000,
            far: Vec::new(),
        },
        costs: Costs {
            interface: Interface::Single,
            send: 3_000,
            receive: 2_000,
            call: 0,
            send_byte: 0,
            receive_byte: 0,
            token: 10_000,
            submit: 0,
            deliver: 0,
            deliver_byte: 0,
            wake: 0,
            client: 0,
        },
        engine: EnginePlan::Ring(RingPlan {
            protocol: Protocol::Accelerated,
            personal_window: 100,
            accelerated_window: 100,
            method: PriorityMethod::First,
            datagram_bytes: 1422,
        }),
        load: Load::Visit(Generated::AtReceipt),
        senders: 8,
        message_bytes: 1350,
        service: Service::Agreed,
        loss: None,
        links: LinkPlan::default(),
        disk: DiskPlan::MEMORY,
        span: Span {
            warm_up: 0,
            measured: 1_000_000_000,
        },
        seed: 1,
    };
    let started = Instant::now();
    let run = run(&setup);
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{:.0} Mbit/s; {} deliveries in {:.2} virtual seconds took {seconds:.2} s: {:.2} million a second",
        run.goodput_mbps,
        run.all_deliveries,
        run.virtual_nanos as f64 / 1e9,
        run.all_deliveries as f64 / seconds / 1e6
    );
}
