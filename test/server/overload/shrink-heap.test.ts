import t from 'tap';
import { Action } from '../../../src/config/fields/overload-names.js';
import { ShrinkHeap } from '../../../src/server/overload/shrink-heap.js';
import type { WorkerScopes } from '../../../src/server/workers/worker-scopes.js';

t.test('an interval beyond the longest timer does not become a short one', async (t) => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error) => warnings.push(name);
  process.on('warning', onWarning);
  t.teardown(() => process.off('warning', onWarning));
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.config.overload.v3.ShrinkHeapConfig',
    timer_interval: '10000000s',
  };
  const scopes = { add: () => ({}) } as unknown as WorkerScopes;
  const shrink = new ShrinkHeap({ name: Action.ShrinkHeap, typed_config }, scopes, () => t.fail('it shrinks'));
  t.teardown(() => shrink.close());
  shrink.update({ [Action.ShrinkHeap]: 1 });
  await new Promise(setImmediate);
  t.strictSame(warnings, [], 'Node has not shortened the timer');
});
