//! Strategies (proptest) for all frames.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rota_client::protocol::{
    Cause, Code, Destination, Hello, Message, PrivateName, Reply, Request, Send, SlowPolicy, View,
    Welcome,
};
use rota_core::contract::{Incarnation, NodeId, RingId, Service};
use rota_core::groups::{ClientName, DaemonName, GroupName, ViewId};

pub fn group() -> impl Strategy<Value = GroupName> {
    "[$-~]{1,31}".prop_map(|text| GroupName::new(&text).expect("legal"))
}

fn client() -> impl Strategy<Value = ClientName> {
    "[$-~]{1,10}".prop_map(|text| ClientName::new(&text).expect("legal"))
}

prop_compose! {
    pub fn private()(client in client(), daemon in "[$-~]{1,19}") -> PrivateName {
        PrivateName { client, daemon: DaemonName::new(&daemon).expect("legal") }
    }
}

fn destination() -> impl Strategy<Value = Destination> {
    prop_oneof![
        group().prop_map(Destination::Group),
        private().prop_map(Destination::Client),
    ]
}

fn service() -> impl Strategy<Value = Service> {
    prop::sample::select(Service::ALL.to_vec())
}

fn payload() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..300).prop_map(Bytes::from)
}

prop_compose! {
    fn send()(
        service in service(),
        self_discard in any::<bool>(),
        kind in any::<u16>(),
        to in vec(destination(), 1..=100),
        payload in payload(),
    ) -> Send {
        Send { service, self_discard, kind, to, payload }
    }
}

prop_compose! {
    fn message()(sender in private(), send in send()) -> Message {
        let Send { service, self_discard, kind, to, payload } = send;
        Message { sender, service, self_discard, kind, to: to.into(), payload }
    }
}

prop_compose! {
    fn hello()(
        lowest in 1..9_u16,
        more in 0..9_u16,
        membership in any::<bool>(),
        when_slow in proptest::option::of(prop::sample::select(vec![
            SlowPolicy::Disconnect,
            SlowPolicy::Skip,
            SlowPolicy::ThrottleThenDisconnect,
            SlowPolicy::ThrottleThenSkip,
        ])),
        memory in any::<bool>(),
        name in proptest::option::of(client()),
    ) -> Hello {
        Hello { lowest, highest: lowest + more, membership, when_slow, memory, name }
    }
}

pub fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        hello().prop_map(Request::Hello),
        (any::<u32>(), group()).prop_map(|(request, group)| Request::Join { request, group }),
        (any::<u32>(), group()).prop_map(|(request, group)| Request::Leave { request, group }),
        send().prop_map(Request::Send),
        (any::<u32>(), proptest::option::of(group()))
            .prop_map(|(request, group)| Request::List { request, group }),
        Just(Request::Bye),
    ]
}

fn ring() -> impl Strategy<Value = RingId> {
    (any::<u64>(), 1..=u16::MAX, any::<u64>()).prop_map(|(ring_seq, rep, incarnation)| RingId {
        ring_seq,
        rep: NodeId::new(rep).expect("not 0"),
        incarnation: Incarnation(incarnation),
    })
}

fn view_id() -> impl Strategy<Value = ViewId> {
    (ring(), proptest::option::of(ring()), any::<u64>()).prop_map(|(ring, next, index)| ViewId {
        ring,
        next,
        index,
    })
}

/// Each of so many members in a set, by what is drawn for it.
fn sets(drawn: &[u8], members: usize) -> Vec<Vec<u32>> {
    let mut sets = vec![Vec::new(); 4];
    for (index, set) in (0..members as u32).zip(drawn.iter().cycle()) {
        sets[usize::from(set % 4)].push(index);
    }
    sets.retain(|set| !set.is_empty());
    sets
}

prop_compose! {
    pub fn view()(
        group in group(),
        id in view_id(),
        cause in 0..4,
        changed in private(),
        members in vec(private(), 1..60),
        drawn in vec(any::<u8>(), 1..9),
        own in any::<u32>(),
    ) -> View {
        let cause = match cause {
            0 => Cause::Join(changed),
            1 => Cause::Leave(changed),
            2 => Cause::Disconnect(changed),
            _ => Cause::Network(sets(&drawn, members.len())),
        };
        let own = own % members.len() as u32;
        View { group, id, cause, members, own }
    }
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,60}"
}

fn code() -> impl Strategy<Value = Code> {
    prop_oneof![0..20_u16, any::<u16>()].prop_map(Code::from_number)
}

pub fn reply() -> impl Strategy<Value = Reply> {
    let numbers = (any::<u32>(), any::<u32>(), any::<u32>());
    let welcome = (any::<u16>(), private(), numbers).prop_map(
        |(version, name, (credit, largest_payload, memory))| Welcome {
            version,
            name,
            credit,
            largest_payload,
            memory,
        },
    );
    prop_oneof![
        welcome.prop_map(Reply::Welcome),
        (code(), text()).prop_map(|(code, text)| Reply::Refused { code, text }),
        any::<u32>().prop_map(|request| Reply::Done { request }),
        (any::<u32>(), code(), text()).prop_map(|(request, code, text)| Reply::Failed {
            request,
            code,
            text
        }),
        message().prop_map(Reply::Message),
        view().prop_map(|view| Reply::View(Box::new(view))),
        (group(), view_id()).prop_map(|(group, view)| Reply::Transitional { group, view }),
        group().prop_map(|group| Reply::SelfLeave { group }),
        any::<u32>().prop_map(|bytes| Reply::Credit { bytes }),
        (any::<u32>(), vec((group(), any::<u32>()), 0..40))
            .prop_map(|(request, groups)| Reply::Groups { request, groups }),
        (any::<u32>(), vec(private(), 0..40))
            .prop_map(|(request, members)| Reply::Members { request, members }),
        (any::<u64>(), any::<u64>()).prop_map(|(waiting, limit)| Reply::Lagging { waiting, limit }),
        (code(), text()).prop_map(|(code, text)| Reply::Goodbye { code, text }),
        (any::<u16>(), destination(), code(), text()).prop_map(|(kind, to, code, text)| {
            Reply::NotSent {
                kind,
                to,
                code,
                text,
            }
        }),
        Just(Reply::Excluded),
        any::<bool>().prop_map(|missed| Reply::Included { missed }),
        (any::<u64>(), any::<u64>(), vec(group(), 0..40)).prop_map(|(messages, bytes, groups)| {
            Reply::Skipped {
                messages,
                bytes,
                groups,
            }
        }),
    ]
}
