// Subscriptions to sources whose code is loaded first.

import t from 'tap';
import { subscribeLater } from '../../src/xds/subscribe-later.js';
import type { Subscription, SubscriptionRequest } from '../../src/xds/subscription.js';

function subscription(sources: Promise<{ subscribe(request: SubscriptionRequest): Subscription }>) {
  const told: string[] = [];
  const watcher = { update: () => [], fetchTimedOut: () => void told.push('nothing comes') };
  const request: SubscriptionRequest = { source: {}, type: 'cluster', names: '*', statPrefix: 'cds.', watcher };
  return { told, subscription: subscribeLater(sources, request, (what, error) => told.push(`${what}: ${error}`)) };
}

t.test('whoever waits for sources that cannot be had goes on without', async (t) => {
  const { told } = subscription(Promise.reject(new Error('no file')));
  await new Promise(setImmediate);
  t.same(told, ['the subscription cds. cannot begin: Error: no file', 'nothing comes']);
});

t.test('the same when the sources do not take it', async (t) => {
  const subscribe = () => {
    throw new Error('on purpose');
  };
  const { told } = subscription(Promise.resolve({ subscribe }));
  await new Promise(setImmediate);
  t.same(told, ['the subscription cds. cannot begin: Error: on purpose', 'nothing comes']);
});

t.test('who has closed it is told nothing', async (t) => {
  const { subscription: closed, told } = subscription(Promise.reject(new Error('no file')));
  closed.close();
  await new Promise(setImmediate);
  t.same(told, ['the subscription cds. cannot begin: Error: no file']);
});
