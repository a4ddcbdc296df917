// The fault filter of single requests, on a test clock: delay, abort, the count of active faults, and cleanup.

import t from 'tap';
import { ResponseFlag } from '../../../../../src/access-log/stream/response-flags.js';
import type { HTTPFault } from '../../../../../src/config/generated/api.js';
import { type FaultContext, FaultFilter } from '../../../../../src/extensions/filters/http/fault/fault-filter.js';
import { FaultRules } from '../../../../../src/extensions/filters/http/fault/rules.js';
import { FaultStats } from '../../../../../src/extensions/filters/http/fault/stats.js';
import { HeadersStatus, type StreamControl } from '../../../../../src/extensions/sdk.js';
import { TimingWheel } from '../../../../../src/io/time/timing-wheel.js';
import { Runtime } from '../../../../../src/runtime/runtime.js';
import { requestHead } from '../../../../http/routing/heads.js';

const ALL = { numerator: 100 };
const DELAY: HTTPFault = { delay: { fixed_delay: '1s', percentage: ALL } };
const ABORT: HTTPFault = { abort: { http_status: 503, percentage: ALL } };

/** Creates the filters of one chain, with its stats. `asked` begins a request and records what happens to it. */
function faulty(config: HTTPFault) {
  const counts: Record<string, number> = {};
  const nameOf = (slot: number) => Object.entries(FaultStats.at).find(([, at]) => at === slot)![0];
  const count = (name: string, by: number) => (counts[name] = (counts[name] ?? 0) + by);
  const timers = new TimingWheel({
    nowMs: 0,
    onError: (error) => {
      throw error;
    },
  });
  const rules = new FaultRules(config, new Runtime(), '');
  const context = {
    worker: { timers, random: { nextUint32: () => 0 } },
    stats: {
      increment: (slot: number) => void count(nameOf(slot), 1),
      decrement: (slot: number) => void count(nameOf(slot), -1),
      total: (slot: number) => counts[nameOf(slot)] ?? 0,
    },
    counterOf: (cluster: string, name: string) => ({ increment: () => void count(`${cluster}.${name}`, 1) }),
  } as unknown as FaultContext;
  const asked = (...lines: string[]) => {
    const did: string[] = [];
    const info = { responseFlags: 0 };
    const control = {
      info,
      run: (act: () => void) => act(),
      pauseRequest: () => void did.push('pause'),
      resumeRequest: () => void did.push('resume'),
      continueDecoding: () => void did.push('continue'),
      sendLocalReply: ({ status }: { status: number }) => void did.push(`answer ${status}`),
    } as unknown as StreamControl;
    const filter = new FaultFilter(control, rules, context);
    const status = filter.decodeHeaders(requestHead('GET /', ...lines));
    return { did, filter, info, continues: status === HeadersStatus.Continue };
  };
  return { asked, counts, timers };
}

t.test('a delayed request is not read, and continues with its body afterwards', async (t) => {
  const { asked, counts, timers } = faulty(DELAY);
  const { did, filter, continues, info } = asked();
  t.notOk(continues);
  t.equal(info.responseFlags, ResponseFlag.DelayInjected);
  timers.advance(999);
  t.same(did, ['pause']);
  timers.advance(1001);
  t.same(did, ['pause', 'continue', 'resume']);
  t.same(counts, { delays_injected: 1, active_faults: 1 });
  filter.onDestroy();
  t.same(counts, { delays_injected: 1, active_faults: 0 });
});

t.test('a delay followed by an abort counts as one active fault', async (t) => {
  const { asked, counts, timers } = faulty({ ...DELAY, ...ABORT, max_active_faults: 1 });
  const { did, filter } = asked('x-envoy-downstream-service-cluster: shop');
  timers.advance(1001);
  t.same(did, ['pause', 'answer 503']);
  t.equal(counts['active_faults'], 1);
  filter.onDestroy();
  t.same(counts, {
    'shop.delays_injected': 1,
    'shop.aborts_injected': 1,
    delays_injected: 1,
    aborts_injected: 1,
    active_faults: 0,
  });
});

t.test('the delay is cancelled when the client disconnects', async (t) => {
  const { asked, counts, timers } = faulty(DELAY);
  const { did, filter } = asked();
  filter.onDestroy();
  t.equal(timers.nextWakeMs(), Infinity, 'no timer is left');
  timers.advance(5000);
  t.same(did, ['pause']);
  t.same(counts, { delays_injected: 1, active_faults: 0 });
});

t.test('aborts count towards the maximum of active faults', async (t) => {
  const { asked, counts } = faulty({ ...ABORT, max_active_faults: 1 });
  const first = asked();
  t.same(first.did, ['answer 503']);
  const second = asked();
  t.ok(second.continues);
  t.same(second.did, []);
  t.same(counts, { aborts_injected: 1, active_faults: 1, faults_overflow: 1 });
  second.filter.onDestroy();
  t.equal(counts['active_faults'], 1, 'it was not counted');
  first.filter.onDestroy();
  t.ok(asked().did.includes('answer 503'), 'there is room again');
});

t.test('delays are truncated to whole milliseconds', async (t) => {
  const { asked, counts } = faulty({ delay: { fixed_delay: '0.0009s', percentage: ALL } });
  t.ok(asked().continues);
  t.same(counts, {});
});
