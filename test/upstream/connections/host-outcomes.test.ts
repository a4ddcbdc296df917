// The outcome of a try in the host's stats and in outlier detection.

import t from 'tap';
import { HostStats } from '../../../src/stats/layouts/cluster.js';
import {
  countHostCall,
  countHostCallHead,
  countHostConnection,
  countHostMaxDuration,
  countHostReset,
  countHostResponse,
  countHostTimeout,
  countNoConnection,
  countRetriedResponse,
} from '../../../src/upstream/connections/host-outcomes.js';
import type { Host } from '../../../src/upstream/hosts/host.js';
import { PoolFailure } from '../../../src/upstream/pool-failure.js';
import { responseHead } from '../../http/routing/heads.js';

/** Returns what is counted for a host with or without a monitor: `rq_error`, `answered 503`. */
function counted(count: (host: Host) => void, isWatched = true): string[] {
  const journal: string[] = [];
  const nameOf = (at: number) => Object.entries(HostStats.at).find(([, slot]) => slot === at)![0];
  const monitor = {
    answered: (status: number) => journal.push(`answered ${status}`),
    connected: () => journal.push('connected'),
    failed: () => journal.push('failed'),
    timedOut: () => journal.push('timed out'),
  };
  const stats = { increment: (at: number) => journal.push(nameOf(at)) };
  count({ stats, monitor: isWatched ? monitor : undefined } as unknown as Host);
  return journal;
}

function callHead(host: Host, endStream: boolean, status?: string): void {
  const fields = status === undefined ? [] : [`grpc-status: ${status}`];
  const head = responseHead(200, 'content-type: application/grpc', ...fields);
  if (countHostCallHead(host, head, endStream) === endStream) throw new Error('the end of the call must decide');
}

const CASES: [what: string, count: (host: Host) => void, expected: string[]][] = [
  ['a connection', (host) => countHostConnection(host), ['connected']],
  ['a response', (host) => countHostResponse(host, responseHead(404)), ['rq_success', 'answered 404']],
  ['an error', (host) => countHostResponse(host, responseHead(500)), ['rq_error', 'answered 500']],
  ['a status above 599', (host) => countHostResponse(host, responseHead(600)), ['rq_success', 'answered 600']],
  [
    'a failed call of gRPC',
    (host) => countHostResponse(host, responseHead(200, 'content-type: application/grpc', 'grpc-status: 14')),
    ['rq_success', 'answered 503'],
  ],
  ['a gRPC call without trailers', (host) => callHead(host, true, '0'), ['rq_success', 'answered 200']],
  ['a failed call without trailers', (host) => callHead(host, true, '14'), ['rq_error', 'answered 503']],
  ['a rejected call without trailers', (host) => callHead(host, true, '5'), ['rq_success', 'answered 404']],
  ['a call without a status', (host) => callHead(host, true), ['rq_error', 'answered 200']],
  ['the head of a call', (host) => callHead(host, false), ['answered 200']],
  ['the end of a call', (host) => countHostCall(host, 200), ['rq_success']],
  ['the end of a failed call', (host) => countHostCall(host, 503), ['rq_error']],
  ['the end of a call without a status', (host) => countHostCall(host, 0), ['rq_error']],
  ['one that is tried again', (host) => countRetriedResponse(host, responseHead(404)), ['rq_error', 'answered 404']],
  ['no connection', (host) => countNoConnection(host, PoolFailure.ConnectFailed), ['rq_error', 'failed']],
  ['none in time', (host) => countNoConnection(host, PoolFailure.ConnectTimeout), ['rq_error', 'failed']],
  ['an open circuit breaker', (host) => countNoConnection(host, PoolFailure.Overflow), ['rq_error']],
  ['a full line', (host) => countNoConnection(host, PoolFailure.PendingOverflow), []],
  ['a break before a response', (host) => countHostReset(host, false), ['rq_error', 'failed']],
  ['a break in one', (host) => countHostReset(host, true), ['failed']],
  ['no response in time', (host) => countHostTimeout(host, false), ['rq_timeout', 'rq_error', 'timed out']],
  ['a part of one in time', (host) => countHostTimeout(host, true), ['rq_timeout']],
  ['the end of a long try', (host) => countHostMaxDuration(host), ['rq_error']],
];

t.test('each outcome of a try counts once, as far as the host caused it', async (t) => {
  const ofMonitor = /^(answered|connected|failed|timed out)/;
  for (const [what, count, expected] of CASES) {
    t.same(counted(count), expected, what);
    t.same(
      counted(count, false),
      expected.filter((each) => !ofMonitor.test(each)),
      `${what}, of a host that is not watched`,
    );
  }
});
