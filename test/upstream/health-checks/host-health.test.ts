import t from 'tap';
import { HostHealth, Outcome } from '../../../src/upstream/health-checks/host-health.js';
import { HealthFlag, healthFlagsText } from '../../../src/upstream/hosts/health-flags.js';

/** Returns the health after these outcomes, and whether each left a threshold unreached. */
function checked(outcomes: readonly Outcome[], thresholds = { unhealthy: 3, healthy: 2 }, isPending = false) {
  const health = new HostHealth(thresholds, { isPending });
  const edges = outcomes.map((outcome) => health.take(outcome));
  return { health, edges, text: healthFlagsText(health.flags) };
}

t.test('a host is unhealthy before its first check, which decides alone', async (t) => {
  t.equal(checked([]).text, '/failed_active_hc');
  t.same(checked([Outcome.Passed]).edges, [false]);
  t.equal(checked([Outcome.Passed]).text, 'healthy');
  t.same(checked([Outcome.NetworkFailure]).edges, [false]);
  t.equal(checked([Outcome.NetworkFailure]).text, '/failed_active_hc');
});

t.test('a pending host is counted after any check', async (t) => {
  t.equal(checked([], undefined, true).text, '/failed_active_hc/pending_active_hc');
  t.equal(checked([Outcome.Passed], undefined, true).text, 'healthy');
  const failed = checked([Outcome.Failed], undefined, true);
  t.same([failed.text, failed.edges], ['/failed_active_hc', [false]]);
});

t.test('failures count up to the threshold, and a passed check resets the count', async (t) => {
  const { text, edges } = checked([
    Outcome.Passed,
    Outcome.NetworkFailure,
    Outcome.Timeout,
    Outcome.Passed,
    Outcome.NetworkFailure,
    Outcome.FailedRetriably,
  ]);
  t.same([text, edges], ['healthy', [false, true, true, false, true, true]]);
  const failed = checked([Outcome.Passed, Outcome.NetworkFailure, Outcome.Timeout, Outcome.FailedRetriably]);
  t.same([failed.text, failed.edges.at(-1)], ['/failed_active_hc', false]);
});

t.test('an unhealthy response makes a host unhealthy at once', async (t) => {
  t.equal(checked([Outcome.Passed, Outcome.Failed]).text, '/failed_active_hc');
});

t.test('a host becomes healthy after the threshold of consecutive passed checks', async (t) => {
  const { text, edges } = checked([
    Outcome.Passed,
    Outcome.Failed,
    Outcome.Passed,
    Outcome.Failed,
    Outcome.Passed,
    Outcome.Passed,
  ]);
  t.same([text, edges], ['healthy', [false, false, true, false, true, false]]);
});

t.test('the timeout flag is set while the last failure of an unhealthy host was a timeout', async (t) => {
  const timeout = '/failed_active_hc/active_hc_timeout';
  t.equal(checked([Outcome.Timeout]).text, timeout);
  t.equal(checked([Outcome.Passed, Outcome.Timeout]).text, 'healthy');
  t.equal(checked([Outcome.Passed, Outcome.Timeout, Outcome.Timeout, Outcome.Timeout]).text, timeout);
  t.equal(checked([Outcome.Timeout, Outcome.NetworkFailure]).text, '/failed_active_hc');
  t.equal(checked([Outcome.Timeout, Outcome.Failed, Outcome.Timeout]).text, timeout);
  t.equal(checked([Outcome.Timeout, Outcome.Passed]).text, timeout, 'a threshold is not reached');
  t.equal(checked([Outcome.Timeout, Outcome.Passed, Outcome.Passed]).text, 'healthy');
});

t.test('a degraded check counts as passed', async (t) => {
  const degraded = checked([Outcome.Degraded]);
  t.same([degraded.text, degraded.health.isHealthy], ['/degraded_active_hc', true]);
  const failed = checked([Outcome.Failed, Outcome.Degraded]);
  t.same([failed.text, failed.edges], ['/failed_active_hc/degraded_active_hc', [false, true]], 'it needs as many');
  t.equal(checked([Outcome.Passed, Outcome.Degraded, Outcome.Passed]).text, 'healthy');
});

t.test('an immediate failure in traffic excludes a host until it is healthy again', async (t) => {
  const excluded = '/failed_active_hc/excluded_via_immediate_hc_fail';
  t.equal(checked([Outcome.Passed, Outcome.FailedInTraffic]).text, excluded);
  t.equal(checked([Outcome.Passed, Outcome.FailedInTraffic, Outcome.Passed]).text, excluded);
  t.equal(checked([Outcome.Passed, Outcome.FailedInTraffic, Outcome.Passed, Outcome.Passed]).text, 'healthy');
  t.equal(checked([Outcome.FailedInTraffic]).health.flags & HealthFlag.ExcludedViaImmediateFail, 128);
});
