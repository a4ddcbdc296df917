// The filter state of grpc_stats: how many messages a call has sent and received. Logs print it when they are written.

import type { FilterStateObject } from '../../../sdk.js';

export class MessageCounts implements FilterStateObject {
  readonly isReadOnly = false;
  readonly sharing = 'NONE';
  requests = 0;
  responses = 0;

  get text(): string {
    return `${this.requests},${this.responses}`;
  }

  /** The message FilterObject: 64-bit numbers are texts, and 0 is left out. */
  get json(): string {
    return JSON.stringify({
      requestMessageCount: this.requests === 0 ? undefined : String(this.requests),
      responseMessageCount: this.responses === 0 ? undefined : String(this.responses),
    });
  }
}
