// Closes the factories of a chain's filters.

import type { Transport } from '../../io/transport/transport.js';
import type { HttpFilterFactory } from './filter.js';

/** An error in one of them is reported and does not prevent the others from closing. */
export function closeFactories(
  filters: Iterable<{ readonly factory: HttpFilterFactory }>,
  transport: Pick<Transport, 'report'>,
): void {
  for (const { factory } of filters) {
    try {
      factory.close?.();
    } catch (error) {
      transport.report(error, 'close() of a filter failed');
    }
  }
}
