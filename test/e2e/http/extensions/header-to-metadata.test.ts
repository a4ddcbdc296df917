// envoy.filters.http.header_to_metadata: what it puts into the dynamic metadata. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  rawExchange,
  startBaton,
  type Teardown,
  tempDir,
  waitFor,
} from '../../harness/index.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config';
const OWN = 'envoy.filters.http.header_to_metadata';
const ROUTER: Config = {
  name: 'router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};
const present = (header: string, key: string, more: Config = {}): Config => ({
  header,
  on_header_present: { metadata_namespace: 'ns', key, ...more },
});
const RULES: Config = {
  stat_prefix: 'mine',
  request_rules: [
    { ...present('x-a', 'a'), on_header_missing: { key: 'am', value: 'missing' }, remove: true },
    present('x-n', 'n', { type: 'NUMBER' }),
    present('x-b', 'b', { encode: 'BASE64' }),
    present('x-p', 'p', { encode: 'BASE64', type: 'PROTOBUF_VALUE' }),
    present(':path', 'path', {
      regex_value_rewrite: { pattern: { regex: '^/(cluster[^/]*).*$' }, substitution: '\\1' },
    }),
    {
      cookie: 'c',
      on_header_present: { metadata_namespace: 'ns', key: 'c' },
      on_header_missing: { metadata_namespace: 'ns', key: 'cm', value: 'none' },
    },
    present('x-v', 'v', { value: 'fixed' }),
  ],
  response_rules: [present('x-r', 'r')],
};

interface Rig {
  /** Sends a request with these lines. Returns what was logged: the namespace, that of the filter, the removed header. */
  readonly ask: (path: string, ...lines: string[]) => Promise<unknown[]>;
  readonly stats: (expected: Record<string, number>) => Promise<void>;
}

async function start(t: Teardown, program: ProxyProgram): Promise<Rig> {
  const log = join(tempDir(t), 'log');
  const reply = { direct_response: { status: 200 } };
  const route_config = {
    response_headers_to_add: [{ header: { key: 'x-r', value: 'reply' } }],
    virtual_hosts: [
      {
        name: 'v',
        domains: ['*'],
        routes: [
          {
            match: { prefix: '/own' },
            ...reply,
            typed_per_filter_config: { h: { '@type': TYPE, request_rules: [present('x-a', 'route')] } },
          },
          { match: { prefix: '/' }, ...reply },
        ],
      },
    ],
  };
  const format = `[%DYNAMIC_METADATA(ns)%, %DYNAMIC_METADATA(${OWN})%, "%REQ(x-a)%"]\n`;
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '20'],
    config: bootstrap({
      clusters: [],
      listeners: [
        httpListener('main', 0, {
          access_log: [fileAccessLog(log, format)],
          http_filters: [{ name: 'h', typed_config: { '@type': TYPE, ...RULES } }, ROUTER],
          route_config,
        }),
      ],
    }),
  });
  const port = await baton.listenerPort('main');
  let count = 0;
  return {
    async ask(path, ...lines) {
      count++;
      const head = [`GET ${path} HTTP/1.1`, 'host: a', ...lines, 'connection: close', '', ''].join('\r\n');
      await rawExchange(port, head);
      const logged = () => readFileSync(log, 'utf8').split('\n').slice(0, -1);
      await waitFor(() => logged().length === count);
      return JSON.parse(
        logged()
          .at(-1)!
          .replace(/(?<=[[ ])-(?=[,\]])/g, 'null'),
      ) as unknown[];
    },
    stats: (expected) =>
      baton.waitForStats(
        Object.fromEntries(Object.entries(expected).map(([name, value]) => [`http_filter_name.mine.${name}`, value])),
      ),
  };
}

besideEnvoy('values of headers and cookies, in all types', async (t, program) => {
  const { ask, stats } = await start(t, program);
  const full = ['x-a: one', 'x-a: two', 'x-n: 1.5e3', 'x-b: aGk=', 'x-p: GgNoZXk=', 'cookie: c=v1; d=2', 'x-v: zz'];
  t.strictSame(await ask('/cluster1/x', ...full), [
    { a: 'one,two', b: 'hi', c: 'v1', n: 1500, p: 'hey', path: 'cluster1', r: 'reply', v: 'fixed' },
    null,
    '-',
  ]);
  t.strictSame(await ask('/other', 'x-a: ', 'x-n: abc', 'x-b: !!!', 'x-p: AAAA', 'cookie: c=', 'x-v: '), [
    { cm: 'none', path: '/other', r: 'reply', v: 'fixed' },
    null,
    '-',
  ]);
  t.strictSame(await ask('/', 'x-n: 0x1f', 'x-b: aGk', 'cookie: c="q"'), [
    { b: 'hi', c: 'q', n: 31, path: '/', r: 'reply' },
    { am: 'missing' },
    '-',
  ]);
  t.strictSame(await ask('/', 'x-n:  -.5 ', `x-a: ${'a'.repeat(8192)}`), [
    { cm: 'none', n: -0.5, path: '/', r: 'reply' },
    null,
    '-',
  ]);
  t.match(await ask('/', `x-a: ${'a'.repeat(8191)}`), [{ a: 'a'.repeat(8191) }]);
  // A structure, a list, a null and a boolean.
  const struct = 'Kh0KCQoBYRIEGgIxMgoQCgFiEgsyCQoCIAEKAwoBAA==';
  t.match(await ask('/', `x-p: ${struct}`), [{ p: { a: '12', b: [true, null] } }]);
  await stats({
    base64_decode_failed: 1,
    header_value_too_long: 1,
    response_rules_processed: 6,
    response_metadata_added: 6,
    request_rules_processed: 42,
  });
});

besideEnvoy('a route has its own rules', async (t, program) => {
  const { ask } = await start(t, program);
  t.strictSame(await ask('/own', 'x-a: 1', 'x-n: 2'), [{ route: '1' }, null, '1']);
});

t.test('hostile binary values are left out', async (t) => {
  const { ask } = await start(t, { command: undefined });
  const deep = (levels: number) => {
    let bytes = Buffer.from([0x20, 1]);
    for (let i = 0; i < levels; i++) {
      const list = Buffer.concat([Buffer.from([0x0a]), varint(bytes.length), bytes]);
      bytes = Buffer.concat([Buffer.from([0x32]), varint(list.length), list]);
    }
    return bytes.toString('base64');
  };
  t.match(await ask('/', `x-p: ${deep(30)}`), [{ p: [[]] }]);
  for (const value of [deep(200), 'KgU=', 'KgoKCA==', '//8=', 'CgAAAAAA', 'MgIKBQ==']) {
    const [metadata] = (await ask('/', `x-p: ${value}`)) as [Record<string, unknown>];
    t.notOk('p' in metadata, value);
  }
});

function varint(value: number): Buffer {
  return value < 128 ? Buffer.from([value]) : Buffer.from([(value & 127) | 128, value >> 7]);
}
