// The copies of one request for the clusters of its route's request_mirror_policies.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { headerKey } from '../../../../common/text/header-names.js';
import { type HeaderBlock, headerBlocks } from '../../../../http/headers/header-block.js';
import type { MirrorPolicy } from '../../../../http/routing/actions/mirror-policy.js';
import type { CallingThread } from '../../../../upstream/calling-thread.js';
import type { ClusterReference } from '../../../../upstream/cluster-manager.js';
import { chooseHost } from '../../../../upstream/http-calls/outgoing-call.js';
import { type MirroredHead, MirroredRequest, mirroredHead } from './mirrored-request.js';

export class Mirrors {
  readonly #copies: MirroredRequest[] = [];
  readonly #calls: CallingThread;

  constructor(calls: CallingThread) {
    this.#calls = calls;
  }

  /** Begins the copies of a request, whose head has the changes of its route. */
  begin(
    policies: readonly MirrorPolicy<ClusterReference>[],
    headers: HeaderBlock,
    info: StreamInfo,
    endStream: boolean,
    timeoutMs: number,
  ): void {
    const thread = this.#calls.begin();
    for (const policy of policies) {
      const cluster = policy.clusterFor(headers, thread.random)?.current?.clusterOfHost();
      if (cluster === undefined) continue;
      const host = chooseHost(thread, cluster);
      if (typeof host === 'string') continue;
      try {
        const head = this.#headFor(policy, headers, info);
        const copy = new MirroredRequest(this.#calls, cluster, host, head, timeoutMs);
        copy.begin(endStream);
        if (!endStream) this.#copies.push(copy);
      } catch (error) {
        // The request continues without this copy.
        thread.transport.report(error, 'a mirrored request cannot begin');
      }
    }
  }

  /** Copies get the body of the request. */
  get isActive(): boolean {
    return this.#copies.length > 0;
  }

  /** Sends a part of the body. Returns how many copies were given up because of it. */
  data(bytes: Uint8Array, endStream: boolean): number {
    const part = bytes.slice();
    const given = this.#copies.filter((copy) => !copy.send(part, endStream));
    if (endStream) this.#copies.length = 0;
    else for (const copy of given) this.#copies.splice(this.#copies.indexOf(copy), 1);
    return given.length;
  }

  /** Called at the end of a request, complete or not. */
  end(): void {
    for (const copy of this.#copies) copy.giveUp();
    this.#copies.length = 0;
  }

  #headFor(policy: MirrorPolicy<ClusterReference>, headers: HeaderBlock, info: StreamInfo): MirroredHead {
    const { memory } = headers;
    const copy = headerBlocks(memory).take();
    try {
      copy.setMethod(headers.method, headers.methodText());
      copy.setTarget(headers.pathText());
      copy.scheme = headers.scheme;
      for (let index = 0; index < headers.size; index++)
        if (!headers.isRemoved(index)) copy.add(headerKey(headers.name(index)), headers.value(index));
      policy.mutations?.apply(copy, info);
      policy.setHost(copy);
      return mirroredHead(copy, this.#calls.ip);
    } finally {
      copy.drop();
    }
  }
}
