// The faults of one request, on a clock of the test's own: it waits with its body, is answered, counts as one fault, and leaves nothing behind.

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

/** Filters of one chain, with its stats; `asked` begins with a request, and tells what becomes of it. */
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
    return { did, filter, info, goesOn: status === HeadersStatus.Continue };
  };
  return { asked, counts, timers };
}

t.test('a request that waits keeps its body back, and then goes on whole', async (t) => {
  const { asked, counts, timers } = faulty(DELAY);
  const { did, filter, goesOn, info } = asked();
  t.notOk(goesOn);
  t.equal(info.responseFlags, ResponseFlag.DelayInjected);
  timers.advance(999);
  t.same(did, ['pause']);
  timers.advance(1001);
  t.same(did, ['pause', 'continue', 'resume']);
  t.same(counts, { delays_injected: 1, active_faults: 1 });
  filter.onDestroy();
  t.same(counts, { delays_injected: 1, active_faults: 0 });
});

t.test('one that waits and is answered then is one fault', async (t) => {
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

t.test('a client that leaves is waited for no longer', async (t) => {
  const { asked, counts, timers } = faulty(DELAY);
  const { did, filter } = asked();
  filter.onDestroy();
  t.equal(timers.nextWakeMs(), Infinity, 'nothing keeps the request in memory');
  timers.advance(5000);
  t.same(did, ['pause']);
  t.same(counts, { delays_injected: 1, active_faults: 0 });
});

t.test('answers are faults too, of which there may be so many', async (t) => {
  const { asked, counts } = faulty({ ...ABORT, max_active_faults: 1 });
  const first = asked();
  t.same(first.did, ['answer 503']);
  const second = asked();
  t.ok(second.goesOn);
  t.same(second.did, []);
  t.same(counts, { aborts_injected: 1, active_faults: 1, faults_overflow: 1 });
  second.filter.onDestroy();
  t.equal(counts['active_faults'], 1, 'it was none');
  first.filter.onDestroy();
  t.ok(asked().did.includes('answer 503'), 'there is room again');
});

t.test('a delay has whole milliseconds: less than one is none', async (t) => {
  const { asked, counts } = faulty({ delay: { fixed_delay: '0.0009s', percentage: ALL } });
  t.ok(asked().goesOn);
  t.same(counts, {});
});
