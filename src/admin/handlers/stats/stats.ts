// GET /stats: all stats, in several formats.

import type { AdminHandler, AdminRequest, AdminResponse } from '../../admin-handler.js';
import type { AdminServices } from '../../admin-services.js';
import { requireHtml } from '../../html/page.js';
import { activeStatsPage, statsPage } from '../../html/stats-page.js';
import { JSON_TYPE } from '../../json.js';
import { statsBody } from '../../render/stats-body.js';
import { monitoringAnswer } from '../../stats/monitoring-answer.js';
import {
  FILTER,
  HISTOGRAM_BUCKETS,
  histogramBuckets,
  SELECTION_PARAMETERS,
  statsQuery,
  USED_ONLY,
  unknownFormat,
} from '../../stats/stats-parameters.js';

type Answer = (request: AdminRequest, services: AdminServices) => Promise<AdminResponse>;

const textAnswer: Answer = async ({ query }, services) => ({
  body: await statsBody(services, { ...statsQuery(query), form: 'text', histogramBuckets: histogramBuckets(query) }),
});

/** The formats by name; default: text. Forms begin with the first one. */
const FORMATS: { readonly [format: string]: Answer } = {
  html: async (request, services) => {
    requireHtml('HTML');
    const { body } = await textAnswer(request, services);
    return statsPage(stats, request.query, body);
  },
  'active-html': async ({ query }) => activeStatsPage(stats, query),
  text: textAnswer,
  json: async ({ query }, services) => ({
    contentType: JSON_TYPE,
    body: await statsBody(services, { ...statsQuery(query), form: 'json', histogramBuckets: histogramBuckets(query) }),
  }),
  monitoring: monitoringAnswer,
};

/** Envoy's names of formats. */
const ALIASES: { readonly [format: string]: string } = { prometheus: 'monitoring' };

export const stats: AdminHandler = {
  path: '/stats',
  mutates: false,
  help: 'print server stats',
  parameters: [
    USED_ONLY,
    FILTER,
    { name: 'format', help: 'Format to use', choices: Object.keys(FORMATS) },
    ...SELECTION_PARAMETERS,
    HISTOGRAM_BUCKETS,
  ],
  handle(request, services) {
    const requested = request.query.get('format') ?? 'text';
    const format = Object.hasOwn(ALIASES, requested) ? ALIASES[requested]! : requested;
    if (!Object.hasOwn(FORMATS, format)) {
      throw unknownFormat();
    }
    return FORMATS[format]!(request, services);
  },
};
