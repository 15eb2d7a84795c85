//! `rota sim explore-paxos`: from the command line to the options of the search.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rota_core::mutants::Mutant;
use rota_sim::explore::paxos::{self, Budget, Checks, Options, PROPERTIES, Rules, Start};

use crate::say::{complain, print, print_json};

#[derive(Clone, Debug, clap::Args)]
pub struct PaxosArgs {
    /// Acceptors of the first configuration
    #[arg(long, value_name = "N", default_value_t = 3)]
    acceptors: usize,
    /// Nodes that are no acceptors at first
    #[arg(long, value_name = "N", default_value_t = 0)]
    spares: usize,
    /// So many nodes may coordinate
    #[arg(long, value_name = "N", default_value_t = 2)]
    coordinators: usize,
    /// Where from: the first configuration, its round, or behind a story
    #[arg(long, value_name = "NAME", default_value = "first", value_parser = starts())]
    start: Start,
    /// Steps in a row, at most
    #[arg(long, default_value_t = 1000)]
    depth: u32,
    /// More configurations
    #[arg(long, value_name = "N", default_value_t = 1)]
    stands: u8,
    /// Packets that are proposed
    #[arg(long, value_name = "N", default_value_t = 0)]
    values: u8,
    /// Proposals of several instances that carry nothing
    #[arg(long, value_name = "N", default_value_t = 0)]
    skips: u8,
    /// Of at most so many instances each
    #[arg(long, value_name = "N", default_value_t = 2)]
    span: u8,
    /// Processes that are restarted
    #[arg(long, value_name = "N", default_value_t = 0)]
    crashes: u8,
    /// Disks that are lost
    #[arg(long, value_name = "N", default_value_t = 0)]
    disks: u8,
    /// Acceptors that forget what all learners may still want
    #[arg(long, value_name = "N", default_value_t = 0)]
    trims: u8,
    /// Promises and answers that come later than what is said after them
    #[arg(long, value_name = "N", default_value_t = 0)]
    late: u8,
    /// Acceptors that are added, or taken away
    #[arg(long, value_name = "N", default_value_t = 0)]
    changes: u8,
    /// Nodes that hear a number of another cluster: no engine must let that happen
    #[arg(long, value_name = "N", default_value_t = 0)]
    foreign: u8,
    /// What is durable is a step of its own
    #[arg(long)]
    lazy: bool,
    /// Ask for any part of what is missing, not for the first only
    #[arg(long)]
    gaps: bool,
    /// Ask beyond what is known to be decided: no engine does
    #[arg(long)]
    ahead: bool,
    /// Proposals of a round may overtake each other, and come again
    #[arg(long)]
    reorder: bool,
    /// Let proposals of earlier rounds arrive at nodes that know of later ones: engines drop them
    #[arg(long)]
    loose: bool,
    /// What a coordinator says takes its time to its own acceptor as well: in engines it does not
    #[arg(long)]
    apart: bool,
    /// Rounds begin without a value of their own
    #[arg(long)]
    no_members: bool,
    /// Coordinators do not ask again for more than they did first
    #[arg(long)]
    ask_once: bool,
    /// Check only this, and what else is named so
    #[arg(long, value_name = "PROPERTY")]
    only: Vec<String>,
    /// End after this many distinct states
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    states: u64,
    /// Look from one of N states whether all learn everything
    #[arg(long, value_name = "N", default_value_t = 64)]
    close: u64,
    /// Go on behind what is found, for the shortest way to each property
    #[arg(long)]
    all: bool,
    /// A protocol bug to put in (only in builds with --features mutants)
    #[arg(long, value_name = "M", value_parser = mutant)]
    mutant: Option<Mutant>,
    /// Search the register by which a configuration is chosen: acceptors, candidates for coordinators,
    /// restarts, and as many more tries as there are configurations
    #[arg(long)]
    register: bool,
    /// Print what is checked, and end
    #[arg(long)]
    properties: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn starts() -> impl TypedValueParser<Value = Start> {
    PossibleValuesParser::new(Start::EACH.map(Start::name)).try_map(|name| name.parse::<Start>())
}

fn mutant(name: &str) -> Result<Mutant, String> {
    if !cfg!(feature = "mutants") {
        return Err("this build has no mutants: build with --features mutants".to_owned());
    }
    let mut all = Mutant::ALL.into_iter();
    let named = all.find(|mutant| mutant.to_string() == name);
    named.ok_or_else(|| format!("no mutant is called {name}"))
}

impl PaxosArgs {
    fn options(&self) -> Result<Options, String> {
        let only = self.only.iter().map(String::as_str);
        Ok(Options {
            rules: Rules {
                acceptors: self.acceptors,
                spares: self.spares,
                coordinators: self.coordinators,
                span: self.span,
                members: !self.no_members,
                lazy: self.lazy,
                gaps: self.gaps,
                ahead: self.ahead,
                reorder: self.reorder,
                loose: self.loose,
                apart: self.apart,
                ask_again: !self.ask_once,
                checks: match self.only.is_empty() {
                    true => Checks::ALL,
                    false => Checks::only(only)?,
                },
            },
            budget: Budget {
                stands: self.stands,
                values: self.values,
                skips: self.skips,
                crashes: self.crashes,
                disks: self.disks,
                trims: self.trims,
                late: self.late,
                changes: self.changes,
                foreign: self.foreign,
            },
            start: self.start,
            depth: self.depth,
            states: self.states,
            close: self.close,
            all: self.all,
            mutant: self.mutant,
        })
    }

    /// Searches as it was asked for.
    pub fn run(&self) -> ExitCode {
        if self.properties {
            for (name, says) in PROPERTIES {
                print(&format_args!("{name:<12}{says}"));
            }
            return ExitCode::SUCCESS;
        }
        let options = self.options();
        let checked = options.and_then(|options| options.check().map(|()| options));
        let options = match checked {
            Ok(options) => options,
            Err(error) => {
                complain(&error);
                return ExitCode::from(2);
            }
        };
        let report = match self.register {
            true => paxos::register::explore(&options, false),
            false => paxos::explore(&options),
        };
        if self.json {
            print_json(&report);
        } else {
            print(&report);
        }
        if report.violations.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}
