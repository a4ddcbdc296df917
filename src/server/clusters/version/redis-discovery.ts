// The hosts of a Redis cluster: asks one of its nodes, regularly and after events that show a change, for all nodes and their slots.

import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import { addressText, ipAddress } from '../../../io/addresses/address.js';
import { Timer, type Timers } from '../../../io/time/timing-wheel.js';
import { getLogger } from '../../../log/logger.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import type { DiscoverySpec } from '../../../upstream/discovery-config.js';
import type { DnsResolver } from '../../../upstream/dns/resolver.js';
import { keyOf, type ResolvedEndpoint, traitsOf } from '../../../upstream/hosts/host.js';
import type { Shards } from '../../../upstream/hosts/shards.js';
import type { RedisResult } from '../redis/redis-client.js';
import { type RedisNode, readSlots, type SlotRange } from '../redis/slots-reply.js';
import type { ClusterResources } from './cluster-resources.js';
import type { DiscoveryContext, DiscoveryListener, FoundHosts, HostDiscovery, HostEvents } from './discovery.js';

const logger = getLogger('upstream');

/** Labels of at most 63 characters, also with underscores: no name server is asked for others. */
const NAME = /^(?=.{1,254}$)([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?$/i;

/** A cluster with more nodes is refused: what one node says could use up the memory. */
const MAX_NODES = 4096;

export class RedisDiscovery implements HostDiscovery {
  readonly #spec: DiscoverySpec;
  readonly #hasSlots: boolean;
  readonly #resources: ClusterResources;
  readonly #listener: DiscoveryListener;
  readonly #context: DiscoveryContext;
  readonly #timers: Timers;
  /** Its own resolver; undefined: it uses the common one. */
  readonly #resolver: DnsResolver | undefined;
  readonly #timer = new Timer<RedisDiscovery>(this, refresh);
  /** The configured nodes with their addresses. */
  #seeds: readonly ResolvedEndpoint[] = [];
  /** Of the last answer, also one to the former version; undefined before the first. */
  #found: FoundHosts | undefined;
  /** The nodes of the last answer to this version; empty before it: the configured ones may be those of another cluster. */
  #nodes: readonly ResolvedEndpoint[] = [];
  #isAsking = false;
  #question: { close(): void } | undefined;
  #isStopped = false;
  #events = { redirections: 0, failures: 0, degradedHosts: 0 };
  /** When events last caused a question (monotonic). */
  #causedMs = Number.NEGATIVE_INFINITY;

  constructor(
    spec: DiscoverySpec,
    resources: ClusterResources,
    listener: DiscoveryListener,
    context: DiscoveryContext,
  ) {
    this.#spec = spec;
    this.#hasSlots = context.cluster.hasSlots;
    this.#resources = resources;
    this.#listener = listener;
    this.#context = context;
    this.#timers = context.timers;
    const { resolver: settings } = spec.dns;
    this.#resolver = settings && context.resolver.withSettings(settings);
  }

  start(): void {
    void this.refresh();
    if (!this.#spec.waitsForHosts) this.#listener.onLooked();
  }

  inheritFrom(former: HostDiscovery): void {
    if (!(former instanceof RedisDiscovery) || this.#found !== undefined || former.#found === undefined) return;
    const { endpoints, policy } = former.#found;
    const shards = this.#hasSlots ? former.#found.shards : undefined;
    if (this.#hasSlots && shards === undefined) return;
    this.#use({ endpoints, policy, shards });
  }

  stop(): void {
    this.#isStopped = true;
    this.#timers.cancel(this.#timer);
    this.#question?.close();
    this.#resolver?.close();
  }

  note({ degradedHosts, failures, redirections }: HostEvents): void {
    const limits = this.#spec.redis;
    const now = this.#context.now();
    if (this.#isStopped || now < this.#causedMs + limits.pauseMs) return;
    const events = this.#events;
    events.redirections += redirections;
    events.failures += failures;
    events.degradedHosts += degradedHosts;
    const isDue = (count: number, limit: number) => limit > 0 && count >= limit;
    const mustAsk =
      isDue(events.redirections, limits.redirections) ||
      isDue(events.failures, limits.failures) ||
      isDue(events.degradedHosts, limits.degradedHosts);
    if (!mustAsk) return;
    this.#events = { redirections: 0, failures: 0, degradedHosts: 0 };
    this.#causedMs = now;
    void this.refresh();
  }

  /** Asks a node, unless one is being asked. Never rejects. */
  async refresh(): Promise<void> {
    if (this.#isStopped) return;
    this.#count('update_attempt');
    if (this.#isAsking) return;
    this.#isAsking = true;
    try {
      const found = await this.#ask();
      if (this.#isStopped) return;
      if (found !== undefined) this.#nodes = found.endpoints;
      if (found === undefined) this.#count('update_failure');
      else if (!this.#use(found)) this.#count('update_no_rebuild');
    } catch (error) {
      if (this.#isStopped) return;
      this.#count('update_failure');
      logger.warning(`Redis cluster '${shownName(this.#spec.name)}': ${messageOf(error)}`);
    } finally {
      this.#isAsking = false;
      if (!this.#isStopped) {
        this.#timers.reschedule(this.#timer, this.#spec.redis.refreshMs);
        this.#listener.onLooked();
      }
    }
  }

  #count(stat: 'update_attempt' | 'update_empty' | 'update_failure' | 'update_no_rebuild'): void {
    this.#resources.stats.increment(ClusterStats.at[stat]);
  }

  #use(found: FoundHosts): boolean {
    this.#found = found;
    return this.#listener.onHosts(found);
  }

  /** Returns undefined, and logs why, if there is no usable answer. */
  async #ask(): Promise<FoundHosts | undefined> {
    const { name, redis } = this.#spec;
    const candidates = this.#nodes.length > 0 ? this.#nodes : await this.#resolveSeeds();
    if (candidates.length === 0 || this.#isStopped) return undefined;
    const endpoint = candidates[this.#context.random.below(candidates.length)]!;
    const answer = await new Promise<SlotRange[] | string>((resolve) => {
      this.#question = this.#context.checks.ask({
        cluster: this.#context.cluster,
        endpoint: { ...endpoint, check: undefined },
        words: ['cluster', 'slots'],
        timeoutMs: redis.timeoutMs,
        onResult: (result) => resolve(slotsOf(result)),
      });
    });
    if (this.#isStopped) return undefined;
    if (typeof answer === 'string') {
      const node = addressText(endpoint.address);
      logger.warning(`Redis cluster '${shownName(name)}': node ${node} gives no slots: ${answer}`);
      return undefined;
    }
    return this.#hostsOf(answer);
  }

  /** Resolves the configured names until one is found. */
  async #resolveSeeds(): Promise<readonly ResolvedEndpoint[]> {
    if (this.#seeds.length > 0) return this.#seeds;
    const seeds = await Promise.all(
      this.#spec.endpoints.map(async (endpoint) => {
        const addresses = await this.#resolve(endpoint.host);
        const { healthFlags, isCanary, locality, priority, transport, weight } = endpoint;
        return addresses.map((ip) => ({
          ...{ healthFlags, isCanary, locality, priority, transport, weight },
          address: ipAddress(ip, endpoint.port)!,
          hostname: endpoint.hostname,
        }));
      }),
    );
    this.#seeds = seeds.flat();
    return this.#seeds;
  }

  /** Returns the addresses of a name. Counts a failure that is not that of the whole update. */
  async #resolve(name: string): Promise<readonly string[]> {
    if (ipAddress(name, 0) !== undefined) return [name];
    if (!NAME.test(name)) return [];
    const result = await (this.#resolver ?? this.#context.resolver).resolve(name, this.#spec.dns.family);
    if (result.status === 'found') return result.addresses;
    if (result.status === 'not_found') this.#count('update_empty');
    return [];
  }

  /** Returns undefined if a primary has no address. Replicas without one are left out. */
  async #hostsOf(ranges: readonly SlotRange[]): Promise<FoundHosts | undefined> {
    const addresses = await this.#addressesOf(ranges);
    if (addresses === undefined || this.#isStopped) return undefined;
    const found = new ShardList(this.#spec, (node) => addresses.get(`${node.host}:${node.port}`));
    for (const range of ranges) {
      if (found.add(range)) continue;
      const { host, port } = range.nodes[0]!;
      const node = shownName(`${host}:${port}`);
      logger.warning(`Redis cluster '${shownName(this.#spec.name)}': the primary ${node} has no address`);
      return undefined;
    }
    const { endpoints, shards } = found;
    return { endpoints, policy: this.#spec.policy, shards: this.#hasSlots ? shards : undefined };
  }

  /** Returns the address of each node that has one. */
  async #addressesOf(
    ranges: readonly SlotRange[],
  ): Promise<ReadonlyMap<string, ResolvedEndpoint['address']> | undefined> {
    const nodes = new Map<string, RedisNode>();
    for (const range of ranges) for (const node of range.nodes) nodes.set(`${node.host}:${node.port}`, node);
    if (nodes.size > MAX_NODES) {
      logger.warning(`Redis cluster '${shownName(this.#spec.name)}': its answer has more than ${MAX_NODES} nodes`);
      return undefined;
    }
    const entries = await Promise.all(
      Array.from(nodes, async ([key, { host, port }]) => {
        const [ip] = await this.#resolve(host);
        return [key, ip === undefined ? undefined : ipAddress(ip, port)] as const;
      }),
    );
    return new Map(entries.flatMap(([key, address]) => (address === undefined ? [] : [[key, address] as const])));
  }
}

/** The hosts and shards of an answer. The first configured node gives them what is not their address. */
class ShardList {
  readonly endpoints: ResolvedEndpoint[] = [];
  readonly shards: { readonly ranges: number[]; readonly hosts: string[][] } & Shards<string> = {
    ranges: [],
    hosts: [],
  };
  readonly #spec: DiscoverySpec;
  readonly #addressOf: (node: RedisNode) => ResolvedEndpoint['address'] | undefined;
  readonly #keys = new Set<string>();
  /** Shards by their primary. */
  readonly #byPrimary = new Map<string, number>();

  constructor(spec: DiscoverySpec, addressOf: (node: RedisNode) => ResolvedEndpoint['address'] | undefined) {
    this.#spec = spec;
    this.#addressOf = addressOf;
  }

  /** Returns false if the primary has no address. */
  add({ first, last, nodes }: SlotRange): boolean {
    const [primary] = nodes;
    const keys = [...new Set(nodes.flatMap((node) => this.#keyOf(node) ?? []))];
    if (this.#addressOf(primary!) === undefined) return false;
    let shard = this.#byPrimary.get(keys[0]!);
    if (shard === undefined) {
      shard = this.shards.hosts.push(keys) - 1;
      this.#byPrimary.set(keys[0]!, shard);
    }
    this.shards.ranges.push(first, last, shard);
    return true;
  }

  #keyOf(node: RedisNode): string | undefined {
    const address = this.#addressOf(node);
    if (address === undefined) return undefined;
    const endpoint: ResolvedEndpoint = { ...traitsOf(this.#spec.endpoints[0]!), address, hostname: '' };
    const key = keyOf(endpoint);
    if (!this.#keys.has(key)) this.endpoints.push(endpoint);
    this.#keys.add(key);
    return key;
  }
}

/** Returns the slots, or why there are none. */
function slotsOf(result: RedisResult): SlotRange[] | string {
  if (result.reply === undefined) return result.reason;
  try {
    return readSlots(result.reply);
  } catch (error) {
    return messageOf(error);
  }
}

function refresh(discovery: RedisDiscovery): void {
  void discovery.refresh();
}
