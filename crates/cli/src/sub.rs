//! `rota sub`: what members of groups are told, line by line, or as JSON, or as it is.

use std::fmt::{self, Write as _};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::process::ExitCode;

use rota_client::{
    Cause, Client, ClientName, ConnectionLost, Event, GroupName, RequestError, View,
};

use crate::client::{ClientOptions, Failure};
use crate::format::{self, Format};
use crate::say::{self, complain};

/// Options of `rota sub`.
#[derive(Clone, Debug, clap::Args)]
pub struct SubOptions {
    /// Groups to join
    #[arg(required = true, value_name = "GROUP", value_parser = GroupName::new)]
    groups: Vec<GroupName>,
    /// How messages are printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Lines)]
    format: Format,
    /// Also print who is in the groups: lines that begin with "# ", or objects
    #[arg(long)]
    members: bool,
    /// What to be called; the daemon invents a name otherwise
    #[arg(long, value_name = "NAME", value_parser = ClientName::new)]
    name: Option<ClientName>,
    /// End after so many messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    client: ClientOptions,
}

/// Joins the groups and prints what comes.
pub fn main(options: &SubOptions) -> ExitCode {
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.exit(),
    }
}

fn run(options: &SubOptions) -> Result<(), Failure> {
    if options.members && options.format == Format::Raw {
        let what =
            "--members says something beside the messages, for which --format raw has no place";
        return Err(Failure::misused(what));
    }
    let mut builder = Client::builder().membership(options.members);
    if let Some(name) = &options.name {
        builder = builder.name(name.as_str());
    }
    let mut client = options.client.connect(&builder)?;
    let mut printer = Printer {
        out: BufWriter::new(io::stdout().lock()),
        left: options.count,
        format: options.format,
    };
    for group in &options.groups {
        if printer.join(&mut client, group)?.is_none() {
            return close(client);
        }
    }
    while printer.next(&mut client)?.is_some() {}
    close(client)
}

fn close(client: Client) -> Result<(), Failure> {
    client.close().map_err(Failure::failed)
}

/// Prints events until there is nothing to print for.
struct Printer {
    out: BufWriter<StdoutLock<'static>>,
    /// Messages that are still wanted.
    left: Option<u64>,
    format: Format,
}

impl Printer {
    /// Joins, and prints meanwhile what other groups bring, should it be too much to keep.
    fn join(&mut self, client: &mut Client, group: &GroupName) -> Result<Option<()>, Failure> {
        loop {
            match client.join(group.as_str()) {
                Ok(()) => return Ok(Some(())),
                Err(RequestError::Unread { .. }) => {
                    if self.next(client)?.is_none() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(Failure::failed(format!("{group}: {error}"))),
            }
        }
    }

    /// Waits for an event, and prints it; `None` when no more are wanted.
    fn next(&mut self, client: &mut Client) -> Result<Option<()>, Failure> {
        let event = match client.try_recv() {
            Ok(Some(event)) => Ok(event),
            Ok(None) => {
                // A reader sees all there is, before there is more.
                if let Err(error) = self.out.flush() {
                    say::failed(&error);
                    return Ok(None);
                }
                client.recv()
            }
            Err(lost) => Err(lost),
        };
        let event = event.map_err(|lost| self.lost(&lost))?;
        if let Event::SelfLeave { group } = &event {
            // It has not asked for that.
            let _ = self.out.flush();
            let text =
                format!("{group}: the daemon's rules do not let this client be there any more");
            return Err(Failure::failed(text));
        }
        // The reader has gone, or cannot take it: no more is wanted.
        Ok(self.print(&event).unwrap_or_else(|error| {
            say::failed(&error);
            None
        }))
    }

    fn lost(&mut self, lost: &ConnectionLost) -> Failure {
        let _ = self.out.flush();
        Failure::failed(lost)
    }

    fn print(&mut self, event: &Event) -> io::Result<Option<()>> {
        match (self.format, event) {
            (Format::Json, event) => {
                if let Some(line) = format::line(event) {
                    writeln!(self.out, "{line}")?;
                }
            }
            (Format::Raw, Event::Message(message)) => self.out.write_all(&message.payload)?,
            (_, event) => self.print_lines(event)?,
        }
        if let (Event::Message(_), Some(left)) = (event, &mut self.left) {
            *left -= 1;
            if *left == 0 {
                self.out.flush()?;
                return Ok(None);
            }
        }
        Ok(Some(()))
    }

    fn print_lines(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::Message(message) => {
                self.out.write_all(&message.payload)?;
                self.out.write_all(b"\n")?;
            }
            Event::View(view) => writeln!(self.out, "# {}", Line(view))?,
            Event::Transitional { group, view } => {
                writeln!(self.out, "# transitional {group} {view}")?;
            }
            Event::Excluded => {
                complain(&"the daemon is excluded: until it is back, nothing comes");
            }
            Event::Included { missed: false } => {
                complain(&"the daemon is back: nothing is missing")
            }
            Event::Included { missed: true } => {
                complain(&"the daemon is back: what was delivered meanwhile is missing");
            }
            Event::Skipped {
                messages, bytes, ..
            } => complain(&format_args!(
                "this client reads too slowly, and has missed {messages} messages of {bytes} bytes"
            )),
            _ => {}
        }
        Ok(())
    }
}

/// A view as words: `view GROUP ID CAUSE`, then `members` and their names, then by the network `together`
/// and the names of each set in braces.
struct Line<'a>(&'a View);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(view) = self;
        write!(f, "view {} {} ", view.group, view.id)?;
        match &view.cause {
            Cause::Join(who) => write!(f, "join {who}")?,
            Cause::Leave(who) => write!(f, "leave {who}")?,
            Cause::Disconnect(who) => write!(f, "disconnect {who}")?,
            Cause::Network(_) => f.write_str("network")?,
        }
        f.write_str(" members")?;
        for member in &view.members {
            write!(f, " {member}")?;
        }
        let Cause::Network(sets) = &view.cause else {
            return Ok(());
        };
        f.write_str(" together")?;
        for set in sets {
            f.write_str(" {")?;
            for (at, member) in set.iter().enumerate() {
                if at > 0 {
                    f.write_char(' ')?;
                }
                if let Some(member) = view.members.get(*member as usize) {
                    member.fmt(f)?;
                }
            }
            f.write_char('}')?;
        }
        Ok(())
    }
}
