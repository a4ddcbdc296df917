import t from 'tap';
import type { Metadata } from '../../../src/config/generated/api.js';
import { AddressKind, encodeAddress, encodeIp, ipAddress } from '../../../src/io/addresses/address.js';
import type { ResolvedEndpoint } from '../../../src/upstream/hosts/host.js';
import { HostDirectory } from '../../../src/upstream/hosts/host-directory.js';
import { type HostObject, HostSet, type HostSetData } from '../../../src/upstream/hosts/host-set.js';
import type { Locality } from '../../../src/upstream/hosts/locality.js';
import { SharedWordsOwner } from '../../../src/upstream/shared-words.js';

const LOCALITY = { region: 'r', zone: 'z', subZone: '' };

function endpoint(ip: string, changes: Partial<ResolvedEndpoint> = {}): ResolvedEndpoint {
  const address = ipAddress(ip, 80)!;
  const rest = { hostname: '', weight: 1, priority: 0, locality: LOCALITY, healthFlags: 0, isCanary: false };
  return { address, ...rest, ...changes };
}

function directory({ room = Number.POSITIVE_INFINITY } = {}) {
  const words = new SharedWordsOwner();
  const allocated: string[] = [];
  const retired: number[] = [];
  const hosts = new HostDirectory({
    allocate: (address) => {
      if (allocated.length - retired.length === room) throw new RangeError('full');
      allocated.push(address);
      return { block: words.allocateHost(), scope: { prefix: '', layout: 0, chunk: 1, base: 2 } };
    },
    retire: ({ block }) => retired.push(block),
  });
  return { hosts, allocated, retired };
}

/** A worker's object for a host. */
class Pool implements HostObject {
  moves = 0;
  readonly block: number;
  hostname: string;
  locality: Locality;
  localityMetadata: Metadata | undefined;
  isCanary: boolean;
  metadata: Metadata | undefined = undefined;
  transport = 0;
  additional: readonly string[] | undefined = undefined;
  sockaddr: Uint8Array;
  constructor(set: HostSet<Pool>, index: number) {
    this.block = set.data.blocks[index]!;
    ({ hostname: this.hostname, locality: this.locality, isCanary: this.isCanary } = set.describe(index));
    this.sockaddr = set.sockaddr(index);
  }
  moveTo(sockaddr: Uint8Array): void {
    this.sockaddr = sockaddr;
    this.moves++;
  }
}
const poolOf = (set: HostSet<Pool>, index: number) => new Pool(set, index);

t.test('a remaining host keeps its words and stats while others are added, removed or moved', async (t) => {
  const { hosts, retired } = directory();
  t.same(hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('::1')]), {
    added: 3,
    removed: 0,
    priorities: 1,
    hasChanged: true,
  });
  const [first, second, third] = hosts.data.blocks;
  t.same(hosts.update([endpoint('::1', { weight: 7 }), endpoint('10.0.0.9'), endpoint('10.0.0.1')]), {
    added: 1,
    removed: 1,
    priorities: 1,
    hasChanged: true,
  });
  t.same([hosts.data.blocks[0], hosts.data.blocks[2]], [third, first]);
  t.same(retired, [second]);
  t.same([...hosts.data.weights], [7, 1, 1]);
  t.same(
    [...hosts.hosts].map((host) => host.address),
    ['[::1]:80', '10.0.0.9:80', '10.0.0.1:80'],
  );
  hosts.retireAll();
  t.equal(retired.length, 4);
  t.equal(hosts.hosts.length, 0);
});

t.test('each host has its hostname, even if names repeat', async (t) => {
  const { hosts } = directory();
  const told = ['', 'a', 'b', 'b', 'a', '', 'b'].map((name, i) => endpoint(`10.0.0.${i}`, { hostname: name }));
  hosts.update(told);
  const { names, hostnameIndexes } = hosts.data;
  t.same(
    Array.from(hostnameIndexes, (index) => names[index]),
    told.map(({ hostname }) => hostname),
  );
});

t.test('an object belongs to a set as long as its host does, also beside a host with the same address', async (t) => {
  const { hosts } = directory();
  const [one, other] = ['one', 'other'].map((key) => endpoint('10.0.0.1', { key }));
  hosts.update([one!, other!]);
  const first = new HostSet(hosts.data, poolOf);
  const objects = [first.host(0), first.host(1)];
  t.same(
    objects.map((each) => first.has(each)),
    [true, true],
  );
  hosts.update([other!]);
  const second = new HostSet(hosts.data, poolOf, first);
  t.equal(second.takeRemoved().length, 1);
  t.same(
    objects.map((each) => second.has(each)),
    [false, true],
  );
});

t.test('an address that is listed twice is a single host', async (t) => {
  const { hosts } = directory();
  t.same(hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.1', { weight: 9 })]), {
    added: 1,
    removed: 0,
    priorities: 1,
    hasChanged: true,
  });
  t.equal(hosts.data.blocks.length, 1);
});

t.test('hosts with the same address and different keys are distinct in any order', async (t) => {
  const { hosts } = directory();
  const [one, other] = ['one', 'other'].map((key) => endpoint('10.0.0.1', { key }));
  hosts.update([one!, other!]);
  const [first, second] = hosts.data.blocks;
  t.same(hosts.update([other!, one!, endpoint('10.0.0.2')]), { added: 1, removed: 0, priorities: 1, hasChanged: true });
  t.same([...hosts.data.blocks.subarray(0, 2)], [second, first]);
});

t.test('each changed property of a host is a change, a repeated one is not', async (t) => {
  const changes: Partial<ResolvedEndpoint>[] = [
    { weight: 2 },
    { healthFlags: 1 },
    { isCanary: true },
    { priority: 1 },
    { hostname: 'name' },
    { metadata: { filter_metadata: { 'envoy.lb': { stage: 'a' } } } },
    { locality: { ...LOCALITY, region: 'x' } },
    { locality: { ...LOCALITY, zone: 'x' } },
    { locality: { ...LOCALITY, subZone: 'x' } },
  ];
  for (const change of changes) {
    const { hosts } = directory();
    hosts.update([endpoint('10.0.0.1')]);
    const changed = [endpoint('10.0.0.1', change)];
    t.same(hosts.update(changed), { added: 0, removed: 0, priorities: 0, hasChanged: true }, JSON.stringify(change));
    const { data } = hosts;
    t.match([...hosts.hosts][0]!.endpoint, change);
    t.same(hosts.update([...changed]), { added: 0, removed: 0, priorities: 0, hasChanged: false });
    t.equal(hosts.data, data);
  }
});

t.test('a host that is added again is a new one: its old words may be in use elsewhere', async (t) => {
  const { hosts, allocated, retired } = directory();
  hosts.update([endpoint('10.0.0.1')]);
  const [first] = hosts.data.blocks;
  hosts.update([]);
  t.same(retired, [first]);
  t.same(hosts.update([endpoint('10.0.0.1')]), { added: 1, removed: 0, priorities: 1, hasChanged: true });
  t.equal(allocated.length, 2);
});

t.test('prepared resources are taken once, and released when their hosts are not added', async (t) => {
  const { hosts, allocated, retired } = directory();
  hosts.update([endpoint('10.0.0.1')]);
  const coming = [endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('10.0.0.3')];
  const preparations = [hosts.prepare(), hosts.prepare()];
  for (const preparation of preparations) for (const _ of preparation.steps(coming));
  t.same(allocated, ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'], 'once for each');
  hosts.update(coming.slice(0, 2));
  t.equal(allocated.length, 3);
  hosts.discardPreparation(preparations[1]!);
  t.same(retired, [], 'the other one has it');
  for (let times = 0; times < 2; times++) hosts.discardPreparation(preparations[0]!);
  t.equal(retired.length, 1);
  t.notOk(hosts.data.blocks.includes(retired[0]!));
});

t.test('prepared resources are released when there is no room for current hosts', async (t) => {
  const { hosts, allocated, retired } = directory({ room: 2 });
  hosts.update([endpoint('10.0.0.1')]);
  for (const _ of hosts.prepare().steps([endpoint('10.0.0.2')]));
  t.throws(() => hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.3')]), { message: 'full' });
  t.same([allocated.length, retired.length], [2, 1]);
  t.same(hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.3')]), {
    added: 1,
    removed: 0,
    priorities: 1,
    hasChanged: true,
  });
});

t.test('addresses of any length survive encoding', async (t) => {
  const { hosts } = directory();
  const addresses = [20, 100, 3, 90, 60].map((length, index) => ({
    ...{ kind: AddressKind.Unix, ip: '', port: 0 },
    path: `/${index}`.padEnd(length, 'x'),
  }));
  hosts.update(addresses.map((address) => ({ ...endpoint('10.0.0.1'), address })));
  const set = new HostSet<Pool>(hosts.data, poolOf);
  for (const [index, address] of addresses.entries()) {
    t.same([...set.sockaddr(index)], [...encodeAddress(address)], address.path);
  }
});

t.test("a worker's objects survive new host sets, and those of removed hosts are returned", async (t) => {
  const { hosts } = directory();
  hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('10.0.0.3')]);
  const before = new HostSet<Pool>(structuredClone(hosts.data), poolOf);
  const kept = before.host(0);
  const dropped = before.host(1);
  const last = before.host(2);
  t.equal(before.host(0), kept);
  t.same([...last.sockaddr], [...encodeIp('10.0.0.3', 80)]);
  hosts.update([endpoint('10.0.0.3'), endpoint('10.0.0.1')]);
  const after = new HostSet<Pool>(structuredClone(hosts.data), poolOf, before);
  t.equal(after.host(1), kept);
  t.equal(after.host(0), last);
  t.equal(kept.moves + last.moves, 0);
  t.same(after.takeRemoved(), [dropped]);
  t.same(after.takeRemoved(), [], 'returned once');
});

t.test('a remaining host gets its new hostname, zone and canary flag', async (t) => {
  const { hosts } = directory();
  hosts.update([endpoint('10.0.0.1', { hostname: 'old' })]);
  const before = new HostSet<Pool>(hosts.data, poolOf);
  const pool = before.host(0);
  t.equal(pool.hostname, 'old');
  t.match(pool, { locality: { zone: 'z' }, isCanary: false });
  const changes = { hostname: 'new', isCanary: true, locality: { ...LOCALITY, zone: 'y' } };
  t.match(hosts.update([endpoint('10.0.0.1', changes)]), { added: 0, removed: 0 });
  const after = new HostSet<Pool>(hosts.data, poolOf, before);
  t.equal(after.host(0), pool);
  t.match(pool, { hostname: 'new', locality: { zone: 'y' }, isCanary: true });
  t.equal(pool.moves, 0);
});

t.test('a logical host stays the same host when its address changes', async (t) => {
  const { hosts, retired } = directory();
  hosts.update([endpoint('10.0.0.1', { key: 'name:80', hostname: 'name' })]);
  const before = new HostSet<Pool>(hosts.data, poolOf);
  const pool = before.host(0);
  t.same(hosts.update([endpoint('10.9.9.9', { key: 'name:80', hostname: 'name' })]), {
    added: 0,
    removed: 0,
    priorities: 0,
    hasChanged: true,
  });
  const after = new HostSet<Pool>(hosts.data, poolOf, before);
  t.equal(after.host(0), pool);
  t.equal([...hosts.hosts][0]!.address, '10.9.9.9:80');
  t.same([...pool.sockaddr.subarray(4, 8)], [10, 9, 9, 9]);
  t.same(retired, []);
});

t.test('of 10,000 hosts, half of them new, the others keep their resources', async (t) => {
  const { hosts } = directory();
  const list = (from: number) =>
    Array.from({ length: 10_000 }, (_, i) => endpoint(`10.1.${(from + i) >> 8}.${(from + i) & 255}`));
  hosts.update(list(0));
  const before: HostSetData = structuredClone(hosts.data);
  t.same(hosts.update(list(5000)), { added: 5000, removed: 5000, priorities: 1, hasChanged: true });
  t.same(hosts.data.blocks.subarray(0, 5000), before.blocks.subarray(5000));
});

t.test('transport sockets are reported for new hosts and where they change, and reach workers', async (t) => {
  const { hosts } = directory();
  const matched: number[] = [];
  const update = (...transports: (number | undefined)[]) => {
    matched.length = 0;
    const endpoints = transports.map((transport, index) => endpoint(`10.0.0.${index + 1}`, { transport }));
    hosts.update(endpoints, undefined, (transport) => matched.push(transport));
    return matched;
  };
  t.same(update(undefined, 0), [0, 0]);
  t.equal(hosts.data.transports, undefined, 'no host has one of its own');
  t.same(update(undefined, 2, 1), [2, 1]);
  t.same(hosts.data.transports, [0, 2, 1]);
  t.same(update(undefined, 2, 1), []);
  const set = new HostSet(hosts.data, poolOf);
  t.equal(set.describe(1).transport, 2);
});
