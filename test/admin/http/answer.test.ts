// The admin interface answers arbitrary requests, and its table of endpoints is consistent.

import fc from 'fast-check';
import t from 'tap';
import { HandlerTable } from '../../../src/admin/handler-table.js';
import { HANDLERS } from '../../../src/admin/handlers/index.js';
import { allowedPaths } from '../../../src/admin/http/allowed-paths.js';
import { answer } from '../../../src/admin/http/answer.js';
import { allowedHosts } from '../../../src/admin/http/request-guards.js';
import { initLogging } from '../../../src/log/logger.js';
import { FakeServices } from '../fixture.js';

/** 409: another reload is in progress. */
const STATUSES = new Set([200, 400, 403, 404, 409, 501, 503]);

t.test('every request gets an answer, and only POST to a mutating endpoint changes anything', async (t) => {
  initLogging({ level: 'off' });
  t.teardown(() => initLogging({}));
  const services = new FakeServices();
  services.addCluster({ name: 'web' });
  const handlers = new HandlerTable(HANDLERS);
  const rules = { isAllowedPath: allowedPaths([]), isAllowedHost: allowedHosts([]) };
  const names = HANDLERS.flatMap(({ parameters }) => parameters.map(({ name }) => name));
  const values = HANDLERS.flatMap(({ parameters }) => parameters.flatMap(({ choices }) => choices ?? []));
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string().map(encodeURIComponent),
    fc.constantFrom('(', '%', '+'),
  );
  const pair = fc
    .tuple(fc.oneof(fc.constantFrom(...names), text), fc.oneof(fc.constantFrom(...values), text))
    .map(([name, value]) => `${name}=${value}`);
  const path = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...HANDLERS.map((handler) => handler.path)) },
    { weight: 1, arbitrary: text },
  );
  const query = fc.array(pair, { maxLength: 4 }).map((pairs) => pairs.join('&'));
  const request = fc.record({
    peer: fc.constant('127.0.0.1:1'),
    method: fc.constantFrom('GET', 'POST', 'HEAD', 'PUT'),
    target: fc.tuple(path, fc.constantFrom('', '?', '??'), query).map((parts) => parts.join('')),
    headers: fc.constantFrom({}, { 'content-type': 'application/x-www-form-urlencoded' }),
    body: query.map((form) => Buffer.from(form)),
  });
  await fc.assert(
    fc.asyncProperty(request, async (raw) => {
      const { status = 200, body } = (await answer({ ...raw, isGone: () => false }, handlers, rules, services))!;
      let bytes = 0;
      const isWhole = typeof body === 'string' || body instanceof Uint8Array;
      if (!isWhole) for await (const piece of body) bytes += piece.length;
      const calls = services.calls.splice(0);
      if (!STATUSES.has(status)) throw new Error(`status ${status}: ${body}`);
      return (calls.length === 0 || raw.method === 'POST') && bytes >= 0;
    }),
    { numRuns: 2000 },
  );
});

t.test('two endpoints cannot share a path, and a path must be usable in a link', async (t) => {
  const handler = (path: string) => ({ path, mutates: false, help: '', parameters: [], handle: () => ({ body: '' }) });
  t.throws(() => new HandlerTable([handler('/a'), handler('/a')]), { message: /has an endpoint \/a already/ });
  for (const path of ['a', '', '/a?b', '/a&b', '/<a>', "/'", '/"', '/a:b']) {
    t.throws(() => new HandlerTable([handler(path)]), { message: /cannot be the path/ }, path);
  }
});

t.test(
  'an alias leads to its endpoint and is not listed, and removing an endpoint removes all its paths',
  async (t) => {
    const table = new HandlerTable([]);
    const handler = {
      path: '/a',
      aliases: ['/b', '/c'],
      mutates: false,
      help: '',
      parameters: [],
      handle: () => ({ body: '' }),
    };
    table.add(handler);
    t.equal(table.find('/c'), handler);
    t.strictSame(table.sorted, [handler]);
    t.throws(() => table.add({ ...handler, path: '/d' }), { message: /has an endpoint \/b already/ });
    t.equal(table.find('/d'), undefined, 'nothing was added');
    table.remove(handler);
    for (const path of ['/a', '/b', '/c']) t.equal(table.find(path), undefined);
    t.strictSame(table.sorted, []);
    table.add(handler);
    t.equal(table.find('/b'), handler, 'it can be added again');
  },
);
