// Discovered configurations of HTTP filters on the primary and on one worker, with sources that the test controls.

import t from 'tap';
import type { Any, HttpFilter } from '../../../src/config/generated/api.js';
import type {
  DiscoveredFilterConfig,
  HttpChain,
  HttpFilterExtension,
  PrimaryFilterContext,
} from '../../../src/extensions/factories.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { ExtensionRegistry } from '../../../src/extensions/registry.js';
import { FilterConfigSet } from '../../../src/server/filter-configs/filter-config-set.js';
import { InitManager } from '../../../src/server/init/init-manager.js';
import type { SnapshotParts } from '../../../src/server/workers/snapshots.js';
import { WorkerScopes } from '../../../src/server/workers/worker-scopes.js';
import { defineLayout } from '../../../src/stats/layout.js';
import { HttpStats } from '../../../src/stats/layouts/http.js';
import { ExtensionConfigStats } from '../../../src/stats/layouts/xds.js';
import { StatsStore } from '../../../src/stats/store.js';
import { FilterConfigs } from '../../../src/worker/extensions/filter-configs.js';
import { captureLog } from '../../admin/capture-log.js';
import { FakeSources, unreadable } from '../../xds/fake-sources.js';

const TYPES = 'type.googleapis.com/envoy.extensions.filters.http.';
const BUFFER = `${TYPES}buffer.v3.Buffer`;
const PROBE = `${TYPES}probe.v3.Probe`;
const ProbeStats = defineLayout({ rq_tapped: 'counter' });
const ROUTER = { '@type': `${TYPES}router.v3.Router` };

const buffer = (bytes: number): Any => ({ '@type': BUFFER, max_request_bytes: bytes });
const probe = (name: string): Any => ({ '@type': PROBE, name });
const resource = (config: Any) => ({ name: 'limit', message: { name: 'limit', typed_config: config } });

function unused(): never {
  throw new Error('no filter of these tests needs it');
}

function start() {
  const store = new StatsStore({ workers: 1 });
  const sources = new FakeSources();
  const worker = new FilterConfigs();
  const published: SnapshotParts[] = [];
  const set = new FilterConfigSet({
    sources,
    store,
    scopes: new WorkerScopes(store),
    publish: (parts) => {
      published.push(parts);
      worker.apply({ filterConfigs: parts.filterConfigs ?? [] });
      worker.remove({ removedFilterConfigs: parts.removedFilterConfigs ?? [] });
    },
  });
  /** Names of the present parts on the primary. */
  const parts: string[] = [];
  /** The part with that name cannot be created. */
  const lost = { name: '' };
  const probed: HttpFilterExtension<{ name: string }> = {
    category: 'envoy.filters.http',
    name: 'probe',
    typeUrls: [PROBE],
    scopes: ({ name }, { statPrefix }) => {
      const second = { prefix: `${statPrefix}probe.second.`, layout: ProbeStats };
      return [{ prefix: `${statPrefix}probe.`, layout: ProbeStats }, ...(name === 'two scopes' ? [second] : [])];
    },
    createOnPrimary: ({ name }) => {
      if (name === lost.name) throw new Error('it is lost');
      parts.push(name);
      return { close: () => void parts.splice(parts.indexOf(name), 1) };
    },
    createOnWorker: () => ({ create: () => undefined }),
  };
  const extensions = new ExtensionRegistry([...EXTENSIONS, probed as HttpFilterExtension]);
  const attach = (discovery: HttpFilter['config_discovery'] = {}, chain: HttpChain = { statPrefix: 'http.a.' }) => {
    const init = new InitManager('listener');
    const filter: HttpFilter = {
      name: 'limit',
      config_discovery: { config_source: { ads: {} }, type_urls: [BUFFER, PROBE], ...discovery },
    };
    const context: PrimaryFilterContext = {
      extensions,
      waitFor: (name) => init.add(name),
      port: unused,
      serve: unused,
      checkMessage: unused,
      routes: { attach: unused },
      filterConfigs: set,
      scripts: { use: unused },
      secrets: { problem: unused, use: unused },
      guardWorkers() {},
    };
    const part = set.attach({ filter, chain, context });
    const seen: unknown[] = [];
    const follower: DiscoveredFilterConfig = { update: (config) => void seen.push(config?.['max_request_bytes']) };
    worker.follow(filter, follower);
    return { filter, init, part, seen, follower };
  };
  const stats = store.addScope('extension_config_discovery.http_filter.limit.', ExtensionConfigStats);
  const stat = (name: keyof typeof ExtensionConfigStats.at) => store.valueOf(stats, ExtensionConfigStats.at[name]);
  const state = () => [...set.providers].map((provider) => provider.state)[0];
  return { store, sources, set, worker, published, parts, lost, attach, stat, state };
}

t.test('chains that name the same filter share one subscription, and wait for it', (t) => {
  const { sources, set, attach, stat, state } = start();
  const first = attach();
  const second = attach({}, { statPrefix: 'http.b.' });
  t.equal(sources.subscriptions.length, 1);
  t.match(sources.to('limit').request, {
    type: 'extension-config',
    statPrefix: 'extension_config_discovery.http_filter.limit.',
  });
  t.strictSame(first.init.unreadyTargets, ['ECDS limit']);
  t.strictSame(sources.to('limit').deliver({ version: '7', resources: [resource(buffer(5))] }), []);
  t.strictSame([first.init.unreadyTargets, second.init.unreadyTargets], [[], []]);
  t.strictSame(
    [first.seen, second.seen],
    [
      [undefined, 5],
      [undefined, 5],
    ],
  );
  t.equal(stat('config_reload'), 1);
  t.match(state(), { versionInfo: '7', clientStatus: 'ACKED', errorState: undefined });

  const third = attach();
  t.strictSame(third.init.unreadyTargets, [], 'it is present already');
  t.strictSame(third.seen, [5]);
  for (const { part } of [first, second]) part.close();
  t.notOk(sources.subscriptions[0]!.isClosed);
  third.part.close();
  t.ok(sources.subscriptions[0]!.isClosed);
  t.notOk(set.isUsed);
  attach();
  t.equal(sources.subscriptions.length, 2, 'it may be named again');
  t.end();
});

t.test('an unusable configuration is rejected, and the previous one stays', (t) => {
  const { sources, attach, stat, state } = start();
  const { seen, init } = attach();
  const subscription = sources.to('limit');
  const details = (config: Any) => subscription.deliver({ resources: [resource(config)] })[0]?.details;
  t.match(details(ROUTER), /has type URL .*Router but expect .*Buffer/);
  t.strictSame(init.unreadyTargets, [], 'a bad update is an answer');
  t.strictSame(subscription.deliver({ resources: [resource(buffer(1))] }), []);
  t.match(subscription.deliver({ version: '8' })[0]?.details, /no configuration of the filter 'limit'/);
  t.strictSame(subscription.deliver({ refused: [unreadable('limit', 'garbage')] }), []);
  t.match(state(), { versionInfo: '1', clientStatus: 'NACKED', errorState: { details: 'garbage' } });
  t.strictSame(seen, [undefined, 1]);
  t.equal(stat('config_fail'), 3);
  const only = attach({ type_urls: [PROBE] });
  t.equal(stat('config_conflict'), 1, 'another chain uses another type');
  t.strictSame(only.init.unreadyTargets, []);
  t.match(details(buffer(2)), /but expect .*Probe/, 'all chains must be able to use it');
  const terminal = start();
  terminal.attach({ type_urls: [ROUTER['@type']] });
  const [rejection] = terminal.sources.to('limit').deliver({ resources: [resource(ROUTER)] });
  t.match(rejection?.details, /terminal filter named limit of type envoy.filters.http.router must be the last filter/);
  t.end();
});

t.test('a default that may be applied at once is not awaited; a removal keeps it', (t) => {
  const { sources, attach, stat, state, parts } = start();
  const early = attach({ default_config: probe('default'), apply_default_config_without_warming: true });
  t.strictSame(early.init.unreadyTargets, []);
  t.strictSame(parts, ['default'], 'its part is on the primary');
  const late = attach();
  t.strictSame(late.init.unreadyTargets, ['ECDS limit']);
  sources.to('limit').timeOut();
  t.strictSame(late.init.unreadyTargets, []);
  t.equal(stat('config_fail'), 1);
  sources.to('limit').deliver({ resources: [resource(probe('one'))] });
  t.strictSame(parts, ['one', 'one'], 'each chain has a part');
  sources.to('limit').deliver({ isComplete: false, removed: ['limit'] });
  t.strictSame(parts, ['default']);
  t.match(state(), { versionInfo: '', clientStatus: 'DOES_NOT_EXIST' });
  t.throws(() => attach({ default_config: ROUTER }), { message: /but expect/ });
  t.end();
});

t.test('a removal reaches all chains, even when one cannot return to its default', (t) => {
  const { sources, attach, lost, published, parts } = start();
  const log = captureLog(t);
  attach({ default_config: probe('default') });
  attach({}, { statPrefix: 'http.b.' });
  sources.to('limit').deliver({ resources: [resource(probe('one'))] });
  t.strictSame(parts, ['one', 'one']);
  lost.name = 'default';
  t.strictSame(sources.to('limit').deliver({ isComplete: false, removed: ['limit'] }), []);
  t.strictSame(parts, []);
  t.match(published.at(-1)!.filterConfigs, [{ config: undefined }], 'workers have been notified');
  t.match(log.text(), /the default configuration of the filter 'limit' cannot be used: .*it is lost/);
  t.end();
});

t.test('stats of a filter are added with its configuration, and removed with its chain', (t) => {
  const { store, sources, attach, published } = start();
  const { part } = attach();
  t.strictSame(store.scopesUnder('http.a.probe.'), []);
  sources.to('limit').deliver({ resources: [resource(probe('one'))] });
  const prefixes = Object.values(published.at(-1)!.statScopes!).map(({ prefix }) => prefix);
  t.strictSame(prefixes, ['http.a.probe.'], 'workers receive them with the configuration');
  sources.to('limit').deliver({ resources: [resource(probe('two'))] });
  t.equal(store.scopesUnder('http.a.probe.').length, 1);
  sources.to('limit').deliver({ resources: [resource(buffer(9))] });
  t.equal(store.scopesUnder('http.a.probe.').length, 1, 'streams that started earlier still count there');
  part.close();
  t.strictSame(store.scopesUnder('http.a.probe.'), []);
  t.end();
});

t.test('when one chain cannot use a configuration, no other one does', (t) => {
  const { attach, parts, set, sources, store } = start();
  attach();
  const taken = store.addScope('http.b.probe.', defineLayout({ rq_tapped: 'gauge' }));
  attach({}, { statPrefix: 'http.b.' });
  const [subscription] = sources.subscriptions;
  t.match(subscription!.deliver({ resources: [resource(probe('x'))] }), [{ name: 'limit', details: /rq_tapped/ }]);
  t.same(parts, []);
  t.match([...set.providers], [{ resource: undefined, state: { clientStatus: 'NACKED' } }]);
  store.removeScope(taken);
  t.same(subscription!.deliver({ resources: [resource(probe('x'))] }), []);
  t.same(parts, ['x', 'x']);
  t.end();
});

t.test('a chain that cannot use the default leaves nothing behind', (t) => {
  const { attach, parts, set, store } = start();
  const taken = store.addScope('http.b.probe.second.', defineLayout({ rq_tapped: 'gauge' }));
  const two = { default_config: probe('two scopes') };
  t.throws(() => attach(two, { statPrefix: 'http.b.' }), /rq_tapped/);
  t.same(store.scopesUnder('http.b.probe.'), []);
  t.same(parts, []);
  t.notOk(set.isUsed);
  store.removeScope(taken);
  attach(two, { statPrefix: 'http.b.' });
  t.same(parts, ['two scopes']);
  t.end();
});

t.test('nothing grows with updates and with chains that are added and removed', (t) => {
  const { store, sources, attach } = start();
  const scope = store.addScope('http.a.', HttpStats);
  const stay = attach();
  const before = store.size;
  for (let round = 0; round < 500; round++) {
    const { part } = attach();
    sources.to('limit').deliver({ version: String(round), resources: [resource(probe(String(round)))] });
    part.close();
  }
  t.equal(stay.seen.length, 501);
  t.ok(store.size <= before + 2 * Object.keys(ProbeStats.at).length, `${before} stats, now ${store.size}`);
  store.removeScope(scope);
  t.end();
});

t.test('a filter whose stats cannot be allocated leaves nothing of its default configuration', (t) => {
  const { store, set, parts, attach } = start();
  const before = store.size;
  const add = store.addScope.bind(store);
  store.addScope = (prefix, ...rest) => {
    if (prefix.startsWith('extension_config_discovery.')) throw new RangeError('Array buffer allocation failed');
    return add(prefix, ...rest);
  };
  t.throws(() => attach({ default_config: probe('default') }), { message: 'Array buffer allocation failed' });
  t.strictSame([parts, set.isUsed], [[], false]);
  t.equal(store.size, before);
  store.addScope = add;
  attach({ default_config: probe('default') });
  t.strictSame(parts, ['default']);
  t.end();
});
