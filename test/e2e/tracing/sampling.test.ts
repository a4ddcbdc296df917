// Request IDs, headers, fractions and samplers decide which requests are traced, as in Envoy.

import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import { type Config, HTTP2_CLUSTER, staticCluster, type Teardown } from '../harness/index.js';
import { startGrpcCollector } from './collector.js';
import { decodeTraces } from './messages.js';
import { startTracedProxy, type TracedProxyOptions, tracer } from './proxy.js';

const BY_GRPC: Config = { grpc_service: { envoy_grpc: { cluster_name: 'collector' } } };
const PERCENT_0 = { value: 0 };
const id = (start: string, reason = '4') => ({ 'x-request-id': `${start}-48eb-${reason}927-8565-7e435afe01b7` });

interface Setting {
  readonly tracing?: Config;
  readonly otel?: Config;
  readonly manager?: Config;
}

/** A setting, and the requests to send with it. */
type Case = readonly [setting: Setting, requests: readonly Record<string, string>[]];

/**
 * Sends the requests of each case to a listener of its own, and returns, for each, the digit in its request ID, the sampled flag
 * that the host sees, and the counter that counts it.
 */
async function decisions(
  t: Teardown,
  program: ProxyProgram,
  cases: readonly Case[],
  more: Pick<TracedProxyOptions, 'extra' | 'runtime'> = {},
): Promise<string[][]> {
  const collector = await startGrpcCollector(t, decodeTraces);
  const others = cases.map(([{ manager = {}, otel = {}, tracing = {} }], index) => {
    const provider = tracer('opentelemetry', 'OpenTelemetryConfig', { ...BY_GRPC, ...otel });
    return [`case${index}`, { tracing: { provider, ...tracing }, ...manager }] as const;
  });
  const proxy = await startTracedProxy(t, program, {
    tracing: {},
    others: Object.fromEntries(others),
    clusters: [staticCluster('collector', collector.port, HTTP2_CLUSTER)],
    ...more,
  });
  const found: string[][] = [];
  for (const [index, [, requests]] of cases.entries()) {
    const own: string[] = [];
    const name = `case${index}`;
    let before = await counters(proxy.baton, name);
    for (const headers of requests) {
      await proxy.requestOf(name, '/', headers);
      const { traceparent = '', 'x-request-id': requestId = '' } = proxy.seen.at(-1)!;
      const after = await counters(proxy.baton, name);
      const counted = Object.keys(after).filter((counter) => after[counter] !== before[counter]);
      before = after;
      own.push([requestId[14] ?? '?', (traceparent as string).slice(-2) || 'none', ...counted].join(' '));
    }
    found.push(own);
  }
  return found;
}

async function counters(
  baton: { admin(path: string): Promise<{ body: string }> },
  name: string,
): Promise<Record<string, string>> {
  const { body } = await baton.admin(`/stats?filter=^http.${name}.tracing`);
  const lines = body.trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.replace(/.*tracing\./, '').split(': ') as [string, string]));
}

const TRACED = '9 01 random_sampling';
const UNTRACED = '4 00 not_traceable';

const uuid = (fields: Config) => ({
  request_id_extension: {
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig', ...fields },
  },
});

besideEnvoy('the request ID decides', async (t, program) => {
  const requests = [{}, id('00000031'), id('00000031', '9'), id('00000031', 'a'), id('00000031', 'b'), id('0', 'c')];
  const all = await decisions(t, program, [
    [{}, requests],
    [{ tracing: { random_sampling: { value: 0.5 } } }, [id('00000031'), id('00000032'), id('00002711')]],
    [{ tracing: { overall_sampling: PERCENT_0 } }, [id('00000031'), id('00000031', 'a')]],
    [{ manager: uuid({ pack_trace_reason: false }) }, [id('00000031'), id('00000031', '9'), {}]],
    [
      {
        tracing: { random_sampling: PERCENT_0 },
        manager: uuid({ use_request_id_for_trace_sampling: false }),
      },
      [id('00000031')],
    ],
    [{ manager: { generate_request_id: false } }, [{}, id('00000031')]],
    // Any ID that begins with a number decides.
    [
      {},
      ['00000031', '0000003', '00000031-and-more-than-the-36-characters-of-a-uuid'].map((text) => ({
        'x-request-id': text,
      })),
    ],
  ]);
  t.strictSame(all, [
    [TRACED, TRACED, TRACED, 'a 01 service_forced', 'b 01 client_enabled', '6 00 not_traceable'],
    [TRACED, UNTRACED, TRACED],
    [UNTRACED, UNTRACED],
    ['4 01 random_sampling', TRACED, '4 01 random_sampling'],
    ['4 01 random_sampling'],
    ['? 00 not_traceable', TRACED],
    ['? 01 random_sampling', '? 00 not_traceable', 'o 01 random_sampling'],
  ]);
});

besideEnvoy('runtime values replace the fractions', async (t, program) => {
  const runtime = { 'tracing.random_sampling': 50 };
  const requests = [id('0000003b'), id('00000031'), id('000000c8')];
  t.strictSame(await decisions(t, program, [[{}, requests]], { runtime }), [[UNTRACED, TRACED, TRACED]]);
});

const range = (address: string) => ({
  use_remote_address: true,
  internal_address_config: { cidr_ranges: [{ address_prefix: address, prefix_len: 8 }] },
});

besideEnvoy('only internal clients may force a trace', async (t, program) => {
  const tracing = { random_sampling: PERCENT_0 };
  const requests = [id('00000031', '9'), { 'x-envoy-force-trace': '1' }];
  const outside = range('10.0.0.0');
  const all = await decisions(t, program, [
    [{ tracing, manager: outside }, requests],
    [{ tracing, manager: { ...outside, preserve_external_request_id: true } }, requests],
    [{ tracing, manager: range('127.0.0.0') }, [...requests, { ...requests[1], 'x-client-trace-id': 'x' }]],
    [{ tracing: { ...tracing, client_sampling: PERCENT_0 } }, [{ 'x-client-trace-id': 'x' }]],
  ]);
  t.strictSame(all, [
    [UNTRACED, UNTRACED],
    [UNTRACED, UNTRACED],
    [TRACED, 'a 01 service_forced', 'b 01 client_enabled'],
    [UNTRACED],
  ]);
});

const SAMPLERS = 'type.googleapis.com/envoy.extensions.tracers.opentelemetry.samplers.v3';
const sampler = (name: string, fields: Config = {}) => ({
  name: 'sampler',
  typed_config: { '@type': `${SAMPLERS}.${name}SamplerConfig`, ...fields },
});
const parent = (flags: string, traceId = '0af7651916cd43dd8448eb211c80319c') => ({
  traceparent: `00-${traceId}-b7ad6b7169203331-${flags}`,
});

besideEnvoy('a sampler decides about traced requests', async (t, program) => {
  const requests = [{}, parent('00'), parent('01')];
  const otel = (name: string, fields?: Config) => ({ otel: { sampler: sampler(name, fields) } });
  const none = sampler('TraceIdRatioBased', {});
  const starts = ['0000000000000001', 'ffffffffffffffff', '7fffffffffffffff', '8000000000000001'];
  const traces = starts.map((start) => parent('01', `${start}7fffffffffffffff`));
  const all = await decisions(t, program, [
    [otel('AlwaysOn'), requests],
    [otel('ParentBased', { wrapped_sampler: none }), requests],
    [{ ...otel('AlwaysOn'), tracing: { random_sampling: PERCENT_0 } }, requests],
    [otel('TraceIdRatioBased', { sampling_percentage: { numerator: 50 } }), traces],
  ]);
  const flags = all.map((texts) => texts.map((text) => text.split(' ')[1]).join(' '));
  t.strictSame(flags, ['01 01 01', '00 00 01', '00 00 00', '01 01 00 00']);
});

besideEnvoy('without a provider requests are sampled, but have no spans', async (t, program) => {
  const cases: Case[] = [[{ tracing: { provider: undefined } }, [{}]]];
  t.strictSame(await decisions(t, program, cases), [['9 none random_sampling']]);
  const http = tracer('opentelemetry', 'OpenTelemetryConfig', BY_GRPC);
  t.strictSame(await decisions(t, program, cases, { extra: { tracing: { http } } }), [[TRACED]]);
});
