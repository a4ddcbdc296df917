// A single try of a request: its backoff, and what is left when it is aborted.

import t from 'tap';
import { type TryListener, UpstreamTry } from '../../../../../src/extensions/filters/http/router/upstream-try.js';
import type { ResponseStream } from '../../../../../src/http/filters/filter.js';
import { TimingWheel } from '../../../../../src/io/time/timing-wheel.js';
import type { UpstreamThread } from '../../../../../src/upstream/upstream-thread.js';

t.test('the backoff timer begins the next try, unless the try was aborted', (t) => {
  const onError = (error: unknown) => {
    throw error;
  };
  const wheel = new TimingWheel({ nowMs: 0, onError });
  let begun = 0;
  const listener = { tryTimedOut: () => t.fail('no timeout is running'), nextTry: () => begun++ };
  const thread = { wheel } as unknown as UpstreamThread;
  const current = new UpstreamTry({} as ResponseStream, thread, listener as unknown as TryListener);
  current.backOff(100);
  wheel.advance(1000);
  t.equal(begun, 1);
  current.backOff(100);
  t.ok(current.isBackingOff);
  current.abort();
  t.notOk(current.isBackingOff);
  wheel.advance(2000);
  t.equal(begun, 1);
  t.end();
});
