//! Reader of PNG and JPEG files, and writer of PNG.

use std::io::Cursor;

use image::{
    DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageFormat,
    ImageReader, codecs::png::PngEncoder, guess_format, imageops::FilterType,
};

use super::PictureError;

/// Largest picture, in pixels per side and decoded bytes: a small file may claim to be huge.
const LONGEST_SIDE: u32 = 16_384;
const MOST_BYTES: u64 = 512 << 20;

impl From<ImageError> for PictureError {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Limits(error) => Self::TooLarge(error.to_string()),
            error => Self::Decode(error.to_string()),
        }
    }
}

/// Decodes the picture in a file and turns it upright, as its Exif data says.
pub(super) fn decoded(file: &[u8]) -> Result<DynamicImage, PictureError> {
    let format = match guess_format(file) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
        _ => return Err(PictureError::Decode("it is neither PNG nor JPEG".to_owned())),
    };
    let mut decoder = ImageReader::with_format(Cursor::new(file), format).into_decoder()?;
    let (width, height) = decoder.dimensions();
    if width > LONGEST_SIDE || height > LONGEST_SIDE {
        let text = format!("{width} times {height} pixels, more than {LONGEST_SIDE} to a side");
        return Err(PictureError::TooLarge(text));
    }
    if decoder.total_bytes() > MOST_BYTES {
        let text = format!("more than {MOST_BYTES} bytes once it is decoded");
        return Err(PictureError::TooLarge(text));
    }
    let orientation = decoder.orientation()?;
    let mut picture = DynamicImage::from_decoder(decoder)?;
    picture.apply_orientation(orientation);
    Ok(picture)
}

/// Returns the pixels with this number of channels, 1 or 3, and of this size: a byte for each channel, row by row.
pub(super) fn pixels(picture: DynamicImage, channels: usize, width: u32, height: u32) -> Vec<u8> {
    let picture: DynamicImage = match channels {
        1 => picture.into_luma8().into(),
        _ => picture.into_rgb8().into(),
    };
    if (picture.width(), picture.height()) == (width, height) {
        return picture.into_bytes();
    }
    picture.resize_exact(width, height, FilterType::Triangle).into_bytes()
}

/// Encodes pixels as PNG.
pub(super) fn png(
    pixels: &[u8],
    channels: usize,
    width: u32,
    height: u32,
) -> Result<Vec<u8>, PictureError> {
    let color = if channels == 1 { ExtendedColorType::L8 } else { ExtendedColorType::Rgb8 };
    let mut file = Vec::new();
    PngEncoder::new(&mut file).write_image(pixels, width, height, color)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, metadata::Orientation};
    use png::{BitDepth, ColorType};

    use super::*;

    fn file(color: ColorType, depth: BitDepth, data: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 2, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        if color == ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 4, 5, 6]);
        }
        let mut writer = encoder.write_header().expect("a head");
        writer.write_image_data(data).expect("the pixels");
        writer.finish().expect("an end");
        file
    }

    #[test]
    fn all_kinds_of_png_are_decoded() {
        use BitDepth::{Eight, One, Sixteen};
        use ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
        for (color, depth, data, channels, expected) in [
            (Grayscale, Eight, &[7, 9][..], 1, &[7, 9][..]),
            (Grayscale, One, &[0b0100_0000], 1, &[0, 255]),
            (Grayscale, Sixteen, &[255, 255, 0, 129], 1, &[255, 1]),
            (GrayscaleAlpha, Eight, &[7, 0, 9, 255], 1, &[7, 9]),
            (Rgb, Eight, &[1, 2, 3, 4, 5, 6], 3, &[1, 2, 3, 4, 5, 6]),
            (Rgba, Eight, &[1, 2, 3, 0, 4, 5, 6, 9], 3, &[1, 2, 3, 4, 5, 6]),
            (
                Rgba,
                Sixteen,
                &[1, 1, 2, 2, 3, 3, 0, 0, 4, 4, 5, 5, 6, 6, 0, 0],
                3,
                &[1, 2, 3, 4, 5, 6],
            ),
            (Indexed, One, &[0b0100_0000], 3, &[1, 2, 3, 4, 5, 6]),
        ] {
            let found = decoded(&file(color, depth, data)).expect("a picture");
            assert_eq!(pixels(found, channels, 2, 1), expected, "{color:?} {depth:?}");
        }
    }

    /// Eight red pixels beside eight blue ones, upright and from a camera held upside down.
    #[test]
    fn a_jpeg_is_rotated_by_its_exif_orientation() {
        let mut file = include_bytes!("two_colors.jpg").to_vec();
        let upright = decoded(&file).expect("a picture");
        let colors = [[200, 40, 40].repeat(8), [40, 40, 200].repeat(8)].concat();
        assert_eq!(pixels(upright.clone(), 3, 16, 1), colors);
        let exif = [
            &b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01"[..],
            b"\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0",
        ];
        file.splice(2..2, exif.concat());
        let mut turned = decoded(&file).expect("a picture");
        turned.apply_orientation(Orientation::Rotate180);
        assert_eq!(turned, upright);
        for length in 0..file.len() {
            let _ = decoded(&file[..length]);
        }
    }

    fn greys(width: u32, pixels: &[u8]) -> DynamicImage {
        let height = pixels.len() as u32 / width;
        GrayImage::from_raw(width, height, pixels.to_vec()).expect("as many").into()
    }

    #[test]
    fn pictures_are_resized_by_the_mean_of_nearby_pixels() {
        let small = greys(3, &[0, 100, 200, 30, 60, 90]);
        assert_eq!(pixels(small.clone(), 1, 3, 2), [0, 100, 200, 30, 60, 90]);
        let larger = [0, 40, 100, 160, 200, 15, 41, 80, 119, 145, 30, 42, 60, 78, 90];
        assert_eq!(pixels(small.clone(), 1, 5, 3), larger);
        assert_eq!(pixels(small.clone(), 1, 3, 1), [15, 80, 145]);
        assert_eq!(pixels(small, 1, 1, 1), [80]);
        let wide = greys(8, &[0, 10, 20, 30, 40, 50, 60, 70]);
        assert_eq!(pixels(wide, 3, 2, 1), [19, 19, 19, 51, 51, 51]);
    }

    #[test]
    fn colours_become_the_grey_that_people_perceive() {
        let colors = [255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255];
        let file = png(&colors, 3, 4, 1).expect("a picture");
        assert_eq!(pixels(decoded(&file).expect("a picture"), 1, 4, 1), [54, 182, 18, 255]);
    }
}
