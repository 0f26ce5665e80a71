//! Confidence intervals of a mean.

/// Returns the 95 % confidence interval of the mean, by Student's t; `None` with fewer than two samples. Samples are rates and
/// times, so the interval does not reach below zero.
pub(super) fn confidence_95(samples: &[f64]) -> Option<[f64; 2]> {
    let freedom = samples.len().checked_sub(1).filter(|freedom| *freedom > 0)?;
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    let standard_error = (squares / freedom as f64 / count).sqrt();
    let reach = critical_95(freedom) * standard_error;
    Some([(mean - reach).max(0.0), mean + reach])
}

/// Two-sided critical values for 1 to 10 degrees of freedom.
const CRITICAL_95: [f64; 10] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
    2.262_157, 2.228_139,
];

/// Returns a critical value. Beyond the table, the expansion around the normal distribution is right to three decimals.
fn critical_95(freedom: usize) -> f64 {
    if let Some(value) = freedom.checked_sub(1).and_then(|index| CRITICAL_95.get(index)) {
        return *value;
    }
    let (z, n) = (1.959_964_f64, freedom as f64);
    let first = (z.powi(3) + z) / (4.0 * n);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n.powi(2));
    let third =
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * n.powi(3));
    z + first + second + third
}

#[cfg(test)]
mod tests {
    use super::{confidence_95, critical_95};

    #[test]
    fn an_interval_needs_two_samples() {
        assert_eq!(confidence_95(&[]), None);
        assert_eq!(confidence_95(&[5.0]), None);
        assert_eq!(confidence_95(&[5.0, 5.0]), Some([5.0, 5.0]));
    }

    #[test]
    fn the_interval_of_three_windows_equals_the_textbook() {
        // Mean 11, standard deviation 1, so 11 -+ 4.3027 / sqrt(3).
        let [low, high] = confidence_95(&[10.0, 11.0, 12.0]).unwrap();
        assert!((low - 8.515_862).abs() < 1e-5 && (high - 13.484_138).abs() < 1e-5, "{low} {high}");
    }

    #[test]
    fn an_interval_never_reaches_below_zero() {
        assert_eq!(confidence_95(&[1.0, 9.0]).unwrap()[0], 0.0);
    }

    #[test]
    fn the_series_expansion_equals_published_values() {
        for (freedom, value) in
            [(11, 2.200_985), (20, 2.085_963), (30, 2.042_272), (120, 1.979_930)]
        {
            assert!((critical_95(freedom) - value).abs() < 5e-4, "{freedom}");
        }
    }
}
