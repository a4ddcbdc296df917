// The library that a configuration names.

import type { TypedExtensionConfig } from '../../config/generated/api.js';
import { unpack } from '../sdk.js';
import { BROTLI_COMPRESSOR, BROTLI_DECOMPRESSOR, brotliCompression, brotliDecompression } from './brotli.js';
import { GZIP_COMPRESSOR, GZIP_DECOMPRESSOR, gzipCompression, gzipDecompression } from './gzip.js';
import type { CompressionLibrary, DecompressionLibrary } from './library.js';
import { ZSTD_COMPRESSOR, ZSTD_DECOMPRESSOR, zstdCompression, zstdDecompression } from './zstd.js';

/** `config` has been accepted, so it is one of these. */
export function compressionLibrary({ typed_config: config }: TypedExtensionConfig): CompressionLibrary {
  const gzip = unpack(config, GZIP_COMPRESSOR);
  if (gzip !== undefined) return gzipCompression(gzip);
  const brotli = unpack(config, BROTLI_COMPRESSOR);
  return brotli === undefined ? zstdCompression(unpack(config, ZSTD_COMPRESSOR)!) : brotliCompression(brotli);
}

export function decompressionLibrary({ typed_config: config }: TypedExtensionConfig): DecompressionLibrary {
  const gzip = unpack(config, GZIP_DECOMPRESSOR);
  if (gzip !== undefined) return gzipDecompression(gzip);
  const brotli = unpack(config, BROTLI_DECOMPRESSOR);
  return brotli === undefined ? zstdDecompression(unpack(config, ZSTD_DECOMPRESSOR)!) : brotliDecompression(brotli);
}
