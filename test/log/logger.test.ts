import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { pino } from 'pino';
import t from 'tap';
import type { LevelOverride } from '../../src/log/level-rules.js';
import { LEVEL_NAMES, type MessageLevel } from '../../src/log/levels.js';
import { getLogger, initLogging, loggerStates, reopenLog, setLevelRules } from '../../src/log/logger.js';
import { endsWithTest, tempDir } from '../e2e/harness/environment.js';
import { waitFor } from '../e2e/harness/wait-for.js';

const moduleUrl = new URL('../../src/log/logger.js', import.meta.url).href;
const directory = tempDir(t);

let files = 0;
function logTo(options: Parameters<typeof initLogging>[0] = {}): { path: string; lines(): string[] } {
  const path = join(directory, `${files++}.log`);
  initLogging({ path, format: '%l %n %v', ...options });
  return { path, lines: () => readFileSync(path, 'utf8').split('\n').slice(0, -1) };
}

/** Runs a script with the module as `log`, with pipes for standard output and error. */
function run(script: string): ChildProcess {
  const code = `const log = await import(${JSON.stringify(moduleUrl)}); ${script}`;
  const command = ['--input-type=module', '-e', code];
  return endsWithTest(t, spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] }));
}

async function outputOf(child: ChildProcess): Promise<string> {
  let text = '';
  child.stderr!.on('data', (chunk) => {
    text += chunk;
  });
  await once(child, 'close');
  return text;
}

t.test('every logger of a component writes messages of its level and above', async (t) => {
  const log = logTo();
  const main = getLogger('main');
  const upstream = getLogger('upstream');
  main.debug('hidden');
  main.info('shown');
  const components = [{ component: 'upstream', level: 'trace' }] as const;
  setLevelRules({ level: 'info', components, overrides: [] });
  upstream.trace('deep');
  main.trace('hidden');
  setLevelRules({ level: 'error', components: [], overrides: [] });
  upstream.warning('hidden');
  upstream.critical('last');
  setLevelRules({ level: 'off', components: [], overrides: [] });
  upstream.critical('hidden');
  t.same(log.lines(), ['info main shown', 'trace upstream deep', 'critical upstream last']);
});

t.test('each level writes messages of its severity and above, off writes none', async (t) => {
  const names = ['trace', 'debug', 'info', 'warning', 'error', 'critical'] as const;
  const main = getLogger('main');
  for (const [index, level] of LEVEL_NAMES.entries()) {
    const log = logTo({ level });
    for (const name of names) main[name]('text');
    t.same(
      log.lines(),
      names.slice(index).map((name) => `${name} main text`),
    );
    t.equal(main.isDebug, index <= 1);
    for (const [other, name] of names.entries()) t.equal(main.isLevelEnabled(name), index <= other);
  }
});

t.test('initial levels apply to loggers that are created later', async (t) => {
  const log = logTo({
    level: 'warning',
    componentLevels: [
      { component: 'rds', level: 'debug' },
      { component: 'hc', level: 'warning' },
    ],
  });
  getLogger('rds').debug('shown');
  getLogger('hc').info('hidden');
  getLogger('dns').info('hidden');
  t.same(log.lines(), ['debug rds shown']);
  t.same(
    loggerStates().filter(({ level }) => level !== 'warning'),
    [{ name: 'rds', level: 'debug' }],
  );
});

t.test('the default layout shows time, thread, level, component and source location', async (t) => {
  const log = logTo({ format: undefined, threadId: () => 67137 });
  getLogger('main').info('starting main dispatch loop');
  t.match(
    log.lines()[0],
    /^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}\]\[67137\]\[info\]\[main\] \[test\/log\/logger\.test\.js:\d+\] starting main dispatch loop$/,
  );
});

t.test('after a rotation lines go to the new file, and none is lost', async (t) => {
  const log = logTo();
  const logger = getLogger('main');
  logger.info('before');
  renameSync(log.path, `${log.path}.1`);
  logger.info('meanwhile');
  reopenLog();
  logger.info('after');
  t.equal(readFileSync(`${log.path}.1`, 'utf8'), 'info main before\ninfo main meanwhile\n');
  t.same(log.lines(), ['info main after']);
});

t.test('if the file cannot be reopened, the old one stays in use', async (t) => {
  const path = join(directory, 'moved');
  const inside = join(path, 'a.log');
  mkdirSync(path);
  initLogging({ path: inside, format: '%v' });
  renameSync(path, `${path}.old`);
  reopenLog();
  reopenLog();
  getLogger('main').info('still here');
  renameSync(`${path}.old`, path);
  reopenLog();
  getLogger('main').info('and again');
  const lines = readFileSync(inside, 'utf8').split('\n');
  t.equal(lines.filter((line) => line.startsWith(`Failed to open log-file '${inside}'`)).length, 2);
  t.same(lines.slice(-3), ['still here', 'and again', '']);
});

t.test('reopening is retried until it succeeds, and leaks no descriptor', async () => {
  const path = join(directory, 'back-later');
  const inside = join(path, 'a.log');
  mkdirSync(path);
  initLogging({ path: inside, format: '%v' });
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const before = descriptors();
  renameSync(path, `${path}.away`);
  reopenLog();
  mkdirSync(path);
  const isReopened = () => existsSync(inside) && readFileSync(inside, 'utf8') === 'log file reopened\n';
  await waitFor(isReopened, { what: 'the new file' });
  await waitFor(() => descriptors() <= before, { what: 'the old descriptor to be closed' });
});

t.test('a log file that cannot be opened is refused, and logging continues as before', async (t) => {
  const log = logTo();
  t.throws(() => initLogging({ path: join(directory, 'no', 'such.log') }), {
    message: /^Failed to open log-file '.*such\.log': .*no such file/i,
  });
  getLogger('main').info('as before');
  t.same(log.lines(), ['info main as before']);
});

t.test('a stack trace is one entry per frame, or a single entry if configured', async (t) => {
  const thrown = new Error('boom');
  thrown.stack = 'Error: boom\n    at one\n    at two';
  const frames = logTo();
  getLogger('main').error({ err: thrown }, 'a connection ended');
  t.same(frames.lines(), [
    'error main a connection ended: Error: boom',
    'error main     at one',
    'error main     at two',
  ]);
  const single = logTo({ singleEntryStacks: true, format: '%l %_' });
  getLogger('main').critical({ err: thrown }, 'a worker died');
  t.same(single.lines(), ['critical a worker died: Error: boom\\n    at one\\n    at two']);
});

t.test('any thrown value can be logged', async (t) => {
  const frozen = Object.freeze(new Error('frozen'));
  const broken = Object.defineProperty(new Error('broken'), 'stack', { get: () => JSON.parse('{') });
  const things = [frozen, broken, Object.create(null), Symbol('a'), 1n, undefined, null, () => 1, { a: 1 }, 'text'];
  for (const format of ['%v', {}, { m: '%j' }]) {
    const log = logTo({ format, singleEntryStacks: true });
    for (const err of things) getLogger('main').error({ err }, 'something ended');
    t.equal(log.lines().filter((line) => line.includes('something ended')).length, things.length);
  }
});

t.test('a JSON layout without members gives the records of pino', async (t) => {
  const log = logTo({ format: {}, threadId: () => 67137 });
  const before = Date.now();
  getLogger('main').warning('a "quoted"\ntext with 100 %d');
  const [line] = log.lines();
  const record = JSON.parse(line!);
  t.match(Object.entries(record), [
    ['level', 40],
    ['time', Number],
    ['pid', process.pid],
    ['name', 'main'],
    ['thread', 67137],
    ['caller', /^test\/log\/logger\.test\.js:\d+$/],
    ['msg', 'a "quoted"\ntext with 100 %d'],
  ]);
  t.ok(Number.isInteger(record.time) && record.time >= before - 2 && record.time <= Date.now() + 2);
  const first = logTo({ format: {}, fineGrain: true });
  getLogger('main').info('of the first thread');
  t.notOk('thread' in JSON.parse(first.lines()[0]!), 'its thread ID is that of the process');
  t.match(JSON.parse(first.lines()[0]!), { name: 'test/log/logger.test.js' }, 'the file, with fine-grain logging');
});

t.test('levels have the numbers of the levels of pino', async (t) => {
  const log = logTo({ format: {}, level: 'trace' });
  for (const level of LEVEL_NAMES.slice(0, -1)) getLogger('main')[level as MessageLevel]('text');
  const numbers = log.lines().map((line) => JSON.parse(line).level);
  t.same(numbers, Object.values(pino.levels.values));
});

t.test('a JSON record contains an error as pino serializes it, with source locations', async (t) => {
  const log = logTo({ format: {} });
  const cause = new Error('no space');
  const thrown = Object.assign(new Error('boom', { cause }), { code: 'ENOSPC' });
  thrown.stack = 'Error: boom\n    at one\n    at file:///nowhere/a.js:1:2';
  cause.stack = 'Error: no space';
  getLogger('main').error({ err: thrown }, 'a connection ended');
  getLogger('main').error({ err: 'a text' }, 'another ended');
  const [record, other] = log.lines().map((line) => JSON.parse(line));
  t.equal(record.msg, 'a connection ended');
  t.same(record.err, {
    type: 'Error',
    message: 'boom: no space',
    stack: 'Error: boom\n    at one\n    at file:///nowhere/a.js:1:2\ncaused by: Error: no space',
    code: 'ENOSPC',
  });
  t.match(other, { msg: 'another ended', err: 'a text' });
});

t.test('fine-grain logging has a level for each file, by pattern', async (t) => {
  const log = logTo({ fineGrain: true, format: '%n %v' });
  const logger = getLogger('main');
  t.ok(loggerStates().some(({ name, level }) => name === 'test/log/logger.test.js' && level === 'info'));
  const set = (...overrides: LevelOverride[]) => setLevelRules({ level: 'info', components: [], overrides });
  set({ pattern: 'logg?r', level: 'debug' });
  logger.debug('by name');
  set({ pattern: 'logger.test.js', level: 'debug' });
  logger.debug('by whole name');
  set({ pattern: 'other*', level: 'off' }, { pattern: 'test/l*/*', level: 'trace' }, { pattern: '*', level: 'off' });
  logger.trace('by path, the first that matches');
  set({ component: 'main', level: 'off' });
  logger.critical('hidden');
  set();
  logger.debug('hidden again');
  const file = 'test/log/logger.test.js';
  t.same(log.lines(), [`${file} by name`, `${file} by whole name`, `${file} by path, the first that matches`]);
});

t.test('lines of several threads never mix, and no line is lost when a thread ends', async (t) => {
  const path = join(directory, 'threads.log');
  const code = `import(${JSON.stringify(moduleUrl)}).then(({ getLogger, initLogging }) => {
    const { workerData } = require('node:worker_threads');
    initLogging({ path: workerData.path, format: '%v' });
    const logger = getLogger('main');
    for (let i = 0; i < 2000; i++) logger.info(workerData.letter.repeat(50 + (i % 300)));
    process.exit();
  })`;
  const workers = ['a', 'b', 'c'].map((letter) => new Worker(code, { eval: true, workerData: { path, letter } }));
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  t.equal(lines.length, 6000);
  t.notOk(lines.find((line) => !/^(a+|b+|c+)$/.test(line) || line.length < 50));
});

t.test('all lines are written to standard error before the process exits', async (t) => {
  const child = run(
    `log.initLogging({ format: '%v' }); for (let i = 0; i < 5000; i++) log.getLogger('main').info('line ' + i); process.exit(3)`,
  );
  const text = await outputOf(child);
  t.equal(child.exitCode, 3);
  t.equal(text.split('\n').length, 5001);
  t.ok(text.endsWith('line 4999\n'));
});

t.test('a full disk neither blocks the process nor fills its memory', async (t) => {
  initLogging({ path: '/dev/full', format: '%v' });
  const before = heapInUse();
  for (let i = 0; i < 20_000; i++) getLogger('main').info('x'.repeat(1000));
  t.ok(heapInUse() - before < 10 * 1024 * 1024, 'memory stays bounded');
  const log = logTo();
  getLogger('main').info('elsewhere');
  t.same(log.lines(), ['info main elsewhere']);
});

t.test('the process continues when standard error has no reader', async (t) => {
  const child = run(`
    log.initLogging({ format: '%v' });
    const logger = log.getLogger('main');
    process.on('SIGTERM', () => { for (let i = 0; i < 100; i++) logger.info('after'); process.exit(7); });
    setInterval(() => logger.info('more'), 1);
  `);
  await once(child.stderr!, 'data');
  child.stderr!.destroy();
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  t.equal(code, 7);
});

t.test('a stalled reader of a non-blocking pipe does not block the process', async (t) => {
  // Node makes the pipe non-blocking when process.stderr is first used.
  const child = run(`
    process.stderr.write('begin\\n');
    log.initLogging({ format: '%v' });
    for (let i = 0; i < 3000; i++) log.getLogger('main').info('x'.repeat(100));
    process.on('SIGTERM', () => process.exit(7));
    setInterval(() => {}, 1000);
    console.log('alive');
  `);
  const [stdout] = await once(child.stdout!, 'data');
  t.equal(String(stdout), 'alive\n', 'it does not wait for the reader');
  const text = outputOf(child);
  child.stderr!.once('data', () => child.kill('SIGTERM'));
  t.ok((await text).startsWith('begin\nxxx'));
  t.equal(child.exitCode, 7);
});

t.test('the last lines reach a slow reader when the process exits', async (t) => {
  const child = run(`
    process.stderr.write('begin\\n');
    log.initLogging({ format: '%v' });
    for (let i = 0; i < 3000; i++) log.getLogger('main').info('x'.repeat(100));
    log.getLogger('main').critical('why it ends');
    process.exit(1);
  `);
  const text = await outputOf(child);
  t.equal(text.split('\n').length, 3003);
  t.ok(text.endsWith('\nwhy it ends\n'));
});

/** Excludes garbage. */
function heapInUse(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}
