//! The test vectors in `docs/protocols/vectors`: the files are what this crate encodes, and this crate decodes them.
//!
//! A file that differs fails. With `ROTA_WRITE_VECTORS=1` the files are written instead.

mod conversations;
mod describe;
mod errors;
mod frames;
mod text;

use std::path::{Path, PathBuf};

use rota_client::protocol::{
    Decoded, Frame, Inbox, MAX_REPLY_BYTES, Reply, Request, request_limit,
};

use text::Block;

/// The most bytes of a payload in these vectors.
const LARGEST: usize = 1 << 20;

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/protocols/vectors")
        .join(file)
}

/// Compares a file with what it should be.
fn golden(file: &str, about: &str, blocks: &[Block]) {
    let expected = text::file(about, blocks);
    let path = path(file);
    if std::env::var_os("ROTA_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &expected).expect("a file");
    }
    let found = std::fs::read_to_string(&path).expect("the vectors are in the repository");
    let lines = || found.lines().zip(expected.lines()).enumerate();
    if let Some((at, (found, expected))) = lines().find(|(_, (found, expected))| found != expected)
    {
        let line = at + 1;
        panic!("{file}, line {line}: it says\n{found}\nand the encoder\n{expected}");
    }
    assert_eq!(found, expected, "{file} has another number of lines");
}

fn encoded(request: &Request) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(&mut bytes).expect("it fits");
    bytes
}

fn told(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    reply.encode(&mut bytes).expect("it fits");
    bytes
}

#[test]
fn requests() {
    let mut blocks = Vec::new();
    for (name, request) in frames::requests() {
        let bytes = encoded(&request);
        let length = bytes.len();
        let mut block = Block::new("frame", name);
        block.line("from", "client");
        describe::request(&request, &mut block);
        block.bytes(&bytes);
        blocks.push(block);
        let decoded = Request::decode(&bytes.into(), request_limit(LARGEST));
        assert_eq!(decoded, Ok(Decoded::Frame(request, length)), "{name}");
    }
    golden(
        "requests.txt",
        "Frames from a client to its daemon.",
        &blocks,
    );
}

#[test]
fn replies() {
    let mut blocks = Vec::new();
    for (name, reply) in frames::replies() {
        let bytes = told(&reply);
        let length = bytes.len();
        let mut block = Block::new("frame", name);
        block.line("from", "daemon");
        describe::reply(&reply, &mut block);
        block.bytes(&bytes);
        blocks.push(block);
        let decoded = Reply::decode(&bytes.into(), MAX_REPLY_BYTES);
        assert_eq!(decoded, Ok(Decoded::Frame(reply, length)), "{name}");
    }
    golden(
        "replies.txt",
        "Frames from a daemon to its client.",
        &blocks,
    );
}

#[test]
fn bytes_that_are_no_frames() {
    let mut blocks = Vec::new();
    for (name, from_daemon, bytes) in errors::all() {
        let shared = bytes.clone().into();
        let why = if from_daemon {
            Reply::decode(&shared, MAX_REPLY_BYTES).map(drop_frame)
        } else {
            Request::decode(&shared, request_limit(LARGEST)).map(drop_frame)
        };
        let why = why.expect_err("it is no frame");
        let mut block = Block::new("error", name);
        block.line("from", if from_daemon { "daemon" } else { "client" });
        block.line("why", describe::why(&why));
        block.bytes(&bytes);
        blocks.push(block);
    }
    golden(
        "errors.txt",
        "Bytes that are no frame of their direction, and why. A connection ends behind them.",
        &blocks,
    );
}

fn drop_frame<T: std::fmt::Debug>(decoded: Decoded<T>) {
    panic!("it is read as {decoded:?}");
}

#[test]
fn conversations() {
    let requests = frames::requests();
    let replies = frames::replies();
    let mut blocks = Vec::new();
    for conversation in conversations::all() {
        let mut block = Block::new("conversation", conversation.name);
        let (mut to_daemon, mut to_client) = (Vec::new(), Vec::new());
        let (mut asked, mut answered) = (Vec::new(), Vec::new());
        let (mut cost, mut credit) = (0, 0);
        for (from_client, names) in conversation.steps {
            let side = if *from_client { "client" } else { "daemon" };
            block.line(side, names.join(" "));
            for name in *names {
                if *from_client {
                    let request = frames::named(&requests, name);
                    let bytes = encoded(request);
                    if matches!(request, Request::Send(_)) {
                        cost += bytes.len();
                    }
                    to_daemon.extend(bytes);
                    asked.push(request.clone());
                } else {
                    let reply = frames::named(&replies, name);
                    if let Reply::Credit { bytes } = reply {
                        credit += *bytes as usize;
                    }
                    to_client.extend(told(reply));
                    answered.push(reply.clone());
                }
            }
        }
        assert_eq!(cost, credit, "{}: credit comes back", conversation.name);
        block.named_bytes("from-client", &to_daemon);
        block.named_bytes("from-daemon", &to_client);
        blocks.push(block);
        // Frames come in any pieces.
        for piece in [1, 7, to_client.len().max(1)] {
            assert_eq!(in_pieces::<Request>(&to_daemon, piece), asked);
            assert_eq!(in_pieces::<Reply>(&to_client, piece), answered);
        }
    }
    golden(
        "conversations.txt",
        "Whole connections: frames by their names, and all bytes of each direction.",
        &blocks,
    );
}

fn in_pieces<T: Frame>(bytes: &[u8], piece: usize) -> Vec<T> {
    let mut inbox = Inbox::<T>::new(MAX_REPLY_BYTES);
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        inbox.feed(piece);
        while let Some(frame) = inbox.pull().expect("frames") {
            frames.push(frame);
        }
    }
    assert!(!inbox.is_within_a_frame());
    frames
}
