//! The way to a coordinator for a command: with the user's certificate, where there is one for it.

use std::{env, sync::Arc};

use inrush_agent::credentials::{Keyring, Vault, Way, default_state_dir, enrol};
use inrush_common::address;

use super::{args::CoordinatorArgs, error::CliError};
use crate::client::{Client, ClientError};

/// Connects to the coordinator that the arguments name.
///
/// # Errors
/// When there is none, or the user's certificate cannot be used.
pub(super) async fn connect(args: &CoordinatorArgs) -> Result<Client, CliError> {
    Ok(Client::dial(&way(args).await?).await?)
}

/// The credentials of this machine's user.
pub(super) fn vault(args: &CoordinatorArgs) -> Vault {
    let default = || default_state_dir(env::var_os("XDG_STATE_HOME"), env::var_os("HOME"));
    Vault::new(&args.state_dir.clone().unwrap_or_else(default))
}

/// The way to the coordinator. A certificate that is old is renewed on the way.
pub(super) async fn way(args: &CoordinatorArgs) -> Result<Way, CliError> {
    let address = address::coordinator(&args.coordinator).map_err(ClientError::from)?;
    let found = vault(args).user(&address).map_err(|error| CliError::Usage(error.to_string()))?;
    let Some((credentials, file)) = found else { return Ok(Way::plain(address)) };
    let is_old = credentials.is_old();
    let keyring = Arc::new(Keyring::new(credentials, file));
    let way = Way::secured(address, Arc::clone(&keyring));
    if is_old && let Err(error) = enrol::renew(&way, &keyring).await {
        // It may still be good; if not, the command will hear so.
        tracing::warn!("this user's certificate was not renewed: {error}");
    }
    Ok(way)
}
