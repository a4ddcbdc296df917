#!/usr/bin/env node
// Writes the code caches of the bundled program to dist/code-cache: starts it under baton-restarter, lets it serve a few requests and
// ends it. `npm run build` and the installation of the package run this, because a cache is of use only to the version of Node that
// wrote it. Without dist/baton it does nothing. A failure is reported and is not an error: the program runs without caches.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, '../../dist');
const program = (name) => join(dist, 'baton', name);

/** A machine may be busy. */
const DEADLINE_MS = 120_000;
const POLL_MS = 20;

const HTTP = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';

if (existsSync(program('main.js')) && existsSync(join(dist, 'schema.json'))) {
  rmSync(join(dist, 'code-cache'), { recursive: true, force: true });
  const directory = mkdtempSync(join(tmpdir(), 'baton-code-cache-'));
  try {
    await serve(directory);
  } catch (error) {
    console.error(`no code caches were written, so Baton will start more slowly: ${error.message}`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function serve(directory) {
  const path = (name) => join(directory, name);
  writeFileSync(path('clusters.json'), JSON.stringify({ resources: [] }));
  writeFileSync(path('bootstrap.json'), JSON.stringify(bootstrap(path('clusters.json'))));
  const args = ['-c', path('bootstrap.json'), '--admin-address-path', path('admin'), '--concurrency', '1'];
  const child = spawn(
    process.execPath,
    [program('restarter/main.js'), process.execPath, program('main.js'), ...args, '--use-dynamic-base-id'],
    {
      env: { ...process.env, NODE_OPTIONS: `--import=${pathToFileURL(join(here, 'keep-code.mjs'))}` },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log += text;
  });
  const ended = new Promise((resolve) => child.on('error', resolve).on('close', resolve));
  const late = delay(DEADLINE_MS, 'late', { ref: false });
  try {
    if ((await Promise.race([request(path('admin'), ended), late])) === 'late')
      throw new Error('it did not start in time');
  } catch (error) {
    throw new Error(`${error.message}\n${log}`);
  } finally {
    child.kill('SIGTERM');
    if ((await Promise.race([ended, late])) === 'late') child.kill('SIGKILL');
  }
}

/** Sends requests to the admin interface, whose address the file at `path` will hold, and to the listener. */
async function request(path, ended) {
  let isEnded = false;
  void ended.then(() => {
    isEnded = true;
  });
  while (!existsSync(path) || !(await isReady(readFileSync(path, 'utf8')))) {
    if (isEnded) throw new Error('it ended');
    await delay(POLL_MS);
  }
  const admin = `http://${readFileSync(path, 'utf8')}`;
  const get = async (url) => (await fetch(url, { headers: { connection: 'close' } })).text();
  for (const page of ['stats', 'stats/prometheus', 'clusters', 'config_dump']) await get(`${admin}/${page}`);
  const [, listener] = (await get(`${admin}/listeners`)).match(/::(.+)/);
  for (const page of ['direct', 'upstream']) await get(`http://${listener}/${page}`);
}

async function isReady(address) {
  try {
    return (await fetch(`http://${address}/ready`, { headers: { connection: 'close' } })).ok;
  } catch {
    return false;
  }
}

/** Returns a configuration that uses what most do. */
function bootstrap(clusters) {
  const loopback = { socket_address: { address: '127.0.0.1', port_value: 0 } };
  const nobody = { socket_address: { address: '127.0.0.1', port_value: 1 } };
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: nobody } }] }];
  const routes = [
    { match: { path: '/direct' }, direct_response: { status: 200, body: { inline_string: 'ok' } } },
    { match: { prefix: '/' }, route: { cluster: 'nobody' } },
  ];
  const manager = {
    '@type': HTTP,
    stat_prefix: 'http',
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
    http_filters: [{ name: 'router', typed_config: { '@type': ROUTER } }],
  };
  return {
    node: { id: 'code-cache', cluster: 'code-cache' },
    admin: { address: loopback },
    dynamic_resources: { cds_config: { path_config_source: { path: clusters } } },
    static_resources: {
      listeners: [
        { name: 'http', address: loopback, filter_chains: [{ filters: [{ name: 'http', typed_config: manager }] }] },
      ],
      clusters: [{ name: 'nobody', load_assignment: { cluster_name: 'nobody', endpoints } }],
    },
  };
}
