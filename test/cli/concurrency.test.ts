// The default number of workers on various machines.

import t from 'tap';
import { defaultConcurrency, type Machine, workerCount } from '../../src/cli/concurrency.js';

const V2_MOUNT = '30 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n';
const V1_MOUNT = '31 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n';

function machine(files: Readonly<Record<string, string>>, environment: Machine['environment'] = {}): Machine {
  return { threads: 8, allowed: 8, environment, read: (path) => files[path] };
}

function v2(max: string): Readonly<Record<string, string>> {
  return {
    '/proc/self/cgroup': '0::/app/one\n',
    '/proc/self/mountinfo': V2_MOUNT,
    '/sys/fs/cgroup/app/one/cpu.max': max,
  };
}

t.test('without a cgroup limit, the default is the number of hardware threads', async (t) => {
  t.equal(defaultConcurrency(machine({})), 8);
  t.equal(defaultConcurrency(machine(v2('max 100000\n'))), 8);
  t.equal(defaultConcurrency(machine(v2('nonsense\n'))), 8);
  t.equal(defaultConcurrency(machine(v2('1000000 100000\n'))), 8);
});

t.test('the affinity mask limits the number, and determines it if hardware threads are unknown', async (t) => {
  t.equal(defaultConcurrency({ ...machine({}), allowed: 3 }), 3);
  t.equal(defaultConcurrency({ ...machine({}), threads: 2 }), 2);
  t.equal(defaultConcurrency({ ...machine({}), threads: 0, allowed: 700 }), 700);
  t.equal(defaultConcurrency({ ...machine({}), threads: 1500, allowed: 1500 }), 1024, 'the maximum of --concurrency');
  t.equal(defaultConcurrency({ ...machine(v2('200000 100000\n')), allowed: 3 }), 2);
});

t.test("the limit of the process's own cgroup is rounded down, and at least 1", async (t) => {
  t.equal(defaultConcurrency(machine(v2('250000 100000\n'))), 2);
  t.equal(defaultConcurrency(machine(v2('50000 100000\n'))), 1);
});

t.test('a v1 cpu controller has precedence over v2', async (t) => {
  const files = {
    '/proc/self/cgroup': '4:cpu,cpuacct:/app\n0::/app\n',
    '/proc/self/mountinfo': V2_MOUNT + V1_MOUNT,
    '/sys/fs/cgroup/app/cpu.max': '500000 100000',
    '/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us': '300000\n',
    '/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us': '100000\n',
  };
  t.equal(defaultConcurrency(machine(files)), 3);
  t.equal(defaultConcurrency(machine({ ...files, '/sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us': '-1\n' })), 8);
});

t.test('a mount that shows only a part of the hierarchy is used', async (t) => {
  const files = {
    '/proc/self/cgroup': '0::/docker/abc/inner\n',
    '/proc/self/mountinfo': '30 24 0:27 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n',
    '/sys/fs/cgroup/inner/cpu.max': '200000 100000\n',
  };
  t.equal(defaultConcurrency(machine(files)), 2);
});

t.test('a mount that shows another part of the hierarchy is not used', async (t) => {
  const files = {
    '/proc/self/cgroup': '0::/docker/abc/inner\n',
    '/proc/self/mountinfo': '30 24 0:27 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n',
    '/sys/fs/cgroupc/inner/cpu.max': '200000 100000\n',
  };
  t.equal(defaultConcurrency(machine(files)), 8);
});

t.test('either environment variable set to false, in any case, ignores the cgroup', async (t) => {
  const files = v2('100000 100000\n');
  t.equal(defaultConcurrency(machine(files, { PROXY_CGROUP_CPU_DETECTION: 'False' })), 8);
  t.equal(defaultConcurrency(machine(files, { ENVOY_CGROUP_CPU_DETECTION: 'false' })), 8);
  t.equal(defaultConcurrency(machine(files, { PROXY_CGROUP_CPU_DETECTION: 'true' })), 1);
});

t.test('--concurrency decides, and 0 still runs one worker', async (t) => {
  t.equal(workerCount(0, machine({})), 1);
  t.equal(workerCount(12, machine({})), 12);
  t.equal(workerCount(undefined, machine({})), 8);
});
