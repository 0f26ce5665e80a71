//! Pictures as tensors: decoded, resized for the model, laid out and scaled; and back.

mod file;

use galatea_client::OutputTensor;
use galatea_types::DataType;
use half::{bf16, f16};

use crate::{elements::Elements, shape};

/// Largest tensor that is made from a picture.
const MOST_ELEMENTS: u64 = 64 << 20;
/// Mean and deviation of red, green and blue that models trained on ImageNet expect.
const IMAGENET: [(f32, f32); 3] = [(0.485, 0.229), (0.456, 0.224), (0.406, 0.225)];

/// The order of colours in a tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The layout of the model's configuration, or of its shape.
    #[default]
    Guessed,
    /// A plane for each colour.
    Nchw,
    /// The colours of a pixel next to each other.
    Nhwc,
}

/// The scaling of pixel values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scale {
    /// 0 to 1 in floating point, otherwise 0 to 255.
    #[default]
    Usual,
    ToOne,
    To255,
    AroundZero,
    ImageNet,
}

/// Options for converting pictures to tensors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PictureOptions {
    pub layout: Layout,
    pub scale: Scale,
    pub is_bgr: bool,
}

/// The reason why a picture cannot become a tensor, or a tensor a picture.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PictureError {
    #[error("the picture cannot be read: {0}")]
    Decode(String),
    #[error("the picture is too large: {0}")]
    TooLarge(String),
    #[error(
        "{shape} is not the shape of a picture with 1 or 3 colours; --layout nchw or nhwc says where they are"
    )]
    Shape { shape: String },
    #[error("{0} cannot hold the numbers that the pixels become; --scale 0-255 makes whole ones")]
    Type(DataType),
    #[error("{found} elements do not fill a picture of shape {shape}")]
    Length { shape: String, found: usize },
}

/// The sizes of height, width and colours in a shape, whose dimensions before them have size one.
struct Plan {
    height: i64,
    width: i64,
    channels: usize,
    is_planar: bool,
    rank: usize,
}

fn plan(wanted: &[i64], layout: Layout) -> Option<Plan> {
    let rank = wanted.len();
    let is_colors = |size: i64| matches!(size, 1 | 3);
    let plan = |height, width, colors: i64, is_planar| {
        let channels = if colors == 1 { 1 } else { 3 };
        let fits = is_colors(colors) || colors == -1;
        fits.then_some(Plan { height, width, channels, is_planar, rank })
    };
    match *wanted {
        [height, width] => plan(height, width, 1, true),
        [ref before @ .., a, b, c] if before.iter().all(|&size| matches!(size, -1 | 1)) => {
            match layout {
                Layout::Nchw => plan(b, c, a, true),
                Layout::Nhwc => plan(a, b, c, false),
                Layout::Guessed if is_colors(a) => plan(b, c, a, true),
                Layout::Guessed if is_colors(c) => plan(a, b, c, false),
                Layout::Guessed => None,
            }
        }
        _ => None,
    }
}

/// Returns true if a picture can be converted to this shape.
pub(crate) fn takes_pictures(wanted: &[i64], options: &PictureOptions) -> bool {
    plan(wanted, options.layout).is_some()
}

/// Returns the elements and the whole shape.
pub(crate) fn tensor(
    file: &[u8],
    wanted: &[i64],
    data_type: DataType,
    options: &PictureOptions,
) -> Result<(Vec<u8>, Vec<i64>), PictureError> {
    let shape = || PictureError::Shape { shape: shape::text(wanted) };
    let plan = plan(wanted, options.layout).ok_or_else(shape)?;
    let picture = file::decoded(file)?;
    let side = |wanted: i64, own: u32| if wanted < 0 { Ok(own) } else { u32::try_from(wanted) };
    let height = side(plan.height, picture.height()).map_err(|_| shape())?;
    let width = side(plan.width, picture.width()).map_err(|_| shape())?;
    let elements = u64::from(height) * u64::from(width) * plan.channels as u64;
    if elements > MOST_ELEMENTS || height == 0 || width == 0 {
        return Err(PictureError::TooLarge(format!(
            "the model needs {height} times {width} pixels"
        )));
    }
    let pixels = file::pixels(picture, plan.channels, width, height);
    let data = laid_out(&pixels, &plan, data_type, options)?;
    let sizes = [i64::from(height), i64::from(width)];
    let colors = plan.channels as i64;
    let inner = match (plan.rank, plan.is_planar) {
        (2, _) => sizes.to_vec(),
        (_, true) => vec![colors, sizes[0], sizes[1]],
        (_, false) => vec![sizes[0], sizes[1], colors],
    };
    let mut shape = vec![1; plan.rank - inner.len()];
    shape.extend(inner);
    Ok((data, shape))
}

fn laid_out(
    pixels: &[u8],
    plan: &Plan,
    data_type: DataType,
    options: &PictureOptions,
) -> Result<Vec<u8>, PictureError> {
    // Whole-number types would lose fractions.
    if !is_float(data_type) && !matches!(options.scale, Scale::Usual | Scale::To255) {
        return Err(PictureError::Type(data_type));
    }
    let channels = plan.channels;
    let count = pixels.len() / channels;
    let mut data = Vec::with_capacity(pixels.len() * data_type.byte_size().unwrap_or(1));
    for at in 0..pixels.len() {
        let (pixel, color) = match plan.is_planar {
            true => (at % count, at / count),
            false => (at / channels, at % channels),
        };
        let color = if options.is_bgr { channels - 1 - color } else { color };
        let value = pixels.get(pixel * channels + color).copied().unwrap_or_default();
        push(&mut data, data_type, scaled(value, color, options.scale, data_type))
            .ok_or(PictureError::Type(data_type))?;
    }
    Ok(data)
}

fn is_float(data_type: DataType) -> bool {
    matches!(data_type, DataType::Fp16 | DataType::Bf16 | DataType::Fp32 | DataType::Fp64)
}

fn scaled(value: u8, color: usize, scale: Scale, data_type: DataType) -> f32 {
    let value = f32::from(value);
    match scale {
        Scale::Usual if is_float(data_type) => value / 255.0,
        Scale::Usual | Scale::To255 => value,
        Scale::ToOne => value / 255.0,
        Scale::AroundZero => value / 127.5 - 1.0,
        Scale::ImageNet => {
            let (mean, deviation) = IMAGENET.get(color).copied().unwrap_or_default();
            (value / 255.0 - mean) / deviation
        }
    }
}

fn unscaled(value: f32, color: usize, scale: Scale, data_type: DataType) -> u8 {
    let value = match scale {
        Scale::Usual if is_float(data_type) => value * 255.0,
        Scale::Usual | Scale::To255 => value,
        Scale::ToOne => value * 255.0,
        Scale::AroundZero => (value + 1.0) * 127.5,
        Scale::ImageNet => {
            let (mean, deviation) = IMAGENET.get(color).copied().unwrap_or_default();
            (value * deviation + mean) * 255.0
        }
    };
    // A cast saturates at the bounds of the type.
    value.round() as u8
}

/// Appends a value; `None`: the type has no such number, or would lose its fraction.
fn push(data: &mut Vec<u8>, data_type: DataType, value: f32) -> Option<()> {
    let whole = || (value.fract() == 0.0).then_some(value as i64);
    match data_type {
        DataType::Fp16 => data.extend(f16::from_f32(value).to_le_bytes()),
        DataType::Bf16 => data.extend(bf16::from_f32(value).to_le_bytes()),
        DataType::Fp32 => data.extend(value.to_le_bytes()),
        DataType::Fp64 => data.extend(f64::from(value).to_le_bytes()),
        DataType::Uint8 => data.push(u8::try_from(whole()?).ok()?),
        DataType::Int8 => data.push(i8::try_from(whole()?).ok()?.cast_unsigned()),
        DataType::Uint16 => data.extend(u16::try_from(whole()?).ok()?.to_le_bytes()),
        DataType::Int16 => data.extend(i16::try_from(whole()?).ok()?.to_le_bytes()),
        DataType::Uint32 => data.extend(u32::try_from(whole()?).ok()?.to_le_bytes()),
        DataType::Int32 => data.extend(i32::try_from(whole()?).ok()?.to_le_bytes()),
        DataType::Uint64 => data.extend(u64::try_from(whole()?).ok()?.to_le_bytes()),
        DataType::Int64 => data.extend(whole()?.to_le_bytes()),
        DataType::Bool | DataType::Bytes => return None,
    }
    Some(())
}

/// Encodes the first picture in the tensor as PNG.
pub(crate) fn png(
    tensor: &OutputTensor,
    options: &PictureOptions,
) -> Result<Vec<u8>, PictureError> {
    let wrong = || PictureError::Shape { shape: shape::text(&tensor.shape) };
    let plan = plan(&tensor.shape, options.layout).ok_or_else(wrong)?;
    let (height, width) = (u32::try_from(plan.height), u32::try_from(plan.width));
    let (Ok(height), Ok(width)) = (height, width) else { return Err(wrong()) };
    let elements = Elements::of(tensor);
    let expected = u64::from(height).checked_mul(u64::from(width) * plan.channels as u64);
    if expected != Some(elements.len() as u64) || elements.len() == 0 {
        let (shape, found) = (shape::text(&tensor.shape), elements.len());
        return Err(PictureError::Length { shape, found });
    }
    let (channels, count) = (plan.channels, elements.len() / plan.channels);
    let pixel = |at: usize| {
        let (pixel, place) = (at / channels, at % channels);
        let color = if options.is_bgr { channels - 1 - place } else { place };
        let at = if plan.is_planar { color * count + pixel } else { pixel * channels + color };
        let value = elements.json(at).parse::<f32>().unwrap_or_default();
        unscaled(value, place, options.scale, tensor.data_type)
    };
    let pixels: Vec<u8> = (0..elements.len()).map(pixel).collect();
    file::png(&pixels, channels, width, height)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pixels beside each other: red, and blue.
    fn file() -> Vec<u8> {
        let name = "x".to_owned();
        let data = vec![255, 0, 0, 0, 0, 255].into();
        let tensor = OutputTensor { name, data_type: DataType::Uint8, shape: vec![1, 2, 3], data };
        png(&tensor, &PictureOptions { layout: Layout::Nhwc, ..Default::default() })
            .expect("a picture")
    }

    #[test]
    fn pictures_are_laid_out_as_the_input_needs() {
        let of = |wanted: &[i64], is_bgr| {
            let options = PictureOptions { is_bgr, ..Default::default() };
            tensor(&file(), wanted, DataType::Uint8, &options).expect("a tensor")
        };
        assert_eq!(of(&[-1, 3, -1, -1], false), (vec![255, 0, 0, 0, 0, 255], vec![1, 3, 1, 2]));
        assert_eq!(of(&[-1, -1, 3], false), (vec![255, 0, 0, 0, 0, 255], vec![1, 2, 3]));
        assert_eq!(of(&[-1, -1, 3], true), (vec![0, 0, 255, 255, 0, 0], vec![1, 2, 3]));
        assert_eq!(of(&[1, 2], false).0.len(), 2);
        assert_eq!(of(&[3, 4, 5], false).1, [3, 4, 5]);
    }

    #[test]
    fn scaled_values_are_converted_back_to_a_picture() {
        for scale in [Scale::Usual, Scale::ToOne, Scale::To255, Scale::AroundZero, Scale::ImageNet]
        {
            for data_type in [DataType::Fp32, DataType::Fp16] {
                let options = PictureOptions { scale, ..Default::default() };
                let (data, shape) =
                    tensor(&file(), &[3, -1, -1], data_type, &options).expect("a tensor");
                let made =
                    OutputTensor { name: String::new(), data_type, shape, data: data.into() };
                assert_eq!(png(&made, &options).expect("a picture"), file(), "{scale:?}");
            }
        }
        assert_eq!(scaled(255, 0, Scale::AroundZero, DataType::Fp32), 1.0);
        let options = PictureOptions { scale: Scale::ToOne, ..Default::default() };
        assert!(tensor(&file(), &[3, 2, 2], DataType::Uint8, &options).is_err());
    }

    #[test]
    fn unreadable_and_oversized_pictures_are_refused() {
        let of = |file: &[u8], wanted: &[i64]| {
            tensor(file, wanted, DataType::Fp32, &PictureOptions::default())
        };
        assert!(matches!(of(b"no picture", &[3, 4, 4]), Err(PictureError::Decode(_))));
        assert!(matches!(of(&file(), &[4]), Err(PictureError::Shape { .. })));
        assert!(matches!(of(&file(), &[-1, -1, -1]), Err(PictureError::Shape { .. })));
        assert!(matches!(of(&file(), &[3, 1 << 20, 1 << 20]), Err(PictureError::TooLarge(_))));
        // A head that says how large the picture is: 65535 times 65535.
        let mut huge = file();
        huge[16..24].copy_from_slice(&[0, 0, 255, 255, 0, 0, 255, 255]);
        assert!(of(&huge, &[3, 4, 4]).is_err());
        for length in 0..file().len() {
            let _ = of(&file()[..length], &[3, 4, 4]);
        }
    }
}
