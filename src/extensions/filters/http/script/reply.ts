// The result of ctx.reply(). Only this class is a reply: hooks that return something else by mistake fail.

import type { Reply } from '../../../../api/index.js';
import { writableKey } from '../../../script/header-keys.js';
import { bytesOf } from '../../../script/text.js';
import { byteText, type LocalReply } from '../../../sdk.js';

export class ScriptReply implements Reply {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly local: LocalReply;

  /** Throws for a status, a body or a field that cannot be sent: the exception has the place where the hook makes the reply. */
  constructor(status: number, body: string | Uint8Array, headers: Readonly<Record<string, string>> | undefined) {
    this.status = status;
    this.body = body;
    this.headers = headers;
    this.local = localReply(status, body, headers);
  }
}

function localReply(
  status: number,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): LocalReply {
  if (!(Number.isInteger(status) && status >= 200 && status <= 599))
    throw new RangeError(`a reply cannot have the status ${status}`);
  bytesOf(body);
  const fields = Object.entries(headers).map(([name, value]) => ({ key: writableKey(name), value: byteText(value) }));
  if (fields.some(({ value }) => /[\r\n\0]/.test(value))) throw new TypeError('a header value is one line');
  const reply = { status, body, details: 'script_reply', flags: 0 };
  if (fields.length === 0) return reply;
  return {
    ...reply,
    editHeaders: (block) => {
      for (const { key, value } of fields) block.set(key, value);
    },
  };
}
