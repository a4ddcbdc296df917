import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { Action, ShedPoint } from '../../../src/config/fields/overload-names.js';
import { ThreadOverload } from '../../../src/runtime/overload/thread-overload.js';
import type { Scope } from '../../../src/stats/thread-stats.js';

const { ReduceTimeouts, StopAcceptingConnections, StopAcceptingRequests } = Action;
const NOTHING = { togglesAccepting: false, shortensTimeouts: false };

t.test('a state affects listeners and open connections only when accepting or timeouts change', async (t) => {
  const timers = { HTTP_DOWNSTREAM_CONNECTION_IDLE: { ms: 100 } } as const;
  const overload = new ThreadOverload({ points: [], timers }, new Random(1), () => t.fail() as never);
  t.strictSame(overload.set({ [StopAcceptingRequests]: 0.5 }), NOTHING);
  t.strictSame(overload.set({ [StopAcceptingConnections]: 0.9 }), NOTHING, 'only at 1');
  const both = { [StopAcceptingConnections]: 1, [ReduceTimeouts]: 0.5 };
  t.strictSame(overload.set(both), { togglesAccepting: true, shortensTimeouts: true });
  t.equal(overload.timeout('HTTP_DOWNSTREAM_CONNECTION_IDLE', 1000), 550);
  t.equal(overload.timeout('HTTP_DOWNSTREAM_STREAM_IDLE', 1000), 1000, 'a timer that is not configured');
  t.strictSame(overload.set(both), NOTHING);
  t.strictSame(overload.set({ [ReduceTimeouts]: 0.2 }), { togglesAccepting: true, shortensTimeouts: false });
  t.equal(overload.timeout('HTTP_DOWNSTREAM_CONNECTION_IDLE', 1000), 820);
});

t.test('a load shed point refuses with the probability of its state, and counts it', async (t) => {
  let counted = 0;
  const scope = { increment: () => counted++ } as unknown as Scope;
  const name = ShedPoint.CreateCodec;
  const overload = new ThreadOverload({ points: [name, 'unknown'], timers: {} }, new Random(1), () => scope);
  const refused = () => Array.from({ length: 1000 }, () => overload.createCodec!.sheds()).filter(Boolean).length;
  t.equal(overload.decodeHeaders, undefined, 'it is not configured');
  t.equal(refused(), 0);
  overload.set({ [name]: 0.25 });
  const some = refused();
  t.ok(some > 200 && some < 300, `${some}`);
  t.equal(counted, some);
  overload.set({ [name]: 1 });
  t.equal(refused(), 1000);
});
