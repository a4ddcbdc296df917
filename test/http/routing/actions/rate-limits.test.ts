// rate_limits: the descriptors of a request from its route and its virtual host.

import t from 'tap';
import { StreamInfo } from '../../../../src/access-log/stream/stream-info.js';
import { BatonError } from '../../../../src/common/errors/errors.js';
import type { RateLimit, RateLimit_Action } from '../../../../src/config/generated/api.js';
import { compileRateLimits, RouteRateLimits } from '../../../../src/http/routing/actions/rate-limits.js';
import { requestHead } from '../heads.js';

/** Returns descriptors as `key=value,key=value`. */
function descriptors(
  own: readonly RateLimit[],
  line: string,
  more: {
    ofHost?: RateLimit[];
    option?: 'INCLUDE' | 'IGNORE' | 'OVERRIDE';
    includes?: boolean;
    stage?: number;
    client?: string;
  } = {},
): string[] {
  const [first, ...lines] = line.split('|');
  const info = new StreamInfo();
  info.inferredRemoteAddress = more.client ?? '[2001:db8::7]:0';
  const limits = RouteRateLimits.of(
    compileRateLimits(own, 'rate_limits'),
    compileRateLimits(more.ofHost, 'rate_limits'),
    more.includes,
  );
  const request = {
    headers: requestHead(first!, ...lines),
    info,
    clusterName: 'api',
    clusterMetadata: { filter_metadata: { ns: { c: 'of cluster' } } },
    routeMetadata: { filter_metadata: { ns: { r: 'of route' } } },
    localCluster: 'edge',
  };
  info.ownDynamicMetadata().merge('ns', { d: 'dynamic', n: 1, limit: { requests_per_unit: 4, unit: 'DAY' } });
  const selection = { stage: more.stage ?? 0, isAtEnd: false, isEnabled: () => false };
  const found = limits?.descriptors(selection, more.option ?? 'OVERRIDE', request) ?? [];
  return found.map(({ entries }) =>
    entries.map((text, index) => (index % 2 === 0 ? `${index > 0 ? ',' : ''}${text}=` : text)).join(''),
  );
}

const actions = (...list: RateLimit_Action[]): RateLimit[] => [{ actions: list }];
const generic = (descriptor_value: string): RateLimit_Action => ({ generic_key: { descriptor_value } });

t.test('each action adds an entry', async (t) => {
  t.strictSame(descriptors(actions(generic('a')), 'GET /'), ['generic_key=a']);
  t.strictSame(descriptors(actions({ generic_key: { descriptor_key: 'k', descriptor_value: 'ü' } }), 'GET /'), [
    `k=${Buffer.from('ü').toString('latin1')}`,
  ]);
  t.strictSame(descriptors(actions({ destination_cluster: {} }, { remote_address: {} }), 'GET /'), [
    'destination_cluster=api,remote_address=2001:db8::7',
  ]);
  const address = actions({ remote_address: {} });
  t.strictSame(descriptors(address, 'GET /', { client: '192.0.2.7:80' }), ['remote_address=192.0.2.7']);
  for (const client of ['/run/baton.sock:80', '@baton:80'])
    t.strictSame(descriptors(address, 'GET /', { client }), [], 'a Unix socket has no address');
  const header = { request_headers: { header_name: 'X-User', descriptor_key: 'user' } };
  t.strictSame(descriptors(actions(header), 'GET /|x-user: ann|x-user: bob'), ['user=ann']);
  t.strictSame(descriptors([], 'GET /'), []);
});

t.test('a missing header is skipped, or suppresses the descriptor', async (t) => {
  const header = (skip_if_absent: boolean): RateLimit_Action => ({
    request_headers: { header_name: 'x-user', descriptor_key: 'user', skip_if_absent },
  });
  t.strictSame(descriptors(actions(generic('a'), header(false)), 'GET /'), []);
  t.strictSame(descriptors(actions(generic('a'), header(true)), 'GET /'), ['generic_key=a']);
  t.strictSame(descriptors(actions(header(true)), 'GET /'), [''], 'a descriptor without entries');
});

t.test('entries come from metadata, parameters and addresses', async (t) => {
  const ofMetadata = (key: string, more: object = {}): RateLimit[] =>
    actions({ metadata: { descriptor_key: 'm', metadata_key: { key: 'ns', path: [{ key }] }, ...more } });
  t.strictSame(descriptors(ofMetadata('d'), 'GET /'), ['m=dynamic']);
  t.strictSame(descriptors(ofMetadata('n'), 'GET /'), [], 'only texts are values');
  t.strictSame(descriptors(ofMetadata('n', { default_value: 'x' }), 'GET /'), ['m=x']);
  t.strictSame(descriptors(ofMetadata('none', { skip_if_absent: true }), 'GET /'), ['']);
  t.strictSame(descriptors(ofMetadata('r', { source: 'ROUTE_ENTRY' }), 'GET /'), ['m=of route']);
  t.strictSame(descriptors(ofMetadata('c', { source: 'CLUSTER_ENTRY' }), 'GET /'), ['m=of cluster']);
  const parameter = actions({ query_parameters: { query_parameter_name: 'q', descriptor_key: 'p' } });
  t.strictSame(descriptors(parameter, 'GET /?a=1&q=a%20b+c&q=2'), ['p=a b+c']);
  t.strictSame(descriptors(parameter, 'GET /?q'), ['p=']);
  t.strictSame(descriptors(parameter, 'GET /'), []);
  const masked = actions({ masked_remote_address: { v4_prefix_mask_len: 16, v6_prefix_mask_len: 32 } });
  t.strictSame(descriptors(masked, 'GET /'), ['masked_remote_address=2001:db8::/32']);
  t.strictSame(descriptors(masked, 'GET /', { client: '192.0.2.7:80' }), ['masked_remote_address=192.0.0.0/16']);
  const ranges = [{ address_prefix: '192.0.2.0', prefix_len: 24 }];
  const inRange = (invert_match: boolean): RateLimit[] =>
    actions({ remote_address_match: { descriptor_value: 'v', address_matcher: { ranges, invert_match } } });
  t.strictSame(descriptors(inRange(false), 'GET /', { client: '192.0.2.7:80' }), ['remote_address_match=v']);
  t.strictSame(descriptors(inRange(false), 'GET /'), []);
  t.strictSame(descriptors(inRange(true), 'GET /'), ['remote_address_match=v']);
  t.strictSame(descriptors(actions({ source_cluster: {} }), 'GET /'), ['source_cluster=edge']);
});

t.test('value matches of headers and query parameters add their value, or do not', async (t) => {
  const byHeader = (expect_match?: boolean): RateLimit[] =>
    actions({
      header_value_match: {
        descriptor_value: 'v',
        headers: [{ name: ':path', string_match: { prefix: '/a' } }],
        ...(expect_match === undefined ? {} : { expect_match }),
      },
    });
  t.strictSame(descriptors(byHeader(), 'GET /a'), ['header_match=v']);
  t.strictSame(descriptors(byHeader(), 'GET /b'), []);
  t.strictSame(descriptors(byHeader(false), 'GET /a'), []);
  t.strictSame(descriptors(byHeader(false), 'GET /b'), ['header_match=v']);
  const byQuery = (more: { descriptor_key?: string; expect_match?: boolean }): RateLimit[] =>
    actions({
      query_parameter_value_match: {
        descriptor_value: 'v',
        query_parameters: [
          { name: 'x', string_match: { exact: '1' } },
          { name: 'y', present_match: true },
        ],
        ...more,
      },
    });
  t.strictSame(descriptors(byQuery({ descriptor_key: 'q' }), 'GET /?x=1&y'), ['q=v']);
  t.strictSame(descriptors(byQuery({}), 'GET /?x=1&y'), ['query_match=v']);
  t.strictSame(descriptors(byQuery({}), 'GET /?x=2&y'), []);
  t.strictSame(descriptors(byQuery({}), 'GET /?x=1'), [], 'all matchers must match');
  t.strictSame(descriptors(byQuery({ expect_match: false }), 'GET /?x=1&y'), []);
  t.strictSame(descriptors(byQuery({ expect_match: false }), 'GET /?x=1'), ['query_match=v']);
});

t.test("the virtual host's limits apply without those of a route, or in addition to them", async (t) => {
  const own = actions(generic('route'));
  const ofHost = actions(generic('host'));
  t.strictSame(descriptors(own, 'GET /', { ofHost }), ['generic_key=route']);
  t.strictSame(descriptors([], 'GET /', { ofHost }), ['generic_key=host']);
  t.strictSame(descriptors(own, 'GET /', { ofHost, option: 'INCLUDE' }), ['generic_key=route', 'generic_key=host']);
  t.strictSame(descriptors(own, 'GET /', { ofHost, includes: true }), ['generic_key=route', 'generic_key=host']);
  t.strictSame(descriptors([], 'GET /', { ofHost, option: 'IGNORE' }), []);
});

t.test('limits apply to one stage, and limits with disable_key are ignored locally', async (t) => {
  const limits: RateLimit[] = [
    { actions: [generic('0')] },
    { stage: 3, actions: [generic('3')] },
    { actions: [generic('service')], disable_key: 'key' },
  ];
  t.strictSame(descriptors(limits, 'GET /'), ['generic_key=0']);
  t.strictSame(descriptors(limits, 'GET /', { stage: 3 }), ['generic_key=3']);
});

t.test('errors are reported with their positions', async (t) => {
  const headers = [{ name: 'a b', present_match: true }];
  const limits = actions(generic('a'), { header_value_match: { descriptor_value: 'v', headers } });
  try {
    compileRateLimits(limits, 'rate_limits');
    t.fail('it was accepted');
  } catch (error) {
    const where = 'rate_limits[0].actions[1].header_value_match.headers[0].name';
    t.match(error instanceof BatonError && error.describe(), `${where}: 'a b' is not a valid header name`);
  }
});
