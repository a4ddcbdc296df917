// envoy.compression.brotli: the content coding br (RFC 7932), by Node's zlib.

import {
  type BrotliOptions,
  brotliCompressSync,
  constants,
  createBrotliCompress,
  createBrotliDecompress,
} from 'node:zlib';
import type { Brotli, Brotli_EncoderMode, DecompressorBrotli } from '../../config/generated/api.js';
import { byValue, type NamedExtension, obeyed } from '../sdk.js';
import {
  type CompressionLibrary,
  DEFAULT_CHUNK_BYTES,
  DEFAULT_MAX_RATIO,
  type DecompressionLibrary,
  STREAM_BYTES,
} from './library.js';

export const BROTLI_COMPRESSOR = 'envoy.extensions.compression.brotli.compressor.v3.Brotli';
export const BROTLI_DECOMPRESSOR = 'envoy.extensions.compression.brotli.decompressor.v3.Brotli';

export const brotliCompressor: NamedExtension = {
  category: 'envoy.compression.compressor',
  name: 'envoy.compression.brotli.compressor',
  typeUrls: [`type.googleapis.com/${BROTLI_COMPRESSOR}`],
  implemented: {
    [BROTLI_COMPRESSOR]: {
      ...obeyed('quality', 'window_bits', 'input_block_bits', 'chunk_size', 'disable_literal_context_modeling'),
      encoder_mode: byValue({ DEFAULT: true, GENERIC: true, TEXT: true, FONT: true }),
    },
  },
};

export const brotliDecompressor: NamedExtension = {
  category: 'envoy.compression.decompressor',
  name: 'envoy.compression.brotli.decompressor',
  typeUrls: [`type.googleapis.com/${BROTLI_DECOMPRESSOR}`],
  implemented: { [BROTLI_DECOMPRESSOR]: obeyed('disable_ring_buffer_reallocation', 'chunk_size') },
};

/** The defaults are Envoy's. */
export function brotliCompression(config: Brotli): CompressionLibrary {
  const options: BrotliOptions = {
    chunkSize: config.chunk_size ?? DEFAULT_CHUNK_BYTES,
    flush: constants.BROTLI_OPERATION_FLUSH,
    params: {
      [constants.BROTLI_PARAM_QUALITY]: config.quality ?? 3,
      [constants.BROTLI_PARAM_MODE]: MODES[config.encoder_mode ?? 'DEFAULT'],
      [constants.BROTLI_PARAM_LGWIN]: config.window_bits ?? 18,
      [constants.BROTLI_PARAM_LGBLOCK]: config.input_block_bits ?? 24,
      [constants.BROTLI_PARAM_DISABLE_LITERAL_CONTEXT_MODELING]: Number(
        config.disable_literal_context_modeling ?? false,
      ),
    },
  };
  const memoryBytes = STREAM_BYTES + encoderBytes(config.quality ?? 3, config.window_bits ?? 18);
  return {
    encoding: 'br',
    statName: 'brotli',
    create: () => createBrotliCompress(options),
    memoryBytes: () => memoryBytes,
    ...((config.quality ?? 3) <= MAX_QUICK_QUALITY && { compressShort: (bytes) => brotliCompressSync(bytes, options) }),
  };
}

export function brotliDecompression(config: DecompressorBrotli): DecompressionLibrary {
  const options: BrotliOptions = {
    chunkSize: config.chunk_size ?? DEFAULT_CHUNK_BYTES,
    flush: constants.BROTLI_OPERATION_FLUSH,
    params: {
      [constants.BROTLI_DECODER_PARAM_DISABLE_RING_BUFFER_REALLOCATION]: Number(
        config.disable_ring_buffer_reallocation ?? false,
      ),
    },
  };
  return {
    encoding: 'br',
    statName: 'brotli',
    maxRatio: DEFAULT_MAX_RATIO,
    errorStat: 'brotli_error',
    create: () => createBrotliDecompress(options),
    memoryBytes: (input) => STREAM_BYTES + DECODER_BYTES + (input.length === 0 ? 0 : windowBytes(input[0]!)),
  };
}

/** Tables of the decoder. */
const DECODER_BYTES = 128 * 1024;

/** Returns the window that a stream announces with its first byte (RFC 7932, section 9.1). A few bytes of input can fill it. */
function windowBytes(first: number): number {
  if ((first & 1) === 0) return 1 << 16;
  const large = (first >> 1) & 7;
  if (large !== 0) return 1 << (17 + large);
  const small = (first >> 4) & 7;
  return 1 << (small === 0 ? 17 : 8 + small);
}

/** Two windows of input, and tables that grow with the quality. Measured. */
function encoderBytes(quality: number, windowBits: number): number {
  const tables = quality < 5 ? 1 : quality < 10 ? 4 : 16;
  return (2 << windowBits) + (tables << 20);
}

/** Higher qualities take ten times as long and more. */
const MAX_QUICK_QUALITY = 5;

const MODES: Readonly<Record<Brotli_EncoderMode, number>> = {
  DEFAULT: constants.BROTLI_MODE_GENERIC,
  GENERIC: constants.BROTLI_MODE_GENERIC,
  TEXT: constants.BROTLI_MODE_TEXT,
  FONT: constants.BROTLI_MODE_FONT,
};
