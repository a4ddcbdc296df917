import t from 'tap';
import { encodeIp, ipAddress } from '../../src/io/address.js';
import type { ResolvedEndpoint } from '../../src/upstream/host.js';
import { HostDirectory } from '../../src/upstream/host-directory.js';
import { HostSet, type HostSetData } from '../../src/upstream/host-set.js';
import { SharedWordsOwner } from '../../src/upstream/shared-words.js';

const LOCALITY = { region: 'r', zone: 'z', subZone: '' };

function endpoint(ip: string, changes: Partial<ResolvedEndpoint> = {}): ResolvedEndpoint {
  const address = ipAddress(ip, 80)!;
  return { address, hostname: '', weight: 1, priority: 0, locality: LOCALITY, healthFlags: 0, ...changes };
}

function directory() {
  const words = new SharedWordsOwner();
  const retired: number[] = [];
  const hosts = new HostDirectory({
    allocate: () => ({ block: words.allocateHost(), statsChunk: 1, statsBase: 2 }),
    retire: ({ block }) => retired.push(block),
  });
  return { hosts, retired };
}

/** What a worker would keep for a host. */
class Pool {
  moves = 0;
  constructor(
    readonly block: number,
    public sockaddr: Uint8Array,
  ) {}
  moveTo(sockaddr: Uint8Array): void {
    this.sockaddr = sockaddr;
    this.moves++;
  }
}
const poolOf = (set: HostSet<Pool>, index: number) => new Pool(set.data.blocks[index]!, set.sockaddr(index));

t.test('a host that stays keeps its words and stats, whatever comes, goes or moves around it', async (t) => {
  const { hosts, retired } = directory();
  t.same(hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.2'), endpoint('::1')]), {
    added: 3,
    removed: 0,
    hasChanged: true,
  });
  const [first, second, third] = hosts.data.blocks;
  t.same(hosts.update([endpoint('::1', { weight: 7 }), endpoint('10.0.0.9'), endpoint('10.0.0.1')]), {
    added: 1,
    removed: 1,
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
  t.equal(hosts.size, 0);
});

t.test('each host has its own name and locality, however they repeat', async (t) => {
  const { hosts } = directory();
  const told = ['a', 'b', 'b', 'a', '', 'b'].map((name, i) =>
    endpoint(`10.0.0.${i}`, { hostname: name, locality: { region: 'r', zone: name, subZone: '' } }),
  );
  hosts.update(told);
  const { names, hostnameIndexes, localities, localityIndexes } = hosts.data;
  t.same(
    Array.from(hostnameIndexes, (index) => names[index]),
    told.map(({ hostname }) => hostname),
  );
  t.same(
    Array.from(localityIndexes, (index) => localities[index]),
    told.map(({ locality }) => locality),
  );
});

t.test('an address that is listed twice is one host', async (t) => {
  const { hosts } = directory();
  t.same(hosts.update([endpoint('10.0.0.1'), endpoint('10.0.0.1', { weight: 9 })]), {
    added: 1,
    removed: 0,
    hasChanged: true,
  });
  t.equal(hosts.data.blocks.length, 1);
});

t.test("a worker's objects live on across host sets, and those of removed hosts are named", async (t) => {
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
  t.same(after.takeRemoved(), [], 'told once');
});

t.test('a logical host stays the same host when its name resolves anew', async (t) => {
  const { hosts, retired } = directory();
  hosts.update([endpoint('10.0.0.1', { key: 'name:80', hostname: 'name' })]);
  const before = new HostSet<Pool>(hosts.data, poolOf);
  const pool = before.host(0);
  t.same(hosts.update([endpoint('10.9.9.9', { key: 'name:80', hostname: 'name' })]), {
    added: 0,
    removed: 0,
    hasChanged: true,
  });
  const after = new HostSet<Pool>(hosts.data, poolOf, before);
  t.equal(after.host(0), pool);
  t.same([...pool.sockaddr.subarray(4, 8)], [10, 9, 9, 9]);
  t.same(retired, []);
});

t.test('10,000 hosts, half of them new, keep what they had', async (t) => {
  const { hosts } = directory();
  const list = (from: number) =>
    Array.from({ length: 10_000 }, (_, i) => endpoint(`10.1.${(from + i) >> 8}.${(from + i) & 255}`));
  hosts.update(list(0));
  const before: HostSetData = structuredClone(hosts.data);
  t.same(hosts.update(list(5000)), { added: 5000, removed: 5000, hasChanged: true });
  t.same(hosts.data.blocks.subarray(0, 5000), before.blocks.subarray(5000));
});
