// Counts a channel's calls and connections against the circuit breakers of its cluster.

import { type ChannelOptions, connectivityState, experimental, Metadata, status } from '@grpc/grpc-js';
import type { CallLimits, ClusterHosts } from './cluster-hosts.js';
import type { Subchannel } from './unfinished-calls.js';

/** The place that a call occupies in a circuit breaker: as pending (waiting for a connection) or as active request. */
class BreakerPlace {
  readonly #limits: CallLimits;
  #held: 'pending' | 'requests' | undefined;
  #isOver = false;

  constructor(limits: CallLimits) {
    this.#limits = limits;
  }

  /** Moves to a place of this kind. Returns false if that breaker is open. */
  take(kind: 'pending' | 'requests'): boolean {
    if (this.#held === kind || this.#isOver) return true;
    this.#release();
    if (!this.#limits.tryAcquire(kind)) return false;
    this.#held = kind;
    return true;
  }

  end(): void {
    this.#isOver = true;
    this.#release();
  }

  #release(): void {
    if (this.#held !== undefined) this.#limits.release(this.#held);
    this.#held = undefined;
  }
}

/** The metadata of a call, through which pickers find its place. grpc-js passes them a copy. */
class CallMetadata extends Metadata {
  place: BreakerPlace | undefined;

  override clone(): CallMetadata {
    const copy = new CallMetadata(this.getOptions());
    copy.merge(this);
    copy.place = this.place;
    return copy;
  }
}

/** Returns empty metadata for a call to a cluster, and a function to call at its end. */
export function beginCall(hosts: ClusterHosts, cluster: string | undefined): [metadata: Metadata, end: () => void] {
  const metadata = new CallMetadata();
  const limits = cluster === undefined ? undefined : hosts.callLimits(cluster);
  if (limits === undefined) return [metadata, () => {}];
  const place = new BreakerPlace(limits);
  metadata.place = place;
  return [metadata, () => place.end()];
}

/** The channel option that passes the breakers to connections. It is excluded from the comparison of subchannels. */
export const LIMITS_OPTION = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}baton_limits`;

const counted = new WeakSet<Subchannel>();

/** Counts the connections of a subchannel from now on. */
export function countConnections(subchannel: Subchannel, { [LIMITS_OPTION]: limits }: ChannelOptions): void {
  if (limits === undefined || counted.has(subchannel)) return;
  counted.add(subchannel);
  subchannel.addConnectivityStateListener((_subchannel, before, now) => {
    if (now === connectivityState.READY) (limits as CallLimits).acquire('connections');
    else if (before === connectivityState.READY) (limits as CallLimits).release('connections');
  });
}

/** Queues calls or assigns them to connections only if the breakers allow it. */
export class BreakingPicker implements experimental.Picker {
  readonly #picker: experimental.Picker;

  constructor(picker: experimental.Picker) {
    this.#picker = picker;
  }

  pick(args: experimental.PickArgs): experimental.PickResult {
    const picked = this.#picker.pick(args);
    const place = args.metadata instanceof CallMetadata ? args.metadata.place : undefined;
    const isWaiting = picked.pickResultType === experimental.PickResultType.QUEUE;
    if (place === undefined || !(isWaiting || picked.pickResultType === experimental.PickResultType.COMPLETE))
      return picked;
    return place.take(isWaiting ? 'pending' : 'requests') ? picked : REFUSED;
  }
}

const REFUSED: experimental.PickResult = {
  pickResultType: experimental.PickResultType.DROP,
  subchannel: null,
  status: { code: status.UNAVAILABLE, details: 'a circuit breaker of the cluster is open', metadata: new Metadata() },
  onCallStarted: null,
  onCallEnded: null,
};
