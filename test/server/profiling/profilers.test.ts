// Profilers run one command after the other, and a thread that cannot answer delays nothing.

import { join } from 'node:path';
import t from 'tap';
import { threadMemory } from '../../../src/common/process/thread-memory.js';
import type { ProfileSet } from '../../../src/common/profiling/pprof.js';
import type { ProfileCommand, ProfileReply } from '../../../src/common/profiling/profile.js';
import { PeakHeap } from '../../../src/server/profiling/peak-heap.js';
import { ProfileFile } from '../../../src/server/profiling/profile-file.js';
import { Profilers } from '../../../src/server/profiling/profilers.js';
import { withDeadline } from '../../e2e/harness/wait-for.js';

t.test('commands sent at once run in order', async (t) => {
  const { profilers, commands, rendered } = fakes(t.testdir());
  const answers = await Promise.all([
    profilers.start('cpu'),
    profilers.start('cpu'),
    profilers.start('allocations'),
    profilers.stop('cpu'),
    profilers.start('heap'),
    profilers.stop('cpu'),
    profilers.stop('allocations'),
    profilers.start('heap'),
  ]);
  t.match(answers, [
    { isStarted: true },
    { isStarted: false, isFailure: false, why: 'already started' },
    { isStarted: true },
    Uint8Array,
    { isStarted: false, isFailure: false, why: 'the allocation profiler is running' },
    undefined,
    Uint8Array,
    { isStarted: true },
  ]);
  t.same(commands, ['start cpu', 'start allocations', 'stop cpu', 'stop allocations', 'start heap']);
  await profilers.close();
  t.equal(commands.at(-1), 'stop heap', 'the profilers that run at the end are stopped');
  t.same(
    rendered.map(({ kind, threads }) => [kind, threads.map(({ thread }) => thread)]),
    [
      ['cpu', ['primary']],
      ['allocations', ['primary']],
      ['heap', ['primary']],
    ],
  );
  t.match(rendered[0]!.comments, ['worker_0 is left out: it has not answered in time']);
});

t.test('a profile that is its own answer needs no file unless one is configured', async (t) => {
  const server = fakes(t.testdir()).server;
  class MissingDefault extends ProfileFile {
    override readonly isConfigured = false;
  }
  const file = new MissingDefault(join(t.testdir(), 'missing', 'p'));
  const profilers = new Profilers(server, file, async () => pieces());
  t.match(await profilers.start('cpu'), { isStarted: false, isFailure: true });
  t.match(await profilers.start('allocations'), { isStarted: true });
  t.equal((await profilers.stop('allocations'))?.toString(), 'profile');
});

t.test('a path that is not a regular file is refused without blocking', async (t) => {
  for (const path of ['/dev/null', t.testdir()]) {
    await t.rejects(new ProfileFile(path).check(), {
      code: 'PROFILE_UNWRITABLE',
      message: new RegExp(`^${path} cannot`),
    });
  }
});

t.test('a profile whose bytes are never produced delays no other command', async (t) => {
  const { server } = fakes(t.testdir());
  const profilers = new Profilers(server, new ProfileFile(join(t.testdir(), 'profile')), () => new Promise(() => {}));
  void profilers.heap();
  await profilers.start('cpu');
  void profilers.stop('cpu');
  t.match(await withDeadline(profilers.start('heap'), 'the start'), { isStarted: true });
  void profilers.peakHeap();
  t.match(await withDeadline(profilers.start('cpu'), 'the start'), { isStarted: true });
});

t.test('a peak is a maximum that is enough above the last one, and the largest state', (t) => {
  const peak = new PeakHeap();
  t.ok(peak.isHigh([memoryOf(20e6)]), 'the first');
  t.notOk(peak.isHigh([memoryOf(20.9e6)]));
  t.ok(peak.isHigh([memoryOf(11e6), memoryOf(11.2e6)]), 'the sum of all threads');
  t.notOk(peak.isHigh([memoryOf(20e6, 50e6)]), 'future garbage is not a peak');
  for (const bytes of [5, 9, 7]) peak.offer(stateOf(bytes));
  t.same(peak.largest, stateOf(9));
  t.end();
});

function fakes(directory: string) {
  const commands: string[] = [];
  const rendered: ProfileSet[] = [];
  const server = {
    profile: async (command: ProfileCommand): Promise<ProfileReply[]> => {
      commands.push(command.do === 'read-heap' ? command.do : `${command.do} ${command.kind}`);
      await new Promise((resolve) => setImmediate(resolve));
      const profile = command.do === 'start' ? undefined : { thread: 'primary', calls: [], samples: [] };
      return [
        { thread: 'primary', profile },
        { thread: 'worker_0', error: 'it has not answered in time' },
      ];
    },
    memory: async () => [],
  };
  const render = async (set: ProfileSet) => {
    rendered.push(set);
    return pieces();
  };
  return {
    server,
    commands,
    rendered,
    profilers: new Profilers(server, new ProfileFile(join(directory, 'p')), render),
  };
}

async function* pieces(): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from('pro');
  yield Buffer.from('file');
}

function stateOf(value: number): ProfileSet {
  const thread = { thread: 'primary', calls: [], samples: [{ call: 0, line: 0, count: 1, value }] };
  return { kind: 'heap', threads: [thread], timeMs: 0, durationMs: 0, comments: [] };
}

/** `young` is in the young generation, `bytes` elsewhere. */
function memoryOf(bytes: number, young = 0) {
  const memory = threadMemory('worker_0');
  return {
    ...memory,
    heap: { ...memory.heap, used_heap_size: bytes + young, external_memory: 0 },
    spaces: [{ ...memory.spaces[0]!, space_name: 'new_space', space_used_size: young }],
  };
}
