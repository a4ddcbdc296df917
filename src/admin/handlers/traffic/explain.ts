// GET /explain: where a request would go, and why.

import { BatonError } from '../../../common/errors/errors.js';
import { isFieldName } from '../../../common/text/header-names.js';
import { Method, methodOf } from '../../../http/headers/header-block.js';
import { ipAddress, parseAddress } from '../../../io/addresses/address.js';
import type { AdminHandler, AdminRequest } from '../../admin-handler.js';
import { Refusal } from '../../admin-handler.js';
import type { ExplainedAction, ExplainQuestion, Explanation } from '../../explanation.js';
import { JSON_TYPE, type JsonObject, prettyJson } from '../../json.js';

export const explain: AdminHandler = {
  path: '/explain',
  mutates: false,
  help: 'explain where a request would go: listener, filter chain, route, filters, cluster, hosts',
  parameters: [
    { name: 'authority', help: 'the Host of the request, or :authority' },
    { name: 'path', help: 'the path with its query; default: /' },
    { name: 'method', help: 'default: GET' },
    { name: 'header', help: 'a header, as name: value; may be repeated' },
    { name: 'listener', help: 'name of a listener; default: all that serve HTTP' },
    { name: 'tls', help: 'the client uses TLS', isFlag: true },
    { name: 'server_name', help: 'SNI' },
    { name: 'application_protocol', help: 'ALPN; may be repeated' },
    { name: 'source', help: 'address of the client; default: 127.0.0.1:1' },
    { name: 'random_value', help: 'a whole number that decides for weights and fractions; default: 0' },
  ],
  async handle(request, services) {
    const explanations = await services.explain(questionOf(request)).catch(refuseQuestion);
    return { contentType: JSON_TYPE, body: `${prettyJson({ explanations: explanations.map(jsonOf) })}\n` };
  },
};

function questionOf({ query }: AdminRequest): ExplainQuestion {
  // Forms send fields that are empty.
  const given = (name: string) => query.all(name).filter((value) => value !== '');
  const authority = query.get('authority') ?? '';
  const method = query.get('method') ?? 'GET';
  const path = query.get('path') ?? (methodOf(method) === Method.Connect ? '' : '/');
  if (!TOKEN.test(method)) throw refuse('method', method, 'a method such as GET');
  if (path !== '' && path[0] !== '/' && path !== '*')
    throw refuse('path', path, 'a path such as /a?b=c, with its escapes escaped');
  const random = query.get('random_value') ?? '0';
  if (!/^[0-9]{1,20}$/.test(random)) throw refuse('random_value', random, 'a whole number');
  const source = query.get('source') ?? '127.0.0.1:1';
  const address = parseAddress(source) ?? ipAddress(source, 1);
  if (address === undefined) throw refuse('source', source, 'an address such as 10.0.0.1 or 10.0.0.1:4000');
  return {
    request: { authority, method, path, headers: given('header').map(headerOf) },
    listener: query.get('listener'),
    isTls: query.has('tls'),
    serverName: query.get('server_name') ?? '',
    applicationProtocols: given('application_protocol'),
    source: address,
    randomValue: BigInt(random),
  };
}

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;

function headerOf(text: string): readonly [string, string] {
  const colon = text.indexOf(':');
  const name = text.slice(0, colon).toLowerCase();
  const value = text.slice(colon + 1).trim();
  if (colon <= 0 || !isFieldName(name) || /[\0\r\n]/.test(value))
    throw refuse('header', text, 'a header such as x-user: alice');
  return [name, value];
}

function refuseQuestion(error: unknown): never {
  throw error instanceof BatonError ? new Refusal(400, `${error.describe()}\n`) : error;
}

function refuse(parameter: string, value: string, expected: string): Refusal {
  return new Refusal(400, `invalid ${parameter} '${value.slice(0, 100)}'; give ${expected}\n`);
}

function jsonOf({ filterChain, http, listener }: Explanation): JsonObject {
  const { routes } = http ?? {};
  return {
    listener: { name: listener.name, address: listener.address },
    filter_chain: filterChain ? { name: filterChain.name, network_filters: filterChain.networkFilters } : null,
    ...(http && {
      http_filters: http.filters.map(({ isDisabled, name, type }) => ({
        name,
        type,
        ...(isDisabled && { disabled: true }),
      })),
      route_config: routes?.name ?? null,
    }),
    ...(http?.refusal && { action: actionJson(http.refusal) }),
    ...(routes && {
      virtual_host: routes.virtualHost ? { ...routes.virtualHost } : null,
      routes: routes.tried.map(({ failed, index, name }) => ({
        index,
        ...(name !== '' && { name }),
        ...(failed === undefined ? { taken: true } : { does_not_match: failed }),
      })),
      action: actionJson(routes.action),
    }),
  };
}

function actionJson(action: ExplainedAction): JsonObject {
  if (action.kind !== 'forward') return { ...action };
  const { authority, cluster, hosts, kind, missingStatus, path, policy } = action;
  if (hosts === undefined) return { kind, cluster, unknown_cluster: true, status: missingStatus };
  return { kind, cluster, lb_policy: policy, hosts: hosts.map((host) => ({ ...host })), authority, path };
}
