// The list of open connections of a listener, with additions and removals in any order.

import fc from 'fast-check';
import t from 'tap';
import { ConnectionList } from '../../src/listener/connection-list.js';

t.test('contains each added connection once until it is removed; repeated removals are no-ops', (t) => {
  const changes = fc.array(fc.record({ isAdding: fc.boolean(), pick: fc.nat() }), { maxLength: 200 });
  fc.assert(
    fc.property(changes, (all) => {
      const list = new ConnectionList();
      const open: { place: number }[] = [];
      for (const { isAdding, pick } of all) {
        if (isAdding || open.length === 0) {
          const connection = { place: -1 };
          open.push(connection);
          list.add(connection);
        } else {
          const gone = open.splice(pick % open.length, 1)[0]!;
          list.remove(gone);
          list.remove(gone);
        }
        const held = [...list];
        if (held.length !== open.length || !open.every((connection) => held.includes(connection))) return false;
      }
      return true;
    }),
  );
  t.end();
});
