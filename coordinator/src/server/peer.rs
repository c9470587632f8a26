//! Who is at the other end of a connection, and what that allows.

use std::{net::SocketAddr, sync::Arc};

use inrush_common::join::Role;
use tonic::{Request, Status};

use super::{Refusal, lobby::Visit};
use crate::certs::Standing;

/// The other end of a connection. In the extensions of every request.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) who: Who,
    pub(super) visit: Arc<Visit>,
}

/// Who it is.
#[derive(Debug, Clone)]
pub(super) enum Who {
    /// There is no TLS: whoever gets through may do everything.
    Anybody,
    /// There is TLS, and no certificate was shown.
    Stranger,
    /// The owner of a certificate.
    Known(Arc<Standing>),
    /// The owner of one that is worth nothing, and why, in words.
    Refused(Arc<str>),
}

impl Peer {
    pub(super) const fn new(address: SocketAddr, who: Who, visit: Arc<Visit>) -> Self {
        Self { address, who, visit }
    }

    /// That of a request. Every connection has one.
    pub(super) fn of<T>(request: &Request<T>) -> Result<&Self, Refusal> {
        request.extensions().get().ok_or(Refusal::Unknown)
    }

    /// The certificate, if there is TLS.
    pub(super) fn standing(&self) -> Option<&Arc<Standing>> {
        match &self.who {
            Who::Known(standing) => Some(standing),
            Who::Anybody | Who::Stranger | Who::Refused(_) => None,
        }
    }

    /// Whether it may act in this role.
    fn may(&self, role: Role) -> Result<(), Refusal> {
        match &self.who {
            Who::Anybody => Ok(()),
            Who::Stranger => Err(Refusal::Stranger(role)),
            Who::Refused(words) => Err(Refusal::Certificate(words.to_string())),
            Who::Known(standing) if standing.revoked.is_cancelled() => {
                Err(Refusal::Revoked(standing.name.clone()))
            }
            Who::Known(standing) if standing.role != role => {
                Err(Refusal::Role { name: standing.name.clone(), is: standing.role, needs: role })
            }
            Who::Known(_) => Ok(()),
        }
    }

    /// Asserts the role for a call of it, and gives the connection its seat.
    fn admit(&self, role: Role) -> Result<(), Refusal> {
        self.may(role)?;
        if self.visit.seat() { Ok(()) } else { Err(Refusal::NoSeat) }
    }
}

/// Lets calls through that an owner of a certificate of this role makes.
pub(super) fn only(role: Role) -> impl Fn(Request<()>) -> Result<Request<()>, Status> + Clone {
    move |request| {
        Peer::of(&request).and_then(|peer| peer.admit(role)).map_err(|refusal| {
            tracing::debug!("a call was refused: {refusal}");
            Status::from(refusal)
        })?;
        Ok(request)
    }
}

/// Asserts that a call of a service for everybody is made in this role.
pub(super) fn known<T>(request: &Request<T>, role: Option<Role>) -> Result<Arc<Standing>, Refusal> {
    let peer = Peer::of(request)?;
    let standing = match &peer.who {
        Who::Anybody => return Err(Refusal::NoAuthority),
        Who::Stranger => return Err(Refusal::Stranger(role.unwrap_or(Role::Agent))),
        Who::Refused(words) => return Err(Refusal::Certificate(words.to_string())),
        Who::Known(standing) => standing,
    };
    peer.admit(role.unwrap_or(standing.role))?;
    Ok(Arc::clone(standing))
}
