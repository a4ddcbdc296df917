// VMs of Lua: a script can neither keep its thread busy, nor end the process, nor reach what belongs to Baton.

import t from 'tap';
import { createLuaVm, type LuaMethod, LuaOutcome, LuaTable, OUTCOME_BITS, YIELD } from '../../src/io/lua-vm.js';

const MEMORY_BYTES = 16 * 1024 * 1024;
const RUN_MS = 50;
const TOO_LONG = 'script exceeded its time limit';

/** An object of class 0. */
class Thing {
  readonly taken: unknown[] = [];
  act = () => {};

  get lua(): number {
    return 0;
  }

  take(value: unknown): void {
    this.taken.push(value);
    this.act();
  }

  give(): LuaTable {
    return new LuaTable(['list', new LuaTable([1, 'one', 2, this])]);
  }

  wait(): unknown {
    return YIELD;
  }

  fail(): void {
    throw new Error('failed in JavaScript');
  }

  pairs(): Thing {
    return this;
  }

  next(): unknown {
    return this.taken.pop();
  }
}

const { prototype } = Thing;
const METHODS: readonly LuaMethod[] = [
  ['take', 'a', prototype.take],
  ['give', '', prototype.give],
  ['wait', '', prototype.wait],
  ['fail', '', prototype.fail],
  ['next', '', prototype.next],
  ['__pairs', '*', prototype.pairs],
];

function open(memoryBytes = MEMORY_BYTES) {
  const vm = createLuaVm(memoryBytes, RUN_MS);
  vm.define(METHODS);
  const thing = new Thing();
  /** Runs a function of `h`, and returns why it has failed, '' if it has not. */
  const fails = (body: string): string => {
    vm.run(`function f(h) ${body} end`, '=script');
    const started = vm.start(vm.functionOf('f'), thing);
    const outcome = started & ((1 << OUTCOME_BITS) - 1);
    const message = outcome === LuaOutcome.Failed ? vm.message() : '';
    vm.release(started >> OUTCOME_BITS);
    return message;
  };
  return { vm, thing, fails };
}

t.test('values pass in both directions, and errors too', async (t) => {
  const { fails, thing } = open();
  t.equal(fails('local g = h:give() h:take(g.list[1]) h:take(g.list[2] == h) h:take({ a = { true } })'), '');
  t.same(thing.taken, ['one', true, ['a', [1, true]]]);
  t.equal(fails('h:take(print) h:take(h)'), '');
  t.same(thing.taken.splice(3), [{ type: 'function' }, thing]);
  t.match(fails('h:fail()'), 'failed in JavaScript');
  t.match(fails('h.take({}, 1)'), "object of Envoy's API expected");
  t.equal(fails('for value in pairs(h) do last = value end assert(last == "one")'), '');
});

t.test('a table that contains itself is refused, however often it does', async (t) => {
  const { fails, thing } = open();
  const expected = 'a table is too large, or contains itself';
  t.match(fails('local x = {} x.a, x.b = x, x h:take(x)'), expected);
  t.match(fails('h:take(_G)'), expected);
  t.match(fails('local s, x = ("x"):rep(1000000), {} for i = 1, 100 do x[i] = s end h:take(x)'), expected);
  t.same(thing.taken, []);
});

t.test('no script runs longer than its time', async (t) => {
  for (const [name, body] of [
    ['a loop in the handler of an error', 'xpcall(function() while true do end end, function() while true do end end)'],
    ['a chain of functions without instructions', 'return tostring(setmetatable({}, { __tostring = tostring }))'],
    ['the same with pairs()', 'return pairs(setmetatable({}, { __pairs = pairs }))'],
    ['insertions before all that a table has', 'local x = {} while true do table.insert(x, -2147483648, 1) end'],
    ['a pattern', 'return (("a"):rep(100000)):find("(.-)(.-)(.-)(.-)b")'],
  ] as const)
    t.match(open().fails(body), new RegExp(`${TOO_LONG}|error in error handling`), name);
  const { fails, vm } = open(64 * 1024 * 1024);
  vm.run('x, n = {}, 0', '=script');
  for (let i = 0; i < 15; i++) vm.run('for i = 1, 100000 do n = n + 1 x[n] = math.random() end', '=script');
  t.match(fails('table.sort(x)'), TOO_LONG, 'one call that sorts');
  t.equal(fails('return 1'), '', 'the next run has its own time');
});

t.test('finalizers are not called, which no limit could end', async (t) => {
  const { fails } = open();
  const body =
    'getmetatable(io.stdout).__gc = function() while true do end end io.tmpfile() collectgarbage() collectgarbage()';
  t.equal(fails(body), '');
  t.equal(fails('return 1'), '');
});

t.test('callbacks of functions in C do not use up the stack of the thread', async (t) => {
  const { fails } = open(64 * 1024 * 1024);
  t.match(fails('local function f() return (("x"):gsub(".", f)) end f()'), 'stack overflow');
  t.match(fails('local function f() return (coroutine.wrap(f)()) end f()'), /stack overflow|not enough memory/);
  t.equal(fails('local function f(n) if n > 0 then ("x"):gsub(".", function() f(n - 1) end) end end f(50)'), '');
});

t.test('a coroutine is released although memory is used up', async (t) => {
  const { fails } = open(1024 * 1024);
  t.match(fails('local x while true do x = { x } end'), 'not enough memory');
  t.equal(fails('return {}'), '');
});

t.test('garbage is collected between runs when memory is nearly used up', async (t) => {
  const { fails } = open(64 * 1024 * 1024);
  const strings = (count: number, name: string) =>
    `for i = 1, ${count} do x[i] = ("x"):rep(50000) .. "${name}" .. i end`;
  for (let i = 0; i < 8; i++) t.equal(fails(`local x = {} ${strings(100, `kept${i}`)} kept${i} = x`), '');
  for (let i = 0; i < 20; i++) t.equal(fails(`local x = {} ${strings(40, `garbage${i}`)}`), '');
});

t.test('scripts reach no metatables of objects, and no parts of functions', async (t) => {
  const { fails } = open();
  t.equal(fails('assert(getmetatable(h) == false) assert(h.__index == nil and h.__gc == nil)'), '');
  for (const name of ['getmetatable', 'setmetatable', 'getregistry', 'sethook', 'setlocal', 'setupvalue'])
    t.equal(fails(`assert(debug.${name} == nil)`), '', name);
  t.match(fails('require("jit.profile")'), "module 'jit.profile' not found");
});

t.test('a closed VM throws, and one with a running script is not closed', async (t) => {
  const { fails, thing, vm } = open();
  thing.act = () => vm.close();
  t.match(fails('h:take(1)'), 'a script runs in this Lua VM');
  vm.close();
  t.throws(() => vm.run('', '=script'), { message: 'this is no Lua VM that is open' });
});
