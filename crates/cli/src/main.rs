//! The `rota` binary: totally ordered multicast for many machines.
//!
//! Each command is a module. Exit status: 0 as hoped, 1 a check failed, 2 wrong use.

mod ask;
mod bench;
mod check;
mod client;
mod config;
mod daemon;
mod demo;
mod doctor;
mod explore_paxos;
mod format;
mod groups;
mod init;
mod key;
mod kv;
mod live;
mod log;
mod logs;
mod manual;
mod member;
mod model;
mod notify;
mod publish;
mod reload;
mod reproduce;
mod say;
mod service;
mod sim;
mod status;
mod storage;
mod sub;
mod top;
mod which;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser, Subcommand};

/// Totally ordered multicast on a token ring.
#[derive(Debug, Parser)]
#[command(version, after_help = "Example:\n  rota demo --nodes 4")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a local cluster of real daemons, each with a client, and check that all deliver the same
    #[command(
        after_help = "Example:\n  seq 100000 | rota demo --nodes 4 --input - --output out\n\n\
        The digest is the SHA-256 of all payloads in the order of delivery, each followed by a \
        newline (the file\nnode-N.out). Complete: count, bytes and the sum of 128-bit hashes of \
        the delivered messages are those of the\ninput, whatever the order.\n\n\
        Exit status: 0 if all nodes delivered the same and everything, 1 if not, 2 for wrong use."
    )]
    Demo(demo::Options),
    /// Write the configuration and the key of a new cluster
    #[command(
        after_help = "Examples:\n  rota init --hosts left=10.0.0.1,right=10.0.0.2,third=10.0.0.3\n  \
        rota init --hosts 10.0.0.1,10.0.0.2,10.0.0.3 --engine u-ring-paxos --output ./new\n  \
        rota init --hosts 127.0.0.1,127.0.0.1,127.0.0.1 --output /tmp/rota --state-dir /tmp --run-dir /tmp\n\n\
        Both files are for all hosts, the key for the user that daemons run as. Neither is written over.\n\n\
        Exit status: 0 if both were written, 2 if not."
    )]
    Init(init::InitOptions),
    /// Run the daemon of this host: a node of the ring that serves local clients
    #[command(after_help = "Example:\n  rota daemon --config rota.toml --node 1\n\n\
        It runs until it gets SIGTERM or SIGINT, and then leaves the ring. On SIGHUP it reads its keys \
        and settings again\n(see rota reload). The log goes to standard error.\n\nExit status: 0 if it was stopped, 1 if it failed, 2 if it could not start.")]
    Daemon(daemon::DaemonOptions),
    /// Join groups, and print the messages, a line each
    #[command(after_help = "Examples:\n  rota sub orders\n  \
        rota sub orders trades --members --name alice --socket /run/rota/rota.sock\n  \
        rota sub orders --format json\n  \
        rota sub orders --socket tls:n1.example:4805 --ca ca.pem --certificate a.pem --key a.key\n\n\
        With --format json each line is an object: {\"event\":\"message\",\"from\":...,\"to\":[...],\"service\":...,\"kind\":...,\n  \
        and \"payload\" where it is text, \"payload_base64\" where not}; events of other kinds have another \"event\".\n\
        With --members there are lines that begin with \"# \":\n  \
        # view GROUP ID CAUSE members NAME...   CAUSE: join, leave or disconnect and a NAME, or network\n  \
        # view GROUP ID network members NAME... together {NAME...}...   those of one set came together\n  \
        # transitional GROUP ID   the view that ends\n\n\
        It runs until it is killed or has --count messages.\n\n\
        Exit status: 0 if it got what it was to get, 1 if there is no connection or it was lost, 2 for \
        wrong use.")]
    Sub(sub::SubOptions),
    /// Send each line of standard input to groups
    #[command(
        after_help = "Examples:\n  seq 1000 | rota pub orders trades --service safe\n  \
        rota pub files --format raw < picture.png\n  \
        rota sub orders --format json | rota pub copies --format json\n\n\
        With --format json each line is an object with \"payload\" or \"payload_base64\"; \"service\" and \"kind\" are optional, \
        and\nwhat else rota sub prints does not matter. All goes to the groups of the command line.\n\
        It ends when the daemon has taken all lines, and waits while the daemon has no room for more.\n\n\
        Exit status: 0 if the daemon has taken everything, 1 if not, 2 for wrong use."
    )]
    Pub(publish::PubOptions),
    /// List groups, and how many clients are in each
    #[command(
        after_help = "Example:\n  rota groups --socket /run/rota/rota.sock --json\n\n\
        A client sees only groups that it may join or send to.\n\n\
        Exit status: 0 if the daemon has answered, 1 if not, 2 for wrong use."
    )]
    Groups(groups::GroupsOptions),
    /// List the clients that are in a group
    #[command(
        after_help = "Example:\n  rota members orders --socket /run/rota/rota.sock --json\n\n\
        Exit status: 0 if the daemon has answered, 1 if not, 2 for wrong use."
    )]
    Members(groups::MembersOptions),
    /// Say how daemons are: ring, groups and clients; or what is wrong, in words
    #[command(after_help = "Examples:\n  rota status\n  \
        rota status --socket /run/rota/admin.sock --json\n  \
        rota status --explain --socket /run/rota/admin.sock --socket http://10.0.0.2:9464\n  \
        rota status --explain --cluster\n\n\
        With --explain it tells a slow node from a lossy link from a client that does not read; the more of \
        the daemons\nare asked, the more it can tell.\n\n\
        Exit status: 0 if all have answered (and nothing is wrong, with --explain), 1 if not, 2 for wrong use.")]
    Status(status::StatusOptions),
    /// Show what daemons do, again and again
    #[command(
        after_help = "Examples:\n  rota top\n  rota top --config rota.toml --once\n  rota top --once --json\n\n\
        On a terminal: q ends it, p stops and goes on, up and down choose the daemon whose history is shown, + and - change the \
        pace,\nc forgets what was.\n\n\
        round: how long the token is away; held, token: how long the node has it, and what part of the time;\n\
        lost: packets that came only when asked for, a second; waits: packets and requests that wait for the ring.\n\n\
        Exit status: with --once 0 if a daemon has answered, 1 if none has; 2 for wrong use."
    )]
    Top(top::TopOptions),
    /// Look at the hosts of a configuration and the network between them, before daemons are started
    #[command(
        after_help = "Example, on all hosts at the same time:\n  rota doctor --config rota.toml\n\n\
        It sends what daemons would send, from where they would, and says what does not arrive, how wide the paths are, how far \
        the\nclocks are apart, whether hosts stand still or have their time stolen, and what buffers and descriptors there are. Its\n\
        datagrams are not sealed, and it answers only nodes of the configuration.\n\n\
        Exit status: 0 if all is well, 1 if something is wrong, 2 for wrong use, or where a daemon runs."
    )]
    Doctor(doctor::DoctorOptions),
    /// List the nodes of a running cluster, add one, remove one, or give one another address
    #[command(
        after_help = "Examples:\n  rota member list\n  rota member add 4 10.0.0.4 --name four\n  \
        rota member replace 3 10.0.0.33\n  rota member remove 4\n\n\
        Any daemon of the cluster is asked, by the user that it runs as; all daemons keep the change in their `state_dir`.\n\n\
        Exit status: 0 if it was done, 1 if not, 2 for wrong use."
    )]
    Member {
        #[command(subcommand)]
        command: member::Member,
    },
    /// Have a daemon read its keys, certificates, rules and other settings again
    #[command(
        after_help = "Example:\n  rota reload --socket /run/rota/admin.sock\n\n\
        It says what has changed, and what needs a restart. The daemon has to run as the same user on the same \
        host.\n\nExit status: 0 if it was done, 1 if nothing was changed, 2 for wrong use."
    )]
    Reload(reload::ReloadOptions),
    /// Load a cluster that this starts, and measure it
    #[command(
        after_help = "Examples:\n  rota bench --nodes 4 --size 1350 --rate max --duration 5s\n  \
        rota bench --rate 300mbit --service safe --json\n  \
        rota bench --engine u-ring-paxos --storage sync --nodes 3 --size 1000 --outstanding 200\n  rota bench raw --nodes 4\n\n\
        Exit status: 0 if all nodes delivered the same order and everything that was submitted, 1 if \
        not (the report\nis printed all the same), 2 for wrong use."
    )]
    Bench(Box<bench::Bench>),
    /// Run an engine in virtual time, under faults drawn from a seed
    Sim {
        #[command(subcommand)]
        command: sim::Sim,
    },
    /// Reckon a ring: rotation, throughput and delays by the thesis's model, both protocols side by side
    #[command(
        after_help = "Examples:\n  rota model --nodes 8 --personal-window 30 --accelerated-window 20 --burst-us 356.25 --hop-us 100\n  \
        rota model --load 400mbit --hop-us 78\n  rota model --bounded 11.65\n  \
        rota model --sweep accelerated-window --output model\n  rota model --check\n\n\
        B, the time to send a full window and the token, and P, from sending to receipt, are a gigabit network's if they are \
        not given.\ndocs/protocols/model.md has the formulas.\n\nExit status: 0 if it was reckoned, 1 if a file could not be written, 2 for wrong use."
    )]
    Model(model::ModelOptions),
    /// Check recorded traces: whether what the processes saw is what the engine promises
    #[command(
        after_help = "Examples:\n  rota check node-1.jsonl node-2.jsonl node-3.jsonl --json\n  \
        rota check --order uniform --quiescent node-*.jsonl\n\n\
        Each property has a line with the number of cases in which it had something to say. \
        A process whose trace\nends without crash or leave may have failed, unless the trace or \
        --quiescent says that all was at rest.\n\n\
        Exit status: 0 if all properties hold, 1 if one is violated, 2 for wrong use or a file that \
        is no trace."
    )]
    Check(check::CheckOptions),
    /// A key-value store in partitions: one machine to its users, spoken to in Redis' protocol
    Kv {
        #[command(subcommand)]
        command: kv::Kv,
    },
    /// Shared logs with one order across them, spoken to as Redis' streams
    Log {
        #[command(subcommand)]
        command: logs::Logs,
    },
    /// Make and change the key file of a cluster
    #[command(
        after_help = "Examples:\n  rota key new cluster.key\n  rota key add cluster.key\n  \
        rota key use cluster.key 2\n  rota key remove cluster.key 1\n\n\
        The file is for all nodes, and for its owner only. A running daemon reads it again on SIGHUP.\n\n\
        Exit status: 0 if it was done, 2 if not."
    )]
    Key {
        #[command(subcommand)]
        command: key::Key,
    },
    /// Look at what nodes keep on disk, and go on from what is left of it
    Storage {
        #[command(subcommand)]
        command: storage::Storage,
    },
    /// Look at configuration files
    #[command(after_help = "Example:\n  rota config check rota.toml")]
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Print the completions of this command for a shell
    #[command(
        after_help = "Examples:\n  rota completions bash > /etc/bash_completion.d/rota\n  \
        rota completions zsh > ~/.zfunc/_rota\n\nExit status: 0, or 1 if they could not be printed."
    )]
    Completions(manual::CompletionsOptions),
    /// Write the manual pages of all commands
    #[command(
        after_help = "Example:\n  rota man --output /usr/local/share/man/man1\n\n\
        Exit status: 0 if they were written, 1 if not."
    )]
    Man(manual::ManOptions),
    #[command(hide = true)]
    DemoNode,
    #[command(hide = true)]
    BenchNode,
    #[command(hide = true)]
    RawNode,
    #[command(hide = true)]
    SharesNode,
    #[command(hide = true)]
    LiveNode,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Check a file, and print every effective and derived value
    #[command(after_help = "Example:\n  rota config check rota.toml --node 1\n\n\
        Exit status: 0 if a cluster can run with it, 2 if not.")]
    Check(config::CheckOptions),
    /// Turn Spread's configuration into one of Rota
    #[command(
        name = "from-spread",
        after_help = "Example:\n  rota config from-spread /etc/spread.conf > rota.toml\n\n\
        What does not come along is said on standard error.\n\n\
        Exit status: 0 if it was turned, 2 if it is no configuration of Spread's."
    )]
    FromSpread(config::FromSpreadOptions),
}

/// An error that suggests no command that is not for people.
fn without_hidden(mut error: clap::Error) -> clap::Error {
    let command = Cli::command();
    let is_hidden = |name: &str| {
        let mut commands = command.get_subcommands();
        commands.any(|command| command.get_name() == name && command.is_hide_set())
    };
    let names: Option<Vec<String>> = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => Some(names.clone()),
        Some(ContextValue::String(name)) => Some(vec![name.clone()]),
        _ => None,
    };
    if let Some(mut names) = names {
        names.retain(|name| !is_hidden(name));
        let names = match names.is_empty() {
            true => ContextValue::None,
            false => ContextValue::Strings(names),
        };
        error.insert(ContextKind::SuggestedSubcommand, names);
    }
    error
}

fn main() -> ExitCode {
    rota_net::keep_large_buffers();
    let cli = Cli::try_parse().unwrap_or_else(|error| without_hidden(error).exit());
    let code = match cli.command {
        Command::Demo(options) => demo::main(&options),
        Command::Init(options) => init::main(&options),
        Command::Daemon(options) => daemon::main(&options),
        Command::Sub(options) => sub::main(&options),
        Command::Pub(options) => publish::main(&options),
        Command::Groups(options) => groups::groups(&options),
        Command::Members(options) => groups::members(&options),
        Command::Status(options) => status::main(&options),
        Command::Top(options) => top::main(&options),
        Command::Doctor(options) => doctor::main(&options),
        Command::Member { command } => member::main(&command),
        Command::Reload(options) => reload::main(&options),
        Command::Check(options) => check::main(&options),
        Command::Bench(bench) => bench::main(&bench),
        Command::Model(options) => model::main(&options),
        Command::Sim { command } => sim::main(&command),
        Command::Key { command } => key::main(&command),
        Command::Kv { command } => kv::main(&command),
        Command::Log { command } => logs::main(&command),
        Command::Storage { command } => storage::main(&command),
        Command::Config { command } => match command {
            ConfigCommand::Check(options) => config::check(&options),
            ConfigCommand::FromSpread(options) => config::from_spread(&options),
        },
        Command::Completions(options) => manual::completions(&Cli::command(), &options),
        Command::Man(options) => manual::pages(&Cli::command(), &options),
        Command::DemoNode => demo::node::main(),
        Command::BenchNode => rota_bench::bench_node_main(),
        Command::RawNode => rota_bench::raw_node_main(),
        Command::SharesNode => rota_bench::shares_node_main(),
        Command::LiveNode => live::main(),
    };
    say::ended(code)
}
