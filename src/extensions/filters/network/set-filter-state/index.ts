// envoy.filters.network.set_filter_state: sets named objects of a connection, made from formats. Logs, filters and the requests of the
// connection read them, the TCP proxy its cluster, and dynamic forward proxies their host.

import type { NetworkSetFilterStateConfig } from '../../../../config/generated/api.js';
import {
  type Clock,
  type FilteredClient,
  FilterStatus,
  type NetworkFilter,
  type NetworkFilterExtension,
  obeyed,
  reportMistakes,
  StreamInfo,
} from '../../../sdk.js';
import { CLUSTER, compileValues, KINDS, VALUE_FIELDS, type ValueRule } from '../../common/filter-state-values.js';

const TYPE = 'envoy.extensions.filters.network.set_filter_state.v3.Config';

interface Rules {
  readonly onConnection: readonly ValueRule[];
  readonly onHandshake: readonly ValueRule[];
  readonly onData: readonly ValueRule[];
}

export const networkSetFilterState: NetworkFilterExtension<NetworkSetFilterStateConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.set_filter_state',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: {
    [TYPE]: obeyed('on_new_connection', 'on_downstream_tls_handshake', 'on_downstream_data'),
    ...VALUE_FIELDS,
  },
  validate(config, report) {
    reportMistakes(report, '', () => compile(config));
  },
  createOnWorker(config, _chain, { clock }) {
    const rules = compile(config);
    return { create: (client) => new SetFilterStateFilter(client, rules, clock) };
  },
};

function compile(config: NetworkSetFilterStateConfig): Rules {
  return {
    onConnection: compileValues(config.on_new_connection, 'on_new_connection', KINDS),
    onHandshake: compileValues(config.on_downstream_tls_handshake, 'on_downstream_tls_handshake', KINDS),
    onData: compileValues(config.on_downstream_data, 'on_downstream_data', KINDS),
  };
}

class SetFilterStateFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #rules: Rules;
  readonly #clock: Clock;
  #hasData = false;

  constructor(client: FilteredClient, rules: Rules, clock: Clock) {
    this.#client = client;
    this.#rules = rules;
    this.#clock = clock;
  }

  onNewConnection(): FilterStatus {
    this.#set(this.#rules.onConnection, 0);
    return FilterStatus.Continue;
  }

  onSecured(): void {
    this.#set(this.#rules.onHandshake, 0);
  }

  onData(_offset: number, length: number): FilterStatus {
    if (this.#hasData) return FilterStatus.Continue;
    this.#hasData = true;
    this.#set(this.#rules.onData, length);
    return FilterStatus.Continue;
  }

  #set(rules: readonly ValueRule[], bytes: number): void {
    if (rules.length === 0) return;
    const client = this.#client;
    const info = new StreamInfo();
    info.reset(this.#clock.realtimeMs, client.startMonotonicMs);
    info.connectionId = client.serial;
    info.downstream = client;
    info.connectionStartMs = client.startMonotonicMs;
    info.bytesReceived = bytes;
    for (const { format, isValid, key, sharing, skipsEmpty } of rules) {
      const text = format.text(info);
      if ((text === '' && skipsEmpty) || isValid?.(text) === false) continue;
      // As in Envoy, read_only has no effect here.
      client.setFilterState(key, { text, isReadOnly: false, sharing });
      if (key === CLUSTER) client.setCluster(text);
    }
  }
}
