//! What holds for all rate profiles.

use std::cmp::Ordering::{Greater, Less};

use inrush_common::schedule::{Amount, Cursor, ProfileError, Rate, RateProfile};
use proptest::prelude::*;

use crate::{
    oracle::{compare, integral},
    strategies::{duration, profile, rate, up_to},
};

/// A request of the profile, from a share of its count; `None` when it has none.
fn request(profile: &RateProfile, share: f64) -> Option<u64> {
    let count = profile.count();
    (count > 0).then(|| ((count as f64 * share) as u64).min(count - 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_count_is_the_integral_with_a_begun_request(profile in profile()) {
        let requests = integral(&profile).div_ceil(Amount::UNITS_PER_REQUEST);
        prop_assert_eq!(u128::from(profile.count()), requests);
        prop_assert_eq!(profile.total().units(), integral(&profile));
    }

    #[test]
    fn a_request_is_due_in_the_last_nanosecond_before_it_has_come_together(
        profile in profile(),
        share in 0.0..=1.0,
    ) {
        let Some(k) = request(&profile, share) else { return Ok(()) };
        let due = profile.due(k).unwrap();
        prop_assert!(due < profile.duration_ns());
        prop_assert_ne!(compare(&profile, due, k), Greater);
        prop_assert_eq!(compare(&profile, due + 1, k), Greater);
        prop_assert_eq!(profile.due(profile.count()), None);
    }

    #[test]
    fn due_times_rise_and_do_not_depend_on_what_was_asked_before(
        profile in profile(),
        share in 0.0..=1.0,
        jumps in proptest::collection::vec(0.0..=1.0, 3),
    ) {
        let Some(k) = request(&profile, share) else { return Ok(()) };
        let mut cursor = Cursor::default();
        let mut last = 0;
        for k in k..profile.count().min(k + 20) {
            let due = profile.due_near(k, &mut cursor);
            prop_assert_eq!(due, profile.due(k));
            prop_assert!(due >= Some(last));
            last = due.unwrap();
        }
        for k in jumps.into_iter().filter_map(|share| request(&profile, share)) {
            prop_assert_eq!(profile.due_near(k, &mut cursor), profile.due(k));
        }
    }

    #[test]
    fn what_is_planned_before_an_instant_is_what_is_due_before_it(
        profile in profile(),
        t in up_to(RateProfile::MAX_DURATION_NS + 9),
    ) {
        let planned = profile.planned_before(t);
        prop_assert_ne!(compare(&profile, t, planned), Greater);
        if let Some(last) = planned.checked_sub(1) {
            prop_assert_eq!(compare(&profile, t, last), Greater);
            prop_assert!(profile.due(last) < Some(t));
        }
        prop_assert!(profile.due(planned).is_none_or(|next| next >= t));
    }

    #[test]
    fn the_intervals_of_a_run_add_up_to_its_count(
        profile in profile(),
        mut cuts in proptest::collection::vec(duration(), 0..6),
    ) {
        cuts.extend([0, profile.duration_ns()]);
        cuts.sort_unstable();
        cuts.push(u64::MAX);
        let sum: u64 =
            cuts.array_windows().map(|[from, to]| profile.planned_between(*from, *to)).sum();
        prop_assert_eq!(sum, profile.count());
    }

    #[test]
    fn the_instant_of_any_amount_is_its_inverse(profile in profile(), share in 0.0..1.0) {
        let total = profile.total().units();
        let amount = Amount::from_units((total as f64 * share) as u128);
        match profile.instant_near(amount, &mut Cursor::default()) {
            None => prop_assert!(amount.units() >= total),
            Some(t) => {
                prop_assert!(profile.cumulative(t) <= amount);
                prop_assert!(profile.cumulative(t + 1) > amount);
            }
        }
    }

    #[test]
    fn the_rate_is_never_above_its_peak_and_nothing_after_the_end(
        profile in profile(),
        t in up_to(RateProfile::MAX_DURATION_NS),
    ) {
        prop_assert!(profile.rate_at(t) <= profile.peak());
        prop_assert_eq!(profile.rate_at(profile.duration_ns()), Rate::ZERO);
    }

    #[test]
    fn what_comes_together_in_a_nanosecond_of_a_ramp_is_its_rate(
        from in rate(),
        to in rate(),
        duration in duration(),
        share in 0.0..1.0,
    ) {
        let ramp = RateProfile::ramp(from, to, duration).unwrap();
        let t = (duration as f64 * share) as u64;
        if t < duration {
            let came = ramp.cumulative(t + 1).units() - ramp.cumulative(t).units();
            // At its end a profile has no rate any more.
            let end = if t + 1 < duration { ramp.rate_at(t + 1) } else { to };
            let mean = u128::from(ramp.rate_at(t).micro()) + u128::from(end.micro());
            // All three are rounded to a whole number.
            prop_assert!(came.abs_diff(mean) <= 3, "{came} {mean}");
        }
    }

    #[test]
    fn a_number_of_requests_takes_exactly_its_time(rate in rate(), requests in up_to(1_000_000_000_000_000)) {
        match RateProfile::for_requests(rate, requests) {
            Ok(profile) => {
                prop_assert_eq!(profile.count(), requests);
                // One nanosecond more and the next is due, at the end.
                let longer = RateProfile::constant(rate, profile.duration_ns() + 1);
                if let Ok(longer) = longer && requests > 0 {
                    prop_assert_eq!(longer.due(requests), Some(profile.duration_ns()));
                }
            }
            Err(ProfileError::NeverDone) => prop_assert!(rate.is_zero()),
            Err(error) => {
                prop_assert_eq!(error, ProfileError::TooLong);
                let week = RateProfile::constant(rate, RateProfile::MAX_DURATION_NS).unwrap();
                prop_assert!(week.count() <= requests);
            }
        }
    }

    #[test]
    fn a_spread_has_exactly_its_requests(
        requests in up_to(6_048_000_000_000),
        duration in up_to(RateProfile::MAX_DURATION_NS),
    ) {
        match RateProfile::spread(requests, duration) {
            Ok(profile) => {
                prop_assert_eq!(profile.count(), requests);
                prop_assert_eq!(profile.duration_ns(), duration);
            }
            Err(error) => {
                prop_assert_eq!(error, ProfileError::TooDense);
                let densest = RateProfile::constant(Rate::MAX, duration).unwrap();
                prop_assert_eq!(compare(&densest, duration, requests), Less);
            }
        }
    }
}
