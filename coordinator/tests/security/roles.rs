//! What a certificate allows, and what ends it.

use std::{sync::Arc, time::Duration};

use inrush_agent::credentials::{DialError, Way};
use inrush_common::join::{Role, Secret};
use inrush_coordinator::clock;
use inrush_proto::v1::{
    InviteRequest, ListAgentsRequest, control_client::ControlClient,
    enrollment_client::EnrollmentClient,
};
use tonic::Code;

use crate::desk::{Desk, connect, hello, within};

#[tokio::test]
async fn an_agent_takes_work_and_a_user_gives_it_and_neither_does_the_others_part() {
    let desk = Desk::open().await;
    let (lab1, ada) = (desk.join(Role::Agent, "lab1").await, desk.join(Role::User, "ada").await);
    let (_to, _from, welcome) = hello(desk.channel(&lab1).await, "lab1").await.unwrap();
    let renew_in = welcome.renew_in_s.unwrap();
    let two_thirds = Duration::from_secs(20 * 24 * 3_600).as_secs();
    assert!((two_thirds - 120..=two_thirds).contains(&renew_in), "{renew_in}");
    let list = |channel| async move {
        let mut control = ControlClient::new(channel);
        within("a list", control.list_agents(ListAgentsRequest {})).await
    };
    let listed = list(desk.channel(&ada).await).await.unwrap().into_inner().agents;
    assert_eq!(listed.len(), 1);

    let refused = list(desk.channel(&lab1).await).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("lab1 is for agents"), "{refused}");
    let refused = hello(desk.channel(&ada).await, "ada").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("ada is for users"), "{refused}");
    desk.close().await;
}

#[tokio::test]
async fn an_agent_has_the_name_of_its_certificate() {
    let desk = Desk::open().await;
    let lab1 = desk.join(Role::Agent, "lab1").await;
    let refused = hello(desk.channel(&lab1).await, "lab2").await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("start it with --name lab1"), "{refused}");
    desk.close().await;
}

#[tokio::test]
async fn without_a_certificate_nothing_is_answered_but_a_token() {
    let desk = Desk::open().await;
    let ca = desk.token(Role::Agent, None).ca;
    let stranger = Way::pinned(&desk.address, ca);
    let mut control = ControlClient::new(connect(&stranger).await);
    let refused = within("a list", control.list_agents(ListAgentsRequest {})).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(refused.message().contains("inrush certs join"), "{refused}");
    let refused = hello(connect(&stranger).await, "lab1").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assert!(refused.message().contains("--join"), "{refused}");
    let mut enrollment = EnrollmentClient::new(connect(&stranger).await);
    let invite = InviteRequest { name: String::new(), expires_in_s: 60 };
    let refused = within("an invitation", enrollment.invite(invite)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    desk.close().await;
}

#[tokio::test]
async fn tokens_are_good_once_in_time_and_for_their_role() {
    let desk = Desk::open().await;
    let token = desk.token(Role::Agent, None);
    let both = tokio::join!(desk.join_with(&token), desk.join_with(&token));
    let refused = match both {
        (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => refused.to_string(),
        both => panic!("exactly one gets in: {both:?}"),
    };
    assert!(refused.contains("used before"), "{refused}");

    let late = desk.token_for(Role::Agent, None, Duration::ZERO);
    let refused = desk.join_with(&late).await.unwrap_err().to_string();
    assert!(refused.contains("has expired"), "{refused}");
    let mut wrong = desk.token(Role::User, Some("ada"));
    wrong.role = Role::Agent;
    let refused = desk.join_with(&wrong).await.unwrap_err().to_string();
    assert!(refused.contains("not known here"), "{refused}");
    wrong.secret = Secret([0; 32]);
    assert!(desk.join_with(&wrong).await.unwrap_err().to_string().contains("not known here"));
    // Somebody else's CA: nothing is said to a coordinator that is not the token's.
    let elsewhere = Desk::open().await.token(Role::Agent, None);
    let refused = desk.join_with(&elsewhere).await.unwrap_err().to_string();
    assert!(refused.contains("does not belong to the CA"), "{refused}");
    desk.close().await;
}

#[tokio::test]
async fn a_certificate_of_another_ca_is_refused_in_words() {
    let (desk, elsewhere) = (Desk::open().await, Desk::open().await);
    let foreign = elsewhere.join(Role::User, "ada").await;
    // Trusting this coordinator, so that it comes to showing the foreign certificate.
    let own = desk.join(Role::User, "eve").await;
    let mut mixed = inrush_agent::credentials::Credentials {
        role: Role::User,
        name: "ada".parse().unwrap(),
        ca: own.current().ca.clone(),
        certificate: foreign.current().certificate.clone(),
        key: foreign.current().key.clone_key(),
        token: None,
        renew_at_s: u64::MAX,
    };
    mixed.token = None;
    let file = desk.dir.path().join("mixed.pem");
    let mixed = Arc::new(inrush_agent::credentials::Keyring::new(mixed, file));
    let way = Way::secured(&desk.address, mixed);
    let words = match within("a connection", way.connect(|endpoint| endpoint)).await {
        Err(DialError::Useless(words)) => words,
        Err(other) => panic!("{other:?}"),
        // In TLS 1.3 a client is through before the server has looked at its certificate.
        Ok(channel) => {
            let mut control = ControlClient::new(channel);
            let status = within("a list", control.list_agents(ListAgentsRequest {})).await;
            let status = status.unwrap_err();
            match inrush_agent::credentials::in_words(&status) {
                Some(DialError::Useless(words)) => words,
                other => panic!("{other:?}: {status:?}"),
            }
        }
    };
    assert!(words.contains("join again with a new token"), "{words}");
    // And a coordinator that is not ours gets nothing out of us.
    let impostor = Way::secured(&elsewhere.address, own);
    let error = within("a connection", impostor.connect(|endpoint| endpoint)).await.unwrap_err();
    assert!(error.to_string().contains("does not belong to the CA"), "{error}");
    desk.close().await;
    elsewhere.close().await;
}

#[tokio::test]
async fn a_revoked_agents_stream_ends_at_once_and_it_does_not_come_back() {
    let desk = Desk::open().await;
    let (lab1, lab2) = (desk.join(Role::Agent, "lab1").await, desk.join(Role::Agent, "lab2").await);
    let (_to1, mut from1, _) = hello(desk.channel(&lab1).await, "lab1").await.unwrap();
    let channel = desk.channel(&lab1).await;
    let (to2, mut from2, _) = hello(desk.channel(&lab2).await, "lab2").await.unwrap();
    desk.register().revoke(&"lab1".parse().unwrap(), clock::wall()).unwrap();
    let revoked_at = clock::now();
    let ended = within("the end", from1.message()).await.unwrap_err();
    let took = clock::now() - revoked_at;
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!(ended.code(), Code::PermissionDenied);
    assert!(ended.message().contains("lab1 was revoked"), "{ended}");
    // Neither on a connection that stood before, unless it is cut already, nor on a new one.
    assert!(hello(channel, "lab1").await.is_err());
    let refused = hello(desk.channel(&lab1).await, "lab1").await.unwrap_err();
    assert!(refused.message().contains("lab1 was revoked"), "{refused}");
    // Nobody else notices.
    let heartbeat = inrush_proto::v1::Heartbeat { sent_ns: 1, offset_ns: None, offset_bound_ns: 0 };
    let kind = inrush_proto::v1::agent_message::Kind::Heartbeat(heartbeat);
    to2.send(inrush_proto::v1::AgentMessage { kind: Some(kind) }).await.unwrap();
    assert!(within("an answer", from2.message()).await.unwrap().is_some());
    desk.close().await;
}

#[tokio::test]
async fn a_user_brings_agents_in_and_nobody_else() {
    let desk = Desk::open().await;
    let (lab1, ada) = (desk.join(Role::Agent, "lab1").await, desk.join(Role::User, "ada").await);
    let invite = |expires_in_s| InviteRequest { name: "lab2".to_owned(), expires_in_s };
    let mut as_agent = EnrollmentClient::new(desk.channel(&lab1).await);
    let refused = within("an invitation", as_agent.invite(invite(60))).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let mut as_user = EnrollmentClient::new(desk.channel(&ada).await);
    let refused = within("an invitation", as_user.invite(invite(1 << 40))).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let invitation = within("an invitation", as_user.invite(invite(60))).await.unwrap();
    let mut token = desk.token(Role::Agent, None);
    token.secret = Secret(invitation.into_inner().secret.as_ref().try_into().unwrap());
    // It is for an agent, whatever its holder makes of it.
    let as_user = inrush_common::join::JoinToken { role: Role::User, ..token.clone() };
    assert!(desk.join_with(&as_user).await.is_err());
    let lab2 = desk.join_with(&token).await.unwrap();
    assert_eq!(lab2.current().name.as_str(), "lab2");
    desk.close().await;
}
