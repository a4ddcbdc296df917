// Filters in TypeScript: what --mode validate and the start refuse.

import { chmodSync, chownSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { tempDir } from '../../harness/environment.js';
import { bootstrap, type Config, httpListener, ROUTER_FILTER, startBaton, staticCluster } from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';
import { registering, scriptFilter, writeScript } from './script-proxy.js';

const GOOD = `import { defineHttpFilter } from 'baton'; export default defineHttpFilter({ onRequest() {} });`;

const CASES: readonly {
  what: string;
  source?: string;
  module?: Config;
  filter?: Config;
  name?: string;
  error: string | RegExp;
}[] = [
  {
    what: 'a missing file',
    module: { filename: '/nowhere/filter.ts' },
    error:
      /:\d+:\d+: bootstrap_extensions\[0\]\.typed_config\.modules\.filter: the script 'filter' cannot be used: there is no file .*\/nowhere\/filter\.ts/,
  },
  { what: 'a syntax error', source: 'export default {\n  a: [1,,}\n', error: /filter\.ts:2:10: / },
  { what: 'an enum', source: 'enum A { B }', error: /filter\.ts:1:1: TypeScript enum is not supported/ },
  { what: 'a missing import', source: "import './absent.js';", error: /absent\.js/ },
  { what: 'a missing package', source: "import 'no-such-package-here';", error: /no-such-package-here/ },
  {
    what: 'an exception at the top level',
    source: '\nthrow new Error("at the top");',
    error: /filter\.ts:2:7: at the top/,
  },
  { what: 'no default export', source: 'export const a = 1;', error: 'it has no default export' },
  {
    what: 'a plain object',
    source: 'export default { onRequest() {} };',
    error: 'is not made with defineHttpFilter()',
  },
  { what: 'an unknown hook', source: GOOD.replace('onRequest', 'onRequests'), error: "did you mean 'onRequest'?" },
  { what: 'no hook', source: GOOD.replace('onRequest() {}', ''), error: 'it has none of the hooks' },
  {
    what: 'a hook that is not a function',
    source: GOOD.replace('onRequest() {}', 'onRequest: 1'),
    error: 'onRequest must be a function',
  },
  {
    what: 'a config that the module refuses',
    source: GOOD.replace(
      'onRequest',
      "config: { '~standard': { version: 1, vendor: 'own', validate: () => ({ issues: [{ message: 'too short', path: ['key'] }] }) } }, onRequest",
    ),
    error:
      /:\d+:\d+: static_resources\..*http_filters\[0\]\.typed_config\.config: the script 'filter' refuses it: key: too short/,
  },
  {
    what: 'a module of another kind',
    source: `import { defineAccessLogger } from 'baton'; export default defineAccessLogger({ onLog() {} });`,
    error:
      /http_filters\[0\]\.typed_config\.config: the script 'filter' cannot be used here: it defines an access logger, not an http filter/,
  },
  {
    what: 'a hook of another kind',
    source: `import { defineNetworkFilter } from 'baton'; export default defineNetworkFilter({ onDatas() {} } as {});`,
    error: "defineNetworkFilter() does not know 'onDatas'; did you mean 'onData'?",
  },
  {
    what: 'a module that is not registered',
    source: GOOD,
    name: 'filtr',
    error: /typed_config\.module: no module 'filtr' is registered in bootstrap_extensions; did you mean 'filter'\?/,
  },
  {
    what: 'a file and a package',
    module: { filename: 'a.ts', package: 'b' },
    error: 'exactly one of filename and package',
  },
  { what: 'a watched package', module: { package: 'b', watch: true }, error: 'packages are loaded once' },
];

for (const { error, filter, module, name, source = GOOD, what } of CASES) {
  t.test(`--mode validate refuses ${what}`, async (t) => {
    const { code, stderr } = await validate(t, source, { filter, module, name });
    t.equal(code, 1);
    t.match(stderr, error);
  });
}

t.test('--mode validate accepts a module, and takes JSON and packages of Node', async (t) => {
  const directory = tempDir(t);
  writeScript(directory, 'words.json', '["a"]');
  const source = `import words from './words.json' with { type: 'json' };
import { createHash } from 'node:crypto';
import { defineHttpFilter } from 'baton';
if (words[0] !== 'a' || createHash('md5') === undefined) throw new Error('not loaded');
export default defineHttpFilter({ onRequest() {} });`;
  const { code, stderr } = await validate(t, source, { directory });
  t.equal(code, 0, stderr);
});

t.test('a file that every user may write is refused', async (t) => {
  const directory = tempDir(t);
  writeScript(directory, 'filter.ts', GOOD);
  chmodSync(join(directory, 'filter.ts'), 0o666);
  const { stderr } = await validate(t, undefined, { directory });
  t.match(stderr, /every user may write to .*filter\.ts: run chmod o-w/);
  chmodSync(join(directory, 'filter.ts'), 0o644);
  chmodSync(directory, 0o777);
  t.match((await validate(t, undefined, { directory })).stderr, /every user may replace .*filter\.ts/);
});

t.test('a file that every user may replace by a folder or a link on its path is refused', async (t) => {
  const directory = tempDir(t);
  const shared = join(directory, 'shared');
  writeScript(shared, 'inner/filter.ts', GOOD);
  chmodSync(shared, 0o777);
  const refuses = async (filename: string) =>
    t.match(
      (await validate(t, undefined, { module: { filename } })).stderr,
      /every user may replace .*run chmod o-w .*shared/,
    );
  await refuses(join(shared, 'inner', 'filter.ts'));
  symlinkSync('shared/inner', join(directory, 'link'));
  await refuses(join(directory, 'link', 'filter.ts'));
  mkdirSync(join(directory, 'own'));
  renameSync(join(shared, 'inner'), join(directory, 'own', 'inner'));
  symlinkSync('../own/inner/filter.ts', join(shared, 'filter.ts'));
  await refuses(join(shared, 'filter.ts'));
  symlinkSync('own/inner', join(directory, 'good'));
  t.equal((await validate(t, undefined, { module: { filename: join(directory, 'good', 'filter.ts') } })).code, 0);
});

const skip = process.getuid!() !== 0 && 'only root can make a file of another user';
t.test('in a folder with the sticky bit, only files of root and of the own user are used', { skip }, async (t) => {
  const directory = tempDir(t);
  writeScript(directory, 'shared/filter.ts', GOOD);
  chmodSync(join(directory, 'shared'), 0o1777);
  const module = { filename: join(directory, 'shared', 'filter.ts') };
  t.equal((await validate(t, undefined, { module })).code, 0);
  chownSync(module.filename, 12_345, 12_345);
  t.match((await validate(t, undefined, { module })).stderr, /another user may replace .*filter\.ts: uid 12345 owns/);
});

for (const isWrapped of [false, true]) {
  t.test(`the config of a route is checked${isWrapped ? ', also within FilterConfig' : ''}`, async (t) => {
    const source = GOOD.replace(
      'onRequest',
      "config(given) { if (given.who !== 'ann') throw new Error('who?'); }, onRequest",
    );
    const own = { '@type': 'type.googleapis.com/baton.filters.http.script.v1.ScriptPerRoute', config: { who: 'bob' } };
    const wrapped = { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', config: own };
    const { code, stderr } = await validate(t, source, {
      filter: { config: { who: 'ann' } },
      route: { typed_per_filter_config: { filter: isWrapped ? wrapped : own } },
    });
    t.equal(code, 1);
    t.match(stderr, /routes\[0\]\.typed_per_filter_config\.filter\.config: the script 'filter' refuses it: who\?/);
  });
}

interface Validated {
  directory?: string;
  module?: Config | undefined;
  filter?: Config | undefined;
  name?: string | undefined;
  /** Added to the only route. */
  route?: Config;
}

async function validate(
  t: Test,
  source: string | undefined,
  { directory = tempDir(t), filter, module, name = 'filter', route = {} }: Validated,
) {
  if (source !== undefined) writeScript(directory, 'filter.ts', source);
  const manager = managerOf([{ ...routeTo({ prefix: '/' }, 'host'), ...route }], {
    http_filters: [scriptFilter(name, filter), ROUTER_FILTER],
  });
  const baton = await startBaton(t, {
    wait: 'spawned',
    args: ['--mode', 'validate'],
    config: bootstrap({
      listeners: [httpListener('main', 0, manager)],
      clusters: [staticCluster('host', 1)],
      extra: registering({ filter: module ?? { filename: join(directory, 'filter.ts') } }),
    }),
  });
  const { code } = await baton.exited;
  return { code, stderr: baton.stderr };
}
