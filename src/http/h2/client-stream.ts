// The client's end of a stream: a request that is sent, and its response.

import { Protocol } from '../../access-log/stream/stream-info.js';
import type { RequestEncoder, ResponseDecoder } from '../codec/streams.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { Section } from './head-builder.js';
import { H2Stream } from './stream.js';

export class H2ClientStream extends H2Stream implements RequestEncoder {
  declare decoder: ResponseDecoder | undefined;
  /** The response has no body, whatever its content-length is. */
  isHeadRequest = false;

  get protocol(): Protocol {
    return Protocol.Http2;
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    if (!this.isOpen || this.hasSentHead) return;
    if (headers.upgrade || headers.method === Method.Connect) return this.carrier.refuseTunnel(this);
    this.hasSentHead = true;
    this.isHeadRequest = headers.method === Method.Head;
    if (endStream) this.isEndQueued = true;
    this.carrier.sendHead(this, headers, Section.Request, endStream);
  }

  protected override onEndQueued(): void {
    // The response follows.
  }
}
