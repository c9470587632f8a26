//! Renewing an agent's certificate while it serves.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinHandle;

use super::{DialError, JoinError, Way, enrol};

/// Between two attempts. A certificate is renewed long before its end, so there is time for many.
const AGAIN_AFTER: Duration = Duration::from_secs(600);

/// The renewal to come. Dropped, it does not come.
#[derive(Debug)]
pub struct Renewal(JoinHandle<()>);

impl Renewal {
    /// Renews the way's certificate in `after`, by the monotonic clock: that of the wall may be wrong.
    pub fn plan(way: &Way, after: Duration) -> Option<Self> {
        let keyring = Arc::clone(way.keyring()?);
        let way = way.clone();
        Some(Self(tokio::spawn(async move {
            tokio::time::sleep(after).await;
            loop {
                match enrol::renew(&way, &keyring).await {
                    Ok(()) => {
                        tracing::info!(
                            "the certificate was renewed, and is in {}",
                            keyring.file().display()
                        );
                        return;
                    }
                    Err(error @ JoinError::Dial { error: DialError::Useless(_), .. }) => {
                        tracing::error!("the certificate cannot be renewed: {error}");
                        return;
                    }
                    Err(error) => tracing::warn!(
                        "the certificate was not renewed: {error}; trying again in {} min",
                        AGAIN_AFTER.as_secs() / 60
                    ),
                }
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        })))
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}
