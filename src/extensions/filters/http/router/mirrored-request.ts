// A copy of a request for a cluster of request_mirror_policies. Its response is discarded, and its failure affects nothing.

import { type HeaderKey, headerKey } from '../../../../common/text/header-names.js';
import type { HeaderBlock, Method } from '../../../../http/headers/header-block.js';
import type { CallingThread } from '../../../../upstream/calling-thread.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import { OutgoingCall } from '../../../../upstream/http-calls/outgoing-call.js';

/** Unsent bytes of the body that a copy may hold: a slow mirror must not slow the request down. */
const MAX_QUEUED_BYTES = 1024 * 1024;

const FORWARDED_FOR = headerKey('x-forwarded-for');
const INTERNAL = headerKey('x-envoy-internal');

/** The head of a copy, which outlives that of the request. */
export interface MirroredHead {
  readonly method: Method;
  readonly methodText: string;
  readonly path: string;
  readonly scheme: '' | 'http' | 'https';
  readonly fields: readonly (readonly [key: HeaderKey, value: string])[];
}

export class MirroredRequest extends OutgoingCall {
  readonly #head: MirroredHead;
  readonly #timeoutMs: number;

  /** `timeoutMs`: from the end of the request to the end of the response; 0: none. */
  constructor(caller: CallingThread, cluster: Cluster, host: ClusterHost, head: MirroredHead, timeoutMs: number) {
    super(caller, cluster, host);
    this.#head = head;
    this.#timeoutMs = timeoutMs;
  }

  begin(isComplete: boolean): void {
    if (isComplete) this.completeBody();
    this.start(isComplete ? this.#timeoutMs : 0);
  }

  /** Returns false if the copy is given up because its host takes too little. */
  send(bytes: Uint8Array, isComplete: boolean): boolean {
    if (this.isOver) return true;
    if (this.queuedBytes + bytes.length > MAX_QUEUED_BYTES) {
      this.abort();
      return false;
    }
    if (bytes.length > 0) this.enqueue(bytes);
    if (isComplete) {
      this.completeBody();
      this.endWithin(this.#timeoutMs);
    }
    this.sendBody();
    return true;
  }

  /** Called when the client has disconnected before its request was complete. */
  giveUp(): void {
    if (!this.isBodySent && !this.isOver) this.abort();
  }

  // ── OutgoingCall ─────────────────────────────────────────────────────────────────────────────────────────────────

  protected writeHead(head: HeaderBlock): void {
    const { fields, method, methodText, path, scheme } = this.#head;
    head.setMethod(method, methodText);
    head.setTarget(path);
    head.scheme = scheme;
    for (const [key, value] of fields) head.add(key, value);
  }

  protected responded(_headers: HeaderBlock, endStream: boolean): void {
    if (endStream) this.complete();
  }

  onData(_offset: number, _length: number, endStream: boolean): void {
    if (endStream) this.complete();
  }

  onTrailers(): void {
    this.complete();
  }

  protected failed(): void {}
}

/** Returns the head of a copy as its host gets it. `ownIp`: this server's, as Envoy gives it. */
export function mirroredHead(headers: HeaderBlock, ownIp: string): MirroredHead {
  const former = headers.get(FORWARDED_FOR);
  headers.set(INTERNAL, 'true');
  headers.set(FORWARDED_FOR, former === undefined ? ownIp : `${former},${ownIp}`);
  const fields: (readonly [HeaderKey, string])[] = [];
  for (let index = 0; index < headers.size; index++)
    if (!headers.isRemoved(index)) fields.push([headerKey(headers.name(index)), headers.value(index)]);
  const { method, scheme } = headers;
  return { method, methodText: headers.methodText(), path: headers.pathText(), scheme, fields };
}
