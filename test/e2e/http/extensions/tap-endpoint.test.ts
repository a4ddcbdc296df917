// POST /tap: one stream at a time, for as long as its client stays connected, and never at the expense of traffic.

import t from 'tap';
import { bootstrap, type Config, connectRaw, httpListener, httpRequest, waitFor } from '../../harness/index.js';
import { startBreakableBaton } from '../../process/faults/fault-injection.js';
import { startProxy } from '../proxy.js';
import { attach, tapRequest } from './tap-client.js';
import { ANY, pathOf, tapFilter, tapped, tappedHost } from './tapped-proxy.js';

const host = await tappedHost(t);

t.test('buffered_admin answers when it has max_traces, or at its timeout with the traces so far', async (t) => {
  const { baton, get } = await startProxy(t, { listeners: { main: tapped() }, clusters: [host] });
  const sink = (buffered_admin: Config) => ({ streaming_admin: undefined, buffered_admin });
  const three = await attach(
    t,
    baton.adminPort,
    tapRequest(ANY, {}, sink({ max_traces: 3, timeout: '315576000000s' })),
  );
  for (let i = 0; i < 3; i++) {
    t.equal(three.text, '');
    await get(`/${i}`);
  }
  await three.ended;
  t.same(three.traces().map(pathOf), ['/0', '/1', '/2']);
  const late = await attach(t, baton.adminPort, tapRequest(ANY, {}, sink({ max_traces: 1000, timeout: '0.3s' })));
  await get('/late');
  await late.ended;
  t.same(late.traces().map(pathOf), ['/late']);
});

t.test('invalid tap requests, and a second stream, are refused with the reason', async (t) => {
  const { baton, get } = await startProxy(t, {
    listeners: { main: tapped(), second: tapped([tapFilter({}, 'other')]) },
    clusters: [host],
  });
  t.match((await baton.admin('/help')).body, /^ {2}\/tap \(POST\): /m);
  t.match(await baton.admin('/tap'), { status: 400, body: 'Method GET not allowed, POST required.' });
  const post = async (body: Config | string) =>
    baton.admin('/tap', { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
  const sink = (more: Config) => tapRequest(ANY, {}, { streaming_admin: undefined, ...more });
  const refusals: [Config | string, RegExp][] = [
    ['', /^\/tap requires a JSON\/YAML body$/],
    ['{', /^body:1:/],
    [
      `${JSON.stringify({ ...tapRequest(ANY) }).slice(0, -1)},"config_id":"main"}`,
      /^body:1:\d+: 'config_id' is set twice/m,
    ],
    ['config_id: main\ntap_confg: {}\n', /^body:2:1: tap_confg: unknown field .*tap_config/m],
    [{ config_id: 'main' }, /tap_config: it must be set/],
    [
      { ...tapRequest(ANY), config_id: 'gone' },
      /^Unknown config id 'gone'\. No extension has registered with this id\.$/,
    ],
    [
      { config_id: 'main', tap_config: { output_config: { sinks: [{ streaming_admin: {} }] } } },
      /neither match nor match_config/,
    ],
    [tapRequest({}), /match: one of or_match, and_match, .* must be set/],
    [tapRequest({ or_match: { rules: [ANY] } }), /match\.or_match\.rules: .*2/],
    [
      tapRequest({
        http_request_headers_match: { headers: [{ name: 'a', string_match: { safe_regex: { regex: '(' } } }] },
      }),
      /headers\[0\].*regex/,
    ],
    [tapRequest(ANY, {}, { format: 'PROTO_TEXT' }), /format: 'PROTO_TEXT' .* is not implemented/],
    [sink({ file_per_tap: { path_prefix: 'a' } }), /field 'file_per_tap' .* is not implemented/],
    [sink({ buffered_admin: {} }), /max_traces/],
    [tapRequest(ANY, { max_buffered_rx_bytes: 2 ** 31 }), /max_buffered_rx_bytes: it must be at most 8388608/],
    [tapRequest(ANY, { sinks: [] }), /sinks/],
  ];
  for (const [body, reason] of refusals) t.match(await post(body), { status: 400, body: reason });

  const yaml =
    'config_id: other\ntap_config:\n  match_config: { any_match: true }\n  output_config:\n    sinks:\n      - streaming_admin: {}\n';
  const tap = await attach(t, baton.adminPort, yaml);
  t.equal(tap.response.statusCode, 200);
  t.match(await post(tapRequest(ANY)), {
    status: 400,
    body: 'An attached /tap admin stream already exists. Detach it.',
  });
  await get('/of-another-config-id');
  t.equal(await baton.stat('http.main.tap.rq_tapped'), 0);
  tap.close();
  const next = await waitFor(async () => {
    const client = await attach(t, baton.adminPort, tapRequest(ANY));
    return client.response.statusCode === 200 && client;
  });
  await get('/mine');
  await waitFor(() => next.traces().length === 1);
  await baton.stop();
  await next.ended;
});

t.test('a client that disconnects leaves no tap behind', async (t) => {
  const { baton, get } = await startProxy(t, { listeners: { main: tapped() }, clusters: [host] });
  const body = JSON.stringify(tapRequest(ANY));
  const request = `POST /tap HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const isAttached = async () => /already exists/.test((await baton.admin('/tap', { method: 'POST' })).body);
  const hasty = await connectRaw(t, baton.adminPort);
  hasty.write(request);
  await waitFor(isAttached, { what: 'the check of the request to begin' });
  hasty.reset();
  await waitFor(async () => !(await isAttached()), { what: 'the end of a tap whose client has disconnected' });

  const client = await connectRaw(t, baton.adminPort);
  client.write(request);
  await client.readUntil('\r\n\r\n');
  await get('/');
  await client.readUntil('http_buffered_trace');
  client.reset();
  await waitFor(async () => !(await isAttached()));
  const count = (await baton.stat('http.main.tap.rq_tapped'))!;
  await waitFor(async () => {
    const before = await baton.stat('http.main.tap.rq_tapped');
    await get('/');
    return (await baton.stat('http.main.tap.rq_tapped')) === before;
  });
  t.ok(count >= 1);
});

t.test('a client that does not read loses traces, and traffic continues', async (t) => {
  const { baton, get } = await startProxy(t, { listeners: { main: tapped() }, clusters: [host] });
  const tap = await attach(t, baton.adminPort, tapRequest(ANY, { max_buffered_tx_bytes: 60_000 }));
  tap.response.pause();
  for (let i = 0; i < 40; i++) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => get('/large')));
    for (const { status } of answers) if (status !== 200) t.fail(`status ${status}`);
  }
  t.equal((await baton.admin('/ready')).status, 200);
  tap.close();
  const lost = await waitFor(() => /(\d+) trace\(s\) were lost/.exec(baton.stderr), {
    what: 'the number of lost traces',
  });
  t.ok(Number(lost[1]) > 0 && Number(lost[1]) < 400);
});

t.test('the replacement of a dead worker is tapped too', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({ listeners: [httpListener('main', 0, tapped())], clusters: [host] }),
  });
  const port = await baton.listenerPort('main');
  const tap = await attach(t, baton.adminPort, tapRequest(ANY));
  await killWorker('throw');
  await waitFor(async () => (await httpRequest(port, '/again')).status === 200);
  await waitFor(() => tap.traces().length > 0, { what: 'a trace of the new worker' });
  t.equal(pathOf(tap.traces()[0]!), '/again');
});

t.test('without a tap filter there is no /tap endpoint', async (t) => {
  const { baton } = await startProxy(t, { listeners: { main: tapped([]) }, clusters: [host] });
  t.equal((await baton.admin('/tap', { method: 'POST', body: '{}' })).status, 404);
  t.notMatch((await baton.admin('/help')).body, '/tap');
});
