// Memory outside of the arena is reserved up to a limit.

import t from 'tap';
import { OutsideMemory } from '../../src/io/outside-memory.js';

t.test('reservations are refused beyond the limit, until others are released', (t) => {
  const outside = new OutsideMemory(100);
  t.ok(outside.reserve(60));
  t.notOk(outside.reserve(41));
  t.ok(outside.reserve(40));
  t.equal(outside.reserved, 100);
  outside.release(60);
  t.ok(outside.reserve(41));
  t.equal(outside.reserved, 81);
  t.end();
});

t.test('a single reservation may exceed the limit', (t) => {
  const outside = new OutsideMemory(100);
  t.ok(outside.reserve(150));
  t.notOk(outside.reserve(1));
  outside.release(150);
  t.ok(outside.reserve(1));
  t.end();
});
