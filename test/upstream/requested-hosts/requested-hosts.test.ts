// Hosts that requests name: which requests wait, and when they continue.

import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { EMPTY_HOST_SET } from '../../../src/upstream/hosts/host-set.js';
import type { HostRequest } from '../../../src/upstream/requested-hosts/host-request.js';
import { type HostWaiter, RequestedHosts } from '../../../src/upstream/requested-hosts/requested-hosts.js';

function requested() {
  const requests: HostRequest[] = [];
  const settled: string[] = [];
  let keys: readonly string[] = [];
  let waiting = 0;
  const hosts = new RequestedHosts('api', 7, (index) => keys[index]!, {
    tryWait: () => ++waiting <= 3 || --waiting < 0,
    stopWaiting: () => void waiting--,
    request: (request) => void requests.push(request),
    beginTurn: () => void settled.push('turn'),
  });
  return {
    hosts,
    requests,
    settled,
    waiter: (name: string): HostWaiter => ({
      hostSettled: (refusal) => void settled.push(refusal === undefined ? name : `${name}: ${refusal}`),
    }),
    update(...list: string[]) {
      keys = list;
      hosts.update({ ...EMPTY_HOST_SET, blocks: Int32Array.from(list, (key) => key.charCodeAt(0) * 16) });
    },
  };
}

t.test('a missing host is requested once, and all that wait for it continue together', async (t) => {
  const { hosts, requests, settled, update, waiter } = requested();
  update('a');
  t.equal(hosts.find('a'), 0);
  t.equal(hosts.find('b'), undefined);
  hosts.request('b', waiter('one'));
  hosts.request('b', waiter('two'));
  t.same(requests, [{ cluster: 'api', specVersion: 7, key: 'b' }]);
  update('a', 'c', 'b');
  t.equal(hosts.find('b'), 2);
  t.same(settled, [], 'not within the update');
  await turn();
  t.same(settled, ['turn', 'one', 'two']);
});

t.test('a host that is removed must be requested again', async (t) => {
  const { hosts, requests, update, waiter } = requested();
  update('a', 'b');
  update('b');
  t.equal(hosts.find('a'), undefined);
  t.equal(hosts.find('b'), 0);
  hosts.request('a', waiter('one'));
  t.equal(requests.length, 1);
});

t.test('a waiter that has left is not called', async (t) => {
  const { hosts, requests, settled, update, waiter } = requested();
  const [one, two] = [waiter('one'), waiter('two')];
  hosts.request('a', one);
  hosts.request('a', two);
  hosts.cancel('a', one);
  update('a');
  hosts.cancel('a', two);
  await turn();
  t.same(settled, ['turn']);
  hosts.request('b', one);
  hosts.cancel('b', one);
  hosts.request('b', one);
  t.equal(requests.length, 3, 'the host is requested again');
});

t.test('waiting requests continue when their host is refused, or the cluster is replaced', async (t) => {
  const { hosts, settled, waiter } = requested();
  hosts.request('a', waiter('a'));
  hosts.request('b', waiter('b'));
  hosts.settle('a', 'overflow');
  hosts.settle('unknown');
  await turn();
  t.same(settled, ['turn', 'a: overflow']);
  hosts.close();
  await turn();
  t.same(settled, ['turn', 'a: overflow', 'turn', 'b']);
});

t.test('only so many requests wait', async (t) => {
  const { hosts, update, waiter } = requested();
  const first = waiter('a');
  t.equal(hosts.request('a', first), true);
  hosts.request('b', waiter('b'));
  hosts.request('b', waiter('b'));
  t.equal(hosts.request('c', waiter('c')), false);
  hosts.cancel('a', first);
  t.equal(hosts.request('c', waiter('c')), true);
  update('b');
  t.equal(hosts.request('d', waiter('d')), true);
  t.equal(hosts.request('d', waiter('d')), true);
  t.equal(hosts.request('d', waiter('d')), false);
});
