// envoy.filters.http.admission_control: rejects requests with a probability that grows with the share of recent failures.

import type { AdmissionControl } from '../../../../config/generated/api.js';
import { type HttpFilterExtension, obeyed, Runtime, reportMistakes } from '../../../sdk.js';
import { AdmissionControlFilter, type Admissions } from './admission-control-filter.js';
import { RecentOutcomes } from './recent-outcomes.js';
import { AdmissionRules } from './rules.js';
import { AdmissionStats } from './stats.js';

const MESSAGE = 'envoy.extensions.filters.http.admission_control.v3.AdmissionControl';

export const admissionControl: HttpFilterExtension<AdmissionControl> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.admission_control',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: obeyed(
      'enabled',
      'success_criteria',
      'sampling_window',
      'aggression',
      'sr_threshold',
      'rps_threshold',
      'max_rejection_probability',
    ),
    [`${MESSAGE}.SuccessCriteria`]: obeyed('http_criteria', 'grpc_criteria'),
    [`${MESSAGE}.SuccessCriteria.HttpCriteria`]: obeyed('http_success_status'),
    [`${MESSAGE}.SuccessCriteria.GrpcCriteria`]: obeyed('grpc_success_status'),
    'envoy.type.v3.Int32Range': obeyed('start', 'end'),
  },
  validate(config, report) {
    reportMistakes(report, '', () => new AdmissionRules(config as AdmissionControl, new Runtime()));
  },
  scopes: (_config, { statPrefix }) => [{ prefix: `${statPrefix}admission_control.`, layout: AdmissionStats }],
  createOnWorker(config, worker, { statPrefix }) {
    const rules = new AdmissionRules(config, worker.runtime);
    const stats = worker.scope(`${statPrefix}admission_control.`, AdmissionStats);
    // Each worker has its own view of the recent requests, as in Envoy.
    const admissions: Admissions = { worker, rules, outcomes: new RecentOutcomes(rules.windowMs), stats };
    return { create: (stream) => new AdmissionControlFilter(stream, admissions) };
  },
};
