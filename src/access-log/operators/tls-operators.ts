// The operators about TLS that are a text: name, and the text ('' if there is none).

import type { StreamInfo } from '../stream/stream-info.js';

export const TLS_TEXTS: readonly (readonly [name: string, get: (info: StreamInfo) => string])[] = [
  ['TLS_JA3_FINGERPRINT', ({ downstream }) => downstream?.detected?.ja3 ?? ''],
  ['TLS_JA4_FINGERPRINT', ({ downstream }) => downstream?.detected?.ja4 ?? ''],
];
