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
  return {
    encoding: 'br',
    statName: 'brotli',
    create: () => createBrotliCompress(options),
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
  };
}

/** Higher qualities take ten times as long and more. */
const MAX_QUICK_QUALITY = 5;

const MODES: Readonly<Record<Brotli_EncoderMode, number>> = {
  DEFAULT: constants.BROTLI_MODE_GENERIC,
  GENERIC: constants.BROTLI_MODE_GENERIC,
  TEXT: constants.BROTLI_MODE_TEXT,
  FONT: constants.BROTLI_MODE_FONT,
};
