// A list of upstream HTTP filters: what is left when one of them cannot be created.

import t from 'tap';
import type { WorkerContext } from '../../../../../src/extensions/factories.js';
import { FilterList } from '../../../../../src/extensions/filters/http/router/upstream-filters/filter-list.js';
import type { PlacedFilter } from '../../../../../src/extensions/filters/http/router/upstream-filters/placed-filter.js';
import type { RequestPool } from '../../../../../src/upstream/connections/http-pool.js';
import type { FilteredTry } from '../../../../../src/upstream/request-filters.js';

t.test('the filters before one that cannot be created are destroyed', (t) => {
  let destroyed = 0;
  const factories = [
    { create: () => ({ onDestroy: () => destroyed++ }) },
    {
      create() {
        throw new Error('broken');
      },
    },
  ];
  const filters = factories.map((factory) => ({ name: 'x', extension: {}, factory, isDisabled: false }));
  const list = new FilterList(filters as unknown as PlacedFilter[], {} as WorkerContext, 1000);
  const current = { stream: { route: undefined }, isHeadOnly: true } as unknown as FilteredTry;
  t.throws(() => list.around({ countsItself: false } as RequestPool, current), /broken/);
  t.equal(destroyed, 1);
  t.end();
});
