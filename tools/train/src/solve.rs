//! Logistic regression with the same result on every machine: no threads, no randomness, and `libm` for the
//! exponential.

/// One row of training data.
pub(crate) struct Row {
    /// Columns, each with the same value.
    pub(crate) columns: Vec<u32>,
    pub(crate) value: f64,
    pub(crate) label: bool,
    pub(crate) weight: f64,
}

const STEPS: usize = 120;
const MEMORY: usize = 8;

/// Returns the weights and intercept that minimise `|w|²/2 + C Σ weight · loss`, by L-BFGS.
pub(crate) fn fit_sparse_logistic(rows: &[&Row], columns: usize, c: f64) -> (Vec<f64>, f64) {
    let mut x = vec![0.0; columns + 1];
    let (mut value, mut gradient) = objective(rows, &x, c);
    let mut history: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for _ in 0..STEPS {
        let direction = direction(&gradient, &history);
        let slope = dot(&direction, &gradient);
        if slope > -1e-7 {
            break;
        }
        let mut step = if history.is_empty() {
            1.0 / dot(&gradient, &gradient).sqrt().max(1.0)
        } else {
            1.0
        };
        let (next, next_value, next_gradient) = loop {
            let next: Vec<f64> = x
                .iter()
                .zip(&direction)
                .map(|(x, d)| x + step * d)
                .collect();
            let (next_value, next_gradient) = objective(rows, &next, c);
            if next_value <= value + 1e-4 * step * slope || step < 1e-9 {
                break (next, next_value, next_gradient);
            }
            step /= 2.0;
        };
        let moved: Vec<f64> = next.iter().zip(&x).map(|(a, b)| a - b).collect();
        let turned: Vec<f64> = next_gradient
            .iter()
            .zip(&gradient)
            .map(|(a, b)| a - b)
            .collect();
        let done = (value - next_value).abs() < 1e-7 * value.abs();
        if dot(&moved, &turned) > 1e-12 {
            history.push((moved, turned));
            if history.len() > MEMORY {
                history.remove(0);
            }
        }
        (x, value, gradient) = (next, next_value, next_gradient);
        if done {
            break;
        }
    }
    let intercept = x.pop().unwrap_or_default();
    (x, intercept)
}

fn objective(rows: &[&Row], x: &[f64], c: f64) -> (f64, Vec<f64>) {
    let last = x.len() - 1;
    let mut gradient = x.to_vec();
    gradient[last] = 0.0;
    let mut value: f64 = x[..last].iter().map(|w| w * w).sum::<f64>() / 2.0;
    for row in rows {
        let sum: f64 = row.columns.iter().map(|&at| x[at as usize]).sum();
        let z = x[last] + row.value * sum;
        value += c * row.weight * loss(z, row.label);
        let error = c * row.weight * (sigmoid(z) - f64::from(u8::from(row.label)));
        for &at in &row.columns {
            gradient[at as usize] += error * row.value;
        }
        gradient[last] += error;
    }
    (value, gradient)
}

fn direction(gradient: &[f64], history: &[(Vec<f64>, Vec<f64>)]) -> Vec<f64> {
    let mut q: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut alphas = Vec::with_capacity(history.len());
    for (moved, turned) in history.iter().rev() {
        let alpha = dot(moved, &q) / dot(moved, turned);
        add(&mut q, turned, -alpha);
        alphas.push(alpha);
    }
    if let Some((moved, turned)) = history.last() {
        let scale = dot(moved, turned) / dot(turned, turned);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((moved, turned), alpha) in history.iter().zip(alphas.iter().rev()) {
        let beta = dot(turned, &q) / dot(moved, turned);
        add(&mut q, moved, alpha - beta);
    }
    q
}

fn add(to: &mut [f64], other: &[f64], times: f64) {
    to.iter_mut().zip(other).for_each(|(a, b)| *a += times * b);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns bias and slopes, none of them negative, for a few dense columns: Newton steps, one slope at a time.
pub(crate) fn dense<const N: usize>(rows: &[([f64; N], bool, f64)], ridge: f64) -> (f64, [f64; N]) {
    let (mut bias, mut slopes) = (0.0, [0.0; N]);
    let mut z = vec![0.0; rows.len()];
    for _ in 0..400 {
        let mut moved: f64 = 0.0;
        for at in 0..=N {
            let x = |row: &[f64; N]| if at == N { 1.0 } else { row[at] };
            let (mut gradient, mut curvature) = (0.0, 1e-9);
            for ((row, label, weight), z) in rows.iter().zip(&z) {
                let (x, p) = (x(row), sigmoid(*z));
                gradient += weight * x * (p - f64::from(u8::from(*label)));
                curvature += weight * x * x * (p * (1.0 - p)).max(1e-4);
            }
            let now = if at == N { bias } else { slopes[at] };
            if at < N {
                gradient += 2.0 * ridge * now;
                curvature += 2.0 * ridge;
            }
            let step = (gradient / curvature).clamp(-0.5, 0.5);
            let next = if at == N {
                now - step
            } else {
                f64::max(now - step, 0.0)
            };
            for ((row, ..), z) in rows.iter().zip(&mut z) {
                *z += x(row) * (next - now);
            }
            moved = moved.max((next - now).abs());
            if at == N {
                bias = next;
            } else {
                slopes[at] = next;
            }
        }
        if moved < 1e-6 {
            break;
        }
    }
    (bias, slopes)
}

/// Returns bias and weights, each within its bounds, for dozens of dense columns that are scaled first.
pub(crate) fn ridge<const N: usize>(
    rows: &[([f64; N], bool, f64)],
    strength: f64,
    bounds: &[(f64, f64); N],
) -> (f64, [f64; N]) {
    let all: f64 = rows.iter().map(|row| row.2).sum();
    let mean = |of: &dyn Fn(&[f64; N]) -> f64| {
        rows.iter().map(|(x, _, w)| w * of(x)).sum::<f64>() / all.max(1e-9)
    };
    let means: [f64; N] = std::array::from_fn(|at| mean(&|x| x[at]));
    let scales: [f64; N] =
        std::array::from_fn(|at| mean(&|x| (x[at] - means[at]).powi(2)).sqrt() + 1e-6);
    let rows: Vec<([f64; N], bool, f64)> = rows
        .iter()
        .map(|(x, label, weight)| {
            let x = std::array::from_fn(|at| (x[at] - means[at]) / scales[at]);
            (x, *label, *weight)
        })
        .collect();
    let (mut bias, mut weights) = (0.0, [0.0; N]);
    let mut z = vec![0.0; rows.len()];
    for _ in 0..400 {
        let mut moved: f64 = 0.0;
        for at in 0..=N {
            let x = |row: &[f64; N]| if at == N { 1.0 } else { row[at] };
            let (mut gradient, mut curvature) = (0.0, 1e-9);
            for ((row, label, weight), z) in rows.iter().zip(&z) {
                let (x, p) = (x(row), sigmoid(*z));
                gradient += weight * x * (p - f64::from(u8::from(*label)));
                curvature += weight * x * x * (p * (1.0 - p)).max(1e-4);
            }
            let now = if at == N { bias } else { weights[at] };
            if at < N {
                gradient += strength * now;
                curvature += strength;
            }
            let next = now - (gradient / curvature).clamp(-0.5, 0.5);
            let next = match bounds.get(at) {
                Some((low, high)) => next.clamp(*low, *high),
                None => next,
            };
            for ((row, ..), z) in rows.iter().zip(&mut z) {
                *z += x(row) * (next - now);
            }
            moved = moved.max((next - now).abs());
            if at == N {
                bias = next;
            } else {
                weights[at] = next;
            }
        }
        if moved < 1e-5 {
            break;
        }
    }
    for at in 0..N {
        weights[at] /= scales[at];
        bias -= weights[at] * means[at];
    }
    (bias, weights)
}

fn loss(z: f64, label: bool) -> f64 {
    let z = if label { -z } else { z };
    z.max(0.0) + libm::log1p(libm::exp(-z.abs()))
}

pub(crate) fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-z))
}
