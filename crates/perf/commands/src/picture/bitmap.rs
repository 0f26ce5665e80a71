//! Pixels in memory: their colours, orientation and number.

use super::orientation::Orientation;

/// Grey (one channel) or red, green and blue (three), a byte each, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bitmap {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub pixels: Vec<u8>,
}

impl Bitmap {
    /// Returns the picture turned and mirrored upright.
    pub fn oriented(self, orientation: Orientation) -> Self {
        if orientation == Orientation::default() {
            return self;
        }
        let (width, height) = match orientation.swaps_sides {
            true => (self.height, self.width),
            false => (self.width, self.height),
        };
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for y in 0..height {
            for x in 0..width {
                let x = if orientation.mirrors_x { width - 1 - x } else { x };
                let y = if orientation.mirrors_y { height - 1 - y } else { y };
                let (x, y) = if orientation.swaps_sides { (y, x) } else { (x, y) };
                let at = (y * self.width + x) * self.channels;
                pixels.extend(self.pixels.get(at..at + self.channels).unwrap_or_default());
            }
        }
        Self { width, height, pixels, ..self }
    }

    /// Converts to this number of channels, 1 or 3.
    pub fn with_channels(self, channels: usize) -> Self {
        let pixels = match (self.channels, channels) {
            (3, 1) => self.pixels.as_chunks().0.iter().map(grey).collect(),
            (1, 3) => self.pixels.iter().flat_map(|&grey| [grey; 3]).collect(),
            _ => return self,
        };
        Self { channels, pixels, ..self }
    }

    /// Resizes the picture. Each pixel is the mean of those around its position; nearer ones weigh more.
    pub fn resized(self, width: usize, height: usize) -> Self {
        if (width, height) == (self.width, self.height) {
            return self;
        }
        let row = self.width * self.channels;
        let mut rows = Vec::with_capacity(row * height);
        for y in 0..height {
            let (first, weights) = weights(y, self.height, height);
            rows.extend((0..row).map(|at| {
                let column = self.pixels.iter().skip(first * row + at).step_by(row);
                column
                    .zip(&weights)
                    .fold(0.0, |sum, (&value, weight)| sum + f32::from(value) * weight)
            }));
        }
        let columns: Vec<_> = (0..width).map(|x| weights(x, self.width, width)).collect();
        let mut pixels = Vec::with_capacity(width * height * self.channels);
        for row in rows.chunks_exact(row.max(1)) {
            for (first, weights) in &columns {
                pixels.extend((0..self.channels).map(|channel| {
                    let values = row.iter().skip(first * self.channels + channel);
                    let values = values.step_by(self.channels).zip(weights);
                    let value: f32 = values.fold(0.0, |sum, (value, weight)| sum + value * weight);
                    // A cast saturates at the bounds of the type.
                    value.round() as u8
                }));
            }
        }
        Self { width, height, pixels, ..self }
    }
}

/// Returns the brightness that people perceive.
fn grey(&[red, green, blue]: &[u8; 3]) -> u8 {
    let sum = 2126 * u32::from(red) + 7152 * u32::from(green) + 722 * u32::from(blue);
    u8::try_from(sum / 10_000).unwrap_or(u8::MAX)
}

/// Returns the first of the `old` positions that new position `at` is made of, and the weights of it and those after it.
fn weights(at: usize, old: usize, new: usize) -> (usize, Vec<f32>) {
    let ratio = old as f32 / new as f32;
    let reach = ratio.max(1.0);
    let center = (at as f32 + 0.5) * ratio;
    // A cast saturates at the bounds of the type.
    let first = ((center - reach).floor() as usize).min(old - 1);
    let end = ((center + reach).ceil() as usize).clamp(first + 1, old);
    let weight = |place: usize| (1.0 - ((place as f32 - (center - 0.5)) / reach).abs()).max(0.0);
    let mut weights: Vec<f32> = (first..end).map(weight).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    (first, weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greys(width: usize, pixels: &[u8]) -> Bitmap {
        Bitmap { width, height: pixels.len() / width, channels: 1, pixels: pixels.to_vec() }
    }

    /// Numbers of the crate `image` 0.25.10, which did this before (`resize` with the triangle filter).
    #[test]
    fn resizing_equals_the_reference_library() {
        let small = greys(3, &[0, 100, 200, 30, 60, 90]);
        assert_eq!(small.clone().resized(3, 2), small);
        let wider = [0, 25, 75, 125, 175, 200, 30, 38, 53, 68, 83, 90];
        assert_eq!(small.clone().resized(6, 2).pixels, wider);
        let larger = [0, 40, 100, 160, 200, 15, 41, 80, 119, 145, 30, 42, 60, 78, 90];
        assert_eq!(small.clone().resized(5, 3).pixels, larger);
        assert_eq!(small.clone().resized(3, 1).pixels, [15, 80, 145]);
        assert_eq!(small.resized(1, 1).pixels, [80]);
        let wide = greys(8, &[0, 10, 20, 30, 40, 50, 60, 70]);
        assert_eq!(wide.clone().resized(4, 1).pixels, [7, 25, 45, 63]);
        assert_eq!(wide.with_channels(3).resized(2, 1).pixels, [19, 19, 19, 51, 51, 51]);
    }

    #[test]
    fn colours_are_converted_to_grey_and_back() {
        let pixels = vec![255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        let colored = Bitmap { width: 4, height: 1, channels: 3, pixels };
        let grey = colored.with_channels(1);
        assert_eq!(grey.pixels, [54, 182, 18, 255]);
        assert_eq!(grey.clone().with_channels(1), grey);
        assert_eq!(grey.with_channels(3).pixels[..6], [54, 54, 54, 182, 182, 182]);
    }

    #[test]
    fn every_orientation_is_applied() {
        for (number, width, expected) in [
            (1, 3, [1, 2, 3, 4, 5, 6]),
            (2, 3, [3, 2, 1, 6, 5, 4]),
            (3, 3, [6, 5, 4, 3, 2, 1]),
            (4, 3, [4, 5, 6, 1, 2, 3]),
            (5, 2, [1, 4, 2, 5, 3, 6]),
            (6, 2, [4, 1, 5, 2, 6, 3]),
            (7, 2, [6, 3, 5, 2, 4, 1]),
            (8, 2, [3, 6, 2, 5, 1, 4]),
            (9, 3, [1, 2, 3, 4, 5, 6]),
        ] {
            let turned = greys(3, &[1, 2, 3, 4, 5, 6]).oriented(Orientation::numbered(number));
            assert_eq!(turned, greys(width, &expected), "{number}");
        }
    }
}
