// The result of ctx.reply(). Only this class is a reply: hooks that return something else by mistake fail.

import type { Reply } from '../../../../api/index.js';

export class ScriptReply implements Reply {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(status: number, body: string | Uint8Array, headers: Readonly<Record<string, string>> | undefined) {
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}
