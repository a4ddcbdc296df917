// Native code that cannot be loaded is reported in one sentence with the remedy.

import { execFile, execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { bootstrap, httpListener, loopback, ROUTER_FILTER, startBaton, tempDir } from '../harness/index.js';
import { runBaton } from './command-line/run.js';

/** An addon that Node refuses as compiled for another version of Node. */
const OTHER_NODE = `
  struct module { int version; unsigned flags; void* handle; const char* file; void* start; void* start_in; const char* name; void* data; void* next; };
  static struct module self = { 9999, 0, 0, "other.c", 0, 0, "other", 0, 0 };
  extern void node_module_register(void*);
  __attribute__((constructor)) static void load(void) { node_module_register(&self); }`;
const RE2 = 'node_modules/re2/build/Release/re2.node';
const UNIX_DGRAM = 'node_modules/unix-dgram/build/Release/unix_dgram.node';
const SHIM = 'native-shim/build/Release/shim.node';

/** Makes a separate installation without native code. */
function install(t: Test) {
  const root = tempDir(t);
  for (const name of ['package.json', 'dist/baton', 'dist/schema.json'])
    cpSync(packagePath(name), join(root, name), { recursive: true });
  mkdirSync(join(root, 'node_modules'));
  for (const name of readdirSync(packagePath('node_modules'))) {
    if (name === 're2' || name === 'unix-dgram') {
      const filter = (path: string) => !path.endsWith('/build');
      cpSync(packagePath('node_modules', name), join(root, 'node_modules', name), { recursive: true, filter });
    } else symlinkSync(packagePath('node_modules', name), join(root, 'node_modules', name));
  }
  const put = (name: string, bytes: Uint8Array) => {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), bytes);
  };
  return {
    root,
    program: join(root, 'dist/baton/main.js'),
    restarter: join(root, 'dist/baton/restarter/main.js'),
    /** Copies the valid file. */
    good: (name: string) => put(name, readFileSync(packagePath(name))),
    missing: (name: string) => rmSync(join(root, name), { force: true }),
    /** ELF has the machine at byte 18. */
    forOtherMachine(name: string) {
      const bytes = readFileSync(packagePath(name));
      bytes[18] = bytes[18] === 0xb7 ? 0x3e : 0xb7;
      put(name, bytes);
    },
    forOtherNode(name: string) {
      put(name, Buffer.from(OTHER_NODE));
      const path = join(root, name);
      execFileSync('cc', ['-shared', '-fPIC', '-x', 'c', '-o', `${path}.new`, path]);
      put(name, readFileSync(`${path}.new`));
    },
  };
}

function runProgram(command: string, args: string[]): Promise<{ code: unknown; stderr: string }> {
  return new Promise((resolve) => {
    execFile(command, args, (error, _stdout, stderr) => resolve({ code: error?.code ?? 0, stderr }));
  });
}

const KINDS = [
  ['missing', /is not compiled/],
  ['forOtherMachine', /is compiled for another kind of machine than this one \(\w+\), or damaged/],
  ['forOtherNode', /is compiled for another version of Node\.js than this one \(v[\d.]+\)/],
] as const;

const WITH_REGEX = bootstrap({
  listeners: [
    httpListener('web', 0, {
      http_filters: [ROUTER_FILTER],
      route_config: {
        virtual_hosts: [
          {
            name: 'all',
            domains: ['*'],
            routes: [{ match: { safe_regex: { regex: '/a+' } }, direct_response: { status: 200 } }],
          },
        ],
      },
    }),
  ],
  clusters: [],
});

const sentence = (name: string, reason: RegExp, root: string) =>
  new RegExp(`${name} ${reason.source}: run 'npm run install' in ${root} with the Node\\.js that runs Baton`);

for (const [kind, reason] of KINDS) {
  t.test(`native-shim ${kind} is reported with the remedy`, async (t) => {
    const installed = install(t);
    installed[kind](SHIM);
    const { program, restarter, root } = installed;
    const outcomes = [
      await runBaton(t, { program, args: ['--config-yaml', '{}'] }),
      await runProgram(process.execPath, [restarter, '/bin/true']),
    ];
    for (const { code, stderr } of outcomes) {
      t.equal(code, 1);
      t.match(stderr, sentence('native-shim', reason, root));
      t.notMatch(stderr, /\n +at /, 'without a stack trace');
    }
  });

  t.test(`re2 ${kind} is reported with the remedy`, async (t) => {
    const installed = install(t);
    installed.good(SHIM);
    installed[kind](RE2);
    for (const mode of ['serve', 'validate']) {
      const { code, stderr } = await runBaton(t, {
        program: installed.program,
        config: WITH_REGEX,
        args: ['--mode', mode],
      });
      t.equal(code, 1);
      t.match(stderr, sentence('re2', reason, installed.root));
      t.notMatch(stderr, /\n +at /, 'without a stack trace');
    }
  });

  t.test(`unix-dgram ${kind} is reported with the remedy`, async (t) => {
    const installed = install(t);
    installed.good(SHIM);
    installed[kind](UNIX_DGRAM);
    const address = { pipe: { path: join(installed.root, 'statsd') } };
    const sink = {
      name: 'envoy.stat_sinks.dog_statsd',
      typed_config: { '@type': 'type.googleapis.com/envoy.config.metrics.v3.DogStatsdSink', address },
    };
    const { code, stderr } = await runBaton(t, {
      program: installed.program,
      config: { admin: { address: loopback(0) }, stats_sinks: [sink] },
    });
    t.equal(code, 1);
    t.match(stderr, sentence('unix-dgram', reason, installed.root));
    t.notMatch(stderr, /\n +at /, 'without a stack trace');
  });
}

t.test('a complete installation in that directory works', async (t) => {
  const installed = install(t);
  for (const name of [SHIM, RE2]) installed.good(name);
  const baton = await startBaton(t, { program: installed.program, config: WITH_REGEX });
  await baton.stop();
});
