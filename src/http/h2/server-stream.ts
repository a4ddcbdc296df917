// The server's end of a stream: a request that is received, and its response.

import { Protocol } from '../../access-log/stream/stream-info.js';
import type { RequestDecoder, ResponseEncoder } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { Section } from './head-builder.js';
import { H2Stream } from './stream.js';

const SWITCHING_PROTOCOLS = 101;

export class H2ServerStream extends H2Stream implements ResponseEncoder {
  declare decoder: RequestDecoder | undefined;

  get protocol(): Protocol {
    return Protocol.Http2;
  }

  sendContinue(): void {
    if (!this.isOpen || this.hasSentHead) return;
    const headers = this.carrier.newHead();
    headers.status = 100;
    this.carrier.sendHead(this, headers, Section.Response, false);
    headers.drop();
  }

  informational(headers: HeaderBlock): void {
    // RFC 9113, section 8.6: 101 has no meaning here.
    if (!this.isOpen || this.hasSentHead || headers.status === SWITCHING_PROTOCOLS) return;
    this.carrier.sendHead(this, headers, Section.Response, false);
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    if (!this.isOpen || this.hasSentHead) return;
    this.hasSentHead = true;
    if (endStream) this.onEndQueued();
    this.carrier.sendHead(this, headers, Section.Response, endStream);
  }

  halfClose(): void {
    // Only tunnels end their directions one by one.
  }

  endConnection(): void {
    // The connection drains on its own: its other streams continue.
  }

  protected override onEndQueued(): void {
    this.isEndQueued = true;
    this.decoder = undefined;
  }
}
