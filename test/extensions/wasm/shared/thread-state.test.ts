// Shared data and queues last as long as a VM with their vm_id.

import t from 'tap';
import { Result } from '../../../../src/extensions/wasm/abi.js';
import { ThreadState } from '../../../../src/extensions/wasm/shared/thread-state.js';

const VM = {};

t.test('what was forgotten makes room, and its numbers are not used again', async (t) => {
  const state = new ThreadState();
  const large = Buffer.alloc(10 * 1024 * 1024);
  t.equal(state.set('a', 'key', large, 0), Result.Ok);
  t.equal(state.set('b', 'key', large, 0), Result.InternalFailure, 'the limit is for all');
  const queue = state.registerQueue('a', 'queue', VM, () => {})!;
  t.equal(state.enqueue(queue, Buffer.alloc(5 * 1024 * 1024)), Result.Ok);
  const other = state.registerQueue('b', 'queue', VM, () => {})!;
  state.forget('a');
  t.equal(state.get('a', 'key'), Result.NotFound);
  t.equal(state.enqueue(queue, large), Result.NotFound);
  t.equal(state.resolveQueue('b', 'queue'), other, 'another vm_id is not affected');
  t.equal(state.set('b', 'key', Buffer.alloc(15 * 1024 * 1024), 0), Result.Ok, 'there is room for 16 MiB again');
  t.not(
    state.registerQueue('a', 'queue', VM, () => {}),
    queue,
  );
});

t.test('a VM that has ended is not notified, and another one takes its queue', async (t) => {
  const state = new ThreadState();
  const notified: string[] = [];
  const queue = state.registerQueue('a', 'queue', VM, () => notified.push('first'))!;
  state.enqueue(queue, Buffer.from('1'));
  state.leave(VM);
  await new Promise(setImmediate);
  t.equal(
    state.registerQueue('a', 'queue', {}, () => notified.push('second')),
    queue,
  );
  state.leave(VM);
  state.enqueue(queue, Buffer.from('2'));
  await new Promise(setImmediate);
  t.same(notified, ['second']);
  t.same(state.dequeue(queue), Buffer.from('1'), 'items stay');
});
