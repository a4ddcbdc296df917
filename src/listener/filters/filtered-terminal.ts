// Combines the network filters of a chain and its terminal filter to one terminal filter for the listener.

import type { RouteConfiguration } from '../../config/generated/api.js';
import type { Timers } from '../../io/time/timing-wheel.js';
import type { DownstreamConnection, DownstreamHandler } from '../downstream-connection.js';
import type { NetworkFilterFactory, TerminalNetworkFilter } from '../network-filter.js';
import { FilterRun } from './filter-run.js';
import { FilteredConnection } from './filtered-connection.js';

/** For chains of FilteredConnections. They cannot be handed over to another process, because the state of the filters cannot. */
export class FilteredTerminal implements TerminalNetworkFilter {
  readonly prepareRoutes?: (routes: RouteConfiguration) => Generator<void, () => void>;
  readonly #factories: readonly NetworkFilterFactory[];
  readonly #terminal: TerminalNetworkFilter;
  readonly #maxHeldBytes: number;
  readonly #timers: Timers;
  readonly #report: (error: unknown, what: string) => void;

  /** `maxHeldBytes`: per connection; beyond it the client is not read. `report` gets what close() of a filter throws. */
  constructor(
    factories: readonly NetworkFilterFactory[],
    terminal: TerminalNetworkFilter,
    maxHeldBytes: number,
    timers: Timers,
    report: (error: unknown, what: string) => void,
  ) {
    this.#factories = factories;
    this.#terminal = terminal;
    this.#maxHeldBytes = maxHeldBytes;
    this.#timers = timers;
    this.#report = report;
    if (terminal.prepareRoutes !== undefined) this.prepareRoutes = (routes) => terminal.prepareRoutes!(routes);
  }

  accept(connection: DownstreamConnection): DownstreamHandler | undefined {
    if (!(connection instanceof FilteredConnection)) throw new TypeError('the chain must create FilteredConnections');
    return FilterRun.begin(connection, this.#factories, this.#terminal, this.#maxHeldBytes, this.#timers);
  }

  close(): void {
    this.#terminal.close?.();
    closeFilters(this.#factories, this.#report);
  }
}

/** Closes all filters. Reports what one throws and continues. */
export function closeFilters(
  factories: readonly NetworkFilterFactory[],
  report: (error: unknown, what: string) => void,
): void {
  for (const factory of factories) {
    try {
      factory.close?.();
    } catch (error) {
      report(error, 'close() of a network filter failed');
    }
  }
}
