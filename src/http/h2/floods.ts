// Limits of what a peer may send without purpose, as Envoy counts it.

import type { Http2Options } from '../codec/options.js';

export class FloodGuard {
  readonly #options: Http2Options;
  #emptyFrames = 0;
  #priorityFrames = 0;
  #windowUpdates = 0;
  #sentDataFrames = 0;
  #streams = 0;
  /** Frames and control frames that were sent since the peer was last known to have read everything. */
  #outbound = 0;
  #outboundControl = 0;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  streamOpened(): void {
    this.#streams++;
  }

  dataSent(): void {
    this.#sentDataFrames++;
  }

  /** Called for HEADERS, CONTINUATION and DATA. `isEmpty`: the frame has no payload and ends no stream. Returns whether it exceeds the limit. */
  countContent(isEmpty: boolean): boolean {
    if (!isEmpty) {
      this.#emptyFrames = 0;
      return false;
    }
    return ++this.#emptyFrames > this.#options.maxEmptyFrames;
  }

  countPriority(): boolean {
    return ++this.#priorityFrames > this.#options.maxPriorityFramesPerStream * (1 + this.#streams);
  }

  countWindowUpdate(): boolean {
    const { maxWindowUpdatesPerDataFrame } = this.#options;
    return ++this.#windowUpdates > 5 + 2 * (this.#streams + maxWindowUpdatesPerDataFrame * this.#sentDataFrames);
  }

  /** Counts a sent frame. Returns whether one of the limits may be exceeded: the caller calls settleOutbound() if the peer has read all. */
  countOutbound(isControl: boolean): boolean {
    this.#outbound++;
    if (isControl) this.#outboundControl++;
    return this.isControlExceeded || this.#outbound > this.#options.maxOutboundFrames;
  }

  get isControlExceeded(): boolean {
    return this.#outboundControl > this.#options.maxOutboundControlFrames;
  }

  settleOutbound(): void {
    this.#outbound = this.#outboundControl = 0;
  }
}
