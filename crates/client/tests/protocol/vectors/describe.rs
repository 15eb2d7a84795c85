//! The fields of frames as lines.

use rota_client::protocol::{
    Cause, Code, DecodeError, Destination, Hello, Message, Reply, Request, Send, SlowPolicy, View,
};
use rota_core::contract::Service;

use super::text::Block;

const fn service(service: Service) -> &'static str {
    match service {
        Service::Reliable => "reliable",
        Service::Fifo => "fifo",
        Service::Causal => "causal",
        Service::Agreed => "agreed",
        Service::Safe => "safe",
    }
}

const fn when_slow(policy: Option<SlowPolicy>) -> &'static str {
    match policy {
        None => "default",
        Some(SlowPolicy::Disconnect) => "disconnect",
        Some(SlowPolicy::Skip) => "skip",
        Some(SlowPolicy::ThrottleThenDisconnect) => "throttle-then-disconnect",
        Some(SlowPolicy::ThrottleThenSkip) => "throttle-then-skip",
    }
}

pub fn request(request: &Request, block: &mut Block) {
    match request {
        Request::Hello(hello) => {
            block.line("is", "hello");
            self::hello(hello, block);
        }
        Request::Join { request, group } => {
            block.line("is", "join");
            block.line("request", request);
            block.line("group", group);
        }
        Request::Leave { request, group } => {
            block.line("is", "leave");
            block.line("request", request);
            block.line("group", group);
        }
        Request::Send(send) => {
            block.line("is", "send");
            self::send(send, block);
        }
        Request::List { request, group } => {
            block.line("is", "list");
            block.line("request", request);
            match group {
                Some(group) => block.line("group", group),
                None => block.line("group", "-"),
            }
        }
        Request::Bye => block.line("is", "bye"),
    }
}

fn hello(hello: &Hello, block: &mut Block) {
    block.line("lowest", hello.lowest);
    block.line("highest", hello.highest);
    block.flag("membership", hello.membership);
    block.line("when-slow", when_slow(hello.when_slow));
    block.flag("memory", hello.memory);
    match hello.name {
        Some(name) => block.line("client", name),
        None => block.line("client", "-"),
    }
}

fn send(send: &Send, block: &mut Block) {
    envelope(
        (send.service, send.self_discard, send.kind),
        &send.to,
        &send.payload,
        block,
    );
}

fn envelope(
    (asked, self_discard, kind): (Service, bool, u16),
    to: &[Destination],
    payload: &[u8],
    block: &mut Block,
) {
    block.line("service", service(asked));
    block.flag("self-discard", self_discard);
    block.line("message-kind", kind);
    to.iter().for_each(|to| block.line("to", to));
    block.named_bytes("payload", payload);
}

pub fn reply(reply: &Reply, block: &mut Block) {
    match reply {
        Reply::Welcome(welcome) => {
            block.line("is", "welcome");
            block.line("version", welcome.version);
            block.line("client", welcome.name);
            block.line("credit", welcome.credit);
            block.line("largest-payload", welcome.largest_payload);
            block.line("memory", welcome.memory);
        }
        Reply::Message(message) => self::message(message, block),
        Reply::View(view) => self::view(view, block),
        Reply::Transitional { group, view } => {
            block.line("is", "transitional");
            block.line("group", group);
            block.line("view", view);
        }
        Reply::SelfLeave { group } => {
            block.line("is", "self-leave");
            block.line("group", group);
        }
        Reply::Credit { bytes } => {
            block.line("is", "credit");
            block.line("credit", bytes);
        }
        Reply::Lagging { waiting, limit } => {
            block.line("is", "lagging");
            block.line("waiting", waiting);
            block.line("limit", limit);
        }
        Reply::Skipped {
            messages,
            bytes,
            groups,
        } => {
            block.line("is", "skipped");
            block.line("messages", messages);
            block.line("payload-bytes", bytes);
            groups.iter().for_each(|group| block.line("group", group));
        }
        Reply::Excluded => block.line("is", "excluded"),
        Reply::Included { missed } => {
            block.line("is", "included");
            block.flag("missed", *missed);
        }
        other => answer(other, block),
    }
}

/// What answers a request or ends something.
fn answer(reply: &Reply, block: &mut Block) {
    match reply {
        Reply::Refused { code, text } => {
            block.line("is", "refused");
            reason(*code, text, block);
        }
        Reply::Done { request } => {
            block.line("is", "done");
            block.line("request", request);
        }
        Reply::Failed {
            request,
            code,
            text,
        } => {
            block.line("is", "failed");
            block.line("request", request);
            reason(*code, text, block);
        }
        Reply::Groups { request, groups } => {
            block.line("is", "groups");
            block.line("request", request);
            for (group, members) in groups {
                block.line("group", format_args!("{group} {members}"));
            }
        }
        Reply::Members { request, members } => {
            block.line("is", "members");
            block.line("request", request);
            members.iter().for_each(|name| block.line("member", name));
        }
        Reply::Goodbye { code, text } => {
            block.line("is", "goodbye");
            reason(*code, text, block);
        }
        Reply::NotSent {
            kind,
            to,
            code,
            text,
        } => {
            block.line("is", "not-sent");
            block.line("message-kind", kind);
            block.line("to", to);
            reason(*code, text, block);
        }
        other => panic!("{other:?} is described elsewhere"),
    }
}

fn reason(code: Code, text: &str, block: &mut Block) {
    block.line("code", code.number());
    block.quoted("text", text);
}

fn message(message: &Message, block: &mut Block) {
    block.line("is", "message");
    block.line("sender", message.sender);
    envelope(
        (message.service, message.self_discard, message.kind),
        &message.to,
        &message.payload,
        block,
    );
}

fn view(view: &View, block: &mut Block) {
    block.line("is", "view");
    block.line("group", view.group);
    block.line("view", view.id);
    let (cause, changed, sets): (_, _, &[Vec<u32>]) = match &view.cause {
        Cause::Join(name) => ("join", Some(name), &[]),
        Cause::Leave(name) => ("leave", Some(name), &[]),
        Cause::Disconnect(name) => ("disconnect", Some(name), &[]),
        Cause::Network(sets) => ("network", None, sets),
    };
    block.line("cause", cause);
    match changed {
        Some(name) => block.line("changed", name),
        None => block.line("changed", "-"),
    }
    view.members
        .iter()
        .for_each(|name| block.line("member", name));
    for set in sets {
        let indices: Vec<String> = set.iter().map(u32::to_string).collect();
        block.line("set", indices.join(" "));
    }
    block.line("own", view.own);
}

/// One word for each kind of error.
pub const fn why(error: &DecodeError) -> &'static str {
    match error {
        DecodeError::Length { .. } => "length",
        DecodeError::Kind(_) => "kind",
        DecodeError::Short => "short",
        DecodeError::Trailing(_) => "trailing",
        DecodeError::Magic => "magic",
        DecodeError::Versions => "versions",
        DecodeError::Service(_) => "service",
        DecodeError::Flags(_) => "flags",
        DecodeError::Destinations(_) => "destinations",
        DecodeError::Groups(_) => "groups",
        DecodeError::Name(_) => "name",
        DecodeError::Text => "text",
        DecodeError::Node => "node",
        DecodeError::Cause(_) => "cause",
        DecodeError::Changed => "changed",
        DecodeError::Sets => "sets",
        DecodeError::OwnIndex(_) => "own-index",
    }
}
