// What filters that read a header and set one cost in Envoy: CPU time a request over sockets, with wrk as the client.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootstrap, httpListener, ROUTER_FILTER } from '../../../test/e2e/harness/bootstrap.js';

const LUA = `function envoy_on_request(handle)
  handle:headers():replace("x-seen", handle:headers():get("user-agent"))
end`;

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http';

const FILTERS: Readonly<Record<string, readonly object[]>> = {
  'no filter': [],
  header_mutation: [
    {
      name: 'mutation',
      typed_config: {
        '@type': `${TYPES}.header_mutation.v3.HeaderMutation`,
        mutations: {
          request_mutations: [
            {
              append: {
                header: { key: 'x-seen', value: '%REQ(user-agent)%' },
                append_action: 'OVERWRITE_IF_EXISTS_OR_ADD',
              },
            },
          ],
        },
      },
    },
  ],
  Lua: [
    {
      name: 'lua',
      typed_config: { '@type': `${TYPES}.lua.v3.Lua`, default_source_code: { inline_string: LUA } },
    },
  ],
};

/** Microseconds of CPU time per clock tick of /proc. */
const TICK_US = 10_000;
const SECONDS = 3;

/** Returns the µs a request by filter, the best of `rounds`. `envoy`: the path of the program. */
export async function measureEnvoy(envoy: string, rounds: number): Promise<ReadonlyMap<string, number>> {
  const best = new Map<string, number>();
  for (const [name, filters] of Object.entries(FILTERS)) best.set(name, await measureFilter(envoy, filters, rounds));
  return best;
}

async function measureFilter(envoy: string, filters: readonly object[], rounds: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'baton-bench-'));
  const address = join(directory, 'admin');
  const config = join(directory, 'envoy.json');
  writeFileSync(config, JSON.stringify(bootstrapWith(filters)));
  const args = [
    '-c',
    config,
    '--admin-address-path',
    address,
    '--concurrency',
    '1',
    '--disable-hot-restart',
    '-l',
    'error',
  ];
  const child = spawn(envoy, args, { stdio: 'ignore' });
  try {
    const port = await portOf(address);
    load(port, 1);
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < rounds; round++) {
      const before = cpuTicks(child);
      const requests = load(port, SECONDS);
      best = Math.min(best, ((cpuTicks(child) - before) * TICK_US) / requests);
    }
    return best;
  } finally {
    child.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  }
}

function bootstrapWith(filters: readonly object[]): object {
  const routes = [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'x' } } }];
  const manager = {
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [...filters, ROUTER_FILTER],
  };
  return bootstrap({ listeners: [httpListener('http', 0, manager)], clusters: [] });
}

async function portOf(address: string): Promise<number> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (!existsSync(address)) continue;
    const admin = `http://${readFileSync(address, 'utf8').trim()}`;
    if (!(await fetch(`${admin}/ready`).catch(() => undefined))?.ok) continue;
    return Number(/:(\d+)$/m.exec(await (await fetch(`${admin}/listeners`)).text())![1]);
  }
}

/** Returns the number of requests. */
function load(port: number, seconds: number): number {
  const args = ['-t1', '-c64', `-d${seconds}s`, '-H', 'user-agent: curl/8', `http://127.0.0.1:${port}/`];
  return Number(/(\d+) requests in/.exec(execFileSync('wrk', args, { encoding: 'utf8' }))![1]);
}

function cpuTicks({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
