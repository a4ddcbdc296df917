// envoy.filters.http.stateful_session: sends the requests of a client to the host that has served it before, which the client names in a
// cookie or a header.

import type { StatefulSession, StatefulSessionPerRoute } from '../../../../config/generated/api.js';
import {
  type HttpChain,
  type HttpFilterExtension,
  type NamedExtension,
  obeyed,
  onlyExtension,
  type Report,
  reportMistakes,
  unpack,
} from '../../../sdk.js';
import { filterCounts, routeCounts, SessionStats } from './session-counts.js';
import { COOKIE_STATE, HEADER_STATE, sessionState } from './session-state.js';
import { type SessionRules, StatefulSessionFilter } from './stateful-session-filter.js';

const FILTER = 'envoy.extensions.filters.http.stateful_session.v3.StatefulSession';
const PER_ROUTE = 'envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute';
const STATES = ['envoy.http.stateful_session.cookie', 'envoy.http.stateful_session.header'];

export const statefulSession: HttpFilterExtension<StatefulSession> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.stateful_session',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    [FILTER]: {
      session_state: onlyExtension(STATES, 'sessions in bodies are not implemented'),
      ...obeyed('strict', 'stat_prefix', 'status_on_strict_destination_not_found'),
    },
    [PER_ROUTE]: obeyed('disabled', 'stateful_session'),
  },
  validate(message, report) {
    const route = unpack(message as never, PER_ROUTE);
    if (route === undefined) check(message as StatefulSession, '', report);
    else if (route.stateful_session !== undefined) check(route.stateful_session, 'stateful_session.', report);
  },
  scopes: (config, chain) => (config.stat_prefix ? [{ prefix: prefixOf(config, chain), layout: SessionStats }] : []),
  createOnWorker(config, context, chain) {
    const { clock, scope } = context;
    const own = rulesOf(config, '');
    if (own.statPrefix !== '') own.counts = filterCounts(scope(prefixOf(config, chain), SessionStats));
    return {
      create(stream, routeConfig) {
        if (routeConfig === OFF) return undefined;
        const rules = (routeConfig as SessionRules | undefined) ?? own;
        if (rules.statPrefix !== '') rules.counts ??= routeCounts(context, rules.statPrefix);
        return new StatefulSessionFilter(stream, rules, clock);
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig(configs, where): SessionRules | typeof OFF {
    const { disabled, stateful_session: config = {} } = configs.at(-1) as StatefulSessionPerRoute;
    return disabled ? OFF : rulesOf(config, where === '' ? '' : `${where}.`);
  },
};

/** The kinds of session states. */
export const sessionStates: readonly NamedExtension[] = [
  {
    category: 'envoy.http.stateful_session',
    name: STATES[0]!,
    typeUrls: [`type.googleapis.com/${COOKIE_STATE}`],
    implemented: {
      [COOKIE_STATE]: obeyed('cookie'),
      'envoy.type.http.v3.Cookie': obeyed('name', 'ttl', 'path', 'attributes'),
      'envoy.type.http.v3.CookieAttribute': obeyed('name', 'value'),
    },
  },
  {
    category: 'envoy.http.stateful_session',
    name: STATES[1]!,
    typeUrls: [`type.googleapis.com/${HEADER_STATE}`],
    implemented: { [HEADER_STATE]: obeyed('name') },
  },
];

/** The configuration of a route that disables the filter. */
const OFF = 0;

function rulesOf(config: StatefulSession, where: string): SessionRules {
  const { stat_prefix: statPrefix = '', status_on_strict_destination_not_found: status, strict = false } = config;
  return {
    state: sessionState(config, where),
    isStrict: strict,
    strictStatus: (strict && status) || 503,
    statPrefix,
    counts: undefined,
  };
}

function check(config: StatefulSession, where: string, report: Report): void {
  reportMistakes(report, '', () => sessionState(config, where));
  const status = config.status_on_strict_destination_not_found ?? 0;
  if (status !== 0 && (status < 200 || status > 599))
    report(`${where}status_on_strict_destination_not_found`, `it must be a status from 200 to 599, found ${status}`);
}

function prefixOf({ stat_prefix: own }: StatefulSession, { statPrefix }: HttpChain): string {
  return `${statPrefix}stateful_session.${own}.`;
}
