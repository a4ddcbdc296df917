// The server's end of a stream: a request that is received, and its response.

import { Protocol } from '../../access-log/stream/stream-info.js';
import { type RequestDecoder, ResetReason, type ResponseEncoder } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { ErrorCode } from './frames.js';
import { Section } from './head-builder.js';
import { H2Stream } from './stream.js';

const SWITCHING_PROTOCOLS = 101;
const OK = 200;

export class H2ServerStream extends H2Stream implements ResponseEncoder {
  declare decoder: RequestDecoder | undefined;
  /** The response has no body, even if a filter adds one or has changed the method of the request. */
  isHeadRequest = false;

  get protocol(): Protocol {
    return Protocol.Http2;
  }

  holdEnd(): void {
    this.isEndHeld = true;
  }

  releaseEnd(): void {
    if (!this.isEndHeld) return;
    this.isEndHeld = false;
    if (this.isOpen) this.carrier.settle(this);
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
    const { status } = headers;
    this.hasSentHead = true;
    this.isTunnel = this.isUpgrade ? status === SWITCHING_PROTOCOLS : this.isConnect && status >= 200 && status < 300;
    if (endStream) this.onEndQueued();
    // RFC 8441, section 5: in place of 101.
    if (this.isUpgrade && this.isTunnel) headers.status = OK;
    this.carrier.sendHead(this, headers, Section.Response, endStream);
    headers.status = status;
    if (this.isTunnel) this.deliverHeld();
  }

  protected override get awaitsTunnel(): boolean {
    return (this.isUpgrade || this.isConnect) && !this.isTunnel;
  }

  halfClose(): void {
    if (!this.isOpen || this.isEndQueued) return;
    this.isHalfClosed = this.isEndQueued = true;
    this.carrier.sendBody(this, 0, 0, true);
  }

  override data(offset: number, length: number, endStream: boolean): void {
    if (this.isHeadRequest) length = 0;
    if (!this.isHalfClosed) return super.data(offset, length, endStream);
    if (!endStream || !this.isOpen) return;
    this.isHalfClosed = false;
    this.decoder = undefined;
    this.carrier.settle(this);
  }

  /** RFC 9113, section 8.5: an error of the host's connection has a code of its own. */
  override reset(reason: ResetReason): void {
    if (!this.isConnect || !this.hasSentHead || reason === ResetReason.InternalError) return super.reset(reason);
    if (this.isOpen) this.carrier.resetStream(this, ErrorCode.ConnectError);
  }

  endConnection(): void {
    // The connection drains on its own: its other streams continue.
  }

  protected override onEndQueued(): void {
    this.isEndQueued = true;
    this.decoder = undefined;
  }
}
