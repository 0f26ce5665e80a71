//! Reader of PNG and JPEG files, and writer of PNG.

use std::{error::Error, io::Cursor};

use png::{BitDepth, ColorType, Transformations};
use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use super::{PictureError, bitmap::Bitmap, orientation::Orientation};

/// Largest picture, in pixels per side and decoded bytes: a small file may claim to be huge.
const LONGEST_SIDE: usize = 16_384;
const MOST_BYTES: usize = 512 << 20;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// Decodes the picture in a file and turns it upright.
pub(super) fn decoded(file: &[u8]) -> Result<Bitmap, PictureError> {
    if file.starts_with(PNG) {
        read_png(file)
    } else if file.starts_with(JPEG) {
        read_jpeg(file)
    } else {
        Err(PictureError::Decode("it is neither PNG nor JPEG".to_owned()))
    }
}

fn malformed(error: impl Error) -> PictureError {
    PictureError::Decode(error.to_string())
}

fn check_size(width: usize, height: usize, bytes: Option<usize>) -> Result<usize, PictureError> {
    if width > LONGEST_SIDE || height > LONGEST_SIDE {
        let text = format!("{width} times {height} pixels, more than {LONGEST_SIDE} to a side");
        return Err(PictureError::TooLarge(text));
    }
    match bytes {
        Some(bytes) if bytes <= MOST_BYTES => Ok(bytes),
        _ => {
            Err(PictureError::TooLarge(format!("more than {MOST_BYTES} bytes once it is decoded")))
        }
    }
}

fn read_png(file: &[u8]) -> Result<Bitmap, PictureError> {
    let limits = png::Limits { bytes: MOST_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    let (width, height) = decoder.read_header_info().map_err(malformed)?.size();
    let (width, height) = (width as usize, height as usize);
    check_size(width, height, Some(0))?;
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(malformed)?;
    let mut data = vec![0; check_size(width, height, reader.output_buffer_size())?];
    reader.next_frame(&mut data).map_err(malformed)?;
    let exif = reader.info().exif_metadata.as_deref();
    let orientation = exif.map(Orientation::of_exif).unwrap_or_default();
    let (color_type, depth) = reader.output_color_type();
    if depth == BitDepth::Sixteen {
        data = data.as_chunks().0.iter().map(|&value| byte(u16::from_be_bytes(value))).collect();
    }
    let (channels, has_alpha) = match color_type {
        ColorType::Grayscale | ColorType::Indexed => (1, false),
        ColorType::GrayscaleAlpha => (1, true),
        ColorType::Rgb => (3, false),
        ColorType::Rgba => (3, true),
    };
    let pixels = if has_alpha { without_alpha(&data, channels) } else { data };
    Ok(Bitmap { width, height, channels, pixels }.oriented(orientation))
}

fn read_jpeg(file: &[u8]) -> Result<Bitmap, PictureError> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), options);
    decoder.decode_headers().map_err(malformed)?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    let (channels, space) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma | ColorSpace::LumaA) => (1, ColorSpace::Luma),
        _ => (3, ColorSpace::RGB),
    };
    let bytes = width.checked_mul(height).and_then(|count| count.checked_mul(channels));
    let mut pixels = vec![0; check_size(width, height, bytes)?];
    let orientation = decoder.exif().map(|exif| Orientation::of_exif(exif)).unwrap_or_default();
    decoder.set_options(options.jpeg_set_out_colorspace(space));
    decoder.decode_into(&mut pixels).map_err(malformed)?;
    Ok(Bitmap { width, height, channels, pixels }.oriented(orientation))
}

/// Returns the nearest value of a byte.
fn byte(value: u16) -> u8 {
    u8::try_from((u32::from(value) + 128) / 257).unwrap_or(u8::MAX)
}

fn without_alpha(data: &[u8], channels: usize) -> Vec<u8> {
    let pixels = data.chunks_exact(channels + 1);
    pixels.flat_map(|pixel| pixel.get(..channels).unwrap_or_default()).copied().collect()
}

/// Encodes a picture as PNG.
pub(super) fn png(picture: &Bitmap) -> Result<Vec<u8>, PictureError> {
    let side = |length: usize| {
        u32::try_from(length).map_err(|_| PictureError::TooLarge(format!("{length} pixels")))
    };
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, side(picture.width)?, side(picture.height)?);
    encoder.set_color(if picture.channels == 1 { ColorType::Grayscale } else { ColorType::Rgb });
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(malformed)?;
    writer.write_image_data(&picture.pixels).map_err(malformed)?;
    writer.finish().map_err(malformed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
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
            let wanted = Bitmap { width: 2, height: 1, channels, pixels: expected.to_vec() };
            assert_eq!(found, wanted, "{color:?} {depth:?}");
        }
    }

    /// Eight red pixels beside eight blue ones, upright and from a camera held upside down.
    #[test]
    fn a_jpeg_is_rotated_by_its_exif_orientation() {
        let mut file = include_bytes!("two_colors.jpg").to_vec();
        let upright = decoded(&file).expect("a picture");
        let pixels = [[200, 40, 40].repeat(8), [40, 40, 200].repeat(8)].concat();
        assert_eq!(upright, Bitmap { width: 16, height: 1, channels: 3, pixels });
        let exif = [
            &b"\xff\xe1\0\x22Exif\0\0MM\0\x2a\0\0\0\x08\0\x01"[..],
            b"\x01\x12\0\x03\0\0\0\x01\0\x03\0\0\0\0\0\0",
        ];
        file.splice(2..2, exif.concat());
        let turned = decoded(&file).expect("a picture");
        assert_eq!(turned, upright.oriented(Orientation::numbered(3)));
        for length in 0..file.len() {
            let _ = decoded(&file[..length]);
        }
    }
}
