// GET /circuit_event_stream reports the activity of each cluster to any number of dashboards, and exists only when configured.

import { get, type IncomingMessage } from 'node:http';
import t from 'tap';
import { type Teardown, waitFor } from '../harness/index.js';
import { startSinkProxy } from './sink-proxy.js';

const HYSTRIX = 'type.googleapis.com/envoy.config.metrics.v3.HystrixSink';
const PATH = '/circuit_event_stream';

type Event = Record<string, unknown>;

interface Listener {
  readonly response: IncomingMessage;
  text: string;
  events(): Event[];
}

function listen(t: Teardown, port: number, path: string): Promise<Listener> {
  return new Promise((resolve, reject) => {
    const request = get({ port, path, host: '127.0.0.1', agent: false }, (response) => {
      const listener = {
        response,
        text: '',
        events: () =>
          listener.text
            .split('\n\n')
            .slice(0, -1)
            .filter((event) => event.startsWith('data: '))
            .map((event) => JSON.parse(event.slice('data: '.length)) as Event),
      };
      response.setEncoding('utf8').on('data', (text: string) => {
        listener.text += text;
      });
      response.on('error', () => {});
      resolve(listener);
    });
    request.on('error', reject);
    t.teardown(() => request.destroy());
  });
}

t.test('both events of the cluster report its activity while a client is connected', async (t) => {
  const { baton, request } = await startSinkProxy(t, [{ '@type': HYSTRIX, num_buckets: '1000' }]);
  await request(2);
  const first = await listen(t, baton.adminPort, PATH);
  t.equal(first.response.statusCode, 200);
  t.match(first.response.headers, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache',
    connection: 'close',
    'access-control-allow-origin': '*',
    'access-control-allow-headers': 'Accept, Cache-Control, X-Requested-With, Last-Event-ID',
    'no-chunks': '0',
  });
  await waitFor(() => first.text.includes('\n\n:\n\n'), { what: 'events and a keep-alive' });
  const second = await listen(t, baton.adminPort, '/hystrix_event_stream');
  await request(3);
  await request(1, '/404');
  const command = await waitFor(
    () => first.events().findLast((event) => event['type'] === 'HystrixCommand' && event['requestCount'] === 4),
    { what: '4 requests' },
  );
  t.match(command, {
    name: 'host',
    group: 'NA',
    isCircuitBreakerOpen: false,
    errorPercentage: 25,
    errorCount: 1,
    rollingCountFailure: 1,
    rollingCountSuccess: 3,
    rollingCountTimeout: 0,
    rollingCountSemaphoreRejected: 0,
    latencyExecute_mean: 'null',
    propertyValue_circuitBreakerForceClosed: true,
    propertyValue_executionIsolationStrategy: 'SEMAPHORE',
    propertyValue_executionIsolationSemaphoreMaxConcurrentRequests: 1024,
    reportingHosts: 1,
    propertyValue_metricsRollingStatisticalWindowInMilliseconds: 50,
  });
  t.same(Object.keys(command['latencyExecute'] as object).sort(), '0 100 25 50 75 90 95 99 99.5'.split(' '));
  t.ok(Math.abs((command['currentTime'] as number) - Date.now() / 1000) < 60, 'seconds since 1970');
  t.match(
    first.events().findLast((event) => event['type'] === 'HystrixThreadPool'),
    { name: 'host', currentPoolSize: 0, propertyValue_queueSizeRejectionThreshold: 1024, reportingHosts: 1 },
  );
  first.response.destroy();
  await waitFor(() => second.events().length > 4, { what: 'the other stream to continue' });
  const before = second.events().length;
  await waitFor(() => second.events().length > before, { what: 'still' });
  t.match((await baton.admin('/help')).body, PATH);
  await baton.stop();
});

t.test('a client that does not read loses its stream, and delays no other client', async (t) => {
  const clusters = Array.from({ length: 300 }, (_, i) => ({
    name: `c${i}`,
    load_assignment: { cluster_name: `c${i}` },
  }));
  const { baton } = await startSinkProxy(t, [{ '@type': HYSTRIX }], { clusters });
  const slow = await listen(t, baton.adminPort, PATH);
  slow.response.pause();
  const fast = await listen(t, baton.adminPort, PATH);
  const count = () => fast.text.split('\n\n:\n\n').length;
  const cut = new Promise<void>((resolve) => slow.response.on('close', resolve));
  await waitFor(() => count() > 60, { what: 'flushes for the reading client', deadlineMs: 60_000 });
  t.equal((await baton.admin('/ready')).status, 200);
  slow.response.resume();
  await cut;
  t.ok(slow.text.split('\n\n:\n\n').length < count(), 'it has missed events');
  await baton.stop();
});

t.test('without the sink the endpoint does not exist', async (t) => {
  const { baton } = await startSinkProxy(t, []);
  t.equal((await baton.admin(PATH)).status, 404);
  t.notMatch((await baton.admin('/help')).body, PATH);
});
