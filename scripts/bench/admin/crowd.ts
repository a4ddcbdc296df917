// The latency of /ready while very many clients request large responses at once.

import { Worker } from 'node:worker_threads';
import { cpuSeconds } from '../processes.js';
import { markdown } from '../report.js';
import { percentile } from '../statistics.js';
import type { Ask, Crowd, CrowdResult } from './crowd-thread.js';
import { forgetPeak, peakAboveIdle, pollReady, type ReadyTimes, type Subject, sleep } from './subject.js';

const CLIENTS = 200;
const SECONDS = 8;

/** The clients' requests, by their name in the table. */
export const CROWDS: Readonly<Record<string, readonly Ask[]>> = {
  '(nobody)': [],
  '/stats and /config_dump': [{ path: '/stats' }, { path: '/config_dump?include_eds' }],
  '/stats': [{ path: '/stats' }],
  'stats, all forms': [
    { path: '/stats?format=json' },
    { path: '/stats/prometheus' },
    { path: '/stats?format=html' },
    { path: '/stats?filter=membership.*total$' },
  ],
  '/config_dump': [{ path: '/config_dump' }],
  'config dump, chosen': [
    { path: '/config_dump?resource=static_clusters&mask=cluster.name' },
    { path: '/config_dump?mask=bootstrap.node' },
    { path: '/config_dump?name_regex=.*7.*7' },
  ],
  '/clusters': [{ path: '/clusters' }, { path: '/clusters?format=json' }],
  'the rest': [
    '/certs',
    '/contention',
    '/drain_status',
    '/heap_dump',
    '/help',
    '/',
    '/init_dump',
    '/listeners?format=json',
    '/memory',
    '/memory/allocator',
    '/nowhere',
    '/runtime',
    '/server_info',
    '/stats/recentlookups',
  ].map((path) => ({ path })),
  'new connections': [{ path: '/server_info', isAlone: true }],
  changes: [
    { method: 'POST', path: '/logging', body: `paths=${'http:info,'.repeat(900)}http:info` },
    { method: 'POST', path: '/reset_counters' },
    { method: 'POST', path: '/healthcheck/ok' },
    { method: 'POST', path: '/runtime_modify', body: 'a.b=1&c.d=' },
  ],
};

export async function measureCrowds(subject: Subject, names: readonly string[], clients = CLIENTS): Promise<string> {
  const rows: string[][] = [];
  for (const name of names) rows.push(await measure(subject, name, clients));
  const header = [
    'asked for',
    'answers',
    'other than 200',
    'failed',
    'MB',
    'cores',
    '/ready p50 ms',
    'p99 ms',
    'max ms',
    'p99 ran ms',
    'memory MB',
  ];
  return markdown(header, rows);
}

async function measure(subject: Subject, name: string, clients: number): Promise<string[]> {
  const asks = CROWDS[name]!;
  forgetPeak(subject);
  const crowd =
    asks.length === 0
      ? undefined
      : new Worker(new URL('crowd-thread.js', import.meta.url), {
          workerData: { port: subject.port, clients, asks } satisfies Crowd,
        });
  const times: ReadyTimes = { ready: [], ran: [] };
  const cpuBefore = cpuSeconds(subject.pid);
  const end = performance.now() + SECONDS * 1000;
  await pollReady(subject, times, () => performance.now() > end);
  const cores = (cpuSeconds(subject.pid) - cpuBefore) / SECONDS;
  const { answers, bytes, failed, refused } = await stop(crowd);
  const memory = peakAboveIdle(subject);
  // The last requests must not be counted in the next row.
  await sleep(1000);
  return [
    name,
    String(answers),
    String(refused),
    String(failed),
    (bytes / 1e6).toFixed(1),
    cores.toFixed(2),
    percentile(times.ready, 0.5).toFixed(2),
    percentile(times.ready, 0.99).toFixed(2),
    Math.max(...times.ready).toFixed(1),
    percentile(times.ran, 0.99).toFixed(2),
    (memory / 1024 / 1024).toFixed(0),
  ];
}

async function stop(crowd: Worker | undefined): Promise<CrowdResult> {
  if (crowd === undefined) return { answers: 0, bytes: 0, refused: 0, failed: 0 };
  const result = new Promise<CrowdResult>((resolve, reject) => {
    crowd.once('message', resolve);
    crowd.once('error', reject);
  });
  crowd.postMessage('stop');
  const counts = await result;
  await crowd.terminate();
  return counts;
}
