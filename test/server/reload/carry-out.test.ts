import t from 'tap';
import { type Change, ChangeFailure, carryOut } from '../../../src/server/reload/carry-out.js';

/** Changes that record their steps; the named step fails. */
function changes(names: readonly string[], failing: readonly string[] = []): { list: Change[]; log: string[] } {
  const log: string[] = [];
  const step = (name: string) => {
    log.push(name);
    if (failing.includes(name)) throw new Error(`${name} failed`);
  };
  const list = names.map((name) => ({
    prepare: async () => step(`prepare ${name}`),
    commit: () => step(`commit ${name}`),
    discard: async () => step(`discard ${name}`),
    undo: () => step(`undo ${name}`),
  }));
  return { list, log };
}

t.test('nothing is committed before everything is prepared', async (t) => {
  const { list, log } = changes(['a', 'b']);
  await carryOut(list);
  t.strictSame(log, ['prepare a', 'prepare b', 'commit a', 'commit b']);
});

t.test('a change that cannot be prepared changes nothing', async (t) => {
  const { list, log } = changes(['a', 'b', 'c'], ['prepare b']);
  await t.rejects(carryOut(list), new ChangeFailure(new Error('prepare b failed'), []));
  t.strictSame(log, ['prepare a', 'prepare b', 'discard b', 'discard a']);
});

t.test('a failure half-way undoes everything, the last change first', async (t) => {
  const { list, log } = changes(['a', 'b', 'c'], ['commit b']);
  await t.rejects(carryOut(list), { message: 'commit b failed', isUndone: true });
  t.strictSame(log.slice(3), ['commit a', 'commit b', 'discard c', 'undo b', 'undo a']);
});

t.test('a failed undo is reported, and does not prevent the others', async (t) => {
  const { list, log } = changes(['a', 'b'], ['commit b', 'undo b']);
  await t.rejects(carryOut(list), {
    message: 'commit b failed; and it could not be undone: undo b failed',
    isUndone: false,
  });
  t.equal(log.at(-1), 'undo a');
});
