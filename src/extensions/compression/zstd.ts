// envoy.compression.zstd: the content coding zstd (RFC 8878), by Node's zlib from Node.js 22.15 on.

import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import type { DecompressorZstd, Zstd, Zstd_Strategy } from '../../config/generated/api.js';
import { byValue, type NamedExtension, obeyed, type Report, refused } from '../sdk.js';
import {
  type CompressionLibrary,
  DEFAULT_CHUNK_BYTES,
  DEFAULT_MAX_RATIO,
  type DecompressionLibrary,
  STREAM_BYTES,
} from './library.js';

export const ZSTD_COMPRESSOR = 'envoy.extensions.compression.zstd.compressor.v3.Zstd';
export const ZSTD_DECOMPRESSOR = 'envoy.extensions.compression.zstd.decompressor.v3.Zstd';

const NO_DICTIONARY = refused('bodies are compressed without a dictionary');

export const zstdCompressor: NamedExtension = {
  category: 'envoy.compression.compressor',
  name: 'envoy.compression.zstd.compressor',
  typeUrls: [`type.googleapis.com/${ZSTD_COMPRESSOR}`],
  implemented: {
    [ZSTD_COMPRESSOR]: {
      ...obeyed('compression_level', 'enable_checksum', 'chunk_size'),
      strategy: byValue({
        DEFAULT: true,
        FAST: true,
        DFAST: true,
        GREEDY: true,
        LAZY: true,
        LAZY2: true,
        BTLAZY2: true,
        BTOPT: true,
        BTULTRA: true,
        BTULTRA2: true,
      }),
      dictionary: NO_DICTIONARY,
    },
  },
  validate(config, report) {
    reportOldNode(report);
    const level = (config as Zstd).compression_level ?? DEFAULT_LEVEL;
    if (level > MAX_LEVEL) report('compression_level', `zstd has levels up to ${MAX_LEVEL}`);
  },
};

export const zstdDecompressor: NamedExtension = {
  category: 'envoy.compression.decompressor',
  name: 'envoy.compression.zstd.decompressor',
  typeUrls: [`type.googleapis.com/${ZSTD_DECOMPRESSOR}`],
  implemented: { [ZSTD_DECOMPRESSOR]: { ...obeyed('chunk_size'), dictionaries: NO_DICTIONARY } },
  validate: (_config, report) => reportOldNode(report),
};

/** The part of Node's zlib that older versions lack. Its constants are those of zstd.h. */
interface ZstdOfNode {
  createZstdCompress?(options: object): Transform;
  createZstdDecompress?(options: object): Transform;
}

const node = zlib as ZstdOfNode;
const DEFAULT_LEVEL = 3;
const MAX_LEVEL = 22;
const ZSTD_E_FLUSH = 1;
const ZSTD_C_COMPRESSION_LEVEL = 100;
const ZSTD_C_STRATEGY = 107;
const ZSTD_C_CHECKSUM_FLAG = 201;
const ZSTD_D_WINDOW_LOG_MAX = 100;
/** RFC 9659: bodies with larger windows must not be sent, and need not be decoded. zstd itself would take 128 MiB for one. */
const MAX_WINDOW_LOG = 23;
/** A block, tables, and the window of the decoder. */
const DECODER_BYTES = (384 << 10) + (1 << MAX_WINDOW_LOG);

function reportOldNode(report: Report): void {
  if (node.createZstdCompress !== undefined) return;
  report('', `zstd needs Node.js 22.15, 23.8 or later: this is ${process.version}. gzip and brotli are available`);
}

export function zstdCompression(config: Zstd): CompressionLibrary {
  const strategy = STRATEGIES.indexOf(config.strategy ?? 'DEFAULT');
  const options = {
    chunkSize: config.chunk_size ?? DEFAULT_CHUNK_BYTES,
    flush: ZSTD_E_FLUSH,
    params: {
      [ZSTD_C_COMPRESSION_LEVEL]: config.compression_level || DEFAULT_LEVEL,
      [ZSTD_C_CHECKSUM_FLAG]: Number(config.enable_checksum ?? false),
      ...(strategy === 0 ? {} : { [ZSTD_C_STRATEGY]: strategy }),
    },
  };
  const memoryBytes = STREAM_BYTES + encoderBytes(config.compression_level || DEFAULT_LEVEL);
  return {
    encoding: 'zstd',
    statName: 'zstd',
    create: () => node.createZstdCompress!(options),
    memoryBytes: () => memoryBytes,
  };
}

/** Measured. */
function encoderBytes(level: number): number {
  const megabytes = level < 3 ? 2 : level < 6 ? 4 : level < 10 ? 16 : level < 16 ? 72 : level < 20 ? 96 : 768;
  return megabytes << 20;
}

export function zstdDecompression(config: DecompressorZstd): DecompressionLibrary {
  const options = {
    chunkSize: config.chunk_size ?? DEFAULT_CHUNK_BYTES,
    flush: ZSTD_E_FLUSH,
    params: { [ZSTD_D_WINDOW_LOG_MAX]: MAX_WINDOW_LOG },
  };
  return {
    encoding: 'zstd',
    statName: 'zstd',
    maxRatio: DEFAULT_MAX_RATIO,
    errorStat: 'zstd_generic_error',
    create: () => node.createZstdDecompress!(options),
    memoryBytes: () => STREAM_BYTES + DECODER_BYTES,
  };
}

/** In the order of zstd.h, which begins at 1. */
const STRATEGIES: readonly Zstd_Strategy[] = [
  ...(['DEFAULT', 'FAST', 'DFAST', 'GREEDY', 'LAZY', 'LAZY2', 'BTLAZY2', 'BTOPT', 'BTULTRA', 'BTULTRA2'] as const),
];
