// The counts of a host by several threads, and when they are reported.

import t from 'tap';
import type { OutlierDetection } from '../../../src/config/generated/api.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { HostMonitor, OutlierCounting } from '../../../src/upstream/outliers/host-monitor.js';
import { OUTLIER_NAMES } from '../../../src/upstream/outliers/outlier-kind.js';
import { outlierSpec } from '../../../src/upstream/outliers/outlier-spec.js';
import { HostWord, SharedWords, SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { setValues } from '../../runtime/values.js';

/** A host used by two threads. */
function monitored(config: OutlierDetection) {
  const owner = new SharedWordsOwner(8192);
  const block = owner.allocateHost();
  const runtime = new Runtime();
  const reports: string[] = [];
  const monitors = [1, 2].map((thread) => {
    const { words } = new SharedWords(owner.handle(thread));
    const counting = new OutlierCounting(outlierSpec(config), runtime, words, (reported, kind) => {
      t.equal(reported, block);
      reports.push(`${OUTLIER_NAMES[kind]} by ${thread}`);
    });
    return new HostMonitor(counting, block);
  });
  const counts = (...words: HostWord[]) => words.map((word) => owner.read(block + word));
  const [first, second] = monitors as [HostMonitor, HostMonitor];
  return { first, second, owner, runtime, counts, reports: () => reports.splice(0) };
}

const ROWS = [HostWord.Consecutive5xx, HostWord.ConsecutiveGatewayFailures, HostWord.ConsecutiveLocalOriginFailures];
const SUMS = [HostWord.Requests, HostWord.Successes, HostWord.LocalOriginRequests, HostWord.LocalOriginSuccesses];

t.test('consecutive failures are counted by all threads together, and one of them reports', async (t) => {
  const { first, second, counts, owner, reports } = monitored({});
  for (let i = 0; i < 2; i++) first.answered(500);
  for (let i = 0; i < 2; i++) second.answered(599);
  t.same(reports(), []);
  owner.forgetWorker(1);
  second.answered(501);
  t.same(reports(), ['consecutive_5xx by 2'], "a dead thread's counts stay");
  for (let i = 0; i < 4; i++) first.answered(500);
  t.same(reports(), []);
  first.answered(500);
  t.same(reports(), ['consecutive_5xx by 1'], 'a host is reported again after the same number of failures');
  for (let i = 0; i < 4; i++) first.answered(500);
  second.answered(404);
  t.same(counts(...ROWS), [0, 0, 0], 'a success sets it back');
  t.same(counts(...SUMS), [15, 1, 0, 0]);
  for (let i = 0; i < 5; i++) first.answered(600);
  t.same(reports(), [], 'from 600 on a status is not a failure');
});

t.test('gateway failures are also counted separately, and another failure resets their count', async (t) => {
  const { first, counts, reports } = monitored({ consecutive_gateway_failure: 2, consecutive_5xx: 6 });
  for (const status of [502, 500, 503, 501, 504, 502]) first.answered(status);
  t.same(reports(), ['consecutive_gateway_failure by 1', 'consecutive_5xx by 1']);
  t.same(counts(...ROWS), [6, 2, 0]);
});

t.test('without split errors, local-origin failures count as gateway failures', async (t) => {
  const { first, counts, reports } = monitored({ consecutive_gateway_failure: 3, consecutive_5xx: 4 });
  first.connected();
  first.failed();
  first.timedOut();
  first.connected();
  first.failed();
  t.same(reports(), ['consecutive_gateway_failure by 1'], 'a connection alone is not a success');
  t.same(
    [counts(...ROWS), counts(...SUMS)],
    [
      [3, 3, 0],
      [3, 0, 0, 0],
    ],
  );
  first.tcpConnected();
  t.same(
    [counts(...ROWS), counts(...SUMS)],
    [
      [0, 0, 0],
      [4, 1, 0, 0],
    ],
  );
});

t.test('with split errors, local-origin failures are counted separately', async (t) => {
  const config = { split_external_local_origin_errors: true, consecutive_local_origin_failure: 2 };
  const { first, second, counts, reports } = monitored(config);
  first.failed();
  first.answered(500);
  first.connected();
  first.timedOut();
  first.answered(200);
  t.same(counts(...ROWS), [0, 0, 1]);
  second.failed();
  t.same(reports(), ['consecutive_local_origin_failure by 2']);
  first.tcpConnected();
  t.same(
    [counts(...ROWS), counts(...SUMS)],
    [
      [0, 0, 0],
      [2, 1, 5, 2],
    ],
  );
});

t.test('runtime changes the limits, and 0 means no limit', async (t) => {
  const { first, counts, reports, runtime } = monitored({ consecutive_5xx: 0 });
  for (let i = 0; i < 7; i++) first.answered(500);
  t.same(reports(), []);
  first.answered(200);
  setValues(runtime, { 'outlier_detection.consecutive_5xx': '9' });
  for (let i = 0; i < 4; i++) first.answered(500);
  setValues(runtime, { 'outlier_detection.consecutive_5xx': '3' });
  first.answered(500);
  t.same(reports(), []);
  first.answered(500);
  t.same(
    [reports(), counts(HostWord.Consecutive5xx)],
    [['consecutive_5xx by 1'], [6]],
    'a limit may be below the count',
  );
});
