// Requests share a connection only if it brings the same objects to an internal listener.

import t from 'tap';
import type { FilterStateObject } from '../../../src/access-log/stream/filter-state.js';
import { connectionTraits } from '../../../src/upstream/connections/connect-options.js';

const OBJECT: FilterStateObject = { text: 'a', isReadOnly: false, sharing: 'NONE' };
const keyOf = (object: FilterStateObject, name = 'k') => connectionTraits(undefined, undefined, [[name, object]]).key;

t.test('each difference between objects is one between connections', (t) => {
  const others = [
    keyOf({ ...OBJECT, text: 'b' }),
    keyOf({ ...OBJECT, sharing: 'TRANSITIVE' }),
    keyOf({ ...OBJECT, isReadOnly: true }),
    keyOf(OBJECT, 'other'),
    connectionTraits(undefined, undefined).key,
  ];
  t.equal(keyOf({ ...OBJECT }), keyOf(OBJECT));
  t.equal(new Set([keyOf(OBJECT), ...others]).size, others.length + 1);
  t.end();
});
