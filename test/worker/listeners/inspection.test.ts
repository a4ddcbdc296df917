// The listener filters of a worker's listener, from its configuration.

import t from 'tap';
import type { Any, Listener } from '../../../src/config/generated/api.js';
import type { WorkerContext } from '../../../src/extensions/factories.js';
import type { ListenerFilter } from '../../../src/listener/listener-filter.js';
import { inspectionOf } from '../../../src/worker/listeners/inspection.js';

const FILTERS: Readonly<Record<string, unknown>> = {
  good: { maxBytes: 5, inspect: () => 0 },
  other: { maxBytes: 7, inspect: () => 0 },
  blind: { maxBytes: -1, inspect: () => 0 },
  addresses: { maxBytes: 0, inspect: () => 0 },
  idle: { maxBytes: 5 },
};
const context = {
  extensions: {
    listenerFilter: ({ '@type': name }: Any) => ({ name, createOnWorker: () => FILTERS[name] }),
  },
} as unknown as WorkerContext;
const of = (config: Listener, ...names: string[]) =>
  inspectionOf(
    { ...config, listener_filters: names.map((name) => ({ name, typed_config: { '@type': name } })) } as Listener,
    context,
  );

t.test('filters share a timeout of 15 seconds by default, after which connections are closed', async (t) => {
  t.match(of({}, 'good'), { timeoutMs: 15_000, continuesOnTimeout: false });
  t.match(of({ listener_filters_timeout: '0.5s', continue_on_listener_filters_timeout: true }, 'good'), {
    timeoutMs: 500,
    continuesOnTimeout: true,
  });
  t.match(of({ listener_filters_timeout: '0s' }, 'good'), { timeoutMs: 0 });
});

t.test('filters are in the configured order', async (t) => {
  const { filters } = of({}, 'other', 'good')!;
  t.same(
    filters.map(({ maxBytes }: ListenerFilter) => maxBytes),
    [7, 5],
  );
  t.equal(inspectionOf({}, context), undefined, 'without filters no connection is inspected');
});

t.test('use_original_dst adds a filter after the others', async (t) => {
  const maxima = (filters: ReturnType<typeof of>) => filters?.filters.map(({ maxBytes }) => maxBytes);
  t.same(maxima(of({ use_original_dst: true }, 'good', 'addresses')), [5, 0, 0]);
  t.same(maxima(of({ use_original_dst: true })), [0]);
});

t.test('a filter that cannot inspect is refused', async (t) => {
  for (const name of ['blind', 'idle', 'none'])
    t.throws(
      () => of({}, name),
      { message: `createOnWorker() of '${name}' returned no object with an inspect()` },
      name,
    );
});
