// Echoed datagrams through the UDP proxies of Baton, Envoy and nginx, each on one core: rate, and CPU time for each.
//
//   npm run bench:udp -- [--seconds=N] [--rounds=N] [--envoy=PATH] [--clients=N]

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { packagePath } from '../../src/common/package/package-root.js';
import { freeUdpPort } from '../../test/e2e/udp/peers.js';
import { cpuSeconds, end, output, spawnPinned } from './processes.js';

const PROXY_CORE = 0;
const LOAD_CORE = 1;
const STREAM_MODULE = '/usr/lib/nginx/modules/ngx_stream_module.so';
const PAYLOAD_BYTES = 64;

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '3' },
    clients: { type: 'string', default: '32' },
    envoy: { type: 'string' },
  },
});

type Start = (port: number, upstream: number, directory: string) => ReturnType<typeof spawnPinned>;

const PEERS: Readonly<Record<string, Start | undefined>> = {
  baton: (port, upstream, directory) => {
    const config = writeConfig(directory, port, upstream, 'baton');
    return spawnPinned(PROXY_CORE, process.execPath, [
      packagePath('dist/baton/main.js'),
      '-c',
      config,
      '--concurrency',
      '1',
      '-l',
      'error',
    ]);
  },
  envoy:
    values.envoy === undefined
      ? undefined
      : (port, upstream, directory) => {
          const config = writeConfig(directory, port, upstream, 'envoy');
          return spawnPinned(PROXY_CORE, values.envoy!, [
            '-c',
            config,
            '--concurrency',
            '1',
            '-l',
            'error',
            '--use-dynamic-base-id',
          ]);
        },
  nginx: existsSync(STREAM_MODULE)
    ? (port, upstream, directory) => {
        const file = join(directory, 'nginx.conf');
        const stream = `stream { server { listen 127.0.0.1:${port} udp; proxy_pass 127.0.0.1:${upstream}; proxy_timeout 60s; } }`;
        const head = `load_module ${STREAM_MODULE};\n${process.getuid?.() === 0 ? 'user root;\n' : ''}daemon off;\nworker_processes 1;\n`;
        writeFileSync(
          file,
          `${head}pid ${join(directory, 'pid')};\nerror_log stderr crit;\nevents { worker_connections 16000; }\n${stream}\n`,
        );
        return spawnPinned(PROXY_CORE, 'nginx', ['-p', directory, '-c', file, '-e', 'stderr']);
      }
    : undefined,
};

/** Both programs read the same configuration. */
function writeConfig(directory: string, port: number, upstream: number, name: string): string {
  const file = join(directory, `${name}.json`);
  const address = (port_value: number, protocol: string) => ({
    socket_address: { address: '127.0.0.1', port_value, protocol },
  });
  const proxy = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3';
  const route = { name: 'route', typed_config: { '@type': `${proxy}.Route`, cluster: 'up' } };
  const typed_config = {
    '@type': `${proxy}.UdpProxyConfig`,
    stat_prefix: 'u',
    matcher: { on_no_match: { action: route } },
  };
  const filter = { name: 'envoy.filters.udp_listener.udp_proxy', typed_config };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: address(upstream, 'TCP') } }] }];
  const clusters = [{ name: 'up', type: 'STATIC', load_assignment: { cluster_name: 'up', endpoints } }];
  const listeners = [{ name: 'u', address: address(port, 'UDP'), listener_filters: [filter] }];
  writeFileSync(file, JSON.stringify({ static_resources: { listeners, clusters } }));
  return file;
}

function compile(directory: string, name: string): string {
  const program = join(directory, name);
  execFileSync('cc', ['-O2', '-o', program, packagePath(`scripts/bench/native/${name}.c`)]);
  return program;
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'baton-udp-'));
  const upstreamPort = await freeUdpPort();
  const upstream = spawnPinned(LOAD_CORE, compile(directory, 'udp-echo'), [String(upstreamPort)]);
  const client = compile(directory, 'udp-clients');
  const load = async (port: number, seconds: string) =>
    JSON.parse(
      await output(
        spawnPinned(LOAD_CORE, client, [String(port), values.clients, seconds], {
          stdio: ['ignore', 'pipe', 'inherit'],
        }),
      ),
    ) as {
      echoes: number;
      seconds: number;
      lost: number;
    };
  try {
    process.stdout.write(
      `${values.clients} clients with 8 datagrams of ${PAYLOAD_BYTES} bytes in flight each; medians of ${values.rounds} rounds\n`,
    );
    for (const [name, start] of Object.entries(PEERS)) {
      if (start === undefined) continue;
      const port = await freeUdpPort();
      const proxy = start(port, upstreamPort, directory);
      const rounds: { rate: number; us: number; lost: number }[] = [];
      try {
        // The first load also waits for the start.
        for (let tries = 0; tries < 40 && (await load(port, '0.5')).echoes < 1000; tries++);
        for (let round = 0; round < Number(values.rounds); round++) {
          const before = cpuSeconds(proxy.pid!);
          const { echoes, lost, seconds } = await load(port, values.seconds);
          rounds.push({ rate: echoes / seconds, us: ((cpuSeconds(proxy.pid!) - before) * 1e6) / echoes, lost });
        }
      } finally {
        await end(proxy);
      }
      const median = rounds.sort((a, b) => a.us - b.us)[rounds.length >> 1]!;
      process.stdout.write(
        `${name.padEnd(8)} ${Math.round(median.rate)} echoes/s, ${median.us.toFixed(1)} µs CPU for each, ${median.lost} lost\n`,
      );
    }
  } finally {
    await end(upstream);
    rmSync(directory, { recursive: true });
  }
}

await main();
