// What calls and connections of a channel take from the circuit breakers of their cluster.

import { type ChannelOptions, connectivityState, experimental, Metadata, status } from '@grpc/grpc-js';
import type { CallLimits, ClusterHosts } from './cluster-hosts.js';
import type { Subchannel } from './unfinished-calls.js';

/** What a call has taken: a place among those that wait for a connection, or among those that have one. */
class CallPlace {
  readonly #limits: CallLimits;
  #held: 'pending' | 'requests' | undefined;
  #isOver = false;

  constructor(limits: CallLimits) {
    this.#limits = limits;
  }

  /** False when that breaker is open. */
  take(kind: 'pending' | 'requests'): boolean {
    if (this.#held === kind || this.#isOver) return true;
    this.#giveBack();
    if (!this.#limits.tryAcquire(kind)) return false;
    this.#held = kind;
    return true;
  }

  end(): void {
    this.#isOver = true;
    this.#giveBack();
  }

  #giveBack(): void {
    if (this.#held !== undefined) this.#limits.release(this.#held);
    this.#held = undefined;
  }
}

/** The metadata of a call, by which pickers know its place: grpc-js hands them a copy. */
class CallMetadata extends Metadata {
  place: CallPlace | undefined;

  override clone(): CallMetadata {
    const copy = new CallMetadata(this.getOptions());
    copy.merge(this);
    copy.place = this.place;
    return copy;
  }
}

/** Empty metadata of a call to that cluster, and what to call at its end. */
export function beginCall(hosts: ClusterHosts, cluster: string | undefined): [metadata: Metadata, end: () => void] {
  const metadata = new CallMetadata();
  const limits = cluster === undefined ? undefined : hosts.callLimits(cluster);
  if (limits === undefined) return [metadata, () => {}];
  const place = new CallPlace(limits);
  metadata.place = place;
  return [metadata, () => place.end()];
}

/** The option of a channel by which its connections know the breakers; nothing that tells subchannels apart. */
export const LIMITS_OPTION = `${experimental.SUBCHANNEL_ARGS_EXCLUDE_KEY_PREFIX}baton_limits`;

const counted = new WeakSet<Subchannel>();

/** The subchannel's connections are counted from now on. */
export function countConnections(subchannel: Subchannel, { [LIMITS_OPTION]: limits }: ChannelOptions): void {
  if (limits === undefined || counted.has(subchannel)) return;
  counted.add(subchannel);
  subchannel.addConnectivityStateListener((_subchannel, before, now) => {
    if (now === connectivityState.READY) (limits as CallLimits).acquire('connections');
    else if (before === connectivityState.READY) (limits as CallLimits).release('connections');
  });
}

/** Lets calls wait, or go to a connection, as the breakers allow. */
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
