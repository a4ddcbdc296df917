// In place of a module that cannot be used: no connection passes.

import { FilterClose, type FilteredClient, FilterStatus, type NetworkFilter } from '../../../sdk.js';

export class UnusableFilter implements NetworkFilter {
  readonly #client: FilteredClient;

  constructor(client: FilteredClient) {
    this.#client = client;
  }

  onNewConnection(): FilterStatus {
    this.#client.close(FilterClose.NoFlush, 'script_unusable');
    return FilterStatus.Stop;
  }

  onData(): FilterStatus {
    return FilterStatus.Stop;
  }
}
