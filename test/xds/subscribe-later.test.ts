// Subscriptions to sources whose code is loaded first.

import t from 'tap';
import { type LoadedSources, subscribeLater } from '../../src/xds/subscribe-later.js';
import type { SubscriptionRequest } from '../../src/xds/subscription.js';
import { waitFor } from '../e2e/harness/index.js';

function subscription(load: () => Promise<LoadedSources>) {
  const events: string[] = [];
  const watcher = { update: () => [], fetchTimedOut: () => void events.push('nothing comes') };
  const request: SubscriptionRequest = { source: {}, type: 'cluster', names: '*', statPrefix: 'cds.', watcher };
  return { events, subscription: subscribeLater(load, request, (what, error) => events.push(`${what}: ${error}`), 1) };
}

t.test('subscribers proceed without resources when sources cannot be loaded', async (t) => {
  const { events } = subscription(() => Promise.reject(new Error('no file')));
  await new Promise(setImmediate);
  t.same(events, ['the subscription cds. cannot begin: Error: no file', 'nothing comes']);
});

t.test('subscribers proceed without resources when subscribe() throws', async (t) => {
  const subscribe = () => {
    throw new Error('on purpose');
  };
  const { events } = subscription(() => Promise.resolve({ subscribe }));
  await new Promise(setImmediate);
  t.same(events, ['the subscription cds. cannot begin: Error: on purpose', 'nothing comes']);
});

t.test('no callback follows close()', async (t) => {
  const { subscription: closed, events } = subscription(() => Promise.reject(new Error('no file')));
  closed.close();
  await new Promise(setImmediate);
  t.same(events, ['the subscription cds. cannot begin: Error: no file']);
});

t.test('the subscription is retried after descriptors were exhausted', async (t) => {
  let tries = 0;
  let begun: SubscriptionRequest | undefined;
  const subscribe = (request: SubscriptionRequest) => {
    begun = request;
    return { setNames: () => {}, close: () => {} };
  };
  const { events, subscription: later } = subscription(async () => {
    if (++tries < 3) throw new Error('EMFILE: too many open files');
    return { subscribe };
  });
  later.setNames(new Set(['a']));
  const { names, watcher } = await waitFor(() => begun);
  t.same(names, new Set(['a']));
  watcher.fetchTimedOut();
  t.same(events, ['the subscription cds. cannot begin: Error: EMFILE: too many open files', 'nothing comes'], 'once');
  t.equal(tries, 3);
});
