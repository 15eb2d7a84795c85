//! `rota model`: the thesis's analytical model of both rings.

mod bounded;
mod sweep;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use clap::ValueEnum;
use rota_bench::BitRate;
use rota_model::{Bounds, Ring};

use crate::say::complain;

/// Options of `rota model`.
#[derive(Clone, Debug, clap::Args)]
pub struct ModelOptions {
    #[command(flatten)]
    ring: RingArgs,
    /// light: a message now and then; full: each visit sends a full window; or a rate like 400mbit of all nodes together
    #[arg(long, value_name = "light|full|RATE", default_value = "full")]
    load: LoadArg,
    /// Reckon safe delivery with the way that the thesis leaves out
    #[arg(long)]
    exact: bool,
    /// A rotation of the accelerated ring takes at least what a link and a processor need: microseconds of a packet on the wire, and of a processor
    /// to send one, to receive one, and for a rotation
    #[arg(long, value_name = "WIRE[,SEND,RECEIVE,TOKEN]", value_parser = bounded::parse)]
    bounded: Option<Bounds>,
    /// One window after the other: what comes of it
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["load", "exact", "check"])]
    sweep: Option<Sweep>,
    /// With --sweep, a folder for drawings and a table
    #[arg(long, value_name = "DIR", requires = "sweep")]
    output: Option<PathBuf>,
    /// What the thesis measured, beside the model
    #[arg(long, conflicts_with_all = ["load", "exact", "bounded"])]
    check: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, clap::Args)]
struct RingArgs {
    /// Participants
    #[arg(long, value_name = "N", default_value_t = 8)]
    nodes: u32,
    /// Messages of a visit, at most
    #[arg(long, value_name = "MESSAGES", default_value_t = 30)]
    personal_window: u32,
    /// So many of them may leave behind the token
    #[arg(long, value_name = "MESSAGES", default_value_t = 20)]
    accelerated_window: u32,
    /// B: microseconds to send a full personal window and the token
    #[arg(long, value_name = "US", default_value_t = 356.25)]
    burst_us: f64,
    /// P: microseconds from sending to receipt by all
    #[arg(long, value_name = "US", default_value_t = 100.0)]
    hop_us: f64,
    /// Payload of a message
    #[arg(long, value_name = "BYTES", default_value_t = 1350)]
    size: u32,
}

impl RingArgs {
    const fn ring(&self) -> Ring {
        Ring {
            nodes: self.nodes,
            personal_window: self.personal_window,
            accelerated_window: self.accelerated_window,
            message_bytes: self.size,
            burst_us: self.burst_us,
            hop_us: self.hop_us,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum LoadArg {
    Light,
    Full,
    Rate(BitRate),
}

impl FromStr for LoadArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "light" => Ok(Self::Light),
            "full" => Ok(Self::Full),
            rate => rate
                .parse()
                .map(Self::Rate)
                .map_err(|error| format!("light, full, or {error}")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Sweep {
    /// From none to all of the personal window, for several personal windows (thesis figs. 5.1 to 5.3)
    AcceleratedWindow,
}

/// Reckons.
pub fn main(options: &ModelOptions) -> ExitCode {
    let ring = options.ring.ring();
    if let Err(error) = ring.check() {
        complain(&error);
        return ExitCode::from(2);
    }
    if options.check {
        return table::check(options.json);
    }
    let bounds = options.bounded.unwrap_or_default();
    match options.sweep {
        Some(Sweep::AcceleratedWindow) => {
            let output = options.output.as_deref();
            sweep::main(&ring, &bounds, (output, options.json))
        }
        None => table::main(&ring, &bounds, (options.load, options.exact, options.json)),
    }
}
