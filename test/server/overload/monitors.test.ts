import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CgroupMemory } from '../../../src/server/overload/monitors/cgroup-memory.js';
import { CpuUtilization, containerTimes, hostTimes } from '../../../src/server/overload/monitors/cpu-utilization.js';
import { FixedHeap } from '../../../src/server/overload/monitors/fixed-heap.js';
import { InjectedResource } from '../../../src/server/overload/monitors/injected-resource.js';

function files(dir: string, contents: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(contents)) {
    mkdirSync(join(dir, name, '..'), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
}

t.test('the heap is the memory of the process without files', async (t) => {
  const [kilobytes] = execFileSync('grep', ['RssAnon', `/proc/${process.pid}/status`], { encoding: 'utf8' }).match(
    /\d+/,
  )!;
  const pressure = new FixedHeap(() => Number(kilobytes) * 1024).read();
  t.ok(pressure > 0.5 && pressure < 2, `${pressure}`);
  t.throws(() => new FixedHeap(() => 0).read(), /not above 0/);
});

t.test('the memory of a cgroup', async (t) => {
  const dir = t.testdir();
  const at = (name: string) => join(dir, name);
  const version = { usage: at('memory.current'), limit: at('memory.max') };
  t.throws(() => new CgroupMemory(0, [version]), /no supported cgroup memory/);
  files(dir, { 'memory.current': '500\n', 'memory.max': '1000\n' });
  t.equal(new CgroupMemory(0, [version]).read(), 0.5);
  t.equal(new CgroupMemory(5000, [version]).read(), 0.5, 'the lower limit counts');
  t.equal(new CgroupMemory(625, [version]).read(), 0.8);
  const monitor = new CgroupMemory(0, [version]);
  for (const unlimited of ['max\n', '9223372036854771712\n']) {
    files(dir, { 'memory.max': unlimited });
    t.equal(monitor.read(), 0);
  }
  for (const garbage of ['', 'many', '-1', '0']) {
    files(dir, { 'memory.max': garbage });
    t.throws(() => monitor.read(), /is not a limit/);
  }
});

t.test('the processors of the machine', async (t) => {
  const { available, used } = hostTimes();
  t.ok(used > 0 && available > used);
});

t.test('a new measurement counts a twentieth', async (t) => {
  const times = [
    { used: 0, available: 0 },
    { used: 100, available: 100 },
    { used: 100, available: 200 },
    { used: 100, available: 200 },
  ];
  const monitor = new CpuUtilization(() => times.shift()!);
  t.equal(monitor.read(), 0.05);
  t.equal(monitor.read(), 0.0475);
  t.throws(() => monitor.read(), /have not grown/);
});

t.test('the processors of a cgroup, of version 2 and 1', async (t) => {
  let now = 0;
  const two = t.testdir();
  files(two, { 'cpu.stat': 'usage_usec 1000000\nuser_usec 1\n', 'cpu.max': '50000 100000\n' });
  const read2 = containerTimes(() => now, two);
  const before = read2();
  now = 1000;
  files(two, { 'cpu.stat': 'usage_usec 1250000\n' });
  const after = read2();
  t.strictSame([after.used - before.used, after.available - before.available], [250, 500], 'half a processor');
  files(two, { 'cpu.stat': 'garbage' });
  t.throws(read2, /has no usage_usec/);
  const one = t.testdir({ one: {} });
  files(one, { 'cpuacct/cpuacct.usage': '2000000\n', 'cpu/cpu.shares': '2048\n' });
  const read1 = containerTimes(() => now, one);
  read1();
  now = 2000;
  t.strictSame(read1(), { used: 2, available: 2000 });
  t.throws(() => containerTimes(() => now, join(one, 'none')), /no supported cgroup CPU/);
});

t.test('an injected pressure', async (t) => {
  const dir = t.testdir();
  const path = join(dir, 'pressure');
  const monitor = new InjectedResource(path);
  for (const [text, pressure] of [
    ['0', 0],
    ['0.5\n', 0.5],
    ['1', 1],
  ] as const) {
    writeFileSync(path, text);
    t.equal(monitor.read(), pressure);
  }
  for (const text of ['', '  ', 'nan', 'x', '-0.1', '1.1', '1e400', '0.5 0.5', '9'.repeat(1024 * 1024)]) {
    writeFileSync(path, text);
    t.throws(() => monitor.read());
  }
  execFileSync('mkfifo', [join(dir, 'pipe')]);
  t.throws(() => new InjectedResource(join(dir, 'pipe')).read(), 'a pipe is not waited for');
});
