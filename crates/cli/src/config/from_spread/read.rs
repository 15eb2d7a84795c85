//! Reads a `spread.conf`.

use std::net::IpAddr;

/// Spread's own port.
const PORT: u16 = 4803;

/// A daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Daemon {
    /// Its name.
    pub name: String,
    /// Its address, if the file has it.
    pub address: Option<IpAddr>,
    /// It has interfaces for parts of the traffic.
    pub has_interfaces: bool,
}

/// Daemons that a broadcast or multicast address reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// The address, without the name of an interface.
    pub address: String,
    /// The port of all of them.
    pub port: u16,
    pub daemons: Vec<Daemon>,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SpreadConf {
    pub segments: Vec<Segment>,
    /// Names, as they were written, and values of all options.
    pub options: Vec<(String, String)>,
}

impl SpreadConf {
    /// The value of an option.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.options.iter().rev();
        let found = options.find(|(of, _)| of.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// A word of the file, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Word<'a> {
    text: &'a str,
    line: usize,
}

/// Words are separated by spaces; braces, `=` and `;` are words of their own, and so is what is quoted.
fn words(text: &str) -> Result<Vec<Word<'_>>, String> {
    let mut words = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '#' => break,
                '{' | '}' | '=' | ';' => 1,
                '"' => {
                    let end = rest[1..].find('"');
                    end.ok_or_else(|| format!("line {line}: a quote has no end"))? + 2
                }
                _ => {
                    let ends = |c: char| c.is_whitespace() || "{}=;#\"".contains(c);
                    rest.find(ends).unwrap_or(rest.len())
                }
            };
            let (word, behind) = rest.split_at(length);
            let text = word.trim_matches('"');
            words.push(Word { text, line });
            rest = behind.trim_start();
        }
    }
    Ok(words)
}

/// The words that are left.
struct Words<'a>(std::iter::Peekable<std::vec::IntoIter<Word<'a>>>);

impl<'a> Words<'a> {
    fn next_is(&mut self, text: &str) -> bool {
        self.0.next_if(|word| word.text == text).is_some()
    }

    fn take(&mut self, what: &str) -> Result<Word<'a>, String> {
        self.0
            .next()
            .ok_or_else(|| format!("the file ends where {what} should be"))
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        let word = self.take(&format!("`{text}`"))?;
        match word.text == text {
            true => Ok(()),
            false => Err(format!(
                "line {}: `{}` stands where `{text}` should be",
                word.line, word.text
            )),
        }
    }

    /// What stands between braces, of which the first has been read.
    fn braced(&mut self) -> Result<Vec<Word<'a>>, String> {
        let mut inside = Vec::new();
        loop {
            let word = self.take("`}`")?;
            if word.text == "}" {
                return Ok(inside);
            }
            inside.push(word);
        }
    }
}

/// Reads the text of a file.
pub(super) fn read(text: &str) -> Result<SpreadConf, String> {
    let mut words = Words(words(text)?.into_iter().peekable());
    let mut conf = SpreadConf::default();
    while let Some(word) = words.0.next() {
        if word.text == ";" {
            continue;
        }
        if word.text.eq_ignore_ascii_case("Spread_Segment") {
            conf.segments.push(segment(&mut words)?);
        } else {
            conf.options.push(option(&word, &mut words)?);
        }
    }
    if conf
        .segments
        .iter()
        .all(|segment| segment.daemons.is_empty())
    {
        return Err("there is no Spread_Segment with a daemon in it".to_owned());
    }
    Ok(conf)
}

fn option(name: &Word<'_>, words: &mut Words<'_>) -> Result<(String, String), String> {
    if !words.next_is("=") {
        let first = name.text.chars().next();
        // Some options are switched on by their name alone.
        return match first.is_some_and(|c| c.is_ascii_alphabetic()) {
            true => Ok((name.text.to_owned(), "true".to_owned())),
            false => Err(format!("line {}: `{}` is no option", name.line, name.text)),
        };
    }
    let value = if words.next_is("{") {
        let inside = words.braced()?;
        let inside: Vec<&str> = inside.iter().map(|word| word.text).collect();
        inside.join(" ")
    } else {
        words.take("a value")?.text.to_owned()
    };
    Ok((name.text.to_owned(), value))
}

fn segment(words: &mut Words<'_>) -> Result<Segment, String> {
    let first = words.take("the address of a segment")?;
    let (address, port) = address_and_port(&first)?;
    // Further addresses of the same segment.
    while !words.next_is("{") {
        let word = words.take("`{`")?;
        if word.text == "}" {
            return Err(format!("line {}: a segment has no `{{`", word.line));
        }
    }
    let mut daemons = Vec::new();
    while !words.next_is("}") {
        if !words.next_is(";") {
            daemons.push(daemon(words)?);
        }
    }
    Ok(Segment {
        address,
        port,
        daemons,
    })
}

/// `10.0.0.255:4803`, `[ff15::5%eth0]:4803`; the port may be missing.
fn address_and_port(word: &Word<'_>) -> Result<(String, u16), String> {
    let wrong = || {
        format!(
            "line {}: `{}` is no address of a segment",
            word.line, word.text
        )
    };
    let (address, port) = match word.text.strip_prefix('[') {
        Some(rest) => {
            let (address, behind) = rest.split_once(']').ok_or_else(wrong)?;
            (address, behind.strip_prefix(':'))
        }
        None => match word.text.split_once(':') {
            Some((address, port)) => (address, Some(port)),
            None => (word.text, None),
        },
    };
    let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| wrong()))?;
    let address = address.split('%').next().unwrap_or(address);
    Ok((address.to_owned(), port))
}

/// `NAME [IP] [VirtualID = N] [{ INTERFACES }]`: name, address, or both.
fn daemon(words: &mut Words<'_>) -> Result<Daemon, String> {
    let first = words.take("a daemon or `}`")?;
    if "{=".contains(first.text) {
        return Err(format!(
            "line {}: `{}` stands where a daemon should be",
            first.line, first.text
        ));
    }
    let mut daemon = Daemon {
        name: first.text.to_owned(),
        address: first.text.parse().ok(),
        has_interfaces: false,
    };
    if daemon.address.is_none()
        && let Some(word) = words.0.next_if(|word| word.text.parse::<IpAddr>().is_ok())
    {
        daemon.address = word.text.parse().ok();
    }
    let is_id = |word: &Word<'_>| word.text.eq_ignore_ascii_case("VirtualID");
    if words.0.next_if(is_id).is_some() {
        words.expect("=")?;
        words.take("a number")?;
    }
    if words.next_is("{") {
        daemon.has_interfaces = !words.braced()?.is_empty();
    }
    Ok(daemon)
}
