// The access log of a listener has a line for each connection when it ends, and for each socket that becomes none.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  freePort,
  httpListener,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';

const FORMAT = [
  'ACCESS_LOG_TYPE',
  'PROTOCOL',
  'RESPONSE_FLAGS',
  'RESPONSE_CODE_DETAILS',
  'UPSTREAM_CLUSTER',
  'FILTER_CHAIN_NAME',
  'BYTES_RECEIVED',
  'BYTES_SENT',
  'DOWNSTREAM_REMOTE_ADDRESS',
  'DOWNSTREAM_LOCAL_ADDRESS',
  'CONNECTION_TERMINATION_DETAILS',
]
  .map((name) => `%${name}%`)
  .join(' ');
const NO_CHAIN = { filter_chain_match: { prefix_ranges: [{ address_prefix: '10.0.0.0', prefix_len: 8 }] } };
const web = await startUpstream(t, (_request, response) => void response.end('hello'));
const echo = await startTcpUpstream(t, (socket) => void socket.pipe(socket));

besideEnvoy('an HTTP connection has one line, with the bytes of all its requests', async (t, program) => {
  const { lines, port } = await start(t, program, httpListener('web', 0, { route_config: routeAllTo('web') }));
  const client = await connectRaw(t, port);
  const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  client.write(request);
  await client.readUntil(/hello/);
  client.write(request);
  await client.readUntil(/hello/);
  t.same(lines(), [], 'nothing is logged while it is open');
  client.end();
  const [line] = await waitFor(() => (lines().length > 0 ? lines() : undefined), { what: 'a line' });
  t.match(line, /^NotSet HTTP\/1\.1 - - - chain 54 \d{3} 127\.0\.0\.1:\d+ 127\.0\.0\.1:\d+ -$/);
  t.equal(line!.split(' ')[9], `127.0.0.1:${port}`);
});

besideEnvoy('a connection without a valid request is logged with what is known', async (t, program) => {
  const { lines, port } = await start(t, program, httpListener('web', 0, { route_config: routeAllTo('web') }));
  const silent = await connectRaw(t, port);
  silent.end();
  await waitFor(() => lines().length === 1, { what: 'a line' });
  t.match(lines()[0], /^NotSet - - - - chain 0 0 127/);
  const invalid = await connectRaw(t, port);
  invalid.write('NO HTTP\r\n\r\n');
  await invalid.readUntil(/ 400 /);
  invalid.end();
  await waitFor(() => lines().length === 2, { what: 'a line' });
  t.match(lines()[1], /^NotSet - DPE - - chain 11 \d+ 127/);
});

besideEnvoy('a proxied TCP connection is logged with its cluster', async (t, program) => {
  const { lines, port } = await start(t, program, tcpListener('wire', 0, { cluster: 'echo' }));
  const client = await connectRaw(t, port);
  client.write('12345');
  await client.readUntil(/12345/);
  client.end();
  await waitFor(() => lines().length === 1, { what: 'a line' });
  t.match(lines()[0], /^NotSet - - - echo chain 5 5 127\.0\.0\.1:\d+ 127\.0\.0\.1:\d+ -$/);
});

besideEnvoy('a socket that matches no filter chain is logged, and filters select it', async (t, program) => {
  const filter = { response_flag_filter: { flags: ['NR'] } };
  const listener = tcpListener('wire', 0, { cluster: 'echo' });
  const { lines, port } = await start(t, program, listener, { filter, chain: NO_CHAIN });
  const client = await connectRaw(t, port);
  await client.readToEnd();
  await waitFor(() => lines().length === 1, { what: 'a line' });
  t.match(lines()[0], /^NotSet - NR filter_chain_not_found - - 0 0 127\.0\.0\.1:\d+ 127\.0\.0\.1:\d+ -$/);
  const matched = await start(t, program, listener, { filter });
  const other = await connectRaw(t, matched.port);
  other.write('x');
  await other.readUntil(/x/);
  other.end();
  await other.readToEnd();
  t.same(matched.lines(), [], 'a connection without the flag is not');
});

besideEnvoy('a socket that a listener filter drops is logged', async (t, program) => {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',
  };
  const listener = {
    ...tcpListener('wire', 0, { cluster: 'echo' }),
    listener_filters: [{ name: 'envoy.filters.listener.proxy_protocol', typed_config }],
  };
  const { lines, port } = await start(t, program, listener);
  const client = await connectRaw(t, port);
  client.write('no header of the protocol\r\n\r\n');
  await client.readToEnd();
  await waitFor(() => lines().length === 1, { what: 'a line' });
  t.match(lines()[0], /^NotSet - - - - - 0 0 127\.0\.0\.1:\d+ 127\.0\.0\.1:\d+ -$/);
});

interface Parts {
  /** Filter of the log. */
  readonly filter?: Config;
  /** Fields of the filter chain. */
  readonly chain?: Config;
}

/** Starts a proxy with this listener and a log. */
async function start(t: Test, { command }: ProxyProgram, listener: Config, { chain = {}, filter }: Parts = {}) {
  const path = join(tempDir(t), 'connections.log');
  const port = await freePort();
  const [filters] = listener['filter_chains'] as Config[];
  const config = bootstrap({
    listeners: [
      {
        ...listener,
        address: { socket_address: { address: '127.0.0.1', port_value: port } },
        filter_chains: [{ name: 'chain', ...filters, ...chain }],
        access_log: [{ ...fileAccessLog(path, `${FORMAT}\n`), ...(filter && { filter }) }],
      },
    ],
    clusters: [staticCluster('web', web.port), staticCluster('echo', echo.port)],
  });
  const args = ['--concurrency', '1', '--file-flush-interval-msec', '20'];
  await startBaton(t, { command, config, args });
  const lines = () => readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return { lines, port };
}
