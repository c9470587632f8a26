//! Adding up loses nothing and does not depend on the way it was done.

use inrush_common::{
    outcome::{ErrorClass, Outcome},
    stats::{Example, Histogram, MAX_ROWS, RequestStats, Sample, Snapshot, Stats, Totals},
};
use proptest::{collection::vec, prelude::*, sample::Index};

use crate::strategies::{histogram, nanos, request_stats, sample, snapshot, stats};

fn config() -> ProptestConfig {
    ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() }
}

fn sum<T: Clone>(parts: &[&T], add: impl Fn(&mut T, &T)) -> T {
    let mut sum = parts[0].clone();
    for part in &parts[1..] {
        add(&mut sum, part);
    }
    sum
}

fn totals(snapshots: impl IntoIterator<Item = Snapshot>) -> Totals {
    let mut totals = Totals::default();
    for snapshot in snapshots {
        totals.add(&snapshot);
    }
    totals
}

fn samples_to_histogram(samples: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for nanos in samples {
        histogram.record(*nanos);
    }
    histogram
}

/// A few agents with few numbers each, so that keys meet.
fn snapshots() -> impl Strategy<Value = Vec<Snapshot>> {
    // Some so late that rows of a second do not do.
    let late = prop_oneof![Just(0_u64), 0_u64..8 * 24 * 3_600];
    let keyed = (snapshot(), 0_usize..3, 0_u64..2, 1_u64..5, late).prop_map(
        |(mut snapshot, agent, epoch, seq, late_s)| {
            snapshot.interval.from_ns += late_s * 1_000_000_000;
            snapshot.interval.to_ns += late_s * 1_000_000_000;
            snapshot.key.agent = ["lab1", "lab2", "lab3"][agent].parse().unwrap();
            snapshot.key.epoch.0 = epoch;
            snapshot.key.seq.0 = seq;
            snapshot
        },
    );
    vec(keyed, 1..8).prop_map(|mut snapshots| {
        snapshots.sort_by(|a, b| a.key.cmp(&b.key));
        snapshots.dedup_by(|a, b| a.key == b.key);
        snapshots
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn histograms_add_in_any_order_and_nothing_is_neutral(a in histogram(), b in histogram(), c in histogram()) {
        let left = sum(&[&sum(&[&a, &b], Histogram::add), &c], Histogram::add);
        let right = sum(&[&a, &sum(&[&c, &b], Histogram::add)], Histogram::add);
        prop_assert_eq!(&left, &right);
        prop_assert_eq!(left.to_v2(), right.to_v2());
        prop_assert_eq!(left.count(), a.count() + b.count() + c.count());
        prop_assert_eq!(&sum(&[&a, &Histogram::default()], Histogram::add), &a);
        prop_assert_eq!(&sum(&[&Histogram::default(), &a], Histogram::add), &a);
    }

    #[test]
    fn many_recorders_merged_equal_one_fed_with_everything(parts in vec(vec(nanos(), 0..40), 1..6)) {
        let merged = parts.iter().fold(Histogram::default(), |mut merged, part| {
            // Over the wire, as between machines.
            let part = samples_to_histogram(part);
            merged.add(&Histogram::from_v2(&part.to_v2(), part.overflow()).unwrap());
            merged
        });
        let one = samples_to_histogram(&parts.concat());
        prop_assert_eq!(merged.buckets(), one.buckets());
        prop_assert_eq!(merged.overflow(), one.overflow());
        prop_assert_eq!(merged.to_v2_deflate(), one.to_v2_deflate());
        for q in [0.0, 0.5, 0.9, 0.999, 1.0] {
            prop_assert_eq!(merged.quantile(q), one.quantile(q));
        }
        prop_assert_eq!((merged.min(), merged.mean(), merged.max()), (one.min(), one.mean(), one.max()));
    }

    #[test]
    fn every_sample_is_in_its_bucket_or_in_the_overflow(samples in vec(nanos(), 0..60)) {
        let histogram = samples_to_histogram(&samples);
        let above = samples.iter().filter(|nanos| **nanos > 3_600_000_000_000).count() as u64;
        prop_assert_eq!(histogram.overflow(), above);
        prop_assert_eq!(histogram.count(), samples.len() as u64);
        let counted: u64 = histogram.buckets().iter().map(|(_, count)| count).sum();
        prop_assert_eq!(counted + above, samples.len() as u64);
    }

    #[test]
    fn a_quantile_is_within_a_bucket_of_the_sample_at_its_rank(
        mut samples in vec(1_000_u64..3_600_000_000_000, 1..200),
        q in 0.001_f64..1.0,
    ) {
        let histogram = samples_to_histogram(&samples);
        samples.sort_unstable();
        let rank = ((q * samples.len() as f64).ceil() as usize).max(1);
        let exact = samples[rank - 1];
        let got = histogram.quantile(q).unwrap();
        prop_assert!(got >= exact && got - exact <= 512.max(exact / 1000), "{got} for {exact}");
    }

    #[test]
    fn quantiles_rise_also_when_samples_lie_above_the_top(samples in vec(nanos(), 1..60)) {
        let histogram = samples_to_histogram(&samples);
        let values: Vec<_> = (0..=100).map(|q| histogram.quantile(f64::from(q) / 100.0)).collect();
        // Unknown ones only at the end, where the samples above the top lie.
        let known: Vec<_> = values.iter().map_while(|value| *value).collect();
        prop_assert!(known.is_sorted());
        prop_assert!(values[known.len()..].iter().all(Option::is_none));
        prop_assert_eq!(known.len() == values.len(), histogram.overflow() == 0);
    }

    #[test]
    fn accounts_add_in_any_order_and_nothing_is_neutral(a in stats(2, 2), b in stats(2, 1), c in stats(1, 2)) {
        for add in [Stats::add_interval, Stats::add_parallel] {
            let left = sum(&[&sum(&[&a, &b], add), &c], add);
            let right = sum(&[&sum(&[&c, &b], add), &a], add);
            prop_assert_eq!(left, right);
            prop_assert_eq!(&sum(&[&a, &Stats::default()], add), &a);
            prop_assert_eq!(&sum(&[&Stats::default(), &a], add), &a);
        }
    }

    #[test]
    fn peaks_over_time_are_the_highest_and_peaks_side_by_side_the_sum(a in stats(1, 1), b in stats(1, 1)) {
        let (x, y) = (a.connections.peak, b.connections.peak);
        prop_assert_eq!(sum(&[&a, &b], Stats::add_interval).connections.peak, x.max(y));
        prop_assert_eq!(sum(&[&a, &b], Stats::add_parallel).connections.peak, x + y);
    }

    #[test]
    fn accounts_of_parts_add_up_to_the_accounts_of_all(parts in vec(vec(sample(), 0..8), 1..5)) {
        let record = |samples: &[Sample]| {
            let mut stats = RequestStats { started: samples.len() as u64, ..RequestStats::default() };
            samples.iter().for_each(|sample| stats.record(sample));
            stats
        };
        let recorded: Vec<_> = parts.iter().map(|part| record(part)).collect();
        let merged = sum(&recorded.iter().collect::<Vec<_>>(), RequestStats::add);
        let one = record(&parts.concat());
        prop_assert_eq!(one.completed(), one.started);
        let statuses: u64 = one.statuses.values().map(|count| count.succeeded + count.failed).sum();
        prop_assert_eq!(statuses + one.errors.iter().sum::<u64>(), one.completed());
        prop_assert_eq!(merged, one);
    }

    #[test]
    fn cleared_accounts_equal_new_ones(mut stats in stats(3, 2), sample in sample()) {
        stats.clear();
        prop_assert_eq!(&stats, &Stats::new(3, 2));
        let mut fresh = Stats::new(3, 2);
        stats.phases[2].requests[1].record(&sample);
        fresh.phases[2].requests[1].record(&sample);
        prop_assert_eq!(stats, fresh);
    }

    #[test]
    fn the_earliest_example_of_a_class_stays(a in request_stats(), b in request_stats()) {
        let both = sum(&[&a, &b], RequestStats::add);
        for class in ErrorClass::ALL {
            let earliest = [&a, &b].into_iter().filter_map(|stats| stats.examples.get(&class)).min();
            prop_assert_eq!(both.examples.get(&class), earliest);
        }
    }

    #[test]
    fn totals_are_the_same_for_any_order_and_any_repetition(
        snapshots in snapshots(),
        order in vec(any::<Index>(), 0..20),
    ) {
        let in_order = totals(snapshots.clone());
        // Some first, in any order and repeated, then all: those already there are not counted again.
        let early = order.iter().map(|index| index.get(&snapshots).clone());
        let all_again = snapshots.iter().rev().cloned();
        prop_assert_eq!(&totals(early.chain(all_again)), &in_order);
    }

    #[test]
    fn totals_hold_every_sample_of_every_snapshot_once(snapshots in snapshots()) {
        let totals = totals(snapshots.clone());
        let mut expected = Stats::default();
        for snapshot in &snapshots {
            expected.add_interval(&snapshot.stats);
        }
        let mut fleet = totals.fleet();
        fleet.connections.peak = 0;
        expected.connections.peak = 0;
        prop_assert_eq!(&fleet, &expected);

        let mut by_row = Histogram::default();
        for row in 0..MAX_ROWS {
            by_row.add(&totals.row(row));
        }
        let total = expected.total();
        let mut all = total.succeeded_times.response_time;
        all.add(&total.failed_times.response_time);
        prop_assert_eq!(by_row, all);
    }
}

#[test]
fn sums_of_lies_are_large_and_do_no_harm() {
    let mut lie = Stats::new(1, 1);
    lie.phases[0].requests[0].started = u64::MAX;
    lie.phases[0].requests[0].errors = [u64::MAX; ErrorClass::ALL.len()];
    lie.phases[0].until_ns = u64::MAX;
    lie.connections.peak = u64::MAX;
    let mut sum = lie.clone();
    sum.add_parallel(&lie);
    assert_eq!(sum, lie);
}

#[test]
fn a_known_snapshot_is_told_from_a_new_one() {
    let snapshot = Snapshot {
        run: "r1".parse().unwrap(),
        key: inrush_common::stats::SnapshotKey {
            agent: "lab1".parse().unwrap(),
            epoch: inrush_common::id::Epoch(1),
            seq: inrush_common::id::SnapshotSeq::FIRST,
        },
        interval: inrush_common::stats::Interval { from_ns: 0, to_ns: 1_000 },
        stats: Stats::new(1, 1),
        gauges: inrush_common::stats::Gauges::default(),
        completion: None,
    };
    let mut totals = Totals::default();
    assert!(totals.add(&snapshot));
    assert!(!totals.add(&snapshot));
}

#[test]
fn only_the_first_words_of_a_class_are_made_and_they_are_bounded() {
    let mut stats = RequestStats::default();
    stats.keep_example(ErrorClass::Reset, 5, || "é".repeat(1_000));
    stats.keep_example(ErrorClass::Reset, 1, || unreachable!("there is an example already"));
    let Example { at_ns, text } = &stats.examples[&ErrorClass::Reset];
    assert_eq!((*at_ns, text.len()), (5, 300));
}

#[test]
fn a_histogram_of_zeros_equals_its_own_decoded_encoding() {
    let zeros = samples_to_histogram(&[0, 0, 0]);
    let back = Histogram::from_v2(&zeros.to_v2(), 0).unwrap();
    assert_eq!(back, zeros);
    assert_eq!((back.min(), back.max()), (zeros.min(), zeros.max()));
}

#[test]
fn a_success_by_the_plans_rule_may_be_any_status() {
    let mut stats = RequestStats::default();
    let sample = |status, success| Sample {
        outcome: Outcome::Response { status, success },
        response_time: 5_000,
        service_time: Some(5_000),
        schedule_lag: Some(0),
        ttfb: Some(4_000),
        bytes_out: 1,
        bytes_in: 2,
    };
    stats.record(&sample(404, true));
    stats.record(&sample(404, false));
    assert_eq!((stats.succeeded, stats.failed), (1, 1));
    assert_eq!((stats.statuses[&404].succeeded, stats.statuses[&404].failed), (1, 1));
    assert_eq!(stats.failed_times.ttfb.count(), 1);
}
