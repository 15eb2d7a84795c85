//! Figure 1 of the report, alive: three participants, five messages a visit, and in the accelerated ring three of them
//! behind the token; from a simulated run of each protocol.

use std::fmt::Write as _;

use rota_core::contract::Service;
use rota_ring::Protocol;
use rota_wire::{Generated, Load, Passage, Span};

use crate::calibration::Calibration;
use crate::case::{Case, Network, System};

/// The time that is shown, in nanoseconds.
const SHOWN: u64 = 1_200_000;
const SCRIPT: &str = include_str!("figure.js");

fn passages(calibration: &Calibration, protocol: Protocol) -> Vec<Passage> {
    let case = Case {
        network: Network::OneGig,
        system: System::Library,
        protocol,
        nodes: 3,
        senders: 3,
        payload: 1350,
        service: Service::Agreed,
        windows: Some((5, 3)),
        loss: None,
        is_in_bursts: false,
    };
    let mut setup = case.setup(calibration, Load::Visit(Generated::AtReceipt), 1);
    setup.span = Span {
        warm_up: 20_000_000,
        measured: 2 * SHOWN,
    };
    let (_, tape) = rota_wire::run_taped(&setup);
    let is_shown = |passage: &&Passage| passage.leaves < SHOWN;
    tape.passages.iter().filter(is_shown).copied().collect()
}

/// The figure: its data and its script.
pub fn figure(calibration: &Calibration) -> String {
    let mut data = String::from("[");
    for (at, (protocol, title)) in [
        (Protocol::Original, "original"),
        (Protocol::Accelerated, "accelerated"),
    ]
    .into_iter()
    .enumerate()
    {
        if at > 0 {
            data.push(',');
        }
        let _ = write!(data, "{{\"title\":\"{title}\",\"passages\":[");
        for (at, passage) in passages(calibration, protocol).iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(
                data,
                "{comma}[{},{},{},{},{},{},{},{}]",
                passage.from,
                passage.to,
                u8::from(passage.is_token),
                passage.number,
                passage.leaves,
                passage.crosses,
                passage.forwarded,
                passage.arrives
            );
        }
        data.push_str("]}");
    }
    data.push(']');
    format!(
        "<div class=\"alive\"><div id=\"panels\"></div>\
         <p class=\"controls\"><button id=\"play\" type=\"button\">play</button> \
         <button id=\"step\" type=\"button\">next event</button> \
         <input id=\"when\" type=\"range\" min=\"0\" max=\"{SHOWN}\" value=\"0\" step=\"500\" aria-label=\"time\"> \
         <output id=\"clock\">0 us</output></p></div>\
         <script type=\"application/json\" id=\"tapes\">{data}</script>\n<script>\n{SCRIPT}</script>"
    )
}
