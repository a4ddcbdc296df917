// A proxy with ext_proc filters, one listener for each configuration of the filter.

import type { ProxyProgram } from '../../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  logLines,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  TRAILERS,
  TRAILERS_CLUSTER,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import {
  type Processor,
  type ProcessorCall,
  pass,
  type Question,
  type QuestionKind,
  startProcessor,
} from './processor.js';

export const EXT_PROC = 'type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3';

/** Answers the questions about one path. */
export type Script = (kind: QuestionKind, call: ProcessorCall, question: Question) => void;

export interface ProcessedProxy {
  readonly baton: BatonProcess;
  readonly processor: Processor;
  readonly log: string;
  /** Returns the port of a listener. */
  port(name: string): Promise<number>;
  /** Returns the calls about a path. */
  callsOf(path: string): ProcessorCall[];
  /** Waits for a line of the access log with a text. */
  lineWith(text: string): Promise<string>;
  /** Waits for `count` lines of the access log. */
  lines(count: number): Promise<string[]>;
}

export interface ProxyParts {
  /** Fields of the filter, by the name of its listener. */
  readonly filters: Readonly<Record<string, Config>>;
  /** By path; other requests pass. */
  readonly scripts: Readonly<Record<string, Script>>;
  readonly routes?: readonly Config[];
  readonly logFormat?: string;
  readonly clusters?: readonly Config[];
  readonly listener?: Config;
}

export const LOG_FORMAT = '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n';

/** Starts the processor, a host that echoes requests, and the proxy. */
export async function startProcessedProxy(
  t: Teardown,
  program: ProxyProgram,
  { filters, scripts, routes = [], logFormat = LOG_FORMAT, clusters = [], listener = {} }: ProxyParts,
): Promise<ProcessedProxy> {
  const log = `${tempDir(t)}/log`;
  const processor = await startProcessor(t, (question, kind, call) => {
    const path = pathOf(call).split('?')[0]!;
    (scripts[path] ?? passAll)(kind, call, question);
  });
  const host = await startHost(t);
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: Object.entries(filters).map(([name, fields]) => ({
        ...httpListener(name, 0, manager(name, fields, routes, log, logFormat)),
        ...listener,
      })),
      clusters: [
        staticCluster('host', host.port, TRAILERS_CLUSTER),
        staticCluster('processor', processor.port, HTTP2_CLUSTER),
        ...clusters,
      ],
    }),
  });
  return {
    baton,
    processor,
    log,
    port: (name) => baton.listenerPort(name),
    callsOf: (path) => processor.calls.filter((call) => pathOf(call) === path),
    lineWith: (text) =>
      waitFor(() => logLines(log).find((line) => line.includes(text)), { what: `a line with ${text}` }),
    lines: (count) => waitFor(() => (logLines(log).length >= count ? logLines(log) : undefined), { what: 'log lines' }),
  };
}

function manager(name: string, fields: Config, routes: readonly Config[], log: string, logFormat: string): Config {
  return {
    ...TRAILERS,
    access_log: [fileAccessLog(log, logFormat)],
    route_config: {
      virtual_hosts: [
        { name, domains: ['*'], routes: [...routes, { match: { prefix: '/' }, route: { cluster: 'host' } }] },
      ],
    },
    http_filters: [
      {
        name: 'envoy.filters.http.ext_proc',
        typed_config: {
          '@type': `${EXT_PROC}.ExternalProcessor`,
          message_timeout: '10s',
          ...(fields['http_service'] === undefined && { grpc_service: grpcService() }),
          ...fields,
        },
      },
      ROUTER_FILTER,
    ],
  };
}

/** The service of the processor: its calls have the path of the request as metadata. */
export function grpcService(more: Config = {}): Config {
  const initial_metadata = [{ key: 'x-path', value: '%REQ(:path)%' }];
  return { envoy_grpc: { cluster_name: 'processor' }, initial_metadata, ...more };
}

/** Lets every message pass. */
export function passAll(kind: QuestionKind, call: ProcessorCall): void {
  call.send(pass(kind));
}

function pathOf(call: ProcessorCall): string {
  return String(call.head['x-path'] ?? '');
}

/** A host that answers with the request as JSON; `?size=N`: with N bytes; `?trailers`: also with trailers. */
function startHost(t: Teardown) {
  return startUpstream(t, (request, answer) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => {});
    request.on('end', () => {
      const query = new URL(request.url ?? '', 'http://host').searchParams;
      const { method, url, headers, trailers } = request;
      answer.setHeader('x-host', 'own');
      if (query.has('trailers')) answer.setHeader('trailer', 'x-end');
      const body = Buffer.concat(chunks);
      const echo = JSON.stringify({
        method,
        url,
        headers,
        trailers,
        body: body.toString('latin1'),
        length: body.length,
      });
      answer.write(query.has('size') ? Buffer.alloc(Number(query.get('size')), 'h') : (query.get('body') ?? echo));
      if (query.has('trailers')) answer.addTrailers({ 'x-end': 'host' });
      answer.end();
    });
  });
}
