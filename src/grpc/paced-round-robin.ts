// Round robin over the hosts of a channel, with a minimum interval between connects. The policy of grpc-js reconnects at once to
// hosts that close each connection, hundreds of times per second, even without calls.

import { experimental } from '@grpc/grpc-js';
import { BreakingPicker, countConnections } from './call-breaker.js';
import { endUnfinishedCalls } from './unfinished-calls.js';

/** Minimum interval between connects to a host. */
const CONNECT_INTERVAL_MS = 500;

/** The policy's name in a service_config. */
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
  /** By address: when the next connect is allowed. Kept here because subchannels of an address are replaced. */
  readonly #nextConnectMs = new Map<string, number>();

  constructor(helper: experimental.ChannelControlHelper) {
    const paced = experimental.createChildChannelControlHelper(helper, {
      createSubchannel: (address, options) => {
        const subchannel = helper.createSubchannel(address, options);
        countConnections(subchannel.getRealSubchannel(), options);
        return new PacedSubchannel(subchannel, this.#nextConnectMs);
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
  readonly #nextConnectMs: Map<string, number>;
  #timer: NodeJS.Timeout | undefined;

  constructor(child: experimental.SubchannelInterface, nextConnectMs: Map<string, number>) {
    super(child);
    this.#nextConnectMs = nextConnectMs;
    endUnfinishedCalls(child.getRealSubchannel());
  }

  override startConnecting(): void {
    if (this.#timer !== undefined) return;
    const waitMs = (this.#nextConnectMs.get(this.getAddress()) ?? 0) - performance.now();
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
    for (const [address, nextConnectMs] of this.#nextConnectMs)
      if (nextConnectMs <= now) this.#nextConnectMs.delete(address);
    this.#nextConnectMs.set(this.getAddress(), now + CONNECT_INTERVAL_MS);
    super.startConnecting();
  }
}

experimental.registerLoadBalancerType(PACED_ROUND_ROBIN, PacedRoundRobin, Config);
