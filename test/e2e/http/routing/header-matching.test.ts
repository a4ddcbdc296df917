// Routes and RBAC policies match repeated fields as Envoy does: a second line does not bypass a rule.

import { CONDITIONS, type MatchedCondition, VALUES, variants } from '../../../http/routing/matching/header-answers.js';
import { besideEnvoy } from '../../harness/envoy.js';
import { type Config, connectRaw, type RawConnection, ROUTER_FILTER } from '../../harness/index.js';
import { startProxy } from '../proxy.js';

const RBAC = 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3';

interface Case {
  readonly name: string;
  readonly matcher: Config;
  readonly answers: string;
}

/** Each condition, with both kinds of field names. */
function casesOf(rows: readonly MatchedCondition[]): Case[] {
  return rows.flatMap((row) =>
    (
      [
        ['x-h', row.each],
        ['user-agent', row.joined],
      ] as const
    ).flatMap(([name, answers]) =>
      variants(name, row).map((matcher, index) => ({ name, matcher: { ...matcher }, answers: answers[index]! })),
    ),
  );
}

/** Sends a request with all values to the virtual host of a case; a status other than 204 is a match. */
async function ask(connection: RawConnection, { name }: Case, host: string): Promise<string> {
  let answers = '';
  for (const values of VALUES) {
    const lines = values.map((value) => `${name}: ${value}\r\n`).join('');
    connection.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n${lines}\r\n`);
    const answer = await connection.readUntil('\r\n\r\n');
    const length = Number(/content-length: ([0-9]+)/.exec(answer)?.[1] ?? 0);
    await connection.read(length);
    answers += answer.startsWith('HTTP/1.1 204') ? 'n' : 'Y';
  }
  return answers;
}

besideEnvoy('a route accepts the requests that its header matchers match', async (t, program) => {
  const cases = casesOf(CONDITIONS);
  const virtual_hosts = cases.map(({ matcher }, index) => ({
    name: `case-${index}`,
    domains: [`case-${index}`],
    routes: [
      { match: { prefix: '/', headers: [matcher] }, direct_response: { status: 200 } },
      { match: { prefix: '/' }, direct_response: { status: 204 } },
    ],
  }));
  const proxy = await startProxy(t, { ...program, listeners: { http: { route_config: { virtual_hosts } } } });
  const connection = await connectRaw(t, proxy.port);
  for (const [index, each] of cases.entries()) {
    t.equal(await ask(connection, each, `case-${index}`), each.answers, JSON.stringify(each.matcher));
  }
});

besideEnvoy('an RBAC policy denies the requests that its header matchers match', async (t, program) => {
  const cases = casesOf(CONDITIONS.filter((_, index) => index % 4 === 3));
  const virtual_hosts = cases.map(({ matcher }, index) => {
    const policy = { permissions: [{ header: matcher }], principals: [{ any: true }] };
    const rbac = { rules: { action: 'DENY', policies: { policy } } };
    return {
      name: `case-${index}`,
      domains: [`case-${index}`],
      routes: [
        {
          match: { prefix: '/' },
          direct_response: { status: 204 },
          typed_per_filter_config: { 'envoy.filters.http.rbac': { '@type': `${RBAC}.RBACPerRoute`, rbac } },
        },
      ],
    };
  });
  const http_filters = [{ name: 'envoy.filters.http.rbac', typed_config: { '@type': `${RBAC}.RBAC` } }, ROUTER_FILTER];
  const listeners = { http: { http_filters, route_config: { virtual_hosts } } };
  const proxy = await startProxy(t, { ...program, listeners });
  const connection = await connectRaw(t, proxy.port);
  for (const [index, each] of cases.entries()) {
    t.equal(await ask(connection, each, `case-${index}`), each.answers, JSON.stringify(each.matcher));
  }
});
