// envoy.compression.gzip: the content coding gzip (RFC 1952), by Node's zlib.

import { constants, createGunzip, createGzip, gzipSync, type ZlibOptions } from 'node:zlib';
import type {
  DecompressorGzip,
  Gzip,
  Gzip_CompressionLevel,
  Gzip_CompressionStrategy,
} from '../../config/generated/api.js';
import { byValue, type NamedExtension, obeyed } from '../sdk.js';
import {
  type CompressionLibrary,
  DEFAULT_CHUNK_BYTES,
  DEFAULT_MAX_RATIO,
  type DecompressionLibrary,
  STREAM_BYTES,
} from './library.js';

export const GZIP_COMPRESSOR = 'envoy.extensions.compression.gzip.compressor.v3.Gzip';
export const GZIP_DECOMPRESSOR = 'envoy.extensions.compression.gzip.decompressor.v3.Gzip';

export const gzipCompressor: NamedExtension = {
  category: 'envoy.compression.compressor',
  name: 'envoy.compression.gzip.compressor',
  typeUrls: [`type.googleapis.com/${GZIP_COMPRESSOR}`],
  implemented: {
    [GZIP_COMPRESSOR]: {
      ...obeyed('memory_level', 'window_bits', 'chunk_size'),
      compression_level: byValue({
        DEFAULT_COMPRESSION: true,
        BEST_SPEED: true,
        COMPRESSION_LEVEL_1: true,
        COMPRESSION_LEVEL_2: true,
        COMPRESSION_LEVEL_3: true,
        COMPRESSION_LEVEL_4: true,
        COMPRESSION_LEVEL_5: true,
        COMPRESSION_LEVEL_6: true,
        COMPRESSION_LEVEL_7: true,
        COMPRESSION_LEVEL_8: true,
        COMPRESSION_LEVEL_9: true,
        BEST_COMPRESSION: true,
      }),
      compression_strategy: byValue({
        DEFAULT_STRATEGY: true,
        FILTERED: true,
        HUFFMAN_ONLY: true,
        RLE: true,
        FIXED: true,
      }),
    },
  },
};

export const gzipDecompressor: NamedExtension = {
  category: 'envoy.compression.decompressor',
  name: 'envoy.compression.gzip.decompressor',
  typeUrls: [`type.googleapis.com/${GZIP_DECOMPRESSOR}`],
  implemented: { [GZIP_DECOMPRESSOR]: obeyed('window_bits', 'chunk_size', 'max_inflate_ratio') },
};

/** The defaults are Envoy's, which save memory: it can be 256 KiB for a body. */
export function gzipCompression(config: Gzip): CompressionLibrary {
  const options: ZlibOptions = {
    level: levelOf(config.compression_level ?? 'DEFAULT_COMPRESSION'),
    strategy: STRATEGIES[config.compression_strategy ?? 'DEFAULT_STRATEGY'],
    memLevel: config.memory_level ?? 5,
    windowBits: config.window_bits ?? 12,
    chunkSize: config.chunk_size ?? DEFAULT_CHUNK_BYTES,
    flush: constants.Z_SYNC_FLUSH,
  };
  return {
    encoding: 'gzip',
    statName: 'gzip',
    create: () => createGzip(options),
    // As zlib.h computes it.
    memoryBytes: () => STREAM_BYTES + (1 << (options.windowBits! + 2)) + (1 << (options.memLevel! + 9)),
    compressShort: (bytes) => gzipSync(bytes, options),
  };
}

export function gzipDecompression(config: DecompressorGzip): DecompressionLibrary {
  const options: ZlibOptions = {
    windowBits: config.window_bits ?? 15,
    chunkSize: config.chunk_size ?? DEFAULT_CHUNK_BYTES,
    flush: constants.Z_SYNC_FLUSH,
  };
  return {
    encoding: 'gzip',
    statName: 'gzip',
    maxRatio: config.max_inflate_ratio ?? DEFAULT_MAX_RATIO,
    errorStat: 'zlib_data_error',
    create: () => createGunzip(options),
    memoryBytes: () => STREAM_BYTES + (1 << options.windowBits!),
  };
}

function levelOf(level: Gzip_CompressionLevel): number {
  if (level === 'DEFAULT_COMPRESSION') return constants.Z_DEFAULT_COMPRESSION;
  if (level === 'BEST_SPEED') return constants.Z_BEST_SPEED;
  if (level === 'BEST_COMPRESSION') return constants.Z_BEST_COMPRESSION;
  return Number(level.at(-1));
}

const STRATEGIES: Readonly<Record<Gzip_CompressionStrategy, number>> = {
  DEFAULT_STRATEGY: constants.Z_DEFAULT_STRATEGY,
  FILTERED: constants.Z_FILTERED,
  HUFFMAN_ONLY: constants.Z_HUFFMAN_ONLY,
  RLE: constants.Z_RLE,
  FIXED: constants.Z_FIXED,
};
