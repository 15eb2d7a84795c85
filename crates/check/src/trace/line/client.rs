//! The lines about clients and their groups.

use super::{Fields, Members, Text, Texts, Wrong, read};
use crate::event::{ClientEvent, ClientSaw, GroupView, Post};
use crate::name;

impl Fields<'_> {
    pub(super) fn client_event(&self, client: &Text<'_>) -> Result<ClientEvent, Wrong> {
        let saw = match &*self.ev.0 {
            "join" => ClientSaw::Join(self.group()?),
            "leave" => ClientSaw::Leave(self.group()?),
            "disconnect" => ClientSaw::Disconnect,
            "send" => ClientSaw::Send {
                post: self.post()?,
                discard: self.discard,
            },
            "deliver" => ClientSaw::Deliver(self.post()?),
            "view" => ClientSaw::View(self.view()?),
            "trans" => ClientSaw::Transition {
                group: self.group()?,
                gid: read("gid", self.gid.as_ref(), name::gid)?,
            },
            "self_leave" => ClientSaw::SelfLeave(self.group()?),
            "excluded" => ClientSaw::Excluded,
            "included" => ClientSaw::Included {
                missed: self.missed.ok_or("\"missed\" is missing")?,
            },
            "" => return Err("\"ev\" is missing".into()),
            other => return Err(format!("no event of a client is called {other:?}")),
        };
        let client = client.0.clone().into_owned();
        Ok(ClientEvent { client, saw })
    }

    fn group(&self) -> Result<String, Wrong> {
        match &self.group {
            Some(Texts::One(group)) => Ok(group.0.clone().into_owned()),
            _ => Err("\"group\" has to be one name".into()),
        }
    }

    fn post(&self) -> Result<Post, Wrong> {
        let groups = match &self.group {
            Some(Texts::One(group)) => std::slice::from_ref(group),
            Some(Texts::Several(groups)) => groups.as_slice(),
            None => return Err("\"group\" is missing".into()),
        };
        Ok(Post {
            message: read("msg", self.msg.as_ref(), name::message)?,
            groups: names(groups),
            service: read("service", self.service.as_ref(), name::service)?,
            hash: read("hash", self.hash.as_ref(), name::hash)?,
        })
    }

    fn view(&self) -> Result<GroupView, Wrong> {
        let members = match &self.members {
            Some(Members::Clients(members)) => members.as_slice(),
            _ => return Err("\"members\" have to be names of clients".into()),
        };
        let sets = self.vs_sets.as_ref().ok_or("\"vs_sets\" is missing")?;
        Ok(GroupView {
            group: self.group()?,
            gid: read("gid", self.gid.as_ref(), name::gid)?,
            cause: read("cause", self.cause.as_ref(), name::cause)?,
            members: names(members),
            vs_sets: sets.iter().map(|set| names(set)).collect(),
        })
    }
}

fn names(texts: &[Text<'_>]) -> Vec<String> {
    let names = texts.iter().map(|text| text.0.clone().into_owned());
    names.collect()
}
