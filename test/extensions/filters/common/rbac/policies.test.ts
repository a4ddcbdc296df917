// Compiled RBAC policies: permissions, principals, and the policy that decides.

import t from 'tap';
import type { Permission, Principal, RBAC, StringMatcher } from '../../../../../src/config/generated/api.js';
import { MatcherEngine } from '../../../../../src/extensions/filters/common/rbac/matcher-engine.js';
import { Policies } from '../../../../../src/extensions/filters/common/rbac/policies.js';
import type { ConnectionSecurity } from '../../../../../src/io/tls/connection-security.js';
import { stream } from '../../../../access-log/stream.js';
import { requestHead } from '../../../../http/routing/heads.js';
import { anonymous, authenticated, nameless } from '../../../../io/tls/security.js';

const ANY = { any: true };
const cidr = (address_prefix: string, prefix_len?: number) => ({
  address_prefix,
  ...(prefix_len !== undefined && { prefix_len }),
});

interface Addresses {
  local?: string;
  remote?: string;
  direct?: string;
  /** The address from x-forwarded-for. */
  client?: string;
  security?: ConnectionSecurity;
  serverName?: string;
}

const infoOf = ({ client = '', direct = '', local = '', remote = '', security, serverName }: Addresses) =>
  stream({
    downstream: {
      directRemoteText: direct,
      directLocalText: local,
      localText: local,
      remoteText: remote,
      security,
      transportFailure: '',
      detected:
        serverName === undefined
          ? undefined
          : { transportProtocol: 'tls', applicationProtocols: [], serverName, ja3: '', ja4: '' },
    },
    inferredRemoteAddress: client,
  });

function permits(permission: Permission, request: string | Addresses): boolean {
  const policies = new Policies({ policies: { a: { permissions: [permission], principals: [ANY] } } }, 'rules');
  return matches(policies, request);
}

function is(principal: Principal, request: string | Addresses): boolean {
  const policies = new Policies({ policies: { a: { permissions: [ANY], principals: [principal] } } }, 'rules');
  return matches(policies, request);
}

function matches(policies: Policies, request: string | Addresses): boolean {
  const [line, ...fields] = typeof request === 'string' ? request.split('|') : ['GET /'];
  return (
    policies.decide(requestHead(line!, ...fields), infoOf(typeof request === 'string' ? {} : request)).policy === 'a'
  );
}

t.test('each address field matches its own address', async (t) => {
  const addresses = { client: '192.0.2.1:0', remote: '192.0.2.2:2', direct: '192.0.2.3:3', local: '192.0.2.4:4' };
  const fields = { remote_ip: '192.0.2.1', source_ip: '192.0.2.2', direct_remote_ip: '192.0.2.3' };
  for (const [field, ip] of Object.entries(fields)) {
    for (const other of [...Object.values(fields), '192.0.2.4'])
      t.equal(is({ [field]: cidr(other, 32) }, addresses), other === ip, `${field} ${other}`);
  }
  t.ok(permits({ destination_ip: cidr('192.0.2.4', 32) }, addresses));
  t.notOk(permits({ destination_ip: cidr('192.0.2.3', 32) }, addresses));
});

t.test('authenticated: a URI, a DNS name or the subject of the certificate matches', async (t) => {
  const name = (principal_name?: StringMatcher): Principal => ({
    authenticated: principal_name ? { principal_name } : {},
  });
  // As in Envoy, TLS suffices without a name.
  for (const security of [anonymous, nameless, authenticated]) t.ok(is(name(), { security }));
  t.notOk(is(name(), {}));
  t.ok(is({ not_id: name({ exact: 'x' }) }, {}));
  const { subject } = authenticated.peer!;
  for (const exact of ['spiffe://x/y;z', 'http://u2/a%20b', 'a.example.com', '*.b.example.com', subject]) {
    t.ok(is(name({ exact }), { security: authenticated }), exact);
    t.notOk(is(name({ exact }), { security: nameless }), exact);
    t.notOk(is(name({ exact }), { security: anonymous }), exact);
    t.notOk(is(name({ exact }), {}), exact);
  }
  t.ok(is(name({ exact: 'O=OnlyOrg' }), { security: nameless }));
  t.ok(is(name({ safe_regex: { regex: 'spiffe://x/.*' } }), { security: authenticated }));
  for (const exact of ['10.1.2.3', 'a@b.org', 'upn@x', ''])
    t.notOk(is(name({ exact }), { security: authenticated }), exact);
  t.ok(is(name({ exact: '' }), { security: anonymous }), 'the subject of no certificate is empty');
});

t.test('requested_server_name is the name that a listener filter has detected', async (t) => {
  const named = (requested_server_name: StringMatcher, serverName?: string) =>
    permits({ requested_server_name }, serverName === undefined ? {} : { serverName });
  t.ok(named({ exact: 'srv.example.com' }, 'srv.example.com'));
  t.notOk(named({ exact: 'SRV.example.com' }, 'srv.example.com'));
  t.ok(named({ exact: 'SRV.example.com', ignore_case: true }, 'srv.example.com'));
  t.ok(named({ suffix: '.example.com' }, 'srv.example.com'));
  t.ok(named({ safe_regex: { regex: 'srv[.].*' } }, 'srv.example.com'));
  t.notOk(named({ exact: 'srv.example.com' }));
  t.ok(named({ exact: '' }), 'without a name');
  t.notOk(named({ exact: '' }, 'srv.example.com'));
});

t.test('a range contains only addresses of its family, regardless of the zone', async (t) => {
  const from = (remote: string, ...range: Parameters<typeof cidr>) => is({ source_ip: cidr(...range) }, { remote });
  t.ok(from('10.255.0.1:1', '10.0.0.0', 8));
  t.notOk(from('11.0.0.1:1', '10.0.0.0', 8));
  t.ok(from('10.1.2.3:1', '0.0.0.0', 0));
  t.ok(from('10.1.2.3:1', '10.9.9.9'), 'a range without length contains its whole family');
  t.ok(from('[2001:db8::7]:1', '2001:db8::', 32));
  t.notOk(from('[2001:db9::7]:1', '2001:db8::', 32));
  t.ok(from('[fe80::1%2]:1', 'fe80::', 10), 'a link-local address with its zone');
  t.notOk(from('10.1.2.3:1', '::', 0));
  t.notOk(from('[::1]:1', '0.0.0.0', 0));
  t.ok(from('10.1.2.3:1', '10.1.2.3', 200), 'an excessive length means the whole address');
});

t.test('a port condition matches the destination port; the end of a range is exclusive', async (t) => {
  const to = (local: string, permission: Permission) => permits(permission, { local });
  t.ok(to('10.0.0.1:443', { destination_port: 443 }));
  t.notOk(to('10.0.0.1:442', { destination_port: 443 }));
  t.notOk(to('10.0.0.1:444', { destination_port: 443 }));
  t.ok(to('[::1]:443', { destination_port: 443 }));
  for (const [port, isIn] of [
    [79, false],
    [80, true],
    [89, true],
    [90, false],
  ] as const)
    t.equal(to(`10.0.0.1:${port}`, { destination_port_range: { start: 80, end: 90 } }), isIn, String(port));
  t.notOk(to('10.0.0.1:443', { destination_port_range: { start: 80 } }), 'a range without end is empty');
  t.notOk(to('/run/baton.sock', { destination_port: 0 }), 'a Unix socket has no port');
  t.notOk(to('/run/baton.sock', { destination_port_range: { start: 0, end: 65536 } }));
  t.notOk(to('/run/baton:443', { destination_port: 443 }), 'regardless of its name');
  t.notOk(to('@baton:443', { destination_port: 443 }));
});

t.test('a Unix socket is in no range', async (t) => {
  for (const end of ['/run/10.0.0.1:443', '@10.0.0.1:443', '']) {
    t.notOk(permits({ destination_ip: cidr('0.0.0.0', 0) }, { local: end }), end);
    t.notOk(is({ direct_remote_ip: cidr('::', 0) }, { direct: end }), end);
    t.notOk(is({ direct_remote_ip: cidr('0.0.0.0', 0) }, { direct: end }), end);
  }
});

t.test('url_path matches without the query, a header :path with it', async (t) => {
  const path = (exact: string): Permission => ({ url_path: { path: { exact } } });
  const whole = (exact: string): Permission => ({ header: { name: ':path', string_match: { exact } } });
  t.ok(permits(path('/a'), 'GET /a?b=/c'));
  t.ok(permits(path('/a'), 'GET /a#b'));
  t.notOk(permits(path('/a?b'), 'GET /a?b'));
  t.ok(permits(whole('/a?b'), 'GET /a?b'));
  t.notOk(permits(whole('/a'), 'GET /a?b'));
});

t.test('absent and repeated headers match as in routes', async (t) => {
  const team: Principal = { header: { name: 'X-Team', string_match: { exact: 'ops' } } };
  t.ok(is(team, 'GET /|x-team: ops'));
  t.notOk(is(team, 'GET /'));
  t.ok(is(team, 'GET /|x-team: dev|x-team: ops'), 'each field is a value');
  t.notOk(is({ header: { name: 'x-team', string_match: { exact: 'ops,dev' } } }, 'GET /|x-team: ops|x-team: dev'));
  t.ok(is({ not_id: team }, 'GET /'), 'the negation holds without the header');
  const inverted: Principal = { header: { ...team.header!, invert_match: true } };
  t.notOk(is(inverted, 'GET /'), 'an inverted matcher needs the header');
  t.ok(is(inverted, 'GET /|x-team: dev'));
  t.notOk(is(inverted, 'GET /|x-team: dev|x-team: ops'));
});

t.test('conditions are combined', async (t) => {
  const has = (name: string): Permission & Principal => ({ header: { name, present_match: true } });
  const both = [has('x-a'), has('x-b')];
  for (const [request, and, or] of [
    ['GET /', false, false],
    ['GET /|x-a: 1', false, true],
    ['GET /|x-b: 1', false, true],
    ['GET /|x-a: 1|x-b: 1', true, true],
  ] as const) {
    t.equal(permits({ and_rules: { rules: both } }, request), and, request);
    t.equal(permits({ or_rules: { rules: both } }, request), or, request);
    t.equal(permits({ not_rule: { and_rules: { rules: both } } }, request), !and, request);
    t.equal(is({ and_ids: { ids: both } }, request), and, request);
    t.equal(is({ or_ids: { ids: both } }, request), or, request);
    t.equal(is({ not_id: { or_ids: { ids: both } } }, request), !or, request);
  }
});

t.test('the first policy by name whose permission and principal hold decides', async (t) => {
  const on = (name: string): Permission & Principal => ({ header: { name, present_match: true } });
  const config = (action: 'ALLOW' | 'DENY'): RBAC => ({
    action,
    policies: {
      z: { permissions: [ANY], principals: [on('x-a')] },
      b: { permissions: [on('x-a'), on('x-c')], principals: [on('x-b'), on('x-d')] },
    },
  });
  for (const action of ['ALLOW', 'DENY'] as const) {
    const policies = new Policies(config(action), 'rules');
    const decide = (...lines: string[]) => policies.decide(requestHead('GET /', ...lines), infoOf({}));
    const found = (...lines: string[]) => decide(...lines).policy;
    t.equal(found('x-a: 1'), 'z');
    t.equal(found('x-a: 1', 'x-b: 1'), 'b');
    t.equal(found('x-c: 1', 'x-d: 1'), 'b');
    t.equal(found('x-c: 1'), undefined);
    t.equal(found('x-d: 1'), undefined);
    t.equal(decide('x-a: 1', 'x-b: 1').isAllowed, action === 'ALLOW');
    t.equal(decide('x-c: 1').isAllowed, action === 'DENY');
  }
  const byDefault = new Policies({}, 'rules').decide(requestHead('GET /'), infoOf({}));
  t.notOk(byDefault.isAllowed, 'ALLOW is the default');
});

t.test('a matcher of metadata needs metadata: inverted, it would hold for every header', async (t) => {
  const typed = (type: string, fields: object) => ({ name: 'x', typed_config: { '@type': `x/${type}`, ...fields } });
  const input = typed('envoy.type.matcher.v3.HttpRequestHeaderMatchInput', { header_name: 'x-a' });
  const custom_match = typed('envoy.extensions.matching.input_matchers.metadata.v3.Metadata', {
    invert: true,
    value: { present_match: true },
  });
  const on_match = { action: typed('envoy.config.rbac.v3.Action', { name: 'a', action: 'ALLOW' }) };
  const matchers = [{ predicate: { single_predicate: { input, custom_match } }, on_match }];
  t.throws(() => new MatcherEngine({ matcher_list: { matchers } }, 'matcher', true), {
    message: 'the matcher of metadata needs the input of dynamic metadata',
    where: 'matcher.matcher_list.matchers[0].predicate.single_predicate.custom_match',
  });
});

t.test('decisions of a route that filters share have the keys of each filter', async (t) => {
  const policies = new Policies({ policies: { p: { permissions: [ANY], principals: [ANY] } } }, 'rules');
  const outcome = policies.decide(requestHead('GET /'), infoOf({}));
  for (const prefix of ['a_', 'b_', 'a_'])
    t.same(outcome.metadata(prefix), { [`${prefix}effective_policy_id`]: 'p', [`${prefix}engine_result`]: 'allowed' });
});
