// The network filters of a chain and the terminal one behind them, which the listener sees as one.

import type { RouteConfiguration } from '../../config/generated/api.js';
import type { Timers } from '../../io/time/timing-wheel.js';
import type { DownstreamConnection, DownstreamHandler } from '../downstream-connection.js';
import type { NetworkFilterFactory, TerminalNetworkFilter } from '../network-filter.js';
import { FilterRun } from './filter-run.js';
import { FilteredConnection } from './filtered-connection.js';

/** Of a chain whose connections are FilteredConnections. They do not travel to another process: nothing is there of their filters. */
export class FilteredTerminal implements TerminalNetworkFilter {
  readonly prepareRoutes?: (routes: RouteConfiguration) => Generator<void, () => void>;
  readonly #factories: readonly NetworkFilterFactory[];
  readonly #terminal: TerminalNetworkFilter;
  readonly #maxHeldBytes: number;
  readonly #timers: Timers;
  readonly #report: (error: unknown, what: string) => void;

  /** `maxHeldBytes`: of a connection; its client is not read beyond it. `report` gets what close() of a filter throws. */
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
    if (!(connection instanceof FilteredConnection)) throw new TypeError('its chain makes other connections');
    return FilterRun.begin(connection, this.#factories, this.#terminal, this.#maxHeldBytes, this.#timers);
  }

  close(): void {
    this.#terminal.close?.();
    closeFilters(this.#factories, this.#report);
  }
}

/** What goes wrong with one of them keeps none of the others open. */
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
