// Round robin over the hosts of a channel, as grpc-js does it, but for hosts that end each connection as soon as it is there: it
// would connect to them again at once, hundreds of times a second, whether there are calls or not.

import { experimental } from '@grpc/grpc-js';
import { BreakingPicker, countConnections } from './call-breaker.js';
import { endUnfinishedCalls } from './unfinished-calls.js';

/** A host is connected to once in so long at most. */
const PAUSE_MS = 500;

/** Its name in a service_config. */
export const PACED_ROUND_ROBIN = 'baton_round_robin';

class Config implements experimental.TypedLoadBalancingConfig {
  getLoadBalancerName(): string {
    return PACED_ROUND_ROBIN;
  }

  toJsonObject(): object {
    return { [PACED_ROUND_ROBIN]: {} };
  }

  static createFromJson(): Config {
    return new Config();
  }
}

class PacedRoundRobin implements experimental.LoadBalancer {
  readonly #child: experimental.ChildLoadBalancerHandler;
  /** By address: when it may be connected to again. Subchannels of an address come and go. */
  readonly #notBeforeMs = new Map<string, number>();

  constructor(helper: experimental.ChannelControlHelper) {
    const paced = experimental.createChildChannelControlHelper(helper, {
      createSubchannel: (address, options) => {
        const subchannel = helper.createSubchannel(address, options);
        countConnections(subchannel.getRealSubchannel(), options);
        return new PacedSubchannel(subchannel, this.#notBeforeMs);
      },
      updateState: (state, picker, message) => helper.updateState(state, new BreakingPicker(picker), message),
    });
    this.#child = new experimental.ChildLoadBalancerHandler(paced);
  }

  updateAddressList(
    ...[endpoints, , options, note]: Parameters<experimental.LoadBalancer['updateAddressList']>
  ): boolean {
    const config = experimental.parseLoadBalancingConfig({ round_robin: {} });
    return this.#child.updateAddressList(endpoints, config, options, note);
  }

  exitIdle(): void {
    this.#child.exitIdle();
  }

  resetBackoff(): void {
    this.#child.resetBackoff();
  }

  destroy(): void {
    this.#child.destroy();
  }

  getTypeName(): string {
    return PACED_ROUND_ROBIN;
  }
}

class PacedSubchannel extends experimental.BaseSubchannelWrapper {
  readonly #notBeforeMs: Map<string, number>;
  #timer: NodeJS.Timeout | undefined;

  constructor(child: experimental.SubchannelInterface, notBeforeMs: Map<string, number>) {
    super(child);
    this.#notBeforeMs = notBeforeMs;
    endUnfinishedCalls(child.getRealSubchannel());
  }

  override startConnecting(): void {
    if (this.#timer !== undefined) return;
    const waitMs = (this.#notBeforeMs.get(this.getAddress()) ?? 0) - performance.now();
    if (waitMs <= 0) return this.#connect();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#connect();
    }, waitMs);
    this.#timer.unref();
  }

  protected override destroy(): void {
    clearTimeout(this.#timer);
    super.destroy();
  }

  #connect(): void {
    const now = performance.now();
    for (const [address, notBeforeMs] of this.#notBeforeMs) if (notBeforeMs <= now) this.#notBeforeMs.delete(address);
    this.#notBeforeMs.set(this.getAddress(), now + PAUSE_MS);
    super.startConnecting();
  }
}

experimental.registerLoadBalancerType(PACED_ROUND_ROBIN, PacedRoundRobin, Config);
