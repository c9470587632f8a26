//! The service that gives certificates: to who has a token, and to who has one already.

use std::time::Duration;

use inrush_common::{
    id::AgentName,
    join::{Role, Secret},
};
use inrush_proto::{
    PROTOCOL_VERSION,
    v1::{self, enrollment_server::Enrollment},
};
use tonic::{Request, Response, Status};

use super::{
    Refusal,
    peer::{Peer, known},
};
use crate::{
    certs::{CertsError, Grant, Signed, Standings},
    clock,
};

/// Longest life of a token.
pub(crate) const LONGEST_TOKEN: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The service; without a CA it refuses everything.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    standings: Option<Standings>,
}

impl Desk {
    pub(super) const fn new(standings: Option<Standings>) -> Self {
        Self { standings }
    }

    fn standings(&self) -> Result<&Standings, Refusal> {
        self.standings.as_ref().ok_or(Refusal::NoAuthority)
    }

    fn certificate(&self, name: &AgentName, signed: &Signed) -> Result<v1::Certificate, Refusal> {
        let left = signed.expires_at.duration_since(clock::wall()).unwrap_or_default();
        Ok(v1::Certificate {
            certificate: signed.certificate.to_vec().into(),
            ca: self.standings()?.authority().certificate().to_vec().into(),
            name: name.to_string(),
            valid_for_s: left.as_secs(),
        })
    }

    async fn admit(&self, request: Request<v1::JoinRequest>) -> Result<v1::Certificate, Refusal> {
        let standings = self.standings()?;
        let address = Peer::of(&request)?.address;
        let request = request.into_inner();
        if request.protocol != PROTOCOL_VERSION {
            let peer = "who wants to join".to_owned();
            return Err(Refusal::Protocol { peer, theirs: request.protocol });
        }
        let role = Role::from_wire(request.role()).ok_or(Refusal::Enrollment("a role"))?;
        let secret = <[u8; 32]>::try_from(request.secret.as_ref());
        let secret = Secret(secret.map_err(|_| Refusal::Enrollment("a secret of 32 bytes"))?);
        let name = match request.name.as_str() {
            "" => None,
            name => Some(name.parse()?),
        };
        let admitted = standings
            .admit(secret, role, name, request.otherwise.parse()?, request.public_key.to_vec())
            .await;
        let (name, signed) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => {
                tracing::warn!(peer = %address, "nobody joins: {error}");
                return Err(error.into());
            }
        };
        tracing::info!(%name, %role, peer = %address, "somebody has joined");
        self.certificate(&name, &signed)
    }
}

#[tonic::async_trait]
impl Enrollment for Desk {
    async fn join(
        &self,
        request: Request<v1::JoinRequest>,
    ) -> Result<Response<v1::Certificate>, Status> {
        Ok(Response::new(self.admit(request).await?))
    }

    async fn renew(
        &self,
        request: Request<v1::RenewRequest>,
    ) -> Result<Response<v1::Certificate>, Status> {
        let standings = self.standings()?;
        let owner = known(&request, None)?;
        let key = request.into_inner().public_key.to_vec();
        let signed = standings.renew(owner.role, owner.name.clone(), key).await;
        let signed = signed.map_err(Refusal::from)?;
        tracing::info!(name = %owner.name, role = %owner.role, "a certificate was renewed");
        Ok(Response::new(self.certificate(&owner.name, &signed)?))
    }

    async fn invite(
        &self,
        request: Request<v1::InviteRequest>,
    ) -> Result<Response<v1::Invitation>, Status> {
        let standings = self.standings()?;
        let user = known(&request, Some(Role::User))?;
        let v1::InviteRequest { name, expires_in_s } = request.into_inner();
        let name = match name.as_str() {
            "" => None,
            name => Some(name.parse().map_err(Refusal::from)?),
        };
        let expires_in = Duration::from_secs(expires_in_s);
        if expires_in.is_zero() || expires_in > LONGEST_TOKEN {
            return Err(Refusal::Enrollment("an expiry of 1 s to 7 days").into());
        }
        // A user may bring agents in, and nobody who could outlast its own revocation.
        let made_by = Some(user.name.clone());
        let grant = Grant { role: Role::Agent, name, expires_in, made_by };
        let secret = standings.invite(grant).await.map_err(Refusal::from)?;
        tracing::info!(by = %user.name, "a token for an agent was made");
        Ok(Response::new(v1::Invitation {
            secret: secret.0.to_vec().into(),
            ca_fingerprint: standings.authority().fingerprint().0.to_vec().into(),
        }))
    }
}

impl From<CertsError> for Refusal {
    fn from(error: CertsError) -> Self {
        match error {
            CertsError::Refused(refused) => Self::Join(refused),
            error => Self::Certs(error),
        }
    }
}
