//! `inrush certs`: the coordinator's CA, tokens, and this machine's user.

use std::{env, path::Path, time::Duration};

use inrush_agent::{
    credentials::{JoinError, enrol},
    join::{NoWay, read_token},
};
use inrush_common::{
    address,
    id::AgentName,
    join::{JoinToken, Role},
};

use super::{
    certs_args::{CertsCommand, CertsDirArgs, CertsJoinArgs, CertsRevokeArgs, CertsTokenArgs},
    connect::{connect, vault},
    console::Console,
    error::CliError,
    serve::data_dir,
    table::table,
};
use crate::{
    certs::{Authority, CertsError, Entry, Grant, Register, State},
    client::ClientError,
    clock,
    exit::ExitStatus,
};

/// `inrush certs …`
///
/// # Errors
/// When files cannot be used, or a coordinator refuses.
pub(super) async fn certs(
    command: &CertsCommand,
    console: &mut Console<'_>,
) -> Result<ExitStatus, CliError> {
    match command {
        CertsCommand::Init(args) => init(args, console),
        CertsCommand::Token(args) => token(args, console).await,
        CertsCommand::List(args) => list(args, console),
        CertsCommand::Revoke(args) => revoke(args, console),
        CertsCommand::Join(args) => join(args, console).await,
    }
}

fn init(args: &CertsDirArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let dir = data_dir(args.data_dir.as_deref());
    let (authority, made) = Authority::init(&dir, clock::wall()).map_err(failed)?;
    // So that it is there, and for its owner only, before the coordinator or anybody else opens it.
    Register::open(&dir).map_err(failed)?;
    let shown = dir.display();
    console.say(&if made {
        format!(
            "made a CA in {shown}/certs; keep its key ca.key to yourself\nnext: inrush serve --data-dir {shown}, and a \
             token for each agent and user from inrush certs token --data-dir {shown}"
        )
    } else {
        format!("there is a CA in {shown}/certs already; nothing was changed")
    });
    console.print(&format!("{}\n", authority.fingerprint()))?;
    Ok(ExitStatus::Passed)
}

async fn token(args: &CertsTokenArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let token = match &args.at.coordinator {
        Some(_) => asked_for(args).await?,
        None => made(args)?,
    };
    let use_it = match token.role {
        Role::Agent => "inrush agent --join TOKEN --coordinator …",
        Role::User => "inrush certs join TOKEN --coordinator …",
    };
    console.say(&format!(
        "good once, for {}: {use_it}\nas an argument it is seen by every user of that machine: give a file, stdin (-) or \
         INRUSH_JOIN_TOKEN instead",
        humantime::format_duration(args.expires)
    ));
    console.print(&format!("{}\n", token.reveal()))?;
    Ok(ExitStatus::Passed)
}

fn made(args: &CertsTokenArgs) -> Result<JoinToken, CliError> {
    let dir = data_dir(args.at.data_dir.as_deref());
    let authority = Authority::open(&dir).map_err(failed)?;
    let grant =
        Grant { role: args.role, name: args.name.clone(), expires_in: args.expires, made_by: None };
    let register = Register::open(&dir).map_err(failed)?;
    let secret = register.invite(&grant, clock::wall()).map_err(failed)?;
    Ok(JoinToken { role: args.role, ca: authority.fingerprint(), secret })
}

/// A user may have a token made for an agent; all else takes the data directory.
async fn asked_for(args: &CertsTokenArgs) -> Result<JoinToken, CliError> {
    if args.role != Role::Agent {
        return Err(CliError::Usage(
            "--coordinator gives tokens for agents only: make one for a user on the coordinator's machine, with \
             --data-dir"
                .to_owned(),
        ));
    }
    let mut client = connect(&args.at.to_coordinator()).await?;
    Ok(client.invite(args.name.as_ref(), args.expires).await?)
}

fn list(args: &CertsDirArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let dir = data_dir(args.data_dir.as_deref());
    let entries = opened(&dir)?.list().map_err(failed)?;
    if entries.is_empty() {
        console.say("no certificates yet; make a token with `inrush certs token`");
    } else {
        console.print(&certificates_table(&entries))?;
    }
    Ok(ExitStatus::Passed)
}

fn certificates_table(entries: &[Entry]) -> String {
    let now = clock::wall();
    let date = |seconds: u64| {
        let at = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        humantime::format_rfc3339_seconds(at).to_string()
    };
    let rows: Vec<_> = entries
        .iter()
        .map(|entry| {
            let state = match entry.state(now) {
                State::Valid => "valid",
                State::Expired => "expired",
                State::Revoked => "revoked",
            };
            [
                entry.name.to_string(),
                entry.role.to_string(),
                state.to_owned(),
                date(entry.issued_at_s),
                date(entry.expires_at_s),
                entry.fingerprint.to_string(),
            ]
        })
        .collect();
    table(["NAME", "ROLE", "STATE", "ISSUED", "EXPIRES", "FINGERPRINT"], &rows)
}

fn revoke(args: &CertsRevokeArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let dir = data_dir(args.dir.data_dir.as_deref());
    let mut register = opened(&dir)?;
    let revoked = register.revoke(&args.name, clock::wall()).map_err(failed)?;
    if revoked == 0 {
        let name = &args.name;
        return Err(CliError::Usage(format!(
            "{name} has no certificate to revoke (unused tokens for that name are void now); `inrush certs list` shows all"
        )));
    }
    console.say(&format!(
        "revoked {revoked} certificate{} of {}; a coordinator that is running cuts its connections within a second",
        if revoked == 1 { "" } else { "s" },
        args.name
    ));
    Ok(ExitStatus::Passed)
}

async fn join(args: &CertsJoinArgs, console: &mut Console<'_>) -> Result<ExitStatus, CliError> {
    let token =
        read_token(&args.token).map_err(|error: NoWay| CliError::Usage(error.to_string()))?;
    if token.role != Role::User {
        let remedy =
            "use it with `inrush agent --join`, or get one from `inrush certs token --role user`";
        return Err(CliError::Usage(JoinError::Role { is: token.role, remedy }.to_string()));
    }
    let address = address::coordinator(&args.coordinator.coordinator).map_err(ClientError::from)?;
    let vault = vault(&args.coordinator);
    let otherwise = user_name();
    let joined = enrol::join(&address, &token, args.name.as_ref(), &otherwise, &vault).await;
    let keyring = joined.map_err(|error| match error {
        JoinError::Refused { .. } => CliError::Usage(error.to_string()),
        error => CliError::Internal(error.to_string()),
    })?;
    console.say(&format!(
        "joined the coordinator at {address} as {}; the certificate is in {}",
        keyring.current().name,
        keyring.file().display()
    ));
    Ok(ExitStatus::Passed)
}

/// What this user is called, as far as it can be a name.
fn user_name() -> AgentName {
    let name = env::var("USER").ok().and_then(|name| name.parse().ok());
    name.unwrap_or_else(|| "user".parse().expect("a name"))
}

fn opened(dir: &Path) -> Result<Register, CliError> {
    // Opening it would make one where there is none.
    Authority::open(dir).map_err(failed)?;
    Register::open(dir).map_err(failed)
}

fn failed(error: CertsError) -> CliError {
    match error {
        CertsError::Missing(_) => CliError::Usage(error.to_string()),
        error => CliError::Internal(error.to_string()),
    }
}

/// A token's life: long enough to carry it over, short enough to be forgotten.
pub(super) fn expiry(text: &str) -> Result<Duration, String> {
    use crate::server::LONGEST_TOKEN;
    let life = humantime::parse_duration(text)
        .map_err(|error| format!("{error}; expected a time with its unit, such as 1h"))?;
    if (Duration::from_secs(1)..=LONGEST_TOKEN).contains(&life) {
        Ok(life)
    } else {
        Err("expected between 1s and 7d".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_lives_between_a_second_and_a_week() {
        assert_eq!(expiry("1h"), Ok(Duration::from_secs(3_600)));
        for bad in ["1", "0s", "8d"] {
            assert!(expiry(bad).is_err(), "{bad}");
        }
        assert!(expiry("1").unwrap_err().contains("such as 1h"));
    }
}
