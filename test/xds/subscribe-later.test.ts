// Subscriptions to sources whose code is loaded first.

import t from 'tap';
import { type LoadedSources, subscribeLater } from '../../src/xds/subscribe-later.js';
import type { SubscriptionRequest } from '../../src/xds/subscription.js';
import { waitFor } from '../e2e/harness/index.js';

function subscription(load: () => Promise<LoadedSources>) {
  const told: string[] = [];
  const watcher = { update: () => [], fetchTimedOut: () => void told.push('nothing comes') };
  const request: SubscriptionRequest = { source: {}, type: 'cluster', names: '*', statPrefix: 'cds.', watcher };
  return { told, subscription: subscribeLater(load, request, (what, error) => told.push(`${what}: ${error}`), 1) };
}

t.test('whoever waits for sources that cannot be had goes on without', async (t) => {
  const { told } = subscription(() => Promise.reject(new Error('no file')));
  await new Promise(setImmediate);
  t.same(told, ['the subscription cds. cannot begin: Error: no file', 'nothing comes']);
});

t.test('the same when the sources do not take it', async (t) => {
  const subscribe = () => {
    throw new Error('on purpose');
  };
  const { told } = subscription(() => Promise.resolve({ subscribe }));
  await new Promise(setImmediate);
  t.same(told, ['the subscription cds. cannot begin: Error: on purpose', 'nothing comes']);
});

t.test('who has closed it is told nothing', async (t) => {
  const { subscription: closed, told } = subscription(() => Promise.reject(new Error('no file')));
  closed.close();
  await new Promise(setImmediate);
  t.same(told, ['the subscription cds. cannot begin: Error: no file']);
});

t.test('sources for which descriptors are short are subscribed to when there are some again', async (t) => {
  let tries = 0;
  let begun: SubscriptionRequest | undefined;
  const subscribe = (request: SubscriptionRequest) => {
    begun = request;
    return { setNames: () => {}, close: () => {} };
  };
  const { told, subscription: later } = subscription(async () => {
    if (++tries < 3) throw new Error('EMFILE: too many open files');
    return { subscribe };
  });
  later.setNames(new Set(['a']));
  const { names, watcher } = await waitFor(() => begun);
  t.same(names, new Set(['a']));
  watcher.fetchTimedOut();
  t.same(told, ['the subscription cds. cannot begin: Error: EMFILE: too many open files', 'nothing comes'], 'once');
  t.equal(tries, 3);
});
