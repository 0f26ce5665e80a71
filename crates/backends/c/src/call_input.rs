//! Inputs of requests that libraries send to other models.

use std::sync::Arc;

use galatea_types::{AlignedBlock, Buffer, DataType, Error, Result, Shape, Tensor};

use crate::call_flight::Flight;

/// Most pieces of an input.
const MOST_PIECES: usize = 1 << 16;

/// An input of a request, in pieces.
pub(crate) struct InputDraft {
    pub name: String,
    data_type: DataType,
    shape: Shape,
    pieces: Vec<Piece>,
}

/// Memory of a library that it keeps until the request is released.
#[derive(Clone, Copy)]
struct Piece {
    base: *const u8,
    size: usize,
}

// SAFETY: the library gives the memory to the server, which only reads it.
unsafe impl Send for Piece {}
// SAFETY: as above.
unsafe impl Sync for Piece {}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self.size {
            0 => &[],
            // SAFETY: the library gave that many bytes, and keeps them until the request is released.
            _ => unsafe { std::slice::from_raw_parts(self.base, self.size) },
        }
    }
}

/// A piece as the data of a tensor. The request is released after its last part was dropped.
struct LentPiece {
    piece: Piece,
    _flight: Arc<Flight>,
}

impl AsRef<[u8]> for LentPiece {
    fn as_ref(&self) -> &[u8] {
        self.piece.bytes()
    }
}

impl InputDraft {
    pub fn new(name: String, data_type: DataType, shape: Shape) -> Self {
        Self { name, data_type, shape, pieces: Vec::new() }
    }

    /// Adds a piece of the data.
    ///
    /// # Errors
    /// The memory is null, or there are too many pieces.
    pub fn append(&mut self, base: *const u8, size: usize) -> Result<()> {
        if base.is_null() && size > 0 {
            return Err(Error::invalid_arg(format!("the data of input '{}' is null", self.name)));
        }
        if self.pieces.len() >= MOST_PIECES {
            let text = format!("input '{}' has more than {MOST_PIECES} buffers", self.name);
            return Err(Error::invalid_arg(text));
        }
        self.pieces.push(Piece { base, size });
        Ok(())
    }

    pub fn clear(&mut self) {
        self.pieces.clear();
    }

    /// Returns the input for a request. One piece is used where it lies; several are joined.
    ///
    /// # Errors
    /// There is no memory to join them.
    pub fn to_tensor(&self, flight: &Arc<Flight>) -> Result<Tensor> {
        let data = match self.pieces.as_slice() {
            [] => Buffer::default(),
            &[piece] => Buffer::from_owner(LentPiece { piece, _flight: flight.clone() }),
            pieces => {
                let size = pieces.iter().map(|piece| piece.size).fold(0, usize::saturating_add);
                let mut block = AlignedBlock::try_with_capacity(size).map_err(|_| {
                    let text = format!("there is no memory for input '{}'", self.name);
                    Error::unavailable(text)
                })?;
                pieces.iter().for_each(|piece| block.extend_from_slice(piece.bytes()));
                block.freeze()
            }
        };
        Ok(Tensor::new(self.name.as_str(), self.data_type, self.shape.clone(), data))
    }
}
