//! Medians and their confidence intervals by the bootstrap (Efron 1979; percentile intervals).

/// Resamplings behind an interval: its ends are then good to about a tenth of its width.
const RESAMPLINGS: usize = 2_000;

/// An interval that holds the true value with 95 % confidence.
pub type Interval = [f64; 2];

/// The middle of the samples.
///
/// # Panics
/// Without samples.
pub fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// The interval of [`median`].
pub fn median_interval(samples: &[f64]) -> Interval {
    interval(samples.len(), |rounds| median(&pick(samples, rounds)))
}

/// The interval of the ratio of two medians whose samples were taken in the same rounds: a round is resampled as a whole.
pub fn ratio_interval(numerator: &[f64], denominator: &[f64]) -> Interval {
    let rounds = numerator.len().min(denominator.len());
    interval(rounds, |picked| median(&pick(numerator, picked)) / median(&pick(denominator, picked)))
}

fn pick(samples: &[f64], rounds: &[usize]) -> Vec<f64> {
    rounds.iter().map(|&round| samples[round]).collect()
}

fn interval(samples: usize, statistic: impl Fn(&[usize]) -> f64) -> Interval {
    // Fixed, so that the same times give the same report (Marsaglia's xorshift).
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap_or_default()
    };
    let mut found: Vec<f64> = (0..RESAMPLINGS)
        .map(|_| statistic(&(0..samples).map(|_| random(samples)).collect::<Vec<_>>()))
        .collect();
    found.sort_by(f64::total_cmp);
    [found[RESAMPLINGS / 40], found[RESAMPLINGS - 1 - RESAMPLINGS / 40]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }

    #[test]
    fn interval_holds_the_median_and_narrows_with_agreement() {
        let wide: Vec<f64> = (0..21).map(f64::from).collect();
        let narrow: Vec<f64> = (0..21).map(|n| 10.0 + f64::from(n) / 100.0).collect();
        let [low, high] = median_interval(&wide);
        assert!(low < 10.0 && 10.0 < high && low > 2.0 && high < 18.0, "{low} {high}");
        let [low, high] = median_interval(&narrow);
        assert!(low < 10.1 && 10.1 < high && high - low < 0.2, "{low} {high}");
    }

    #[test]
    fn ratio_of_paired_rounds_ignores_what_disturbs_both() {
        let quiet = [10.0, 10.1, 10.0, 10.2, 10.1];
        let noise = [1.0, 3.0, 1.5, 1.0, 2.0];
        let ours: Vec<f64> = quiet.iter().zip(noise).map(|(q, n)| q * n * 2.0).collect();
        let peer: Vec<f64> = quiet.iter().zip(noise).map(|(q, n)| q * n).collect();
        assert_eq!(ratio_interval(&ours, &peer), [2.0, 2.0]);
    }
}
