// The client's end of a stream: a request that is sent, and its response.

import { Protocol } from '../../access-log/stream/stream-info.js';
import { ConnectionHeader } from '../../common/text/header-names.js';
import type { RequestEncoder, ResponseDecoder } from '../codec/streams.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { Section } from './head-builder.js';
import { isUpgradeRequest } from './head-writer.js';
import { H2Stream } from './stream.js';

export class H2ClientStream extends H2Stream implements RequestEncoder {
  declare decoder: ResponseDecoder | undefined;
  /** The response has no body, whatever its content-length is. */
  isHeadRequest = false;
  /** The type of an upgrade; '' for other requests. */
  upgradeType = '';

  get protocol(): Protocol {
    return Protocol.Http2;
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    if (!this.isOpen || this.hasSentHead) return;
    const asksForUpgrade = headers.upgrade;
    this.isUpgrade = isUpgradeRequest(headers);
    this.isConnect = headers.method === Method.Connect;
    if (asksForUpgrade && headers.contentLength > 0) return this.carrier.refuseTunnel(this);
    if (this.isUpgrade) this.upgradeType = headers.value(headers.findId(ConnectionHeader.Upgrade));
    // It is 0, and not that of the tunnel.
    if (this.isUpgrade || this.isConnect) headers.removeId(ConnectionHeader.ContentLength);
    this.hasSentHead = true;
    this.isHeadRequest = headers.method === Method.Head;
    // Without the field, which a filter has removed, nothing follows an upgrade's head.
    const isEnd = endStream || (asksForUpgrade && !this.isUpgrade);
    if (isEnd) this.isEndQueued = true;
    this.carrier.sendHead(this, headers, Section.Request, isEnd);
  }

  keepOpen(): void {
    this.isTunnel = true;
  }

  protected override onEndQueued(): void {
    // Otherwise the response follows.
    if (this.isTunnel) this.carrier.settle(this);
  }
}
