// The filter state of grpc_stats: how many messages a call has sent and received. Logs print it when they are written.

import { type FilterStateObject, ProtobufWriter } from '../../../sdk.js';

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

  get message() {
    const writer = new ProtobufWriter();
    if (this.requests > 0) writer.number(1, this.requests);
    if (this.responses > 0) writer.number(2, this.responses);
    return {
      typeUrl: 'type.googleapis.com/envoy.extensions.filters.http.grpc_stats.v3.FilterObject',
      encoded: writer.copy(),
    };
  }
}
