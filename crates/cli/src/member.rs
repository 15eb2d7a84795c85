//! `rota member`: the nodes of a running cluster, and changes of them.

use std::fmt::Display;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rota_daemon::{
    AcceptorStatus, DaemonConfig, MemberPlace, MemberReply, MemberRequest, MemberStatus,
    members_socket,
};

use crate::client::Failure;
use crate::say::{escaped, escaped_lines, print, print_json};

/// The time that a daemon may take: it gives a change up before.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, clap::Subcommand)]
pub enum Member {
    /// Say which nodes there are, where they are, and which are on the ring
    #[command(after_help = "Example:\n  rota member list --json\n\n\
        Exit status: 0 if the daemon has answered, 1 if not, 2 for wrong use.")]
    List(ListArgs),
    /// Add a node: then start its daemon, with a configuration that lists all nodes that there are
    #[command(after_help = "Example:\n  rota member add 4 10.0.0.4 --name four\n\n\
        Exit status: 0 if it was done, 1 if not, 2 for wrong use.")]
    Add(PlaceArgs),
    /// Remove a node: stop its daemon before
    #[command(after_help = "Example:\n  rota member remove 4\n\n\
        Exit status: 0 if it was done, 1 if not, 2 for wrong use.")]
    Remove(RemoveArgs),
    /// Give a node, whose daemon does not run, another address: then start its daemon there
    #[command(after_help = "Example:\n  rota member replace 3 10.0.0.33\n\n\
        Exit status: 0 if it was done, 1 if not, 2 for wrong use.")]
    Replace(PlaceArgs),
    /// Have a node vote, in place of another acceptor or as one more, where the engine has acceptors
    #[command(after_help = "Example:\n  rota member vote 4 --instead-of 3\n\n\
        Exit status: 0 if it was done, 1 if not, 2 for wrong use.")]
    Vote(VoteArgs),
    /// Have a node vote no more: it stays on the ring
    #[command(after_help = "Example:\n  rota member unvote 4\n\n\
        Exit status: 0 if it was done, 1 if not, 2 for wrong use.")]
    Unvote(UnvoteArgs),
}

#[derive(Clone, Debug, clap::Args)]
pub struct ListArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct DaemonArgs {
    /// The admin socket of any daemon of the cluster, on this host
    #[arg(long, visible_alias = "admin", value_name = "PATH", default_value_os_t = DaemonConfig::default().admin)]
    socket: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub struct PlaceArgs {
    /// The number of the node
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    id: u16,
    /// Its address, or the name of its host
    address: String,
    /// The name of its daemon for clients
    #[arg(long)]
    name: Option<String>,
    /// Its UDP port for data [default: as the others have it, or as it had it]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    data_port: Option<u16>,
    /// Its UDP port for tokens [default: as the others have it, or as it had it]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    token_port: Option<u16>,
    /// Also where at most half of the listed nodes are on the ring
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct RemoveArgs {
    /// The number of the node
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    id: u16,
    /// Also if it is on the ring, or at most half of the listed nodes are
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct VoteArgs {
    /// The number of the node
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    id: u16,
    /// The acceptor that votes no more when this one does [default: it is one more]
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(u16).range(1..))]
    instead_of: Option<u16>,
    /// Also where no majority of those that are to vote then is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

#[derive(Clone, Debug, clap::Args)]
pub struct UnvoteArgs {
    /// The number of the node
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    id: u16,
    /// Also where no majority of those that are to vote then is there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    daemon: DaemonArgs,
}

impl PlaceArgs {
    fn place(&self) -> MemberPlace {
        MemberPlace {
            id: self.id,
            address: self.address.clone(),
            name: self.name.clone(),
            data_port: self.data_port,
            token_port: self.token_port,
            force: self.force,
        }
    }
}

/// Asks a daemon, and says what came of it.
pub fn main(member: &Member) -> ExitCode {
    let (daemon, request) = match member {
        Member::List(args) => (&args.daemon, MemberRequest::List),
        Member::Add(args) => (&args.daemon, MemberRequest::Add(args.place())),
        Member::Remove(args) => {
            let (id, force) = (args.id, args.force);
            (&args.daemon, MemberRequest::Remove { id, force })
        }
        Member::Replace(args) => (&args.daemon, MemberRequest::Replace(args.place())),
        Member::Vote(args) => {
            let (id, instead_of, force) = (args.id, args.instead_of, args.force);
            let request = MemberRequest::Vote {
                id,
                instead_of,
                force,
            };
            (&args.daemon, request)
        }
        Member::Unvote(args) => {
            let (id, force) = (args.id, args.force);
            (&args.daemon, MemberRequest::Unvote { id, force })
        }
    };
    let reply = match ask(&daemon.socket, &request) {
        Ok(reply) => reply,
        Err(failure) => return failure.exit(),
    };
    if daemon.json {
        print_json(&reply);
    } else if !reply.done {
        return Failure::failed(escaped_lines(&reply.text)).exit();
    } else if request == MemberRequest::List {
        print(&shown(&reply));
    } else {
        print(&format!(
            "{}\n{}",
            escaped_lines(&reply.text),
            shown(&reply)
        ));
    }
    ExitCode::from(u8::from(!reply.done))
}

/// The daemon's answer.
fn ask(admin: &Path, request: &MemberRequest) -> Result<MemberReply, Failure> {
    let socket = members_socket(admin);
    let wrong = |what: &dyn Display| Failure::failed(format!("{}: {what}", socket.display()));
    let line = converse(&socket, request).map_err(|error| wrong(&silence(&error)))?;
    serde_json::from_str(&line).map_err(|_| wrong(&"not a daemon's answer"))
}

fn converse(socket: &Path, request: &MemberRequest) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

/// The words on a daemon that does not answer.
fn silence(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("it does not answer within {} s", PATIENCE.as_secs())
        }
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            format!("no daemon listens there: does it run on this host? ({error})")
        }
        ErrorKind::PermissionDenied => {
            format!("only the user that the daemon runs as, and root, may ask ({error})")
        }
        _ => error.to_string(),
    }
}

/// The nodes, one on a line.
fn shown(reply: &MemberReply) -> String {
    let mut text = match reply.number {
        0 => "the nodes of the configuration:".to_owned(),
        1 => "the nodes after 1 change:".to_owned(),
        number => format!("the nodes after {number} changes:"),
    };
    let row = |node| row(node, reply.acceptors.as_ref());
    let rows: Vec<[String; 4]> = reply.nodes.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    for [id, name, place, state] in &rows {
        let [a, b, c] = widths;
        text += &format!("\n  {id:>a$}  {name:b$}  {place:c$}  {state}");
    }
    text
}

fn row(node: &MemberStatus, acceptors: Option<&AcceptorStatus>) -> [String; 4] {
    let state = if node.on_ring { "on the ring" } else { "away" };
    let votes = acceptors.map(|all| (all.voting.contains(&node.id), all.listed.contains(&node.id)));
    let votes = match votes {
        Some((true, true)) => ", votes",
        Some((true, false)) => ", votes until others are ready",
        Some((false, true)) => ", is to vote and catches up",
        Some((false, false)) | None => "",
    };
    let address = escaped(&node.address);
    let place = format!("{address} {}/{}", node.data_port, node.token_port);
    [
        node.id.to_string(),
        node.name.as_ref().map(escaped).unwrap_or_default(),
        place,
        format!("{state}{votes}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_one_below_the_other() {
        let node = |id: u16, name: Option<&str>, address: &str, on_ring| MemberStatus {
            id,
            name: name.map(str::to_owned),
            address: address.to_owned(),
            data_port: 7701,
            token_port: 7702,
            on_ring,
        };
        let reply = MemberReply {
            number: 2,
            nodes: vec![
                node(1, Some("left"), "10.0.0.1", true),
                node(12, None, "rota-12.example", false),
            ],
            ..MemberReply::default()
        };
        let expected = [
            "the nodes after 2 changes:",
            "   1  left  10.0.0.1 7701/7702         on the ring",
            "  12        rota-12.example 7701/7702  away",
        ];
        assert_eq!(shown(&reply), expected.join("\n"));
    }

    #[test]
    fn it_is_said_who_votes() {
        let node = |id: u16| MemberStatus {
            id,
            address: "h".to_owned(),
            on_ring: true,
            ..MemberStatus::default()
        };
        let reply = MemberReply {
            nodes: (1..=4).map(node).collect(),
            acceptors: Some(AcceptorStatus {
                list: 1,
                listed: vec![1, 3],
                voting: vec![1, 2],
            }),
            ..MemberReply::default()
        };
        let expected = [
            "the nodes of the configuration:",
            "  1    h 0/0  on the ring, votes",
            "  2    h 0/0  on the ring, votes until others are ready",
            "  3    h 0/0  on the ring, is to vote and catches up",
            "  4    h 0/0  on the ring",
        ];
        assert_eq!(shown(&reply), expected.join("\n"));
    }
}
