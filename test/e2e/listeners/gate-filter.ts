// Loaded into Baton before its own code (--import): a network filter whose configuration selects what it does with its
// connections, and which counts its callbacks. It uses the message of the ZooKeeper proxy, whose stat_prefix is one of the words below.

import { EXTENSIONS } from '../../../src/extensions/index.js';
import {
  type ChainIdentity,
  defineLayout,
  FilterClose,
  type FilteredClient,
  FilterStatus,
  type NetworkFilter,
  type NetworkFilterExtension,
  refused,
  type Scope,
  Timer,
  type Timers,
} from '../../../src/extensions/sdk.js';

interface GateConfig {
  readonly stat_prefix?: string;
}

const MESSAGE = 'envoy.extensions.filters.network.zookeeper_proxy.v3.ZooKeeperProxy';
const UNUSED = refused('the gate does not use it');
const Stats = defineLayout({
  created: 'counter',
  begun: 'counter',
  bytes: 'counter',
  ends: 'counter',
  destroyed: 'counter',
});

const gate: NetworkFilterExtension<GateConfig> = {
  category: 'envoy.filters.network',
  name: 'acme.gate',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: {
      stat_prefix: true,
      access_log: UNUSED,
      max_packet_bytes: UNUSED,
      enable_latency_threshold_metrics: UNUSED,
      default_latency_threshold: UNUSED,
      latency_threshold_overrides: UNUSED,
      enable_per_opcode_request_bytes_metrics: UNUSED,
      enable_per_opcode_response_bytes_metrics: UNUSED,
      enable_per_opcode_decoder_error_metrics: UNUSED,
    },
  },
  scopes: (config, listener) => [{ prefix: prefixOf(config, listener), layout: Stats }],
  createOnWorker(config, chain, context) {
    const { memory, timers } = context;
    const stats = context.scope(prefixOf(config, chain), Stats);
    const word = wordOf(config);
    return {
      create(client) {
        stats.increment(Stats.at.created);
        if (word === 'throw in create') throw new Error(word);
        if (word === 'not mine') return undefined;
        return new Gate(client, word, stats, timers, (offset, length) => memory.text(offset, offset + length));
      },
    };
  },
};

class Gate implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #word: string;
  readonly #stats: Scope;
  readonly #timers: Timers;
  readonly #text: (offset: number, length: number) => string;
  readonly #timer = new Timer<Gate>(this, (gate) => gate.#open());
  #isOpen = false;

  constructor(
    client: FilteredClient,
    word: string,
    stats: Scope,
    timers: Timers,
    text: (offset: number, length: number) => string,
  ) {
    this.#client = client;
    this.#word = word;
    this.#stats = stats;
    this.#timers = timers;
    this.#text = text;
  }

  onNewConnection(): FilterStatus {
    this.#stats.increment(Stats.at.begun);
    switch (this.#word) {
      case 'wait':
        this.#timers.reschedule(this.#timer, 100);
        return FilterStatus.Stop;
      case 'line':
      case 'never':
        return FilterStatus.Stop;
      case 'throw in onNewConnection':
        throw new Error(this.#word);
      case 'refuse':
        this.#client.close(FilterClose.NoFlush, 'gate_closed');
        return FilterStatus.Stop;
      case 'refuse later':
        this.#client.close(FilterClose.NoFlush, 'gate_closed', 300);
        return FilterStatus.Stop;
      default:
        return FilterStatus.Continue;
    }
  }

  onData(offset: number, length: number, isEnd: boolean): FilterStatus {
    this.#stats.add(Stats.at.bytes, length);
    if (isEnd) this.#stats.increment(Stats.at.ends);
    switch (this.#word) {
      case 'line':
        this.#isOpen ||= this.#text(offset, length).includes('\n');
        return this.#isOpen ? FilterStatus.Continue : FilterStatus.Stop;
      case 'again':
        this.#client.continueReading();
        return FilterStatus.Stop;
      case 'slow':
        this.#timers.reschedule(this.#timer, 20);
        return FilterStatus.Stop;
      case 'wait':
        return this.#isOpen ? FilterStatus.Continue : FilterStatus.Stop;
      case 'never':
        return FilterStatus.Stop;
      case 'throw in onData':
        throw new Error(this.#word);
      case 'close':
        this.#client.close(FilterClose.NoFlush, 'gate_closed');
        return FilterStatus.Stop;
      case 'flush':
        this.#client.close(FilterClose.Flush, 'gate_closed');
        return FilterStatus.Stop;
      default:
        return FilterStatus.Continue;
    }
  }

  #open(): void {
    this.#isOpen = true;
    this.#client.continueReading();
  }

  onDestroy(): void {
    this.#stats.increment(Stats.at.destroyed);
    this.#timers.cancel(this.#timer);
    this.#client.continueReading();
    this.#client.close(FilterClose.Flush, 'too late');
    if (this.#word === 'throw in onDestroy') throw new Error(this.#word);
  }
}

function wordOf({ stat_prefix: word }: GateConfig): string {
  return word ?? '';
}

function prefixOf(config: GateConfig, { statToken }: Pick<ChainIdentity, 'statToken'>): string {
  return `gate.${statToken}.${wordOf(config).replaceAll(' ', '_')}.`;
}

(EXTENSIONS as NetworkFilterExtension[]).push(gate as NetworkFilterExtension);
