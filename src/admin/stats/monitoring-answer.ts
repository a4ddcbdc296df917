// The monitoring form of stats: /stats?format=monitoring and /stats/monitoring.

import type { MonitoringHistograms } from '../../stats/monitoring/render-monitoring.js';
import { type AdminParameter, type AdminRequest, type AdminResponse, Refusal } from '../admin-handler.js';
import type { AdminServices } from '../admin-services.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';
import { statsBody } from '../render/stats-body.js';
import { statsQuery, unknownBuckets, unknownFormat } from './stats-parameters.js';

const PROTOBUF_TYPE = 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited';
const DEFAULT_MAX_BUCKETS = 20;
const FORMATS = ['html', 'active-html', 'json', 'monitoring', 'prometheus', 'text'];

/** Parameters in /help, besides those of all forms. */
export const MONITORING_PARAMETERS: readonly AdminParameter[] = [
  {
    name: 'text_readouts',
    help: 'Render text_readouts as new gauges with value 0 (increases the number of time series)',
    isFlag: true,
  },
  {
    name: 'native_histogram_max_buckets',
    help: `Most buckets of a native histogram (default ${DEFAULT_MAX_BUCKETS})`,
  },
  { name: 'prom_protobuf', help: 'Answer in protobuf, whatever the Accept header says', isFlag: true },
];
export const MONITORING_BUCKETS: AdminParameter = {
  name: 'histogram_buckets',
  help: 'Histogram bucket display mode',
  choices: ['cumulative', 'summary', 'monitoringnative'],
  preset: 'cumulative',
};

/** Answers a request. Throws a Refusal for unsupported parameters (FACTS §3.1). */
export async function monitoringAnswer(request: AdminRequest, services: AdminServices): Promise<AdminResponse> {
  const { query, headers } = request;
  // On its own path the format changes nothing, but it must exist, as in Envoy.
  if (!FORMATS.includes(query.get('format') ?? 'text')) throw unknownFormat();
  const isProtobuf = query.has('prom_protobuf') || prefersProtobuf(headers.accept);
  const rendering = {
    ...statsQuery(query),
    form: 'monitoring',
    isProtobuf,
    histograms: histogramsOf(query, isProtobuf),
    maxBuckets: maxBuckets(query),
    textReadouts: query.has('text_readouts'),
  } as const;
  return {
    body: await statsBody(services, rendering),
    ...(isProtobuf ? { contentType: PROTOBUF_TYPE } : {}),
  };
}

/** Returns whether protobuf precedes text among the accepted types; their weights are ignored. */
function prefersProtobuf(accept = ''): boolean {
  for (const range of accept.split(',')) {
    const type = range.split(';', 1)[0]!.trim().toLowerCase();
    if (type === 'application/vnd.google.protobuf') return true;
    if (type === 'text/plain') return false;
  }
  return false;
}

function histogramsOf(query: QueryParameters, isProtobuf: boolean): MonitoringHistograms {
  switch (query.get('histogram_buckets')) {
    case undefined:
    case 'cumulative':
      return 'cumulative';
    case 'summary':
    case 'none':
      return 'summary';
    case 'disjoint':
    case 'detailed':
      throw new Refusal(400, 'unsupported prometheus histogram bucket mode');
    case 'monitoringnative':
    case 'prometheusnative':
      if (isProtobuf) return 'native';
      throw new Refusal(400, 'unsupported prometheusnative histogram type when not using protobuf exposition format');
    default:
      throw unknownBuckets();
  }
}

function maxBuckets(query: QueryParameters): number {
  const text = query.get('native_histogram_max_buckets');
  if (text === undefined) return DEFAULT_MAX_BUCKETS;
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count === 0) throw new Refusal(400, 'native_histogram_max_buckets must be a whole number from 1 to 999999999\n');
  return count;
}
