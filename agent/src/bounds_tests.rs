use inrush_common::{
    plan::{ArrivalProcess, OpenLoad, Overflow},
    schedule::{ConnectionProfile, Interleave, RateProfile},
};

use super::*;

fn bounds(targets: &[&str]) -> Bounds {
    Bounds { targets: targets.iter().map(|it| it.parse().unwrap()).collect(), max_rate: None }
}

fn is_allowed(targets: &[&str], host: &str, address: &str) -> bool {
    bounds(targets).permit(host, &[address.parse().unwrap()]).is_ok()
}

#[test]
fn networks_cover_their_addresses_and_no_others() {
    assert!(
        is_allowed(&[], "203.0.113.9", "203.0.113.9:80"),
        "without a rule everything is allowed"
    );
    for (rule, inside, outside) in [
        ("10.0.0.0/8", "10.255.255.255:80", "11.0.0.0:80"),
        ("10.0.0.77/8", "10.1.2.3:80", "9.255.255.255:80"),
        ("127.0.0.1", "127.0.0.1:80", "127.0.0.2:80"),
        ("127.0.0.1/32", "127.0.0.1:9", "127.0.0.0:9"),
        ("127.0.0.1:80", "127.0.0.1:80", "127.0.0.1:81"),
        ("::1", "[::1]:80", "[::2]:80"),
        ("[::1]:80", "[::1]:80", "[::1]:81"),
        ("fd00::/8", "[fdff::1]:80", "[fe80::1]:80"),
        ("10.0.0.0/8", "[::ffff:10.0.0.1]:80", "[::10.0.0.1]:80"),
        ("::/0", "[::1]:80", "127.0.0.1:80"),
    ] {
        assert!(is_allowed(&[rule], "it", inside), "{rule} {inside}");
        assert!(!is_allowed(&[rule], "it", outside), "{rule} {outside}");
    }
    assert!(is_allowed(&["0.0.0.0/0"], "it", "203.0.113.9:1"));
}

#[test]
fn a_name_covers_what_itself_resolves_to_and_nothing_that_was_put_in_its_place() {
    for host in ["shop.example.test", "SHOP.example.test", "shop.example.test."] {
        assert!(is_allowed(&["Shop.Example.Test"], host, "127.0.0.2:80"), "{host}");
    }
    assert!(is_allowed(&["shop.example.test:80"], "shop.example.test", "127.0.0.2:80"));
    assert!(!is_allowed(&["shop.example.test:80"], "shop.example.test", "127.0.0.2:81"));
    assert!(!is_allowed(&["shop.example.test"], "other.example.test", "127.0.0.2:80"));
    assert!(!is_allowed(&["shop.example.test"], "127.0.0.2", "127.0.0.2:80"));
}

#[test]
fn one_address_out_of_bounds_is_enough_and_is_named_with_the_way_there() {
    let addresses = ["127.0.0.1:80".parse().unwrap(), "127.0.0.2:80".parse().unwrap()];
    let error = bounds(&["127.0.0.1", "::1"]).permit("shop.test", &addresses).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this agent may not send load to 127.0.0.2:80, where shop.test resolves to: its operator allows only \
         127.0.0.1/32, ::1/128 (--allow-target)"
    );
}

#[test]
fn what_is_no_target_is_said_with_one_that_is() {
    for bad in
        ["", "10.0.0.0/33", "::/129", "a/8", "10.0.0", "lab:x", "lab:70000", "http://lab/", ":80"]
    {
        let error = bad.parse::<Allowed>().unwrap_err();
        assert!(error.contains("such as 10.0.0.0/8"), "{bad:?}: {error}");
    }
}

fn closed(connections: u64, think_time: ThinkTime) -> Load {
    Load::Closed(ClosedLoad {
        profile: ConnectionProfile::constant(connections, 0).unwrap(),
        lanes: Interleave::whole(connections),
        requests: Some(1_000_000),
        duration: None,
        think_time,
    })
}

fn open(rate: u64, slots: Interleave) -> Load {
    Load::Open(OpenLoad {
        profile: RateProfile::constant(Rate::per_second(rate).unwrap(), 1_000_000_000).unwrap(),
        slots,
        arrivals: ArrivalProcess::Uniform,
        max_in_flight: 10,
        on_overflow: Overflow::Drop,
    })
}

fn verdict(load: Load, limit: u64) -> Result<(), Forbidden> {
    let bounds = Bounds { targets: vec![], max_rate: Some(Rate::per_second(limit).unwrap()) };
    let phase = Phase { name: "peak".to_owned(), starts_at: Duration::ZERO, measure: true, load };
    let workload = Workload {
        requests: vec![],
        phases: vec![phase],
        timeout: Duration::from_secs(1),
        connect_timeout: Duration::from_secs(1),
        grace: Duration::from_secs(1),
        give_up_after: Duration::from_secs(1),
        connections: inrush_common::plan::ConnectionPolicy::default(),
        seed: 0,
    };
    bounds.permit_rate(&workload)
}

#[test]
fn an_agents_rate_is_that_of_its_own_share() {
    assert_eq!(verdict(open(100, Interleave::whole(100)), 100), Ok(()));
    let error = verdict(open(101, Interleave::whole(101)), 100).unwrap_err().to_string();
    assert!(error.contains("101.0 requests per second") && error.contains("100/s"), "{error}");
    let half = Interleave::deal(&[100, 100]).unwrap().remove(0);
    assert_eq!(verdict(open(200, half), 100), Ok(()));
}

#[test]
fn a_closed_load_needs_a_pause_that_bounds_it() {
    let pause = Duration::from_millis(100);
    assert_eq!(verdict(closed(10, ThinkTime::Fixed(pause)), 100), Ok(()));
    assert_eq!(verdict(closed(10, ThinkTime::Uniform(pause, pause * 9)), 100), Ok(()));
    let fast = verdict(closed(11, ThinkTime::Fixed(pause)), 100);
    assert!(matches!(fast, Err(Forbidden::Rate { .. })), "{fast:?}");
    for unbounded in [ThinkTime::None, ThinkTime::Exponential(pause)] {
        let error = verdict(closed(1, unbounded), 100).unwrap_err().to_string();
        assert!(error.contains("open load with a rate"), "{error}");
    }
}
