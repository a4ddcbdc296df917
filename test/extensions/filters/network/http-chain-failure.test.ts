// An HTTP chain that cannot be built on a worker leaves nothing open.

import t from 'tap';
import type { HttpConnectionManager } from '../../../../src/config/generated/api.js';
import type { WorkerContext } from '../../../../src/extensions/factories.js';
import { connectionManagerOptions } from '../../../../src/extensions/filters/network/http-connection-manager/options.js';

const any = (kind: string) => ({ '@type': `type.googleapis.com/${kind}` });
const LOG = { name: 'log', typed_config: any('log') };
const filter = (name: string) => ({ name, typed_config: any(name) });
const IDENTITY = {
  names: { filterChainName: '', metadata: undefined, listenerMetadata: undefined },
  isOutbound: false,
};
const CHAIN = { statPrefix: 'http.a.', bufferLimit: 1024, place: 'chain 1' };

/** A worker that notes what is closed on it. */
function worker(): { context: WorkerContext; closed: string[]; reported: string[] } {
  const closed: string[] = [];
  const reported: string[] = [];
  const factories: Record<string, () => object> = {
    first: () => ({ create: () => undefined, close: () => void closed.push('first') }),
    sticky: () => ({
      create: () => undefined,
      close: () => {
        throw new Error('it sticks');
      },
    }),
    empty: () => ({}),
    end: () => ({ create: () => undefined }),
  };
  const context = {
    transport: { report: (error: Error, what: string) => void reported.push(`${what}: ${error.message}`) },
    extensions: {
      accessLogger: () => ({
        createOnWorker: () => ({
          needs: { request: new Set(), response: new Set(), trailers: new Set() },
          log: () => {},
          close: () => void closed.push('log'),
        }),
      }),
      httpFilter: ({ '@type': type }: { '@type': string }) => {
        const name = type.slice(type.indexOf('/') + 1);
        return { name, isTerminal: name === 'end', createOnWorker: factories[name] };
      },
    },
    routes: {
      rds: () => {
        throw new Error('the primary has not published the routes');
      },
    },
  };
  return { context: context as unknown as WorkerContext, closed, reported };
}

t.test('if a filter cannot be created, earlier filters and loggers are closed', (t) => {
  const { context, closed, reported } = worker();
  const config: HttpConnectionManager = {
    access_log: [LOG],
    http_filters: [filter('sticky'), filter('first'), filter('empty'), filter('end')],
  };
  t.throws(() => connectionManagerOptions(config, CHAIN, context, IDENTITY), { message: /no object with a create/ });
  t.strictSame(closed, ['log', 'first']);
  t.strictSame(reported, ['close() of a filter failed: it sticks']);
  t.end();
});

t.test('if the routes are missing, all filters and loggers are closed', (t) => {
  const { context, closed } = worker();
  const config: HttpConnectionManager = {
    access_log: [LOG],
    rds: { config_source: { ads: {} }, route_config_name: 'a' },
    http_filters: [filter('first'), filter('end')],
  };
  t.throws(() => connectionManagerOptions(config, CHAIN, context, IDENTITY), {
    message: /has not published the routes/,
  });
  t.strictSame(closed, ['log', 'first']);
  t.end();
});
