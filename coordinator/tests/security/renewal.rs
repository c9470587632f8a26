//! Certificates that are renewed while their owner serves.

use std::{sync::Arc, time::Duration};

use inrush_agent::credentials::{Renewal, Way, enrol, fingerprint};
use inrush_common::join::Role;
use inrush_proto::v1::{ListAgentsRequest, control_client::ControlClient};
use tokio::time::interval;

use crate::desk::{Desk, hello, within};

#[tokio::test]
async fn an_agent_gets_another_certificate_before_the_first_one_ends_and_lives_on_with_it() {
    // Certificates count in whole seconds.
    let desk = Desk::with_certificates_of(Duration::from_secs(4)).await;
    let lab1 = desk.join(Role::Agent, "lab1").await;
    let first = fingerprint(&lab1.current().certificate);
    let way = Way::secured(&desk.address, Arc::clone(&lab1));
    let (_to, mut from, welcome) = hello(desk.channel(&lab1).await, "lab1").await.unwrap();
    let renew_in = Duration::from_secs(welcome.renew_in_s.unwrap());
    assert!(renew_in < Duration::from_secs(4), "{renew_in:?}");
    let _renewal = Renewal::plan(&way, renew_in).unwrap();
    let mut looks = interval(Duration::from_millis(20));
    within("renewing", async {
        while fingerprint(&lab1.current().certificate) == first {
            looks.tick().await;
        }
    })
    .await;
    // The first one's connection ends with it; the second one opens another.
    within("the end of the first", async { while let Ok(Some(_)) = from.message().await {} }).await;
    let held = desk.register().list().unwrap();
    assert_eq!(held.len(), 2, "{held:?}");
    assert_ne!(fingerprint(&lab1.current().certificate), first);
    desk.close().await;
}

#[tokio::test]
async fn an_expired_certificate_is_refused_in_words() {
    let desk = Desk::with_certificates_of(Duration::ZERO).await;
    let ada = desk.join(Role::User, "ada").await;
    let way = Way::secured(&desk.address, Arc::clone(&ada));
    let error = enrol::renew(&way, &ada).await.unwrap_err().to_string();
    assert!(error.contains("has expired") && error.contains("certs token"), "{error}");
    let refused = match way.connect(|endpoint| endpoint).await {
        Err(error) => error.to_string(),
        Ok(channel) => {
            let mut control = ControlClient::new(channel);
            let list = within("a list", control.list_agents(ListAgentsRequest {})).await;
            let status = list.unwrap_err();
            let words = inrush_agent::credentials::in_words(&status);
            words.map_or_else(|| status.message().to_owned(), |words| words.to_string())
        }
    };
    assert!(refused.contains("has expired"), "{refused}");
    desk.close().await;
}
