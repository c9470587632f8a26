use std::sync::Barrier;

use inrush_agent::credentials::KeyPair;
use tempfile::TempDir;

use super::*;
use crate::certs::Authority;

const HOUR: Duration = Duration::from_secs(3_600);

struct Bench {
    dir: TempDir,
    authority: Authority,
    now: SystemTime,
}

impl Bench {
    fn new() -> Self {
        let (dir, now) = (tempfile::tempdir().unwrap(), crate::clock::wall());
        let (authority, made) = Authority::init(dir.path(), now).unwrap();
        assert!(made);
        Self { dir, authority, now }
    }

    fn register(&self) -> Register {
        Register::open(self.dir.path()).unwrap()
    }

    fn token(&self, role: Role, name: Option<&str>) -> Secret {
        let name = name.map(|name| name.parse().unwrap());
        let grant = Grant { role, name, expires_in: HOUR, made_by: None };
        self.register().invite(&grant, self.now).unwrap()
    }

    fn admit(&self, secret: &Secret, name: Option<&str>, at: SystemTime) -> Result<String, String> {
        let admission = Admission {
            secret,
            role: Role::Agent,
            name: name.map(|name| name.parse().unwrap()),
            otherwise: "host".parse().unwrap(),
        };
        let sign = |name: &AgentName| {
            let key = KeyPair::generate().unwrap();
            self.authority.issue(Role::Agent, name, &key.public, at)
        };
        let admitted = self.register().admit(&admission, at, sign);
        admitted.map(|(name, _)| name.to_string()).map_err(|error| error.to_string())
    }
}

#[test]
fn a_token_lets_in_once_also_over_a_restart() {
    let bench = Bench::new();
    let token = bench.token(Role::Agent, Some("lab1"));
    assert_eq!(bench.admit(&token, None, bench.now).as_deref(), Ok("lab1"));
    let again = bench.admit(&token, None, bench.now).unwrap_err();
    assert!(again.contains("used before"), "{again}");
}

#[test]
fn of_many_at_once_with_one_token_one_gets_in() {
    let bench = Bench::new();
    let token = bench.token(Role::Agent, None);
    let line = Barrier::new(8);
    let admitted = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|at| {
                let (bench, token, line) = (&bench, &token, &line);
                scope.spawn(move || {
                    line.wait();
                    bench.admit(token, Some(&format!("lab{at}")), bench.now)
                })
            })
            .collect();
        tries.into_iter().filter_map(|it| it.join().unwrap().ok()).count()
    });
    assert_eq!(admitted, 1);
    assert_eq!(bench.register().list().unwrap().len(), 1);
}

#[test]
fn tokens_that_are_late_unknown_or_for_another_role_let_nobody_in() {
    let bench = Bench::new();
    let token = bench.token(Role::Agent, None);
    let late = bench.admit(&token, None, bench.now + HOUR).unwrap_err();
    assert!(late.contains("has expired"), "{late}");
    for unknown in [Secret([1; 32]), bench.token(Role::User, None)] {
        let error = bench.admit(&unknown, None, bench.now).unwrap_err();
        assert!(error.contains("not known here"), "{error}");
    }
    assert!(bench.register().list().unwrap().is_empty());
}

#[test]
fn a_wrong_name_does_not_use_the_token_up() {
    let bench = Bench::new();
    let token = bench.token(Role::Agent, Some("lab1"));
    let error = bench.admit(&token, Some("lab2"), bench.now).unwrap_err();
    assert!(error.contains("is for lab1, not for lab2"), "{error}");
    assert_eq!(bench.admit(&token, Some("lab1"), bench.now).as_deref(), Ok("lab1"));
}

#[test]
fn a_token_for_anybody_does_not_make_its_holder_somebody_else() {
    let bench = Bench::new();
    bench.admit(&bench.token(Role::Agent, None), Some("lab1"), bench.now).unwrap();
    let anybody = bench.token(Role::Agent, None);
    let error = bench.admit(&anybody, Some("lab1"), bench.now).unwrap_err();
    assert!(error.contains("lab1 has a certificate already"), "{error}");
    let meant = bench.token(Role::Agent, Some("lab1"));
    assert_eq!(bench.admit(&meant, None, bench.now).as_deref(), Ok("lab1"));
    // A name whose certificates have expired is free.
    let later = bench.now + crate::certs::LIFETIME;
    let grant = Grant { role: Role::Agent, name: None, expires_in: HOUR, made_by: None };
    let token = bench.register().invite(&grant, later).unwrap();
    assert_eq!(bench.admit(&token, Some("lab1"), later).as_deref(), Ok("lab1"));
}

#[test]
fn revoking_ends_all_certificates_of_a_name_and_its_unused_tokens() {
    let bench = Bench::new();
    for name in ["lab1", "lab2"] {
        bench.admit(&bench.token(Role::Agent, Some(name)), None, bench.now).unwrap();
    }
    bench.admit(&bench.token(Role::Agent, Some("lab1")), None, bench.now).unwrap();
    let unused = bench.token(Role::Agent, Some("lab1"));
    assert_eq!(bench.register().revoke(&"lab1".parse().unwrap(), bench.now).unwrap(), 2);
    let listed = bench.register().list().unwrap();
    let states: Vec<_> =
        listed.iter().map(|entry| (entry.name.as_str(), entry.state(bench.now))).collect();
    let expected = [("lab1", State::Revoked), ("lab1", State::Revoked), ("lab2", State::Valid)];
    assert_eq!(states, expected);
    assert_eq!(bench.register().revoked().unwrap().len(), 2);
    assert!(bench.admit(&unused, None, bench.now).unwrap_err().contains("expired"));
    // A token that is made afterwards is good.
    let new = bench.token(Role::Agent, Some("lab1"));
    assert_eq!(bench.admit(&new, None, bench.now).as_deref(), Ok("lab1"));
}

#[test]
fn a_second_init_keeps_the_first_ca_and_nothing_is_readable_by_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Bench::new();
    let token = bench.token(Role::Agent, None);
    bench.admit(&token, None, bench.now).unwrap();
    let (again, made) = Authority::init(bench.dir.path(), bench.now).unwrap();
    assert_eq!((again.fingerprint(), made), (bench.authority.fingerprint(), false));
    let folder = bench.dir.path().join("certs");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let content = fs::read(&path).unwrap();
        let has_secret = content.windows(32).any(|window| window == token.0);
        assert!(!has_secret, "{} holds a token", path.display());
    }
}
