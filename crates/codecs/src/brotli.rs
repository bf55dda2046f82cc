//! BROTLI: one stream as RFC 7932 defines it, whole.
//!
//! The format puts no frame around a stream and lets none follow another, so whatever comes after it is an error. (The
//! reference library's one-call decoder, which Arrow C++ uses, ignores it.) The extension with windows of up to 1 GiB, which
//! the RFC does not have, is refused.
//!
//! `brotli-decompressor` decompresses into a ring buffer, always until that is full or the input at hand is used up, and
//! copies out what there is room for. So a slice may do more work than it produces: as much as the ring buffer holds, which
//! is the page's announced size or the stream's window, whichever is less, and so 16 MiB at most. Of what encoders write it is
//! what [`SLICE_INPUT_BYTES`](Stream::SLICE_INPUT_BYTES) become, mostly some KiB; long repetitions are more, but cheap (1 MiB
//! of zeros in 0.04 ms). A hostile stream, whose commands take no bits at all, can have a page of 1 MiB decompressed in a
//! step of 5 ms. It is charged in the step that does it.

use brotli_decompressor::{
    Allocator, BrotliDecoderErrorCode as Code, BrotliDecoderHasMoreOutput, BrotliDecompressStream,
    BrotliResult, BrotliState, SliceWrapper, SliceWrapperMut,
};
use marquetry_base::{Codec, Error, ErrorKind, Price, Result};

use crate::page::{Ratio, corrupt};
use crate::streaming::{Slice, Stream};

/// Resumable reader of a Brotli stream.
pub(crate) struct Brotli {
    state: Box<State>,
    window_bytes_max: u64,
    uncompressed: usize,
    ended: bool,
}

type State = BrotliState<Bytes, Heap, Heap>;

/// The largest window that RFC 7932 has, section 9.1: 2^24 bytes, but for 16.
const WINDOW_BYTES_MAX: usize = 1 << 24;

/// Room for what is not the ring buffer: a context map of 256 block types with 64 contexts each is the largest.
const OTHER_BYTES_MAX: usize = 16 << 10;

/// What the library allocates beyond the ring buffer's size, with some to spare.
const RING_SLACK_BYTES: usize = 1 << 10;

/// How many bytes are copied out at the price of one decompressed.
const COPIED_BYTES_A_BYTE: usize = 64;

/// The library counts input in 32 bits.
const INPUT_BYTES_MAX: usize = 1 << 30;

impl Brotli {
    /// A reader that refuses streams that need a window of more than `window_bytes_max`.
    pub(crate) fn new(window_bytes_max: u64) -> Brotli {
        let state = Box::new(State::new_strict(Bytes::default(), Heap, Heap));
        Brotli { state, window_bytes_max, uncompressed: 0, ended: false }
    }

    /// Bytes decompressed so far, whether copied out or not.
    fn decompressed(&self) -> u64 {
        let size = |bytes: i32| u64::try_from(bytes).unwrap_or(0);
        self.state.rb_roundtrips * size(self.state.ringbuffer_size) + size(self.state.pos)
    }

    fn error(&self) -> Error {
        match self.state.error_code {
            Code::BROTLI_DECODER_ERROR_FORMAT_WINDOW_BITS => {
                Error::unsupported("BROTLI stream with a large window, which RFC 7932 does not have")
            }
            Code::BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_1
            | Code::BROTLI_DECODER_ERROR_ALLOC_RING_BUFFER_2 => match self.state.alloc_u8.refused {
                Some(Refused::Window) => Error::new(
                    ErrorKind::LimitExceeded,
                    format!(
                        "a BROTLI stream's window is more than the limit window_bytes of {}",
                        self.window_bytes_max
                    ),
                ),
                Some(Refused::Page) => corrupt(
                    Codec::Brotli,
                    format_args!("it has more than the announced {} uncompressed bytes", self.uncompressed),
                ),
                None => out_of_memory(),
            },
            Code::BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES
            | Code::BROTLI_DECODER_ERROR_ALLOC_TREE_GROUPS
            | Code::BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MAP
            | Code::BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES => out_of_memory(),
            code
            @ (Code::BROTLI_DECODER_ERROR_INVALID_ARGUMENTS | Code::BROTLI_DECODER_ERROR_UNREACHABLE) => {
                Error::internal(format!("the Brotli decoder fails with {code:?}"))
            }
            code => {
                let name = format!("{code:?}");
                let what = name.trim_start_matches("BROTLI_DECODER_ERROR_FORMAT_");
                corrupt(Codec::Brotli, format_args!("its stream is malformed ({what})"))
            }
        }
    }
}

fn out_of_memory() -> Error {
    Error::new(ErrorKind::LimitExceeded, "the memory for a BROTLI stream could not be had")
}

impl Stream for Brotli {
    const CODEC: Codec = Codec::Brotli;

    /// A metablock becomes up to 2^24 bytes. At the least it takes 77 bits (RFC 7932, section 9.2): 28 for its length and
    /// kind, 3 for block types that there are none of, 8 for distances and contexts' modes, 2 for single trees, and 12, 14
    /// and 10 for prefix codes of one symbol each, which then take no bits.
    const RATIO_MAX: Ratio = Ratio { output: (1 << 24) * 8, input: 77 };

    /// Measured at 60 to 4,300 for what encoders write, 15,200 for values whose blocks change after each
    /// (`examples/prices.rs`).
    const PRICE: Price = Price::per_kib(16_000);

    /// Measured at up to 575,000 (`examples/prices.rs`): metablocks of one byte, each with hundreds of prefix codes.
    const PRICE_OVERHEAD: Price = Price::per_kib(600_000);

    const SLICE_OUTPUT_BYTES: usize = 64 << 10;

    /// 0.3 ms at the worst.
    const SLICE_INPUT_BYTES: usize = 512;

    fn reset(&mut self, uncompressed: usize) -> Result<()> {
        let state = &mut self.state;
        let window = usize::try_from(self.window_bytes_max).unwrap_or(usize::MAX);
        // The library rounds the ring buffer up to a power of two.
        let page = uncompressed.clamp(OTHER_BYTES_MAX, WINDOW_BYTES_MAX).next_power_of_two();
        let mut bytes =
            Bytes { page, window, refused: None, spare: core::mem::take(&mut state.alloc_u8.spare) };
        bytes.free_cell(core::mem::take(&mut state.ringbuffer));
        **state = State::new_strict(bytes, Heap, Heap);
        (self.uncompressed, self.ended) = (uncompressed, false);
        Ok(())
    }

    fn slice(&mut self, input: &[u8], output: &mut [u8]) -> Result<Slice> {
        if self.ended {
            if input.is_empty() {
                return Ok(Slice { consumed: 0, produced: 0, worked: 0, may_end: true });
            }
            return Err(corrupt(Codec::Brotli, "it goes on after its stream"));
        }
        // What is ready comes out first: otherwise input would become more and more of it.
        let input = match BrotliDecoderHasMoreOutput(&self.state) {
            true => &[],
            false => &input[..input.len().min(INPUT_BYTES_MAX)],
        };
        let before = self.decompressed();
        let (mut input_left, mut consumed) = (input.len(), 0);
        let (mut output_left, mut produced, mut total) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut input_left,
            &mut consumed,
            input,
            &mut output_left,
            &mut produced,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => return Err(self.error()),
            BrotliResult::ResultSuccess => self.ended = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        let ahead = usize::try_from(self.decompressed() - before).unwrap_or(usize::MAX);
        let worked = ahead.max(produced / COPIED_BYTES_A_BYTE);
        Ok(Slice { consumed, produced, worked, may_end: self.ended })
    }
}

/// Memory for bytes, above all the ring buffer, which is kept for the next page.
#[derive(Default)]
struct Bytes {
    /// The largest ring buffer that the page's announced size can justify.
    page: usize,
    /// The largest window allowed.
    window: usize,
    refused: Option<Refused>,
    spare: Cell<u8>,
}

/// Why a ring buffer was refused.
#[derive(Debug, Clone, Copy)]
enum Refused {
    Page,
    Window,
}

impl Allocator<u8> for Bytes {
    type AllocatedMemory = Cell<u8>;

    fn alloc_cell(&mut self, length: usize) -> Cell<u8> {
        if length <= OTHER_BYTES_MAX + RING_SLACK_BYTES {
            return Heap.alloc_cell(length);
        }
        let ring = length - RING_SLACK_BYTES;
        if ring > self.page || ring > self.window {
            self.refused = Some(if ring > self.page { Refused::Page } else { Refused::Window });
            return Cell::default();
        }
        if self.spare.0.capacity() >= length {
            let mut cell = core::mem::take(&mut self.spare);
            // What the last page left there is written over before it is read, as the library checks all distances.
            cell.0.resize(length, 0);
            return cell;
        }
        Heap.alloc_cell(length)
    }

    fn free_cell(&mut self, cell: Cell<u8>) {
        if cell.0.capacity() > self.spare.0.capacity().max(OTHER_BYTES_MAX + RING_SLACK_BYTES) {
            self.spare = cell;
        }
    }
}

/// Memory for everything else: some megabytes at the most, for 256 trees of each kind.
struct Heap;

impl<T: Clone + Default> Allocator<T> for Heap {
    type AllocatedMemory = Cell<T>;

    fn alloc_cell(&mut self, length: usize) -> Cell<T> {
        let mut values = Vec::new();
        // The library knows an empty cell for a failure.
        if values.try_reserve_exact(length).is_ok() {
            values.resize(length, T::default());
        }
        Cell(values)
    }

    fn free_cell(&mut self, _: Cell<T>) {}
}

/// Memory that the library asked for.
struct Cell<T>(Vec<T>);

impl<T> Default for Cell<T> {
    fn default() -> Self {
        Cell(Vec::new())
    }
}

impl<T> SliceWrapper<T> for Cell<T> {
    fn slice(&self) -> &[T] {
        &self.0
    }
}

impl<T> SliceWrapperMut<T> for Cell<T> {
    fn slice_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}
