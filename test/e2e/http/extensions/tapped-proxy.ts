// Baton with tap filters in front of a host that echoes requests.

import {
  type Config,
  startUpstream,
  staticCluster,
  type Teardown,
  TRAILERS,
  TRAILERS_CLUSTER,
} from '../../harness/index.js';
import { managerOf, routeTo } from '../proxy.js';
import type { Trace, TraceMessage } from './tap-client.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http.';

/** A predicate that matches everything. */
export const ANY = { any_match: true };

/** Returns the cluster `host`: it echoes requests, answers 404 at /missing, a long body at /large, and sends trailers. */
export async function tappedHost(t: Teardown): Promise<Config> {
  const upstream = await startUpstream(t, (request, answer) => {
    if (request.url === '/large') return void answer.end('x'.repeat(60_000));
    let body = '';
    request.setEncoding('latin1').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      answer.writeHead(request.url === '/missing' ? 404 : 200, { trailer: 'x-length' });
      answer.write('received: ');
      answer.addTrailers({ 'x-length': String(body.length) });
      answer.end(body, 'latin1');
    });
  });
  return staticCluster('host', upstream.port, TRAILERS_CLUSTER);
}

/** Returns a connection manager with these filters before the router. */
export function tapped(filters: Config[] = [tapFilter()]): Config {
  const router = { name: 'router', typed_config: { '@type': `${FILTERS}router.v3.Router` } };
  return managerOf([routeTo({ prefix: '/' }, 'host')], { http_filters: [...filters, router], ...TRAILERS });
}

export function tapFilter(more: Config = {}, config_id = 'main'): Config {
  const typed_config = { '@type': `${FILTERS}tap.v3.Tap`, common_config: { admin_config: { config_id } }, ...more };
  return { name: 'tap', typed_config };
}

/** Returns a filter that adds x-by to both messages. */
export function signature(value: string): Config {
  const add = [{ append: { header: { key: 'x-by', value } } }];
  const mutations = { request_mutations: add, response_mutations: add };
  return { name: value, typed_config: { '@type': `${FILTERS}header_mutation.v3.HeaderMutation`, mutations } };
}

export function fieldsOf({ headers }: TraceMessage): Record<string, string | undefined> {
  return Object.fromEntries(headers.map(({ key, value }) => [key, value]));
}

/** Returns the path of a complete trace, or of the segment with the request's headers. */
export function pathOf({ httpBufferedTrace, httpStreamedTraceSegment }: Trace): string | undefined {
  const message =
    httpBufferedTrace?.request ?? (httpStreamedTraceSegment?.['requestHeaders'] as TraceMessage | undefined);
  return message && fieldsOf(message)[':path'];
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
