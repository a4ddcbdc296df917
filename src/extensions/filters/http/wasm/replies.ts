// The answers of modules, and of modules that have failed.

import { keyOf } from '../../../script/header-keys.js';
import { type HeaderBlock, type HeaderKey, type LocalReply, oneWord } from '../../../sdk.js';
import type { LocalResponse } from '../../../wasm/contexts/context.js';

/** Details of a refusal. */
export const INVALID_FIELD = 'wasm_invalid_field';
export const LONG_BODY = 'wasm_long_body';

/** The answer when a VM has ended and the plugin fails closed. */
export const FAILED: LocalReply = { status: 503, body: '', details: 'wasm_fail_stream', flags: 0 };

/** The answer when a module does what cannot be sent. */
export function refusal(details: string): LocalReply {
  return { status: 503, body: '', details, flags: 0 };
}

/** Follow from the connection and the body. */
const FRAMING = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
]);

/** Returns a refusal if a field cannot be sent, and undefined for a status that cannot be sent. */
export function localReply({ body, details, grpcStatus, headers, status }: LocalResponse): LocalReply | undefined {
  if (status < 200 || status > 599) return undefined;
  const fields: [HeaderKey, string][] = [];
  try {
    for (const [name, value] of headers) {
      if (FRAMING.has(name) || name.startsWith(':')) continue;
      if (/[\r\n\0]/.test(value)) return refusal(INVALID_FIELD);
      fields.push([keyOf(name), value]);
    }
  } catch {
    return refusal(INVALID_FIELD);
  }
  return {
    status,
    body,
    // As in Envoy, no space breaks a log line into other columns.
    details: oneWord(details),
    flags: 0,
    grpcStatus: grpcStatus >= 0 ? grpcStatus : undefined,
    editHeaders(head: HeaderBlock) {
      for (const [key, value] of fields) {
        if (key.name === 'content-type') head.set(key, value);
        else head.add(key, value);
      }
    },
  };
}
