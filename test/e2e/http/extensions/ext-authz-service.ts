// A gRPC authorization service for tests, and the configuration of a proxy that asks it.

import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { encodeJson, loadMessages } from '../../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../../src/grpc/message-reader.js';
import type { ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
  type Teardown,
  tempDir,
} from '../../harness/index.js';

const QUESTION = 'envoy.service.auth.v3.CheckRequest';
const ANSWER = 'envoy.service.auth.v3.CheckResponse';
const types = loadMessages(QUESTION, ANSWER);
export const FILTER = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3';

export interface Question {
  readonly destination: { readonly labels?: Record<string, string> };
  readonly context_extensions?: Record<string, string>;
  readonly metadata_context: { readonly filter_metadata?: Record<string, object> };
  readonly route_metadata_context: { readonly filter_metadata?: Record<string, object> };
  readonly request: {
    readonly http: {
      readonly path: string;
      readonly size?: number;
      readonly headers?: Record<string, string>;
      readonly header_map?: { readonly headers: readonly { readonly key: string; readonly raw_value: Buffer }[] };
      readonly body?: string;
      readonly raw_body?: Buffer;
    };
  };
}

export interface AuthzService {
  readonly port: number;
  readonly questions: Question[];
}

/** Starts a service. `answers`: by path; other requests are allowed, and 'failing' fails the call. */
export async function startAuthzService(
  t: Teardown,
  answers: Readonly<Record<string, object | 'failing'>>,
): Promise<AuthzService> {
  const questions: Question[] = [];
  const server = createServer();
  server.on('stream', (stream) => {
    const reader = new MessageReader(2 ** 20);
    stream.on('error', () => {});
    stream.on('data', (bytes: Buffer) => reader.push(bytes));
    stream.on('end', () => {
      const message = types[QUESTION].decode(reader.next() as Buffer);
      const { attributes } = types[QUESTION].toObject(message, { longs: Number }) as { attributes: Question };
      questions.push(attributes);
      const answer = answers[attributes.request.http.path] ?? { status: { code: 0 } };
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': answer === 'failing' ? '13' : '0' }));
      stream.end(answer === 'failing' ? '' : framed(encodeJson(types[ANSWER], answer as object)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return { port: (server.address() as AddressInfo).port, questions };
}

/** The ext_authz filter of a listener, and the routes and filters around it. */
export interface AuthzListener {
  /** Fields of ExtAuthz; with an `http_service` there is no gRPC service. */
  readonly filter: Config;
  readonly routes?: readonly Config[];
  /** Filters before it. */
  readonly before?: readonly Config[];
}

/** Starts a proxy whose clusters are `host`, `authz` and `http-authz`. */
export async function startAuthzProxy(
  t: Teardown,
  program: ProxyProgram,
  { authz, http = authz }: { readonly authz: number; readonly http?: number },
  listeners: Readonly<Record<string, AuthzListener>>,
) {
  const log = `${tempDir(t)}/log`;
  const host = await startEchoUpstream(t);
  const format =
    '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %FILTER_STATE(authz.shadow)% %FILTER_STATE(authz.shadow:FIELD:check_result)% %DYNAMIC_METADATA(envoy.filters.http.ext_authz:x-md)%\n';
  const built = Object.entries(listeners).map(([name, { before = [], filter, routes }]) =>
    httpListener(name, 0, {
      access_log: [fileAccessLog(log, format)],
      route_config: {
        virtual_hosts: [
          { name: 'all', domains: ['*'], routes: routes ?? [{ match: { prefix: '/' }, route: { cluster: 'host' } }] },
        ],
      },
      http_filters: [
        ...before,
        {
          name: 'authz',
          typed_config: {
            '@type': `${FILTER}.ExtAuthz`,
            transport_api_version: 'V3',
            ...(filter['http_service'] === undefined && {
              grpc_service: { envoy_grpc: { cluster_name: 'authz' }, timeout: '5s' },
            }),
            ...filter,
          },
        },
        ROUTER_FILTER,
      ],
    }),
  );
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: {
      ...bootstrap({
        listeners: built,
        clusters: [
          staticCluster('host', host.port),
          staticCluster('authz', authz, HTTP2_CLUSTER),
          staticCluster('http-authz', http),
        ],
      }),
      node: { id: 'n', cluster: 'c', metadata: { labels: { zone: 'a', rank: 1 } } },
    },
  });
  const ports: Record<string, number> = {};
  for (const name of Object.keys(listeners)) ports[name] = await baton.listenerPort(name);
  return { baton, log, ports: ports as Readonly<Record<string, number>> };
}
