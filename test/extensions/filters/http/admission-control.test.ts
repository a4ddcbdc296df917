// The arithmetic of admission_control: how many requests are rejected for a share of failures, over a window that moves.

import t from 'tap';
import { RecentOutcomes } from '../../../../src/extensions/filters/http/admission-control/recent-outcomes.js';
import { AdmissionRules } from '../../../../src/extensions/filters/http/admission-control/rules.js';
import { Runtime } from '../../../../src/runtime/runtime.js';

const rules = (config = {}) => new AdmissionRules({ success_criteria: {}, ...config }, new Runtime());
const percent = (value: number) => ({ default_value: { value }, runtime_key: 'a' });

t.test('the probability grows with the share of failures', async (t) => {
  const own = rules({ sr_threshold: percent(50), max_rejection_probability: percent(100) });
  t.equal(own.rejectionProbability(0, 0), 0);
  t.equal(own.rejectionProbability(100, 50), 0);
  t.equal(own.rejectionProbability(99, 25), 0.49);
  t.equal(own.rejectionProbability(99, 0), 0.99);
});

t.test('it is limited, and aggression raises it', async (t) => {
  t.equal(rules().rejectionProbability(9999, 0), 0.8);
  const bent = rules({ max_rejection_probability: percent(100), aggression: { default_value: 2, runtime_key: 'b' } });
  t.ok(Math.abs(bent.rejectionProbability(99, 71.25 * 0.95) - 0.5268) < 0.001);
});

t.test('successes are the configured statuses', async (t) => {
  t.ok(rules().isHttpSuccess(499));
  t.notOk(rules().isHttpSuccess(500));
  t.ok(rules().isGrpcSuccess(16));
  t.notOk(rules().isGrpcSuccess(14));
  const own = rules({
    success_criteria: {
      http_criteria: { http_success_status: [{ start: 200, end: 201 }] },
      grpc_criteria: { grpc_success_status: [14] },
    },
  });
  t.ok(own.isHttpSuccess(200));
  t.notOk(own.isHttpSuccess(201));
  t.ok(own.isGrpcSuccess(14));
  t.notOk(own.isGrpcSuccess(0));
});

t.test('outcomes leave the window after its length', async (t) => {
  const outcomes = new RecentOutcomes(3000);
  for (let ms = 0; ms < 2000; ms += 100) outcomes.record(ms < 1000, ms);
  t.same([outcomes.requests, outcomes.successes], [20, 10]);
  t.equal(outcomes.averageRps(1900), 20);
  t.equal(outcomes.averageRps(2999), 10);
  outcomes.advance(3000);
  t.same([outcomes.requests, outcomes.successes], [10, 0]);
  t.equal(outcomes.averageRps(9000), 0);
  t.same([outcomes.requests, outcomes.successes], [0, 0]);
});
