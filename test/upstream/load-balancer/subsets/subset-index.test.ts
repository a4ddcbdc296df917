// The subsets of a list of hosts, and their limits.

import t from 'tap';
import { runSync } from '../../../../src/common/time/next-turn.js';
import type { Struct } from '../../../../src/config/generated/api.js';
import { MetadataMatch } from '../../../../src/http/routing/actions/metadata-match.js';
import { EMPTY_HOST_SET, type HostSetData } from '../../../../src/upstream/hosts/host-set.js';
import {
  indexSubsets,
  type SubsetLimits,
  subsetLimits,
} from '../../../../src/upstream/load-balancer/subsets/subset-index.js';
import type { SelectorSpec, SubsetSpec } from '../../../../src/upstream/load-balancer/subsets/subset-spec.js';

function hostsOf(fields: readonly (Struct | undefined)[], priorities: readonly number[] = []): HostSetData {
  return {
    ...EMPTY_HOST_SET,
    blocks: new Int32Array(fields.length),
    priorities: Uint8Array.from(fields, (_, index) => priorities[index] ?? 0),
    metadata: fields.map((each) => (each === undefined ? null : { filter_metadata: { 'envoy.lb': each } })),
  };
}

function selector(keys: readonly string[], isSingleHost = false): SelectorSpec {
  return { keys, isSingleHost, fallback: 'NOT_DEFINED', fallbackKeys: [] };
}

function spec(...selectors: SelectorSpec[]): SubsetSpec {
  return {
    fallback: 'NO_FALLBACK',
    defaultSubset: {},
    selectors,
    weighsLocalities: false,
    scalesLocalities: false,
    panicsToAny: false,
    splitsLists: true,
    triesLists: false,
    ignoresOthers: false,
  };
}

function indexOf(hosts: HostSetData, config: SubsetSpec, limits: SubsetLimits = subsetLimits(false)) {
  const index = runSync(indexSubsets(hosts, config, limits));
  return { ...index, of: (fields: Struct) => index.subsets.get(MetadataMatch.from(fields).key)?.hosts };
}

t.test('a host with lists is in a subset for each combination, once', async (t) => {
  const index = indexOf(
    hostsOf([{ a: ['1', '2', '1'], b: ['x', 'y'] }, { a: '1', b: 'x' }, { a: '1' }]),
    spec(selector(['a', 'b'])),
  );
  t.equal(index.subsets.size, 4);
  t.same(index.of({ a: '1', b: 'x' }), [0, 1]);
  t.same(index.of({ b: 'y', a: '2' }), [0]);
  t.equal(index.of({ a: '1' }), undefined);
});

t.test('names of properties of objects are names of fields like others', async (t) => {
  const fields = JSON.parse('{"__proto__": "x", "constructor": "y"}');
  const index = indexOf(
    hostsOf([fields, { a: '1' }]),
    spec(selector(['__proto__']), selector(['constructor', 'toString']), selector(['constructor'])),
  );
  t.equal(index.subsets.size, 2);
  t.same(index.of(JSON.parse('{"__proto__": "x"}')), [0]);
  t.same(index.of({ constructor: 'y' }), [0]);
});

t.test('a single host is the first one of the highest priority', async (t) => {
  const index = indexOf(hostsOf([{ a: '1' }, { a: '1' }, { a: '1' }], [1, 0, 0]), spec(selector(['a'], true)));
  t.same(index.of({ a: '1' }), [1]);
  t.equal(index.duplicates, 1);
});

t.test('subsets, their hosts, and the subsets of a host are limited', async (t) => {
  const hosts = hostsOf(Array.from({ length: 100 }, (_, index) => ({ a: String(index), b: '1' })));
  const few = indexOf(hosts, spec(selector(['a'])), { maxSubsets: 10, maxMembers: 1000 });
  t.same([few.subsets.size, few.overflow], [10, 90]);
  const small = indexOf(hosts, spec(selector(['b'])), { maxSubsets: 10, maxMembers: 20 });
  t.equal(small.of({ b: '1' })!.length, 20);
  t.equal(small.overflow, 80);
  const many = Array.from({ length: 1000 }, (_, index) => index);
  const wide = indexOf(
    hostsOf([{ a: many, b: many, c: many, d: many }]),
    spec(selector(['a', 'b', 'c', 'd']), selector(['a'])),
  );
  t.same([wide.subsets.size, wide.overflow], [1000, 1]);
});

t.test('a host whose field is nested too deeply is in no subset', async (t) => {
  let deep: unknown = 'x';
  for (let depth = 0; depth < 10_000; depth++) deep = { deep };
  const index = indexOf(hostsOf([{ a: deep as Struct, b: '1' }]), spec(selector(['a']), selector(['b'])));
  t.equal(index.subsets.size, 1);
  t.same(index.of({ b: '1' }), [0]);
  t.equal(index.of({ a: deep as Struct }), undefined);
});

t.test('a host with a very long value is in no subset of that field, so that lists cannot repeat it', async (t) => {
  const long = 'x'.repeat(100_000);
  const many = Array.from({ length: 1000 }, (_, index) => String(index));
  const index = indexOf(
    hostsOf([
      { a: long, b: many },
      { a: 'y', b: '1' },
      { a: ['y', long], b: '1' },
    ]),
    spec(selector(['a', 'b']), selector(['b'])),
  );
  t.same(index.of({ a: 'y', b: '1' }), [1]);
  t.same(index.of({ b: '1' }), [0, 1, 2]);
  t.equal(index.of({ a: long, b: '1' }), undefined);
  t.equal(index.overflow, 2);
});
