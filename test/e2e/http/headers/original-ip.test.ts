// original_ip_detection_extensions and early_header_mutation_extensions. All results are Envoy's, except where a test says otherwise.

import { join } from 'node:path';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  type EchoedRequest,
  fileAccessLog,
  httpListener,
  logLines,
  startBaton,
  startEchoUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const TYPE = 'type.googleapis.com/envoy.extensions.http';
const xff = (fields: Config = {}) => ({
  name: 'xff',
  typed_config: { '@type': `${TYPE}.original_ip_detection.xff.v3.XffConfig`, ...fields },
});
const byHeader = (fields: Config = {}) => ({
  name: 'header',
  typed_config: {
    '@type': `${TYPE}.original_ip_detection.custom_header.v3.CustomHeaderConfig`,
    header_name: 'x-real',
    ...fields,
  },
});
const early = (...mutations: Config[]) => ({
  name: 'early',
  typed_config: { '@type': `${TYPE}.early_header_mutation.header_mutation.v3.HeaderMutation`, mutations },
});
const cidr = (address_prefix: string) => ({ address_prefix, prefix_len: 8 });
const trusting = (...prefixes: string[]) => xff({ xff_trusted_cidrs: { cidrs: prefixes.map(cidr) } });

/** By listener. */
const DETECTIONS: Readonly<Record<string, Config[]>> = {
  trusted: [byHeader({ allow_extension_to_set_address_as_trusted: true })],
  refusing: [byHeader({ reject_with_status: { code: 'NotFound' } })],
  odd: [byHeader({ reject_with_status: { code: 'OK' } })],
  hops: [xff({ xff_num_trusted_hops: 1 })],
  ranges: [trusting('127.0.0.0', '192.0.0.0')],
  others: [trusting('192.0.0.0')],
  appending: [xff({ skip_xff_append: false })],
  both: [byHeader(), xff()],
};

async function start(t: Test, program: ProxyProgram) {
  const upstream = await startEchoUpstream(t);
  const log = join(tempDir(t), 'log');
  const access_log = [fileAccessLog(log, '%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT% %RESPONSE_CODE_DETAILS%\n')];
  const internal_address_config = { cidr_ranges: [cidr('10.0.0.0')] };
  const listeners = Object.fromEntries(
    Object.entries(DETECTIONS).map(([name, original_ip_detection_extensions]) => [
      name,
      managerOf([routeTo({ prefix: '/' }, 'host')], {
        ...{ access_log, internal_address_config, original_ip_detection_extensions },
      }),
    ]),
  );
  const args = ['-l', 'warning', '--file-flush-interval-msec', '10'];
  const clusters = [staticCluster('host', upstream.port)];
  const proxy = await startProxy(t, { ...program, listeners, clusters, args });
  let lines = 0;
  const seen = async (listener: string, headers: Record<string, string>) => {
    const { body, status } = await proxy.on(listener, '/', { headers });
    lines++;
    await waitFor(() => logLines(log).length >= lines, { what: 'the log line' });
    const [client, details] = logLines(log).at(-1)!.split(' ');
    if (status !== 200) return [status, client, details, body];
    const received = (JSON.parse(body) as EchoedRequest).headers;
    const forwarded = received['x-forwarded-for'];
    const isOwn = typeof forwarded === 'string' ? forwarded.replace(/,?[\d.]+$/, '') : undefined;
    return [client, received['x-envoy-internal'] === 'true', headers['x-forwarded-for'] === forwarded || isOwn];
  };
  return { ...proxy, seen };
}

besideEnvoy('the client is the address that the first extension finds', async (t, program) => {
  const { seen } = await start(t, program);
  const cases: [string, Record<string, string>, unknown[]][] = [
    ['trusted', {}, ['127.0.0.1', false, true]],
    ['trusted', { 'x-real': '10.1.1.1' }, ['10.1.1.1', true, true]],
    ['trusted', { 'x-real': '1.2.3.4', 'x-forwarded-for': '5.6.7.8' }, ['1.2.3.4', false, true]],
    ['trusted', { 'x-real': '::1' }, ['::1', false, true]],
    ['trusted', { 'x-real': '1.2.3.4:80' }, ['127.0.0.1', false, true]],
    ['refusing', { 'x-real': '10.1.1.1' }, ['10.1.1.1', false, true]],
    ['refusing', {}, [404, '127.0.0.1', 'rejecting_because_detection_failed', '']],
    ['odd', { 'x-real': 'bad' }, [403, '127.0.0.1', 'rejecting_because_detection_failed', '']],
    ['hops', { 'x-forwarded-for': '1.1.1.1' }, ['127.0.0.1', false, true]],
    ['hops', { 'x-forwarded-for': '1.1.1.1, 192.2.2.2' }, ['1.1.1.1', false, true]],
    ['ranges', { 'x-forwarded-for': '10.2.2.2' }, ['10.2.2.2', true, true]],
    ['ranges', { 'x-forwarded-for': '1.1.1.1, 2.2.2.2, 192.3.3.3' }, ['2.2.2.2', false, true]],
    ['ranges', { 'x-forwarded-for': '192.1.1.1,192.3.3.3' }, ['192.1.1.1', false, true]],
    ['ranges', { 'x-forwarded-for': 'junk, 192.3.3.3' }, ['127.0.0.1', false, true]],
    ['others', { 'x-forwarded-for': '1.1.1.1' }, ['127.0.0.1', false, '1.1.1.1']],
    ['appending', { 'x-forwarded-for': '10.2.2.2' }, ['10.2.2.2', true, '10.2.2.2']],
    ['both', { 'x-real': '1.2.3.4', 'x-forwarded-for': '5.6.7.8' }, ['1.2.3.4', false, true]],
    ['both', { 'x-forwarded-for': '5.6.7.8' }, ['5.6.7.8', false, true]],
  ];
  for (const [listener, headers, expected] of cases)
    t.strictSame(await seen(listener, headers), expected, `${listener} ${JSON.stringify(headers)}`);
});

besideEnvoy('early mutations change what clients have sent, before everything else', async (t, program) => {
  const upstream = await startEchoUpstream(t);
  const append = (key: string, value: string, append_action = 'APPEND_IF_EXISTS_OR_ADD') => ({
    append: { header: { key, value }, append_action },
  });
  const { get } = await startProxy(t, {
    ...program,
    listeners: {
      all: managerOf([routeTo({ prefix: '/', headers: [{ name: 'x-early', present_match: true }] }, 'host')], {
        early_header_mutation_extensions: [
          early(append('x-early', '%REQ(:PATH)%|%REQ(x-request-id)%|%REQ(x-forwarded-proto)%'), { remove: 'x-gone' }),
          early(append('x-envoy-internal', 'true'), append('x-forwarded-for', '9.9.9.9', 'OVERWRITE_IF_EXISTS_OR_ADD')),
        ],
      }),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  const { headers } = JSON.parse((await get('/a?b', { headers: { 'x-gone': '1' } })).body) as EchoedRequest;
  t.match(headers, { 'x-early': '/a?b||', 'x-forwarded-for': '9.9.9.9' });
  t.equal(headers['x-gone'], undefined);
  t.equal(headers['x-envoy-internal'], undefined, 'the edge removes what clients must not send');
});

besideEnvoy('early mutations and the rules of the edge decide which scope a request has', async (t, program) => {
  const scope = (name: string) => ({
    name,
    key: { fragments: [{ string_key: name }] },
    route_configuration: routeConfig([{ name, domains: ['*'], routes: [answering({ prefix: '/' }, name)] }], { name }),
  });
  const scoped_routes = {
    name: 'scopes',
    scope_key_builder: { fragments: [{ header_value_extractor: { name: 'x-scope', index: 0 } }] },
    scoped_route_configurations_list: { scoped_route_configurations: [scope('a'), scope('b')] },
  };
  const early_header_mutation_extensions = [
    early({ append: { header: { key: 'x-scope', value: 'b' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' } }),
  ];
  const { on } = await startProxy(t, {
    ...program,
    listeners: { plain: { scoped_routes }, early: { scoped_routes, early_header_mutation_extensions } },
  });
  const headers = { 'x-scope': 'a' };
  t.match(await on('plain', '/', { headers }), { body: 'a' });
  t.match(await on('early', '/', { headers }), { body: 'b' });
  t.match(await on('early', '/'), { body: 'b' });
});

t.test('combinations that contradict each other are refused', async (t) => {
  const ROUTES = [routeTo({ prefix: '/' }, 'host')];
  const managers: [Config, string][] = [
    [
      { original_ip_detection_extensions: [xff()], use_remote_address: true },
      'it cannot be used with use_remote_address',
    ],
    [
      { original_ip_detection_extensions: [xff()], xff_num_trusted_hops: 1 },
      'it cannot be used with xff_num_trusted_hops',
    ],
    [
      { original_ip_detection_extensions: [xff({ xff_num_trusted_hops: 1, xff_trusted_cidrs: {} })] },
      'exclude each other',
    ],
    [{ early_header_mutation_extensions: [early({ remove: ':path' })] }, "':path' cannot be changed this early"],
    [{ early_header_mutation_extensions: [early({ remove: 'Host' })] }, "'Host' cannot be changed this early"],
  ];
  const listeners = managers.map(([more], index) => httpListener(`l${index}`, 0, managerOf(ROUTES, more)));
  const config = bootstrap({ listeners, clusters: [staticCluster('host', 1)] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  for (const [, text] of managers) t.match(baton.stderr, text);
});
